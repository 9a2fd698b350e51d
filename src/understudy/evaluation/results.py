"""What an evaluation finds, as plain values: report, JSON and tests all read these."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured, which way is better, and between which bounds it lies."""

    key: str
    title: str
    better: Literal["lower", "higher"]
    low: float
    high: float | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, beside what real rows reach and what independent columns reach."""

    metric: Metric
    value: float
    floor: float | None
    """Real rows against real rows, brought to the sizes compared; for prediction, training on real
    rows."""
    baseline: float | None
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
