"""The verb that tests whether two populations are one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.files import PICTURES, PUBLIC, check_output, read_rows, write_page
from understudy.cli.generator import sampler_of
from understudy.cli.output import Outcome, facts, table, verbatim, waiting

if TYPE_CHECKING:
    from understudy.two_sample.results import Comparison

GENERATED_ROWS = 4000
"""Synthetic rows that sampling variation is estimated from, where two releases are compared."""

MOST_SHOWN = 8
"""Columns in the table of a comparison; JSON has all."""


def compare(
    release: opt.ReleaseDirectory,
    other: Annotated[
        Path,
        typer.Argument(
            help="File of PUBLIC rows, or the directory of a second release. Rows given here are "
            "treated as public: what comes out is not protected for them."
        ),
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="New .png file for a picture.")] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Ask whether OTHER holds the very same rows, not only rows of the same population."
        ),
    ] = False,
    level: Annotated[float, typer.Option(help="How often a difference may be claimed in error.")] = 0.05,
    generator: Annotated[
        Path | None,
        typer.Option(
            "--generator", "-g", help="Between two releases: generator of the first, made by fit (default: fit one)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the null law's draws.")] = 0,
) -> Outcome:
    """Test whether a release and PUBLIC rows, or two releases, come from one population (a kernel two-sample test)."""
    from understudy.released import load_release
    from understudy.released.release import DOCUMENT
    from understudy.two_sample.compare import check_same_columns, compare_releases, compare_with_rows
    from understudy.two_sample.results import Question, describe, draw_comparison

    if output is not None:
        check_output(output, kinds=PICTURES)
    made, is_release = load_release(release), (other / DOCUMENT).is_file()
    question = Question.SAME_ROWS if exact else Question.SAME_POPULATION
    if is_release:
        second, rows = load_release(other), None
        check_same_columns(made.plan.schema, second.plan.schema)
        if not exact:
            rows = sampler_of(made, generator).sample(GENERATED_ROWS, seed=seed)
        with waiting("comparing"):
            found = compare_releases(made, second, rows=rows, question=question, level=level, seed=seed)
    else:
        with waiting("comparing"):
            public = read_rows(other, made.plan.schema.file_names)
            found = compare_with_rows(made, public, question=question, level=level, seed=seed)
    words = describe(found)
    if not is_release:
        words.append(f"The rows of '{other.name}' were treated as public.")
    if output is not None:
        title = f"{made.plan.schema.name}: release '{release.name}' and {'release ' * is_release}'{other.name}'"
        write_page(draw_comparison(found, title=title), output, mode=PUBLIC)
    lines = [
        _comparison_table(found, release.name, other.name),
        f"[bold]{verbatim(words[0])}[/bold]",
        *(f"  {verbatim(each)}" for each in words[1:]),
        *facts({"picture": output}),
    ]
    return found.to_dict() | {"statement": words, "picture": output}, lines


def _comparison_table(found: Comparison, first: str, other: str) -> str:
    from understudy.two_sample.results import chance

    entries = [("all", found.distance, found.threshold, found.p_value)]
    entries += [(each.columns[0], each.distance, each.threshold, each.adjusted) for each in found.columns[:MOST_SHOWN]]
    rows = [
        [name, f"{distance:.4f}", f"{most:.4f}", chance(p).removeprefix("p ").removeprefix("= ")]
        for name, distance, most, p in entries
    ]
    title = f"'{first}' (about {found.rows[0]:,.0f} rows) and '{other}' ({found.rows[1]:,.0f} rows)"
    headings = ["columns", "distance", f"chance, {100 * (1 - found.level):g} %", "p"]
    return table(title, headings, rows)
