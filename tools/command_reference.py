"""The reference of commands: python tools/command_reference.py > docs/commands.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer

from understudy.cli.app import app
from understudy.cli.methods import describe_options, description_of
from understudy.methods import METHODS as LISTED

INTRODUCTION = """\
# Commands

Written by `python tools/command_reference.py`. Exit codes: 0 ok, 1 refused or failed, 2 usage,
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
