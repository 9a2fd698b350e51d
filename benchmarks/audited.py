"""The mechanisms that are audited, each with two small tables that differ by the row that shows most.

Budgets are large, so that few runs tell much: what an audit finds of noise and sums does not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from likelihood_ratios import (
    Audit,
    Parts,
    classifier_parts,
    decoder_parts,
    effect_size,
    encoder_parts,
    mu_of_spread,
    normality,
    release_parts,
)

from understudy import Budget, load_schema, make_plan
from understudy.accounting.dpsgd import DescentCost
from understudy.classifier.plan import ClassifierPlan
from understudy.classifier.plan import Training as ClassifierTraining
from understudy.methods import merf
from understudy.networks import EncoderTraining
from understudy.networks.public import Intake, network_of_module
from understudy.plan.encoder import ExtractorPlan
from understudy.plan.plan import Plan

BUDGET = Budget(10.0)
SCHEMA = load_schema(
    {
        "name": "visits",
        "rows": 12,
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 15]},
            {"name": "ward", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True},
            {"name": "ill", "kind": "binary", "role": "label", "categories": ["no", "yes"]},
        ],
    }
)
IMAGES = load_schema(
    {
        "name": "dots",
        "rows": 12,
        "image": {"height": 2, "width": 2},
        "columns": [{"name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b"]}],
    }
)


@dataclass(frozen=True)
class Audited:
    """What is run on either table, and the mu that is claimed for each of its mechanisms (of Laplace noise: epsilon).

    ``bounds`` say how far apart the tables may be in each, in deviations of its noise: that mu, unless rows are
    sampled.
    """

    run: Callable[[bool], Parts]
    claimed: dict[str, float]
    sampled: DescentCost | None = None
    is_pure: bool = False

    @property
    def is_gaussian(self) -> bool:
        """Whether the whole is a Gaussian mechanism."""
        return self.sampled is None and not self.is_pure

    @property
    def total(self) -> float:
        """The mu, or epsilon, that is claimed for the whole."""
        if self.is_pure:
            return sum(self.claimed.values())
        return math.sqrt(sum(mu**2 for mu in self.claimed.values()))

    @property
    def bounds(self) -> dict[str, float]:
        if self.sampled is None:
            return self.claimed
        every_step = math.sqrt(self.sampled.steps) / self.sampled.noise_multiplier
        return self.claimed | {"descent": every_step}

    def refutations(self, audit: Audit, *, risk: float) -> list[str]:
        """Claims that runs contradict; each comparison errs with at most the chance ``risk``."""
        found = []
        for place, (name, bound) in enumerate(self.bounds.items()):
            residues = audit.residues[place]
            if audit.distances[:, place].max() > bound * (1 + 1e-9):
                found.append(f"{name}: one row moves the sum further than is charged")
            deviation = mu_of_spread(1.0, residues, risk=risk)
            if deviation.low > 1:
                found.append(f"{name}: less noise than stated")
            if deviation.high < 1:
                found.append(f"{name}: not the stated noise around the exact sum")
            apart, allowed = normality(residues, risk=risk)
            if apart > allowed:
                found.append(f"{name}: noise of another shape")
        if self.is_pure and max(np.abs(each).max() for each in audit.totals) > self.total + 1e-9:
            found.append("all: odds move further than is claimed")
        if self.is_gaussian and effect_size(*audit.totals, risk=risk).low > self.total:
            found.append("all: tables are told apart better than is claimed")
        return found


def visits() -> tuple[pa.Table, pa.Table]:
    """A dozen rows, and one more."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {"age": rng.integers(0, 16, 12), "ward": rng.choice(["a", "b", "c"], 12), "ill": rng.choice(["no", "yes"], 12)}
    )
    return table, pa.table({"age": [15], "ward": ["c"], "ill": ["yes"]})


def dots(count: int = 12) -> tuple[pa.Table, pa.Table]:
    """Dark images, and one with all the contrast that there is."""
    rng = np.random.default_rng(0)
    names = IMAGES.image.names if IMAGES.image else ()
    dark = {name: rng.integers(0, 40, count) for name in names}
    table = pa.table(dark | {"label": rng.choice(["a", "b"], count)})
    checked = dict(zip(names, ([255], [0], [0], [255]), strict=True))
    return table, pa.table(checked | {"label": ["b"]})


def of_table(method: str, *, noise: Any = None, budget: Budget = BUDGET, **options: Any) -> Audited:
    """A release of the visits; ``noise`` is for planted bugs."""
    plan = make_plan(SCHEMA, budget, method=method, options=options)
    return _of_plan(plan, *visits(), noise=noise)


