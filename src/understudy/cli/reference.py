"""What the program says of itself: the verb methods, and docs/commands.md (python -m understudy.cli.reference)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
    from understudy.cli.options import options_of
    from understudy.methods import METHODS

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


INTRODUCTION = """\
# Commands

Written by `python -m understudy.cli.reference`. Exit codes: 0 ok, 1 refused or failed, 2 usage,
3 budget refused. Every command takes `--json`. Errors say what, which rule and how to mend it, and
never quote a cell.
"""
METHODS = """
# Methods

`plan`, `release` and `synth` also take the options of the method that they are given with `--method`;
`understudy methods show NAME` prints them. By default tables are for `dp-anova` and images for `dp-spectrum`.
"""


def write_reference() -> str:
    """Every command with its arguments and options, in Markdown."""
    from understudy.cli.app import app
    from understudy.methods import METHODS as LISTED

    verbs = "".join(_pages(typer.main.get_command(app), "understudy"))
    return INTRODUCTION + verbs + METHODS + "".join(_method_page(name, method) for name, method in LISTED.items())


def _pages(command: Any, name: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        if command.invoke_without_command and name != "understudy":
            yield f"\n## {name}\n\n{command.help}\n\n`{name} [OPTIONS]`\n"
        for child, inner in command.commands.items():
            yield from _pages(inner, f"{name} {child}")
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help" and not p.hidden]
    usage = " ".join([name, *(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments)])
    yield f"\n## {name}\n\n{command.help}\n\n`{usage} [OPTIONS]`\n\n| | |\n|---|---|\n"
    for parameter in arguments:
        yield f"| `{parameter.name.upper()}` | {parameter.help} |\n"
    for parameter in options:
        flags = ", ".join(f"`{flag}`" for flag in parameter.opts)
        words = parameter.help.replace("|", r"\|")  # which would end a cell
        yield f"| {flags} | {words}{_default(parameter)} |\n"


def _method_page(name: str, method: Any) -> str:
    rows = [f"| `{each['flag']}` | {each['help']} |\n" for each in describe_options(name)]
    return f"\n## {name}\n\n{description_of(method)}\n\n| | |\n|---|---|\n{''.join(rows)}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return " Required."
    if parameter.is_flag or parameter.default is None or "default" in parameter.help:
        return ""
    return f" Default: `{parameter.default}`."


if __name__ == "__main__":
    sys.stdout.write(write_reference())
