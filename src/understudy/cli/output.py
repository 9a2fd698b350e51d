"""How commands speak: tables for people, one JSON object for programs, errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from understudy.errors import visible

if TYPE_CHECKING:
    from understudy.arrays import LossProgress, ReadProgress, StageProgress
    from understudy.errors import UnderstudyError


def emit(document: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    """Print the outcome once, in the form that was asked for."""
    if as_json:
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
        return
    from rich.console import Console

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def verbatim(value: object) -> str:
    """A name or path inside a line: its square brackets are no markup, and no terminal acts on it."""
    return unmarked(visible(str(value)))


def unmarked(text: str) -> str:
    """Lines of text whose square brackets are no markup."""
    from rich.markup import escape

    return escape(text)


def printable(text: str) -> str:
    """Words of somebody else's file inside a line: what would steer a terminal is spelt out."""
    spelt = [c if c.isprintable() else c.encode("unicode_escape").decode() for c in text]
    return verbatim("".join(spelt))


def table(title: str, headings: list[str], rows: list[list[str]]) -> str:
    """A small table as text."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(visible(title)), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for i, heading in enumerate(headings):
        justify: Literal["left", "right"] = "left" if i == 0 else "right"
        drawn.add_column(Text(visible(heading)), justify=justify, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(visible(cell)) for cell in row))
    console = Console(width=min(100, Console().width))
    with console.capture() as capture:
        console.print(drawn)
    return unmarked(capture.get().rstrip("\n"))


def report_refusal(refusal: UnderstudyError, *, as_json: bool) -> int:
    """Say what was refused and how to mend it; give the exit code."""
    if as_json:
        fields = {"where": refusal.where, "rule": refusal.rule, "remedy": refusal.remedy}
        sys.stderr.write(json.dumps({"error": fields}) + "\n")
    else:
        sys.stderr.write(f"refused: {refusal}\n")
    return refusal.exit_code


def report_surprise(surprise: Exception, *, as_json: bool) -> int:
    """Name the type and the place of an unforeseen error, and nothing that it says."""
    place, trace = "", surprise.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("understudy"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    words = f"internal error: {type(surprise).__name__} at {place}"
    remedy = "Details are withheld because they may quote private cells; please report this line"
    if as_json:
        sys.stderr.write(json.dumps({"error": {"where": place, "rule": words, "remedy": remedy}}) + "\n")
    else:
        sys.stderr.write(f"{words}. {remedy}.\n")
    return 1


@contextmanager
def _bar(*columns: str, as_json: bool, transient: bool = True, **fields: Any) -> Iterator[Callable[..., None] | None]:
    """A bar of rich's columns, and texts, on a terminal that a person looks at and nowhere else; call it to update."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    made = [getattr(progress, name)() if hasattr(progress, name) else progress.TextColumn(name) for name in columns]
    with progress.Progress(*made, console=Console(stderr=True), transient=transient) as bar:
        task = bar.add_task("reading", total=None, **fields)
        yield partial(bar.update, task)


@contextmanager
def waiting(words: str, *, as_json: bool) -> Iterator[None]:
    """A spinner while private rows are read; it shows time, never how many rows there are."""
    with _bar("SpinnerColumn", words, "TimeElapsedColumn", as_json=as_json):
        yield


@contextmanager
def reading_bar(*, as_json: bool) -> Iterator[ReadProgress | None]:
    """A bar with the share that is done and the time left.

    It shows no number of rows nor a speed, which times time would be one; it is wiped when the pass ends, and never
    shown where output is kept, in a file or a log.
    """
    columns = ("SpinnerColumn", "reading private rows", "BarColumn", "TimeElapsedColumn", "left", "TimeRemainingColumn")
    with _bar(*columns, as_json=as_json) as update:

        def progress(share: float | None) -> None:
            if update is not None:
                update(total=None if share is None else 1.0, completed=share or 0.0)

        yield None if update is None else progress


@contextmanager
def training_bar(*, as_json: bool) -> Iterator[LossProgress | None]:
    """A bar with the loss and the time left."""
    columns = (
        "training",
        "BarColumn",
        "MofNCompleteColumn",
        "loss {task.fields[loss]:.5f}",
        "TimeElapsedColumn",
        "left",
        "TimeRemainingColumn",
    )
    with _bar(*columns, as_json=as_json, transient=False, loss=float("nan")) as update:

        def progress(done: int, steps: int, loss: float) -> None:
            if update is not None:
                update(completed=done, total=steps, loss=loss)

        yield None if update is None else progress


@contextmanager
def stage_bar(*, as_json: bool) -> Iterator[StageProgress | None]:
    """A bar that names what is being done, how far it is and how long it has taken."""
    columns = ("{task.description:<28}", "BarColumn", "MofNCompleteColumn", "TimeElapsedColumn")
    with _bar(*columns, as_json=as_json) as update:

        def progress(stage: str, done: int, total: int) -> None:
            if update is not None:
                update(description=stage, completed=done, total=total)

        yield None if update is None else progress
