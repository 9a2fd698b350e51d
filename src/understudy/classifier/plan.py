"""Everything about a private classifier that is decided before a row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from understudy.accounting.dpsgd import calibrated_descent, exact_rate, slack_for
from understudy.accounting.mechanisms import Budget, lattice_noise_std, mu_squared_of_budget, spent_mu_squared
from understudy.classifier.inputs import Inputs, inputs_for
from understudy.classifier.maps import MapShape
from understudy.codec import FLAT, decode, encode
from understudy.errors import InputError, UsageError
from understudy.files import canonical_sha256
from understudy.plan.descent import DescentPlan
from understudy.plan.plan import MOST_NUMBERS, ROW_CAP
from understudy.schema import Schema
from understudy.schema.columns import Column, Role

RADIUS = 2**14
"""Integer length of an input of norm one, and of derivatives of the clipping norm."""

STEPS = 85
FEWEST_STEPS = 30
MOST_STEPS = 240
"""Steps of descent at epsilon 1, and the fewest and most for any epsilon."""

MOST_INPUTS = 2048
"""Coordinates of inputs whose second moments are released."""


@dataclass(frozen=True)
class Training:
    """Settings of a classifier; the defaults are public and the same for all data.

    Args:
        inputs: ``auto``, or ``table``, ``cosines`` or ``strokes``.
        num_coefficients: cosine coefficients of an image.
        num_maps: linear maps per class; 1 is logistic regression.
        inverse_temperature: how strongly the best map of a class is preferred.
        projected: coordinates after a random projection of each map.
        look: part of the budget for the second moments that whiten inputs; 0 leaves inputs as they are.
        steps: steps of descent; by default the more, the larger the budget.
        sampling_rate: chance of a row in a step. At 1, the noise is that of a plain Gaussian release.
        clip: norm to which a row's gradient is shortened.
        learning_rate: length of steps, for each coordinate of the inputs.
        averaged: last part of the descent over which weights are averaged.
        seed: public seed of projections and first weights. Noise has none.
    """

    inputs: str = "auto"
    num_coefficients: int = 256
    num_maps: int = 1
    inverse_temperature: float = 1.0
    projected: int | None = None
    look: float = 0.3
    steps: int | None = None
    sampling_rate: float = 1.0
    clip: float = 0.5
    learning_rate: float = 1.2
    averaged: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("num_coefficients", "num_maps", "steps", "projected"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(name.replace("_", " "), "must be at least 1")
        for name in ("inverse_temperature", "clip", "learning_rate"):
            if not 0 < getattr(self, name) < 1e6:
                raise UsageError(name.replace("_", " "), "must be above 0")
        if not 0 <= self.look < 1 or not 0 <= self.averaged <= 1:
            raise UsageError("look and averaged", "must be parts of one")
        object.__setattr__(self, "sampling_rate", exact_rate(self.sampling_rate))


@dataclass(frozen=True)
class ClassifierPlan:
    """A public, complete description of a classifier that has not been trained yet.

    Guarantee:
        Releasing the noisy second moments of inputs, and then every noisy sum of gradients, is
        (epsilon, delta)-differentially private between tables with one row more or less (proofs/descent.md).
    """

    schema: Schema
    budget: Budget = field(metadata=FLAT)
    training: Training = Training()
    num_rows: int | None = None

    def __post_init__(self) -> None:
        label = self.schema.label
        if label is None or not label.is_choice:
            raise InputError(
                f"schema '{self.schema.name}'",
                "a classifier needs a label with listed categories",
                "Give one column role: label and its categories",
            )
        unit = self.schema.privacy
        if unit.unit != "row" or unit.max_rows != 1:
            raise InputError(
                f"schema '{self.schema.name}'",
                "a classifier protects single rows",
                "Aggregate to one row per person first and set privacy: {unit: row}",
            )
        if self.num_rows is not None and not 1 <= self.num_rows <= ROW_CAP:
            raise UsageError("rows", f"must lie between 1 and {ROW_CAP:,}")
        shape = self.shape
        projections = shape.num_features if shape.projected is not None else 0
        if shape.num_maps * shape.map_dim * (shape.num_classes + projections) > MOST_NUMBERS:
            raise UsageError("maps", f"would hold more than {MOST_NUMBERS:,} weights", "Use fewer of them")
        if not self.training.look and self.expected_rows is None:
            raise UsageError(
                "rows",
                "must be known publicly, if only roughly, where nothing is spent on a look",
                "Give --rows N or rows: in the schema",
            )
        if self.training.look and self.inputs.dim > MOST_INPUTS:
            raise UsageError(
                "inputs",
                f"have more than {MOST_INPUTS} coordinates, too many for second moments",
                "Use --look 0, or fewer coefficients",
            )

    @cached_property
    def label(self) -> Column:
        """What is predicted."""
        return cast(Column, self.schema.label)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The label's values."""
        return self.label.categories

    @property
    def expected_rows(self) -> int | None:
        """Rows that there are, as far as it is public."""
        return self.num_rows or self.schema.rows

    @cached_property
    def features(self) -> Schema:
        """The schema of what is known before a label is predicted."""
        return replace(self.schema, columns=tuple(c for c in self.schema.columns if c.role is not Role.LABEL))

    @cached_property
    def inputs(self) -> Inputs:
        """What maps see of a row."""
        kind = self.training.inputs
        if kind == "auto":
            kind = "table" if self.schema.image is None else "strokes"
        return inputs_for(self.features, kind, self.training.num_coefficients)

    @cached_property
    def shape(self) -> MapShape:
        """Maps, classes and projections."""
        training = self.training
        return MapShape(
            num_features=self.inputs.dim,
            num_classes=len(self.classes),
            num_maps=training.num_maps,
            inverse_temperature=training.inverse_temperature,
            projected=training.projected,
            seed=training.seed,
        )

    @cached_property
    def look_noise(self) -> int | None:
        """Whole deviation of the noise on second moments."""
        if not self.training.look:
            return None
        slack = slack_for(self.budget, self.training.sampling_rate)
        left = Budget(self.budget.epsilon, float(Fraction(self.budget.delta) - slack))
        share = mu_squared_of_budget(left) * Fraction(self.training.look)
        return lattice_noise_std(RADIUS**4, share)

    @cached_property
    def look_cost(self) -> tuple[Fraction, ...]:
        """Mu squared of the second moments, if they are released."""
        if self.look_noise is None:
            return ()
        return (spent_mu_squared(RADIUS**4, self.look_noise),)

    @property
    def steps(self) -> int:
        """Steps of descent: with more budget the noise lets more of them be of use."""
        if self.training.steps is not None:
            return self.training.steps
        wanted = STEPS * math.sqrt(self.budget.epsilon)
        return round(min(max(wanted, FEWEST_STEPS), MOST_STEPS))

    @cached_property
    def descent(self) -> DescentPlan:
        """The noisy descent that trains the maps, beside the look at second moments."""
        training = self.training
        cost = calibrated_descent(
            self.budget, sampling_rate=training.sampling_rate, steps=self.steps, beside=self.look_cost
        )
        return DescentPlan(
            self.budget,
            cost,
            training.clip,
            training.learning_rate * self.shape.map_dim,
            self.expected_rows,
            training.seed,
            self.look_cost,
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan in its canonical form."""
        return encode(self) | {"radius": RADIUS}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form."""
        return canonical_sha256(self.to_dict())


def classifier_plan_from_dict(document: dict[str, Any]) -> ClassifierPlan:
    """Read a plan back from its canonical form; ValueError and the like if it is none."""
    if document["radius"] != RADIUS:
        raise ValueError("another version's plan")
    return decode(ClassifierPlan, {key: value for key, value in document.items() if key != "radius"})
