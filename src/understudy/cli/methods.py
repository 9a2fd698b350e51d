"""The verb methods: which methods there are, and the options of each."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, unmarked, verbatim

KINDS = {bool: "", int: "whole number", float: "number", str: "text", Path: "path", list[str]: "text"}

app = typer.Typer(help="Methods, and the options of each.")


@app.callback(invoke_without_command=True)
def methods(ctx: typer.Context, as_json: opt.AsJson = False) -> None:
    """List the methods, or show the options of one."""
    if ctx.invoked_subcommand is not None:
        return
    from understudy.methods import METHODS

    found = {name: summary_of(method) for name, method in METHODS.items()}
    lines = [f"[bold]{name:<15}[/bold] {verbatim(words)}" for name, words in found.items()]
    lines.append("Options of one: [bold]understudy methods show NAME[/bold]")
    emit({"methods": found}, lines, as_json=as_json)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="Name of a method, such as dp-hp.")], as_json: opt.AsJson = False
) -> None:
    """Show the options that a method adds to those of plan, release and synth."""
    from understudy.methods import METHODS, find_method

    method = find_method(name)
    description, options = description_of(METHODS[method]), describe_options(method)
    lines = [f"[bold]{method}[/bold]: {unmarked(description)}"]
    lines += [f"  {each['flag']:<22} {verbatim(each['help'])}" for each in options]
    emit({"method": method, "description": description, "options": options}, lines, as_json=as_json)


def summary_of(method: Any) -> str:
    """The first sentence of a method's docstring."""
    return str(method.__doc__).strip().splitlines()[0]


def description_of(method: Any) -> str:
    """A method's docstring without its arguments."""
    return cleandoc(method.__doc__).partition("\n\nArgs:")[0]


def describe_options(name: str) -> list[dict[str, Any]]:
    """The options of a method as help and the reference of commands show them."""
    from understudy.methods import METHODS
    from understudy.methods.options import options_of

    return [
        {
            "flag": each.flag,
            "takes": ""
            if each.takes is bool
            else getattr(each.takes, "__name__", "text").replace("str", "text").lower(),
            "values": list(each.values),
            "help": each.option.help,
        }
        for each in options_of(METHODS[name]).values()
    ]
