"""Published methods as small compositions of feature maps, a release and a generator."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from scipy.special import gammaln

from understudy.accounting import Budget, Neighbours, mu_squared_of_budget
from understudy.errors import UsageError
from understudy.features import (
    Block,
    Constant,
    Embedding,
    FeatureMap,
    Fourier,
    Grid,
    OneHot,
    Product,
    Scales,
)
from understudy.features.adapt import HISTOGRAMS
from understudy.generators.base import Generator
from understudy.generators.training import Progress, Training, train_network
from understudy.plan import Plan, Stage
from understudy.published import Release
from understudy.schema import Layout, Schema

Labels = Literal["auto", "none", "balanced", "imbalanced"]
LABELS: tuple[Labels, ...] = ("auto", "none", "balanced", "imbalanced")

ROWS_IF_UNSAID = 10_000
"""The row count that sizes are planned for when nobody has stated one."""

SHORTEST_ALONE, SHORTEST, LONGEST = 0.004, 0.015, 0.5
"""Public default: a mixture of Gaussian kernels on single columns, pairs of columns and all
columns, with length scales from the finest detail to half a column's range (times the root of
the number of columns, as distances grow with it)."""

HISTOGRAM_BINS, HISTOGRAM_SHARE = 64, 0.1
LABEL_FEATURES = 20
FEWEST_FEATURES, MOST_FEATURES = 200, 60_000


def dp_merf(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    length_scale: float | Mapping[str, float] | Literal["private"] | None = None,
    num_features: int | None = None,
    separate_releases: bool = False,
    seed: int = 0,
    training: Training | None = None,
) -> Plan:
    """DP-MERF (Harder, Adamczewski & Park, AISTATS 2021): random Fourier mean embeddings.

    Numbers enter through Fourier features of a Gaussian kernel, choices through one-hot
    features (sec. 4.3, heterogeneous data), and both are multiplied by the one-hot label
    (sec. 4.1) when the schema has one. The number of rows, or of rows per label value
    (sec. 4.2, imbalanced data), is one more block of the same vector.

    Args:
        schema: the public description of the table.
        budget: the guarantee to meet.
        neighbours: between which tables it holds.
        num_rows: the public row count (``replace-one``), or a public guess that sizes are
            planned for (``add-remove``). By default what the schema says.
        labels: ``imbalanced`` releases noisy class counts, ``balanced`` takes classes as
            equally frequent, ``none`` treats the label as any other column. ``auto`` is
            ``imbalanced`` for a categorical label; a numeric label gets a Gaussian kernel.
        length_scale: of the Gaussian kernel, in units of each column's public range: one
            number for all, or a number per column name, or ``private`` to spend a tenth of
            the budget on noisy histograms that set it. By default a mixture of scales.
        num_features: how many Fourier features; by default the minimiser of the error bound
            of Prop. 3.1.
        separate_releases: charge class embeddings and counts as C + 1 separate releases, as
            the first version of the paper did. Looser; for comparison.
        seed: public seed of frequencies and training.
        training: settings of the network.
    """
    num_rows = num_rows if num_rows is not None else schema.rows
    if labels not in LABELS:
        raise UsageError("labels", "must be one of " + ", ".join(LABELS))
    share = 1.0 - HISTOGRAM_SHARE if length_scale == "private" else 1.0
    noise = 1 / math.sqrt(share * mu_squared_of_budget(budget)) / (num_rows or ROWS_IF_UNSAID)
    count = num_features or best_num_features(
        noise if neighbours is Neighbours.ADD_REMOVE else 2 * noise
    )
    if count < 2:
        raise UsageError("features", "must be at least 2", "Leave it out for the default")
    layout = Layout(schema)
    embedding = _merf_embedding(
        layout, labels=labels, length_scale=length_scale, num_features=count + count % 2,
        separate=separate_releases, seed=seed,
    )  # fmt: skip
    settings = {"labels": labels, "training": dataclasses.asdict(training or Training(seed=seed))}
    stages = [Stage("embedding", embedding, share)]
    if length_scale == "private" and layout.numbers:
        grid = Grid(tuple(range(len(layout.numbers))), HISTOGRAM_BINS)
        stages = [
            Stage(HISTOGRAMS, Embedding((Block(HISTOGRAMS, grid, 1.0),)), HISTOGRAM_SHARE),
            dataclasses.replace(stages[0], rule="scale-by-histograms"),
        ]
    return Plan(
        schema=schema, method="dp-merf", budget=budget, neighbours=neighbours,
        stages=tuple(stages), num_rows=num_rows, settings=tuple(settings.items()),
    )  # fmt: skip


def _merf_embedding(
    layout: Layout,
    *,
    labels: Labels,
    length_scale: Any,
    num_features: int,
    separate: bool,
    seed: int,
) -> Embedding:
    """Count, number and choice blocks, per label value if the label is a choice."""
    schema = layout.schema
    label = schema.label if labels != "none" else None
    by_class = label is not None and label.is_choice
    runs = {choice.column: (choice.start, choice.stop) for choice in layout.choices}
    label_span = runs[label.name] if by_class and label is not None else None
    spans = tuple(run for run in runs.values() if run != label_span)
    maps: dict[str, FeatureMap] = {}
    if layout.numbers:
        scales, parts = _kernel(layout, length_scale)
        numbers = tuple(range(len(layout.numbers)))
        maps["numbers"] = Fourier(numbers, scales, parts, num_features, seed)
    if spans:
        choices: FeatureMap = OneHot(spans)
        if label is not None and not by_class:
            position = layout.numbers.index(label.name)
            kernel = (_part(1),) if parts[0].size == 1 else (Scales(1, 1.0, 1.0),)
            own = Fourier((position,), (scales[position],), kernel, LABEL_FEATURES, seed + 1)
            choices = Product(choices, own)
        maps["choices"] = choices
    weights = _block_weights(maps, count_copies=1)
    if separate:
        weights = {name: 1 / math.sqrt(len(maps)) for name in maps} | {"count": 1.0}
    blocks = [
        Block("count", Constant(), weights["count"], per_label=by_class and labels != "balanced")
    ]
    blocks += [Block(name, map_, weights[name], per_label=by_class) for name, map_ in maps.items()]
    return Embedding(tuple(blocks), label=label_span, separate=separate)


def _block_weights(maps: Mapping[str, FeatureMap], *, count_copies: int) -> dict[str, float]:
    """Weights whose squares add up to one."""
    squares = dict.fromkeys(maps, 1.0) | {"count": 0.02}
    total = sum(squares.values())
    return {name: math.sqrt(square / total) for name, square in squares.items()}


def _kernel(layout: Layout, length_scale: Any) -> tuple[tuple[float, ...], tuple[Scales, ...]]:
    """Length scale of each number, and the parts of the kernel that they stretch."""
    names = layout.numbers
    plain = (Scales(len(names), 1.0, 1.0),)
    if isinstance(length_scale, Mapping):
        stray = next((name for name in length_scale if name not in names), None)
        absent = next((name for name in names if name not in length_scale), None)
        if stray is not None or absent is not None:
            raise UsageError(
                "length scale",
                f"must name every numeric column and no other; see '{stray or absent}'",
            )
        scales, parts = tuple(float(length_scale[name]) for name in names), plain
    elif isinstance(length_scale, int | float):
        scales, parts = (float(length_scale),) * len(names), plain
    else:
        sizes = sorted({min(size, len(names)) for size in (1, 2, len(names))})
        scales = (1.0,) * len(names)
        parts = tuple(_part(size) for size in sizes)
    if not all(math.isfinite(scale) and scale > 0 for scale in scales):
        raise UsageError(
            "length scale", "must be a finite number above 0", "Common choices: 0.05 to 1"
        )
    return scales, parts


def _part(size: int) -> Scales:
    shortest = SHORTEST_ALONE if size == 1 else SHORTEST * math.sqrt(size)
    return Scales(size, shortest, LONGEST * math.sqrt(size))


def error_bound(num_features: int, noise_std: float) -> float:
    """Prop. 3.1: expected error of the squared MMD, for noise of that deviation on the mean.

    noise_std = 2 sigma / m gives the proposition's own terms.
    """
    ratio = math.exp(gammaln((num_features + 1) / 2) - gammaln(num_features / 2))
    private = num_features * noise_std**2 + 4 * math.sqrt(2) * noise_std * ratio
    return float(private + 8 * math.sqrt(2 * math.pi / num_features))


def best_num_features(noise_std: float) -> int:
    """The number of features that minimises ``error_bound`` (even, within sane limits)."""
    low, high = math.log(FEWEST_FEATURES), math.log(MOST_FEATURES)
    for _ in range(60):  # golden section would save little: the bound costs nothing
        third = (high - low) / 3
        if error_bound(round(math.exp(low + third)), noise_std) <= error_bound(
            round(math.exp(high - third)), noise_std
        ):
            high -= third
        else:
            low += third
    return 2 * round(math.exp((low + high) / 2) / 2)


Method = Callable[..., Plan]
METHODS: dict[str, Method] = {"dp-merf": dp_merf}
DEFAULT_METHOD = "dp-merf"


def make_plan(
    schema: Schema,
    budget: Budget,
    *,
    method: str = "auto",
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a release with a method by name; ``auto`` takes the best one for tables.

    ``options`` are keyword arguments of the method, such as ``num_rows`` or ``seed``.
    """
    name = DEFAULT_METHOD if method == "auto" else method
    if name not in METHODS:
        raise UsageError(
            "method", f"'{method}' is unknown", "Methods are auto, " + ", ".join(METHODS)
        )
    return METHODS[name](schema, budget, **(options or {}))


def fit_release(release: Release, *, progress: Progress | None = None) -> Generator:
    """Turn a release into a generator, as its plan's method has it."""
    settings = dict(release.plan.setting("training"))
    settings["hidden"] = tuple(settings["hidden"])
    return train_network(release, Training(**settings), progress=progress)
