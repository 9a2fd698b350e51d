"""How commands speak: tables for people, one JSON object for programs, errors on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Literal

from understudy.errors import InputError, UnderstudyError, UsageError, visible

if TYPE_CHECKING:
    from understudy.arrays import LossProgress, ReadProgress, StageProgress

Outcome = tuple[dict[str, Any], list[str]]
"""What a verb has to say: a document for programs, and the same in lines for people."""

AS_JSON: ContextVar[bool] = ContextVar("as_json", default=False)
"""Whether the running command was given --json."""


def emit(document: dict[str, Any], lines: list[str]) -> None:
    """Print the outcome once, in the form that was asked for."""
    if AS_JSON.get():
        sys.stdout.write(json.dumps(_plain(document), indent=1) + "\n")
        return
    from rich.console import Console

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def _plain(value: Any) -> Any:
    """A document as JSON can hold it: paths as text, and null where a number is not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, os.PathLike):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def facts(named: Mapping[str, object]) -> list[str]:
    """Lines of a name and a value each; a list is a line for each of its values, and None is no line."""
    listed = {name: value if isinstance(value, list) else [value] for name, value in named.items()}
    return [f"  {name:<12} {verbatim(each)}" for name, values in listed.items() for each in values if each is not None]


def verbatim(value: object) -> str:
    """A name or path inside a line: its square brackets are no markup, and no terminal acts on it."""
    return unmarked(visible(str(value)))


def unmarked(text: str) -> str:
    """Lines of text whose square brackets are no markup."""
    from rich.markup import escape

    return escape(text)


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


def report(error: Exception) -> int:
    """Say what was refused and how to mend it, or that something broke; give the exit code.

    An exception that nobody foresaw is reported by its type and place only, because its message might quote a
    private cell.
    """
    if _parsers_words(error) == "":  # no arguments: the help has been shown
        return UsageError.exit_code
    refusal = _refusal_of(error)
    words = f"refused: {refusal}"
    if refusal is None:
        place = _place_of(error)
        rule = f"internal error: {type(error).__name__} at {place}"
        remedy = "Details are withheld because they may quote private cells; please report this line"
        refusal, words = UnderstudyError(place, rule, remedy), f"{rule}. {remedy}."
    fields = {"where": refusal.where, "rule": refusal.rule, "remedy": refusal.remedy}
    sys.stderr.write((json.dumps({"error": fields}) if AS_JSON.get() else words) + "\n")
    return refusal.exit_code


def _refusal_of(error: Exception) -> UnderstudyError | None:
    """What a person can act on: a refusal, or an error whose words hold no cell."""
    if isinstance(error, UnderstudyError):
        return error
    if isinstance(error, MemoryError):
        return UsageError("memory", "there is less than this needs", "Ask for less at a time")
    if isinstance(error, OSError) and error.errno is not None:
        rule = f"the system refuses it: {os.strerror(error.errno).lower()}"
        return InputError("a file or directory", rule, "Check names, rights and room on the disk")
    words = _parsers_words(error)
    if words is None:
        return None
    is_pattern = "unexpected extra argument" in words
    remedy = "Put a pattern of files in quotes, or see --help" if is_pattern else "See --help"
    return UsageError("command line", words.rstrip(".?"), remedy)


def _parsers_words(error: Exception) -> str | None:
    """The words of the parser's own errors, which are about arguments and may be shown."""
    return error.format_message() if hasattr(error, "format_message") else None


def _place_of(error: Exception) -> str:
    """The innermost line of this program that an error came through."""
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        if module.startswith("understudy"):
            place = f"{module}:{line}"
    return place


@contextmanager
def _bar(
    *columns: str, shown: Callable[..., dict[str, Any]] = dict, transient: bool = True, **fields: Any
) -> Iterator[Callable[..., None] | None]:
    """A bar of rich's columns, and texts, on a terminal that a person looks at and nowhere else.

    What is yielded is called with progress, which ``shown`` turns into the fields of the bar.
    """
    if AS_JSON.get() or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    made = [getattr(progress, name)() if hasattr(progress, name) else progress.TextColumn(name) for name in columns]
    with progress.Progress(*made, console=Console(stderr=True), transient=transient) as bar:
        task = bar.add_task("reading", total=None, **fields)
        yield lambda *told: bar.update(task, **shown(*told))


def waiting(words: str) -> AbstractContextManager[object]:
    """A spinner while private rows are read; it shows time, never how many rows there are."""
    return _bar("SpinnerColumn", words, "TimeElapsedColumn")


def reading_bar() -> AbstractContextManager[ReadProgress | None]:
    """A bar with the share that is done and the time left.

    It shows no number of rows nor a speed, which times time would be one; it is wiped when the pass ends, and never
    shown where output is kept, in a file or a log.
    """
    columns = ("SpinnerColumn", "reading private rows", "BarColumn", "TimeElapsedColumn", "left", "TimeRemainingColumn")
    return _bar(*columns, shown=lambda share: {"total": None if share is None else 1.0, "completed": share or 0.0})


def training_bar() -> AbstractContextManager[LossProgress | None]:
    """A bar with the loss and the time left."""
    return _bar(
        "training",
        "BarColumn",
        "MofNCompleteColumn",
        "loss {task.fields[loss]:.5f}",
        "TimeElapsedColumn",
        "left",
        "TimeRemainingColumn",
        shown=lambda done, steps, loss: {"completed": done, "total": steps, "loss": loss},
        transient=False,
        loss=float("nan"),
    )


def stage_bar() -> AbstractContextManager[StageProgress | None]:
    """A bar that names what is being done, how far it is and how long it has taken."""
    return _bar(
        "{task.description:<28}",
        "BarColumn",
        "MofNCompleteColumn",
        "TimeElapsedColumn",
        shown=lambda stage, done, total: {"description": stage, "completed": done, "total": total},
    )
