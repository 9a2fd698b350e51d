"""What an evaluation finds, as plain values that report, JSON and tests read, and the table of all metrics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

Matrix = tuple[tuple[float, ...], ...]
Direction = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured, which way is better, and between which bounds it lies."""

    key: str
    title: str
    better: Direction = field(default="lower", kw_only=True)
    low: float = field(default=0.0, kw_only=True)
    high: float | None = field(default=1.0, kw_only=True)
    meaning: str

    @property
    def name(self) -> str:
        """The title without the words that all scores of models share."""
        return self.title.removesuffix(OF_MODELS)


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, beside what real rows reach and what independent columns reach."""

    metric: Metric
    value: float
    floor: float
    """Real rows against real rows, brought to the sizes compared; for prediction, training on real
    rows."""
    baseline: float
    """Rows whose columns are drawn independently from the real columns; for prediction, a guess."""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One column, real beside synthetic, in the bins that it is drawn in."""

    name: str
    kind: Literal["choice", "number"]
    bins: tuple[str, ...]
    edges: tuple[float, ...]
    """Of a number, one more than bins; of a choice, none."""
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float
    floor: float
    null_share_real: float
    null_share_synthetic: float
    kolmogorov_smirnov: float | None = None
    """Of a number only, as is the next."""
    wasserstein: float | None = None


@dataclass(frozen=True, slots=True)
class Associations:
    """How strongly each pair of columns depends on one another, from 0 to 1."""

    columns: tuple[str, ...]
    real: Matrix
    synthetic: Matrix


@dataclass(frozen=True, slots=True)
class ModelScores:
    """One classifier or regressor, trained on synthetic and on real rows, tested on the same."""

    model: str
    synthetic: dict[str, float]
    real: dict[str, float]
    baseline: dict[str, float]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Train on synthetic rows, test on real ones."""

    label: str
    task: Literal["binary", "multiclass", "regression"]
    protocol: str
    models: tuple[ModelScores, ...]
    test_rows: int
    is_held_out: bool
    """Whether the test rows were kept out of the release, or split off the reference."""
    by_set_size: tuple[tuple[int, float], ...]
    """Mean of the task's first score against the number of synthetic rows trained on."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """Every score's mean over the models; the baseline is the same for all."""

        def mean(side: str, key: str) -> float:
            return float(np.mean([getattr(model, side)[key] for model in self.models]))

        guess = self.models[0].baseline
        return tuple(Score(METRICS[key], mean("synthetic", key), mean("real", key), guess[key]) for key in guess)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that the internal report shows."""

    rows_real: int
    rows_synthetic: int
    is_quick: bool
    seed: int
    scores: tuple[Score, ...]
    columns: tuple[ColumnView, ...]
    """Worst first."""
    associations: Associations
    prediction: Prediction | None
    notes: tuple[str, ...]
    """What was sampled or left out, in sentences."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The same as nested dictionaries and lists."""
        return asdict(self)


NOT_THE_GUARANTEE = (
    "This is not the privacy guarantee: that is the epsilon and delta of the certificate, and a "
    "large distance here proves nothing."
)

OF_MODELS = " on real test rows"


def _joint(key: str, number: str, sets: str) -> Metric:
    meaning = f"Total variation distance of the joint shares of {number} columns, mean over the {sets.lower()}."
    return Metric(key, f"{sets} of columns", meaning)


def _of_models(
    key: str, name: str, meaning: str, *, better: Direction = "higher", low: float = 0.0, high: float | None = 1.0
) -> Metric:
    return Metric(key, name + OF_MODELS, f"{meaning} Mean over the models.", better=better, low=low, high=high)


