"""Queries on a release: tables of estimates with their errors, or a list of what can be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, table, verbatim

if TYPE_CHECKING:
    from understudy.queries import Answer


def query(
    release: Annotated[Path, typer.Argument(help="Directory of a release.")],
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUERY]...",
            help="Such as 'mean(age) where hours >= 40 by sex'. None: list what can be asked.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="How often intervals hold the data set's own value.")
    ] = 0.95,
    population: Annotated[
        bool,
        typer.Option(
            "--population",
            help="Intervals for the population that the rows are a random sample of.",
        ),
    ] = False,
    clip: Annotated[
        bool,
        typer.Option("--clip", help="Move counts below zero, and shares outside 0 to 1, inside."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Answer queries from a release, with errors from its known noise; at no further privacy cost."""
    from understudy.queries import Asker

    asker = Asker(release)
    answers = [asker.ask(each, level=level, population=population) for each in queries or []]
    if clip:
        answers = [answer.clipped() for answer in answers]
    lines = [line for answer in answers for line in answer_lines(answer)]
    emit({"answers": [answer.to_dict() for answer in answers]}, lines, as_json=as_json)


def answer_lines(answer: Answer) -> list[str]:
    """An answer for people."""
    by = [name for name, _ in answer.rows[0].group] if answer.rows else []
    rows = [
        [
            *(value for _, value in row.group),
            answer.shown(row.estimate),
            answer.shown_width(row.std_error),
            f"{answer.shown(row.low)} .. {answer.shown(row.high)}" + ("" if row.is_exact else " *"),
        ]
        for row in answer.rows
    ]
    percent = f"{100 * answer.level:g} % interval"
    headings = [*by, "estimate", "± noise", percent]
    notes = [*answer.notes]
    return [
        table(answer.query, headings, rows),
        f"  from {verbatim(answer.source)}",
        *(f"  {verbatim(note)}" for note in notes),
    ]
