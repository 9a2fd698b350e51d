"""The options of weighted databases, and the verb that writes one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.files import check_output, write_rows
from understudy.cli.output import emit, verbatim
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

WEIGHTED = "Weighted database (balog-subspace, balog-features)"

PublicPoints = Annotated[
    Path | None,
    typer.Option(
        "--public-points",
        rich_help_panel=WEIGHTED,
        help="File of rows that are public already; they become part of the release. For balog-subspace.",
    ),
]
DrawName = Annotated[
    str | None,
    typer.Option(
        "--draw",
        rich_help_panel=WEIGHTED,
        help="Without public points: uniform (default) or gaussian draws over the schema's domain.",
    ),
]
Means = Annotated[
    list[str] | None,
    typer.Option("--mean", rich_help_panel=WEIGHTED, help="COLUMN=VALUE of gaussian draws. Repeatable."),
]
Deviations = Annotated[
    list[str] | None,
    typer.Option("--deviation", rich_help_panel=WEIGHTED, help="COLUMN=VALUE of gaussian draws. Repeatable."),
]
Candidates = Annotated[
    int | None, typer.Option("--candidates", rich_help_panel=WEIGHTED, help="Points to draw (default: 2,000).")
]
NumPoints = Annotated[
    int | None,
    typer.Option(
        "--points",
        rich_help_panel=WEIGHTED,
        help="balog-subspace: points that may span the space; balog-features: rows of the database.",
    ),
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        rich_help_panel=WEIGHTED,
        help="gaussian (default), laplace, matern12, matern32 or matern52. For balog-subspace.",
    ),
]
JoinName = Annotated[
    str | None,
    typer.Option(
        "--join", rich_help_panel=WEIGHTED, help="product (default) or sum of the columns' kernels. For balog-subspace."
    ),
]
Mismatch = Annotated[
    float | None, typer.Option("--mismatch", rich_help_panel=WEIGHTED, help="Kernel value of two different categories.")
]
Look = Annotated[
    bool | None,
    typer.Option(
        "--look/--no-look",
        rich_help_panel=WEIGHTED,
        help="Pay for a noisy look at where rows are (default: if few points cannot stand for all). "
        "For balog-subspace.",
    ),
]
WeightsName = Annotated[
    str | None,
    typer.Option(
        "--weights",
        rich_help_panel=WEIGHTED,
        help="balog-subspace: shrunk (default), plain or bounded; balog-features: free (default) or uniform.",
    ),
]
Bound = Annotated[
    float | None,
    typer.Option(
        "--bound",
        rich_help_panel=WEIGHTED,
        help="Largest absolute sum of bounded weights (default: 1). For balog-subspace.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def public_rows(path: Path, columns: Sequence[str], *, what: str) -> object:
    """The rows of a public file, as they stand in it."""
    import pyarrow as pa

    from understudy.readers import open_source

    with open_source(str(path), columns=list(columns)) as stream:
        batches = list(stream)
    if not batches:
        raise InputError(what, "has no rows", "Check the file")
    return pa.Table.from_batches(batches)


def check_apart(path: Path | None, data: str | None, *, what: str, remedy: str) -> None:
    """Refuse the private table where a public one is asked for, which is published as it is or nearly."""
    try:
        same = path is not None and data is not None and path.samefile(data)
    except (OSError, ValueError):  # readers say what is wrong with a path
        return
    if same:
        raise UsageError(what, "is the private table itself, and would be published as it is or nearly", remedy)


def by_column(name: str, words: list[str] | None) -> dict[str, float] | None:
    """Words such as ``age=40`` as numbers by column."""
    found = {}
    for word in words or []:
        column, _, value = word.rpartition("=")
        try:
            found[column] = float(value)
        except ValueError:
            column = ""
        if not column:
            raise UsageError(name, "must be COLUMN=VALUE, with a number") from None
    return found or None


def export(
    generator: Annotated[Path, typer.Argument(help="Directory of a weighted database, made by fit.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New .csv or .parquet file.")],
    as_json: AsJson = False,
) -> None:
    """Write a weighted database: every row with its weight, exactly."""
    from understudy.files import refusing_damage
    from understudy.generators import WeightedDatabase, load_generator
    from understudy.generators.base import AGAIN

    check_output(output)
    loaded = load_generator(generator)
    if not isinstance(loaded, WeightedDatabase):
        raise UsageError(
            f"generator '{generator}'",
            "draws rows and has none of its own",
            "Draw some: understudy sample; weighted rows come from --method balog-subspace",
        )
    with refusing_damage(f"generator '{generator}'", AGAIN):
        rows, breaking = loaded.weighted_rows(), loaded.num_breaking_rules
    write_rows(rows, output)
    total, positive = float(loaded.weights.sum()), float(loaded.weights.clip(min=0).sum())
    lines = [
        f"[bold green]Wrote[/bold green] {len(loaded.weights)} weighted rows into {verbatim(output)}",
        f"  weights      column {verbatim(loaded.weight_column)}: they sum to {total:.6g}, "
        f"positive ones to {positive:.6g}",
    ]
    if breaking:
        lines.append(
            f"  rules        {breaking} of the points break one: weights are for all points together; "
            "understudy sample draws rows that obey"
        )
    document = {
        "points_that_break_rules": breaking,
        "output": str(output),
        "num_rows": len(loaded.weights),
        "weight_column": loaded.weight_column,
        "sum_of_weights": total,
        "sum_of_positive_weights": positive,
    }
    emit(document, lines, as_json=as_json)
