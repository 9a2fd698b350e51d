"""Options that several verbs share, and the plan they describe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from understudy.cli import encoders, weighted

if TYPE_CHECKING:
    from understudy.plan.plan import Plan
    from understudy.schema import Schema

DP_ANOVA = "DP-ANOVA"
DP_MERF = "DP-MERF"
DP_HP = "DP-HP"
DP_SPECTRUM = "DP-Spectrum"

SchemaPath = Annotated[Path, typer.Option("--schema", "-s", help="Public schema of the table (YAML).")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget, above 0.")]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        help="Chance that the guarantee fails; far below 1 / rows. "
        "0: pure, with Laplace noise (not for dp-merf-ae, which trains on rows).",
    ),
]
DescentDelta = Annotated[
    float, typer.Option("--delta", help="Chance that the guarantee fails; above 0, far below 1 / rows.")
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        help="auto, or dp-anova, dp-merf, dp-merf-ae, dp-hp, dp-spectrum, dp-mepf, balog-subspace or balog-features.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="Whose contribution is hidden: 'row', or the column of ids (not for dp-merf-ae; default: the schema's).",
    ),
]
MaxRows = Annotated[
    int | None, typer.Option("--max-rows", min=1, help="With --unit COLUMN: how many rows of an id count.")
]
NeighboursName = Annotated[
    str,
    typer.Option(
        "--neighbours", help="add-remove (row count private) or replace-one (row count public; not for dp-merf-ae)."
    ),
]
Rows = Annotated[
    int | None,
    typer.Option("--rows", min=1, help="Public row count, or a public guess to plan for (default: the schema's)."),
]
Labels = Annotated[
    str,
    typer.Option(
        "--labels",
        help="auto, none (for dp-mepf and dp-merf-ae: images alone), balanced or imbalanced. "
        "For dp-anova, dp-merf, dp-merf-ae, dp-hp and dp-mepf.",
    ),
]
LengthScale = Annotated[
    str | None,
    typer.Option(
        "--length-scale",
        help="A number in units of each column's range; dp-merf: or 'private' to pay for it. "
        "For dp-merf, dp-merf-ae, dp-hp, balog-subspace and balog-features.",
    ),
]
Steps = Annotated[int | None, typer.Option("--steps", min=1, help="Training steps of the generator, if it is trained.")]
Pairs = Annotated[
    bool | None,
    typer.Option(
        "--pairs/--no-pairs",
        rich_help_panel=DP_ANOVA,
        help="Measure pairs of columns (default: if the noise allows it).",
    ),
]
Values = Annotated[
    bool | None,
    typer.Option(
        "--values/--no-values",
        rich_help_panel=DP_ANOVA,
        help="Pay for finding values that repeat in long columns (default: yes).",
    ),
]
Features = Annotated[
    int | None,
    typer.Option(
        "--features",
        rich_help_panel=DP_MERF,
        help="Fourier features (default: by the error bound). For dp-merf, dp-merf-ae and balog-features.",
    ),
]
Separate = Annotated[
    bool,
    typer.Option(
        "--separate-releases",
        rich_help_panel=DP_MERF,
        help="Charge each class apart, as the first DP-MERF did (looser).",
    ),
]
DescentSteps = Annotated[
    int | None,
    typer.Option(
        "--descent-steps",
        min=1,
        rich_help_panel=DP_MERF,
        help="Steps of the descent that trains the decoder (default: 300). For dp-merf-ae.",
    ),
]
MiniBatches = Annotated[
    int | None,
    typer.Option(
        "--mini-batches",
        rich_help_panel=DP_MERF,
        help="A noisy embedding for each of so many parts of the rows, as the first DP-MERF had.",
    ),
]
Order = Annotated[
    int | None, typer.Option("--order", rich_help_panel=DP_HP, help="Hermite order of the sum kernel, at most 300.")
]
ProductOrder = Annotated[
    int | None, typer.Option("--product-order", rich_help_panel=DP_HP, help="Hermite order of the product kernel.")
]
ProductDim = Annotated[
    int | None, typer.Option("--product-dim", rich_help_panel=DP_HP, help="Columns in a product (default: 2).")
]
Products = Annotated[
    int | None,
    typer.Option(
        "--products", rich_help_panel=DP_HP, help="How many sets of columns (default: as many as the noise allows)."
    ),
]
Gamma = Annotated[
    float | None,
    typer.Option(
        "--gamma",
        rich_help_panel=DP_HP,
        help="Weight of the product kernel against 1 for the sum (default: by the noise).",
    ),
]
ProductShare = Annotated[
    float | None,
    typer.Option(
        "--product-share",
        rich_help_panel=DP_HP,
        help="Share of the budget for the product kernel (default: least noise).",
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh-products",
        rich_help_panel=DP_HP,
        help="A noisy release of its own for each set of columns, as in the paper.",
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset", rich_help_panel=DP_HP, help="Settings of one of the paper's experiments, such as 'adult'."
    ),
]
GeneratorName = Annotated[
    str | None,
    typer.Option(
        "--generator",
        help="Tables: mixture (dp-hp, its default) or network (dp-merf, dp-hp). Images: convolutional, connected, "
        "clouds or residual. For dp-merf, dp-hp, dp-spectrum and dp-mepf.",
    ),
]
Coefficients = Annotated[
    int | None,
    typer.Option(
        "--coefficients",
        rich_help_panel=DP_SPECTRUM,
        help="Cosine coefficients to measure (default: as many as the noise allows).",
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        "--components",
        rich_help_panel=DP_SPECTRUM,
        help="Gaussian spectra of a class: 1, 2, 4, 8 or 16 (default: 1, and 4 once noise is small).",
    ),
]
PublicBasis = Annotated[
    Path | None,
    typer.Option(
        "--basis",
        rich_help_panel=DP_SPECTRUM,
        help="Set of PUBLIC images whose principal directions take the place of cosines.",
    ),
]
Tilt = Annotated[
    float | None,
    typer.Option(
        "--tilt", rich_help_panel=DP_SPECTRUM, help="Coefficients are weighted by frequency to this power (default: 1)."
    ),
]
Horizon = Annotated[
    int, typer.Option("--horizon", min=1, help="Spend the budget in so many releases; this is one of them.")
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Public seed of features, training and samples. Noise has none."),
]
Query = Annotated[
    str | None,
    typer.Option("--query", help="SQL that selects the rows; a file is called 'data'. Printed in the certificate."),
]
LedgerPath = Annotated[Path | None, typer.Option("--ledger", help="Ledger to charge before noise is drawn.")]
Key = Annotated[str | None, typer.Option("--key", help="Name of this release in the ledger.")]
AsJson = weighted.AsJson


PUBLIC_FILES = {
    "public_points": "Give rows that anybody may see, or none: points are drawn then",
    "basis": "Give images that anybody may see, or none: cosines need no images",
}
"""Options that name public files, and what to do if one is the private table."""


def takes_plan(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb every option of ``build_plan``; it receives the plan as ``plan``."""
    functions, unseen = (verb, build_plan), {"Plan": object}  # Plan is not imported at start-up
    hints = [get_type_hints(f, localns=unseen, include_extras=True) for f in functions]
    own, planning = ({**signature(f).parameters} for f in functions)
    del own["plan"]

    @wraps(verb)
    def run(**arguments: Any) -> None:
        wishes = {name: arguments.pop(name) for name in planning}
        for name, remedy in PUBLIC_FILES.items():
            data, what = arguments.get("data"), name.replace("_", " ")
            weighted.check_apart(wishes[name], data, what=what, remedy=remedy)
        verb(plan=build_plan(**wishes), **arguments)

    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=known[parameter.name])
        for known, listed in zip(reversed(hints), (planning, own), strict=True)
        for parameter in listed.values()
    ]
    parameters.sort(key=lambda parameter: parameter.default is not Parameter.empty)
    vars(run)["__signature__"] = Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def build_plan(
    *,
    schema: SchemaPath,
    epsilon: Epsilon,
    delta: Delta = 1e-5,
    method: MethodName = "auto",
    unit: Unit = None,
    max_rows: MaxRows = None,
    neighbours: NeighboursName = "add-remove",
    rows: Rows = None,
    labels: Labels = "auto",
    length_scale: LengthScale = None,
    steps: Steps = None,
    pairs: Pairs = None,
    values: Values = None,
    features: Features = None,
    separate: Separate = False,
    mini_batches: MiniBatches = None,
    descent_steps: DescentSteps = None,
    order: Order = None,
    product_order: ProductOrder = None,
    product_dim: ProductDim = None,
    products: Products = None,
    gamma: Gamma = None,
    product_share: ProductShare = None,
    fresh: Fresh = False,
    preset: PresetName = None,
    generator: GeneratorName = None,
    coefficients: Coefficients = None,
    tilt: Tilt = None,
    components: Components = None,
    basis: PublicBasis = None,
    encoder: encoders.EncoderName = None,
    layers: encoders.Layers = None,
    activation: encoders.Activation = None,
    moments: encoders.Moments = None,
    multiply: encoders.Multiply = None,
    stopping: encoders.Stopping = None,
    public_points: weighted.PublicPoints = None,
    draw: weighted.DrawName = None,
    mean: weighted.Means = None,
    deviation: weighted.Deviations = None,
    candidates: weighted.Candidates = None,
    points: weighted.NumPoints = None,
    kernel: weighted.KernelName = None,
    join: weighted.JoinName = None,
    mismatch: weighted.Mismatch = None,
    look: weighted.Look = None,
    weights: weighted.WeightsName = None,
    bound: weighted.Bound = None,
    horizon: Horizon = 1,
    seed: Seed = 0,
) -> Plan:
    """The plan that the options describe."""
    from understudy.accounting import Budget, neighbours_by_name
    from understudy.accounting.mechanisms import share_of
    from understudy.errors import UsageError
    from understudy.methods import make_plan
    from understudy.schema import PrivacyUnit, load_schema

    budget = share_of(Budget(epsilon, delta), horizon)
    table = load_schema(schema)
    if max_rows is not None and unit is None:
        raise UsageError("max rows", "is about a unit, and none was given", "Add --unit COLUMN")
    if unit is not None:
        table = replace(table, privacy=PrivacyUnit(unit, max_rows or 1))
    wishes: dict[str, Any] = {
        "length_scale": _length_scale(length_scale),
        "steps": steps,
        "pairs": pairs,
        "values": values,
        "num_features": features,
        "mini_batches": mini_batches,
        "descent_steps": descent_steps,
        "separate_releases": separate or None,
        "order": order,
        "product_order": product_order,
        "product_dim": product_dim,
        "num_products": products,
        "gamma": gamma,
        "product_share": product_share,
        "fresh_products": fresh or None,
        "preset": preset,
        "generator": generator,
        "draw": draw,
        "means": weighted.by_column("mean", mean),
        "deviations": weighted.by_column("deviation", deviation),
        "num_candidates": candidates,
        "num_points": points,
        "kernel": kernel,
        "join": join,
        "mismatch": mismatch,
        "look": look,
        "weights": weights,
        "bound": bound,
        "num_coefficients": coefficients,
        "tilt": tilt,
        "components": components,
        "public_points": _public_points(public_points, table),
        "basis": _public_images(basis, table),
        "encoder": encoder,
        "layers": encoders.chosen_layers(layers),
        "activation": activation,
        "moments": moments,
        "multiply": multiply,
        "stopping": stopping,
        "labels": None if labels == "auto" else labels,
    }
    options = {name: value for name, value in wishes.items() if value is not None}
    options |= {"neighbours": neighbours_by_name(neighbours), "num_rows": rows, "seed": seed}
    plan = make_plan(table, budget, method=method, options=options)
    if horizon == 1:
        return plan
    whole = {"releases": horizon, "epsilon": epsilon, "delta": delta}
    return replace(plan, settings=(*plan.settings, ("horizon", whole)))


def _public_points(path: Path | None, schema: Schema) -> object:
    if path is None:
        return None
    return weighted.public_rows(path, [each.name for each in schema.used], what="public points")


def _public_images(path: Path | None, schema: Schema) -> object:
    from understudy.errors import UsageError

    if path is None:
        return None
    if schema.image is None:
        raise UsageError("basis", "is of images, and the schema has none", "Leave --basis out")
    return weighted.public_rows(path, schema.image.names, what="basis")


def _length_scale(text: str | None) -> float | str | None:
    from understudy.errors import UsageError

    if text is None or text == "private":
        return text
    try:
        return float(text)
    except ValueError:
        raise UsageError("length scale", "must be a number or 'private'") from None
