"""The program: its verbs, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from understudy import __version__
from understudy.cli import (
    classify,
    compare,
    demo,
    encoder,
    evaluate,
    generator,
    grid,
    ledger,
    parties,
    plan,
    query,
    release,
    schema,
    verify,
)
from understudy.cli import methods as listed
from understudy.cli.options import PlanningCommand, as_command
from understudy.cli.output import AS_JSON, Outcome, report

app = typer.Typer(
    name="understudy",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
INTERRUPTED = 130  # exit code of shells for Ctrl-C: 128 and the number of the signal
STOPPED = """stopped. What a ledger was charged stays charged: understudy ledger show FILE.
With --checkpoint the same command goes on from the files that are done.
"""
READS = "Reads private data"
FREE = "Free for ever"
PLANNING = (release.release, release.synth, plan.plan)


@app.callback(invoke_without_command=True, no_args_is_help=True)
def understudy(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Differentially private synthetic data from one certified release."""
    if version:
        sys.stdout.write(f"understudy {__version__}\n")
        raise typer.Exit


def _add(program: typer.Typer, *verbs: Callable[..., Outcome | None], panel: str | None = None) -> None:
    for verb in verbs:
        kind = PlanningCommand if verb in PLANNING else None
        program.command(verb.__name__, cls=kind, rich_help_panel=panel)(as_command(verb))


def _add_group(name: str, words: str, *verbs: Callable[..., Outcome | None]) -> typer.Typer:
    group = typer.Typer(help=words, no_args_is_help=True)
    _add(group, *verbs)
    app.add_typer(group, name=name, rich_help_panel=FREE)
    return group


_add(app, release.release, release.synth, classify.classify, release.append, panel=READS)
_add(app, parties.partial, parties.merge, evaluate.evaluate, panel=READS)
_add(app, plan.plan, generator.fit, generator.sample, grid.grid, query.query, generator.export, panel=FREE)
_add(app, verify.verify, evaluate.report, classify.predict, classify.explain, panel=FREE)
_add(app, compare.compare, demo.demo, panel=FREE)
_add_group("schema", "Draft and check public schemas.", schema.draft, schema.check)
_add_group(
    "encoder", "Public networks that features of images are taken from.", encoder.train, encoder.private, encoder.show
)
methods = _add_group("methods", "Methods, and the options of each.", listed.show)
methods.callback(invoke_without_command=True, no_args_is_help=False)(as_command(listed.methods))
_add_group("ledger", "A budget for all releases from one table.", ledger.init, ledger.show)


def main() -> None:
    """Run the program: 0 ok, 1 refused or failed, 2 usage, 3 budget refused."""
    AS_JSON.set("--json" in sys.argv)  # refusals of the command line itself are told in that form, too
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:
            sys.stderr.write(STOPPED)
    except Exception as error:
        code = report(error)
    sys.exit(code)