_ALL = (
    Metric(
        "marginal_1",
        "Single columns",
        "Total variation distance of one column's shares, mean over the columns; numbers in 20 bins.",
    ),
    _joint("marginal_2", "two", "Pairs"),
    _joint("marginal_3", "three", "Triples"),
    _joint("marginal_4", "four", "Quadruples"),
    Metric(
        "kolmogorov_smirnov",
        "Numbers, largest gap",
        "Largest gap between the cumulative shares of a number, mean over the numbers.",
    ),
    Metric(
        "wasserstein",
        "Numbers, mean shift",
        "How far a number's values have to be moved, as a share of its public range, mean over the numbers.",
    ),
    Metric(
        "null_share",
        "Missing cells",
        "Difference between the shares of missing cells, mean over the columns that may have them.",
    ),
    Metric("invalid_cells", "Cells outside the schema", "Share of cells that the schema does not allow."),
    Metric(
        "association_mean",
        "Associations, mean difference",
        "Difference between the strengths (0 to 1) with which two columns depend on each other, mean over the pairs.",
    ),
    Metric(
        "association_max",
        "Associations, largest difference",
        "The largest difference between the strengths with which two columns depend on each other.",
    ),
    Metric(
        "two_sample_auc_binned",
        "Told from real rows, in bins",
        "ROC-AUC of boosted trees that tell synthetic rows from real ones, numbers in 20 bins; 0.5 is a guess.",
        low=0.5,
    ),
    Metric(
        "two_sample_auc_raw",
        "Told from real rows",
        "ROC-AUC of boosted trees that tell synthetic rows from real ones by their exact values; 0.5 is a guess.",
        low=0.5,
    ),
    Metric(
        "kernel_distance",
        "Kernel distance",
        "Maximum mean discrepancy under a Gaussian kernel, of equally many rows on both sides.",
        high=2.0,
    ),
    Metric(
        "kernel_p_value",
        "Kernel test, p-value",
        "How often shuffled rows lie as far apart as synthetic and real ones; real halves draw it evenly "
        "from 0 to 1, and below 0.05 the test tells the two apart.",
        better="higher",
    ),
    _of_models("roc_auc", "ROC-AUC", "How well models trained on synthetic rows rank real ones; 0.5 is a guess."),
    _of_models(
        "prc_auc",
        "PRC-AUC",
        "Area under precision and recall (average precision) of models trained on synthetic rows; a "
        "guess reaches the share of the positive class.",
    ),
    _of_models("f1_weighted", "Weighted F1", "F1 of models trained on synthetic rows, classes weighted by their rows."),
    _of_models("f1_macro", "Macro F1", "F1 of models trained on synthetic rows, every class alike."),
    _of_models("accuracy", "Accuracy", "Share of real rows that models trained on synthetic ones get right."),
    _of_models(
        "r2",
        "R2",
        "Share of the label's variance that models trained on synthetic rows explain; below -1 counts as -1.",
        low=-1.0,
    ),
    _of_models(
        "rmse",
        "RMSE",
        "Root mean squared error of models trained on synthetic rows, in the label's own unit.",
        better="lower",
        high=None,
    ),
    Metric(
        "frechet_distance",
        "Frechet distance of images",
        "Squared distance between Gaussians of what a network makes of images. With Inception's weights it "
        "is called FID; with another network it compares only with itself.",
        high=None,
    ),
    Metric(
        "coverage",
        "Real images with a synthetic neighbour",
        "Share of real images to which a synthetic one comes nearer than their fifth real neighbour does, as "
        "a network sees them; where kinds of images are missing it is low.",
        better="higher",
    ),
    Metric(
        "bins_apart",
        "Kinds of images too frequent or too rare",
        "Share of clusters of real images, as a network sees them, that hold another share of synthetic ones "
        "than chance allows (NDB over K).",
    ),
    Metric(
        "neighbour_distance",
        "Distance to the nearest real row",
        "Median distance of a synthetic row to the nearest real one; far below the real halves it "
        f"suggests copies. {NOT_THE_GUARANTEE}",
        better="higher",
        high=None,
    ),
    Metric(
        "copied_rows",
        "Rows equal to a real row",
        "Share of synthetic rows that equal a real one in every cell; real halves show how many do so by "
        f"chance. {NOT_THE_GUARANTEE}",
    ),
)

METRICS = {metric.key: metric for metric in _ALL}
