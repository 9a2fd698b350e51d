"""Options that several verbs share, and the plan they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from understudy.accounting import Neighbours
    from understudy.plan import Plan

SchemaPath = Annotated[
    Path, typer.Option("--schema", "-s", help="Public schema of the table (YAML).")
]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget, above 0.")]
Delta = Annotated[
    float, typer.Option("--delta", help="Chance that the guarantee fails; far below 1 / rows.")
]
MethodName = Annotated[
    str, typer.Option("--method", "-m", help="auto, or a method by name (dp-merf).")
]
Unit = Annotated[
    str, typer.Option("--unit", help="Whose contribution is hidden. Only 'row' so far.")
]
NeighboursName = Annotated[
    str,
    typer.Option(
        "--neighbours", help="add-remove (row count private) or replace-one (row count public)."
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        "--rows", help="Public row count, or a public guess to plan for [default: the schema's]."
    ),
]
Labels = Annotated[str, typer.Option("--labels", help="auto, none, balanced or imbalanced.")]
LengthScale = Annotated[
    str | None,
    typer.Option(
        "--length-scale",
        help="A number in units of each column's range, or 'private' to pay for it.",
    ),
]
Features = Annotated[
    int | None, typer.Option("--features", help="Fourier features [default: by the error bound].")
]
Separate = Annotated[
    bool,
    typer.Option(
        "--separate-releases", help="Charge each class apart, as the first DP-MERF did (looser)."
    ),
]
Steps = Annotated[int | None, typer.Option("--steps", help="Training steps of the network.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, help="Public seed of features, training and samples. Noise has none."
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        help="SQL that selects the rows; a file is called 'data'. Printed in the certificate.",
    ),
]
LedgerPath = Annotated[
    Path | None, typer.Option("--ledger", help="Ledger to charge before noise is drawn.")
]
Key = Annotated[str | None, typer.Option("--key", help="Name of this release in the ledger.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def build_plan(
    *, schema: Path, epsilon: float, delta: float, method: str, unit: str, neighbours: str,
    rows: int | None, labels: str, length_scale: str | None, features: int | None,
    separate: bool, steps: int | None, seed: int,
) -> Plan:  # fmt: skip
    """The plan that the options describe."""
    from understudy.accounting import Budget
    from understudy.errors import UsageError
    from understudy.generators.training import Training
    from understudy.methods import make_plan
    from understudy.schema import load_schema

    budget = Budget(epsilon, delta)
    if unit != "row":
        raise UsageError(
            "unit",
            f"'{unit}' is not available",
            "Aggregate to one row per person and use --unit row",
        )
    if rows is not None and rows < 1:
        raise UsageError("rows", "must be at least 1")
    if steps is not None and steps < 1:
        raise UsageError("steps", "must be at least 1")
    options: dict[str, Any] = {
        "neighbours": neighbours_by_name(neighbours), "num_rows": rows, "labels": labels, "num_features": features,
        "length_scale": _length_scale(length_scale), "separate_releases": separate, "seed": seed,
        "training": Training(seed=seed) if steps is None else Training(seed=seed, steps=steps),
    }  # fmt: skip
    return make_plan(load_schema(schema), budget, method=method, options=options)


def neighbours_by_name(name: str) -> Neighbours:
    """The notion of neighbours that a person named."""
    from understudy.accounting import Neighbours
    from understudy.errors import UsageError

    if name not in {choice.value for choice in Neighbours}:
        raise UsageError("neighbours", f"'{name}' is unknown", "Use add-remove or replace-one")
    return Neighbours(name)


def _length_scale(text: str | None) -> float | str | None:
    from understudy.errors import UsageError

    if text is None or text == "private":
        return text
    try:
        return float(text)
    except ValueError:
        raise UsageError("length scale", "must be a number or 'private'") from None
