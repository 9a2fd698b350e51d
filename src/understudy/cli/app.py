"""The program: its verbs, and how it ends."""

from __future__ import annotations

import os
import sys
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
    reference,
    release,
    schema,
    verify,
)
from understudy.cli.options import PlanningCommand
from understudy.cli.output import report_refusal, report_surprise
from understudy.errors import InputError, UnderstudyError, UsageError

app = typer.Typer(
    name="understudy",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
INTERRUPTED = 130
STOPPED = """stopped. What a ledger was charged stays charged: understudy ledger show FILE.
With --checkpoint the same command goes on from the files that are done.
"""
READS = "Reads private data"
FREE = "Free for ever"


@app.callback(invoke_without_command=True, no_args_is_help=True)
def understudy(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Differentially private synthetic data from one certified release."""
    if version:
        sys.stdout.write(f"understudy {__version__}\n")
        raise typer.Exit


app.command("release", cls=PlanningCommand, rich_help_panel=READS)(release.release)
app.command("synth", cls=PlanningCommand, rich_help_panel=READS)(release.synth)
app.command("classify", rich_help_panel=READS)(classify.classify)
app.command("append", rich_help_panel=READS)(release.append)
app.command("partial", rich_help_panel=READS)(parties.partial)
app.command("merge", rich_help_panel=READS)(parties.merge)
app.command("evaluate", rich_help_panel=READS)(evaluate.evaluate)
app.add_typer(schema.app, name="schema", rich_help_panel=FREE)
app.add_typer(encoder.app, name="encoder", rich_help_panel=FREE)
app.add_typer(reference.app, name="methods", rich_help_panel=FREE)
app.command("plan", cls=PlanningCommand, rich_help_panel=FREE)(plan.plan)
app.command("fit", rich_help_panel=FREE)(generator.fit)
app.command("sample", rich_help_panel=FREE)(generator.sample)
app.command("grid", rich_help_panel=FREE)(grid.grid)
app.command("query", rich_help_panel=FREE)(query.query)
app.command("export", rich_help_panel=FREE)(generator.export)
app.command("verify", rich_help_panel=FREE)(verify.verify)
app.command("report", rich_help_panel=FREE)(evaluate.report)
app.command("predict", rich_help_panel=FREE)(classify.predict)
app.command("explain", rich_help_panel=FREE)(classify.explain)
app.command("compare", rich_help_panel=FREE)(compare.compare)
app.add_typer(ledger.app, name="ledger", rich_help_panel=FREE)
app.command("demo", rich_help_panel=FREE)(demo.demo)


def main() -> None:
    """Run the program: 0 ok, 1 refused or failed, 2 usage, 3 budget refused.

    An exception that nobody foresaw is reported by its type and place only, because its
    message might quote a private cell.
    """
    as_json = "--json" in sys.argv
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:
            sys.stderr.write(STOPPED)
        sys.exit(code)
    except UnderstudyError as refusal:
        sys.exit(report_refusal(refusal, as_json=as_json))
    except MemoryError:
        short = UsageError("memory", "there is less than this needs", "Ask for less at a time")
        sys.exit(report_refusal(short, as_json=as_json))
    except OSError as failure:
        sys.exit(_report_system(failure, as_json=as_json))
    except Exception as surprise:
        sys.exit(_report_other(surprise, as_json=as_json))


def _report_system(failure: OSError, *, as_json: bool) -> int:
    """What the system says of a path, a disk or a right: its words for the number of an error hold no cell."""
    if failure.errno is None:
        return report_surprise(failure, as_json=as_json)
    words = f"the system refuses it: {os.strerror(failure.errno).lower()}"
    refused = InputError("a file or directory", words, "Check names, rights and room on the disk")
    return report_refusal(refused, as_json=as_json)


def _report_other(error: Exception, *, as_json: bool) -> int:
    """The parser's own errors are about arguments and may be shown; others may quote cells."""
    words = getattr(error, "format_message", None)
    if words is not None and not words():  # no arguments: the help has been shown
        return UsageError.exit_code
    if words is not None:
        is_pattern = "unexpected extra argument" in words()
        remedy = "Put a pattern of files in quotes, or see --help" if is_pattern else "See --help"
        misuse = UsageError("command line", words().rstrip(".?"), remedy)
        return report_refusal(misuse, as_json=as_json)
    return report_surprise(error, as_json=as_json)