def of_images(method: str, **options: Any) -> Audited:
    """A release of so many dots that noise does not hide how dark they are."""
    return _of_plan(make_plan(IMAGES, BUDGET, method=method, options=options), *dots(300))


def _of_plan(plan: Plan, table: pa.Table, row: pa.Table, *, noise: Any = None) -> Audited:
    def run(is_there: bool) -> Parts:
        return release_parts(plan, table, row, is_there=is_there, noise=noise)

    return Audited(run, _stage_claims(plan), is_pure=plan.budget.is_pure)


def _stage_claims(plan: Plan) -> dict[str, float]:
    costs = [sum(parts, Fraction(0)) for parts in plan.stage_costs()]
    return {
        stage.name: float(cost) if plan.budget.is_pure else math.sqrt(cost)
        for stage, cost in zip(plan.stages, costs, strict=True)
    }


@cache
def tiny_encoder() -> Any:
    """A public network of one convolution, with weights of a seed."""
    import torch

    module = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 2), torch.nn.ReLU())
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for values in module.parameters():
            values.normal_(generator=source)
    return network_of_module(module, name="tiny", intake=Intake(), layers=("pixels", "0"))


def of_decoder(steps: int) -> Audited:
    wish = {"descent_steps": steps, "num_features": 8}
    with patch.object(merf, "HIDDEN", 4):  # as noise on a small network is drawn faster
        plan = make_plan(IMAGES, BUDGET, method="dp-merf-ae", options=wish)
    table, row = dots()
    assert plan.descent is not None
    claimed = {"descent": math.sqrt(plan.charge.mu_squared)} | _stage_claims(plan)

    def run(is_there: bool) -> Parts:
        return decoder_parts(plan, table, row, is_there=is_there)

    return Audited(run, claimed, plan.descent.cost)


def of_classifier(**wish: Any) -> Audited:
    training = ClassifierTraining(clip=0.02, **wish)
    plan = ClassifierPlan(SCHEMA, BUDGET, training)
    table, row = visits()
    names = ("second moments", "descent")[-len(plan.descent.charges) :]
    claimed = {name: math.sqrt(charge.mu_squared) for name, charge in zip(names, plan.descent.charges, strict=True)}

    def run(is_there: bool) -> Parts:
        return classifier_parts(plan, table, row, is_there=is_there)

    return Audited(run, claimed, plan.descent.cost if plan.descent.cost.is_sampled else None)


def of_encoder(*, steps: int, batch: int) -> Audited:
    training = EncoderTraining(
        depths=(2,), strides=(1,), kernels=(1,), components=2, steps=steps, batch=batch, learning_rate=0.05
    )
    plan = ExtractorPlan(IMAGES, BUDGET, training, clip=0.01)
    table, row = dots()

    def run(is_there: bool) -> Parts:
        return encoder_parts(plan, table, row, is_there=is_there)

    claimed = {"descent": math.sqrt(plan.descent.charge.mu_squared)}
    return Audited(run, claimed, plan.descent.cost if plan.descent.cost.is_sampled else None)


NEARBY = pa.table({"age": [15, 15], "ward": ["c", "c"], "ill": ["yes", "yes"]})
"""Public points: whichever is chosen, the row that is attacked lies there."""

MECHANISMS: dict[str, Callable[[], Audited]] = {
    "dp-anova": partial(of_table, "dp-anova", pairs=True),
    "dp-anova, Laplace noise": partial(of_table, "dp-anova", pairs=True, budget=Budget(4.0, 0.0)),
    "dp-merf": partial(of_table, "dp-merf", num_features=8),
    "dp-merf, a scale that is paid for": partial(of_table, "dp-merf", num_features=8, length_scale="private"),
    "dp-hp": partial(of_table, "dp-hp", order=4, product_order=2),
    "balog-subspace": partial(of_table, "balog-subspace", public_points=NEARBY, look=True),
    "balog-features": partial(of_table, "balog-features", num_candidates=20, num_features=8),
    "dp-spectrum": partial(of_images, "dp-spectrum"),
    "dp-mepf": lambda: of_images("dp-mepf", encoder=tiny_encoder()),
    "dp-merf-ae": partial(of_decoder, 3),
    "classifier": partial(of_classifier, steps=4),
    "classifier, sampled": partial(of_classifier, steps=4, sampling_rate=0.5),
    "private encoder": partial(of_encoder, steps=3, batch=12),
    "private encoder, sampled": partial(of_encoder, steps=3, batch=6),
}
"""Every kind of release that there is, by name."""
