"""The verb that lists methods and their options."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import Outcome, unmarked, verbatim


def methods(ctx: typer.Context) -> Outcome | None:
    """List the methods, or show the options of one."""
    if ctx.invoked_subcommand is not None:
        return None
    from understudy.methods import METHODS

    found = {name: description_of(method).splitlines()[0] for name, method in METHODS.items()}
    lines = [f"[bold]{name:<15}[/bold] {verbatim(words)}" for name, words in found.items()]
    return {"methods": found}, [*lines, "Options of one: [bold]understudy methods show NAME[/bold]"]


def show(name: Annotated[str, typer.Argument(help="Name of a method, such as dp-hp.")]) -> Outcome:
    """Show the options that a method adds to those of plan, release and synth."""
    from understudy.methods import METHODS, find_method

    method = find_method(name)
    description, options = description_of(METHODS[method]), describe_options(method)
    lines = [f"[bold]{method}[/bold]: {unmarked(description)}"]
    lines += [f"  {each['flag']:<22} {verbatim(each['help'])}" for each in options]
    return {"method": method, "description": description, "options": options}, lines


def description_of(method: Any) -> str:
    """A method's docstring without its arguments."""
    return cleandoc(method.__doc__).partition("\n\nArgs:")[0]


def describe_options(name: str) -> list[dict[str, Any]]:
    """The options of a method as help and the reference of commands show them."""
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
        for each in opt.options_of(METHODS[name]).values()
    ]
