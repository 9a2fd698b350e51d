"""Queries on a release: tables of estimates with their errors, or a list of what can be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import PICTURES, check_output
from understudy.cli.generator import generator_of
from understudy.cli.output import Outcome, table, verbatim
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.queries import Answer, Asker, Catalogue, Points

DRAWN_ROWS = 100_000
"""Rows drawn to answer from a generator: what one row in 1000 has is then counted to within a tenth."""

TABLES_SHOWN = 30  # tables that the catalogue lists; a screen or two


def query(
    release: opt.ReleaseDirectory,
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUERY]...", help="Such as 'mean(age) where hours >= 40 by sex'. None: list what can be asked."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="How often intervals hold the data set's own value.")] = 0.95,
    population: Annotated[
        bool, typer.Option("--population", help="Intervals for the population that the rows are a random sample of.")
    ] = False,
    clip: Annotated[
        bool, typer.Option("--clip", help="Move what noise has put below zero or out of bounds inside them.")
    ] = False,
    generator: Annotated[
        Path | None,
        typer.Option(
            "--generator",
            "-g",
            help="A generator fitted to the release; its rows, or weighted points, answer what its tables cannot.",
        ),
    ] = None,
    seed: opt.Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="New .png file: the answer with error bars.")] = None,
) -> Outcome:
    """Answer queries from a release, with errors from its known noise; at no further privacy cost."""
    from understudy.queries import Asker, catalogue

    if plot is not None:
        check_output(plot, kinds=PICTURES)
        if len(queries or []) != 1:
            raise UsageError("plot", "shows one query", "Ask one query at a time")
    asker = Asker(release)
    if not queries:
        found = catalogue(asker.sources)
        return found.to_dict(), catalogue_lines(found)
    points = None if generator is None else _points(asker, generator, seed)
    answers = [_answer(asker, points, each, level, population) for each in queries]
    answers = [answer.clipped() for answer in answers] if clip else answers
    lines = [line for answer in answers for line in answer_lines(answer)]
    if plot is not None:
        from understudy.queries.answers import draw_answer

        draw_answer(answers[0], plot)
        lines.append(f"  picture  {verbatim(plot)}")
    document: dict[str, Any] = {"answers": [answer.to_dict() for answer in answers]}
    return document | ({"plot": plot} if plot else {}), lines


def _answer(asker: Asker, points: Points | None, query: str, level: float, population: bool) -> Answer:
    from understudy.queries import CannotTellError

    try:
        return asker.ask(query, level=level, population=population)
    except CannotTellError:
        if points is None:
            raise
    if population:
        raise UsageError(
            "population",
            "has no interval where a generator answers",
            "Leave --population out, or ask what the release's tables can tell",
        )
    return points.ask(query, level=level)


def _points(asker: Asker, directory: Path, seed: int) -> Points:
    """The rows and weights of a weighted database, or many rows of another generator; it must be of this release."""
    from understudy.files import refusing_damage
    from understudy.generators import WeightedDatabase
    from understudy.generators.base import AGAIN
    from understudy.queries import Points

    loaded = generator_of(asker.release, directory)
    count = asker.ask("count").only
    with refusing_damage(f"generator '{directory}'", AGAIN):
        if isinstance(loaded, WeightedDatabase):
            rows, weights = loaded.weighted_rows(), loaded.weights
        else:
            rows, weights = loaded.sample(DRAWN_ROWS, seed=seed), None
        return Points(loaded.schema, rows, count.estimate, weights=weights, count_error=count.std_error)


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
    headings = [*by, "estimate", "std. error", f"{100 * answer.level:g} % interval"]
    mark = "" if answer.is_exact else "* "
    return [
        table(answer.query, headings, rows),
        f"  from {verbatim(answer.source)}",
        *(f"  {mark}{verbatim(note)}" for note in answer.notes),
    ]


def catalogue_lines(found: Catalogue) -> list[str]:
    """What can be asked, for people."""
    from understudy.queries.answers import plain

    columns = [
        [each.name, each.holds, each.resolution, "" if each.count_error is None else f"± {plain(each.count_error)}"]
        for each in found.columns
    ]
    tables = [
        [" x ".join(each.names), " x ".join(map(str, each.shape)), f"± {plain(each.count_error)}"]
        for each in found.together[:TABLES_SHOWN]
    ]
    rows = "private, and counted with noise" if found.num_rows is None else f"{found.num_rows:,}"
    lines = [f"Rows: {rows}", table("Columns", ["column", "holds", "told apart", "error of a count"], columns)]
    if tables:
        title = "Columns together: groups, conditions and cross-tables may span them"
        lines.append(table(title, ["columns", "cells", "error of a cell"], tables))
    if len(found.together) > TABLES_SHOWN:
        lines.append(f"  ... and {len(found.together) - TABLES_SHOWN} more (--json lists all)")
    example = found.columns[0].name
    lines += [
        "Ask for count, share, sum, mean, var, std, median, quantile or histogram, with where and by: "
        f"[bold]understudy query DIR 'count by {verbatim(example)}'[/bold]",
        "Errors are one standard deviation of the noise; every answer has its own.",
    ]
    return lines
