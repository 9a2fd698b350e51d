"""The verb that asks whether a release and something public, or two releases, tell of the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.evaluate import find_sampler
from understudy.cli.files import PUBLIC, check_output, write_bytes
from understudy.cli.output import emit, table, verbatim, waiting

if TYPE_CHECKING:
    from understudy.released import Release
    from understudy.two_sample.results import Comparison

PICTURES = (".png",)
GENERATED_ROWS = 4000
"""Synthetic rows that sampling variation is estimated from."""

MOST_SHOWN = 8
"""Columns in the table for people; JSON has all."""


def compare(
    release: Annotated[Path, typer.Argument(help="Directory of a release.")],
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
    level: Annotated[float, typer.Option("--level", help="How often a difference may be claimed in error.")] = 0.05,
    generator: Annotated[
        Path | None,
        typer.Option(
            "--generator", "-g", help="Between two releases: generator of the first, made by fit (default: fit one)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the null law's draws.")] = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Test whether a release and PUBLIC rows, or two releases, come from one population (a kernel two-sample test)."""
    from understudy.released import load_release
    from understudy.released.release import DOCUMENT
    from understudy.two_sample.results import Question, describe, draw_comparison

    if output is not None:
        check_output(output, kinds=PICTURES)
    made = load_release(release)
    settings: dict[str, Any] = {
        "question": Question.SAME_ROWS if exact else Question.SAME_POPULATION,
        "level": level,
        "seed": seed,
    }
    is_release = (other / DOCUMENT).is_file()
    found = (
        _against_release(made, load_release(other), generator, settings, as_json=as_json)
        if is_release
        else _against_rows(made, other, settings, as_json=as_json)
    )
    words = describe(found)
    if not is_release:
        words.append(f"The rows of '{other.name}' were treated as public.")
    if output is not None:
        title = f"{made.plan.schema.name}: release '{release.name}' and {'release ' * is_release}'{other.name}'"
        write_bytes(draw_comparison(found, title=title), output, mode=PUBLIC)
    document = found.to_dict() | {"statement": words, "picture": str(output) if output else None}
    lines = [
        *_table(found, release.name, other.name),
        f"[bold]{verbatim(words[0])}[/bold]",
        *(f"  {verbatim(each)}" for each in words[1:]),
    ]
    if output is not None:
        lines.append(f"  picture      {verbatim(output)}")
    emit(document, lines, as_json=as_json)


def _against_rows(made: Release, path: Path, settings: dict[str, Any], *, as_json: bool) -> Comparison:
    import pyarrow as pa

    from understudy.errors import InputError
    from understudy.readers import open_source
    from understudy.two_sample.compare import compare_with_rows

    names = [column.name for column in made.plan.schema.used]
    with waiting("comparing", as_json=as_json), open_source(str(path), columns=names) as stream:
        batches = list(stream)
        if not batches:
            raise InputError(f"'{path}'", "has no rows", "Check the file")
        return compare_with_rows(made, pa.Table.from_batches(batches), **settings)


def _against_release(
    made: Release, second: Release, generator: Path | None, settings: dict[str, Any], *, as_json: bool
) -> Comparison:
    from understudy.two_sample.compare import check_same_columns, compare_releases
    from understudy.two_sample.results import Question

    check_same_columns(made.plan.schema, second.plan.schema)
    rows = None
    if settings["question"] is Question.SAME_POPULATION:
        sampler = find_sampler(made, generator, as_json=as_json)
        rows = sampler.sample(GENERATED_ROWS, seed=settings["seed"])
    with waiting("comparing", as_json=as_json):
        return compare_releases(made, second, rows=rows, **settings)


def _table(found: Comparison, first: str, other: str) -> list[str]:
    from understudy.two_sample.results import chance

    entries = [("all", found.distance, found.threshold, found.p_value)]
    entries += [(each.columns[0], each.distance, each.threshold, each.adjusted) for each in found.columns[:MOST_SHOWN]]
    rows = [
        [name, f"{distance:.4f}", f"{most:.4f}", chance(p).removeprefix("p ").removeprefix("= ")]
        for name, distance, most, p in entries
    ]
    title = f"'{first}' (about {found.rows[0]:,.0f} rows) and '{other}' ({found.rows[1]:,.0f} rows)"
    headings = ["columns", "distance", f"chance, {100 * (1 - found.level):g} %", "p"]
    return [table(title, headings, rows)]
