"""The certificate of a model that noisy descent (DP-SGD) trains, a classifier or an encoder, and its verification.

As that of a release, it is a pure function of the plan and the circumstances of the training.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from understudy.accounting import Budget, Neighbours, best_guess_probability, epsilon_of, exceedance_probability
from understudy.accounting.dpsgd import Charge, DescentCost, exceedance_of_charges
from understudy.errors import InputError
from understudy.files import CERTIFICATE
from understudy.released.assumptions import Assumption, described, round_up, shared_assumptions
from understudy.released.certificate import CURVE_DELTAS, NEIGHBOUR_WORDS, public_columns, status
from understudy.released.verify import Verification, check_files
from understudy.schema import Schema


class TrainedPlan(Protocol):
    """What is decided before rows are read, and what it costs between tables with one row more or less."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def budget(self) -> Budget:
        """The guarantee to meet."""

    @property
    def descent(self) -> DescentCost:
        """Steps, sampling and noise."""

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What is charged to a ledger."""

    @property
    def expected_rows(self) -> int | None:
        """Rows that there are, as far as it is public."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the plan."""

    def epsilon(self, delta: float | None = None) -> float:
        """The epsilon of everything together, by privacy loss distributions."""

    def charged_epsilon(self) -> float:
        """The same as ledgers count it."""


def trained_certificate(
    plan: TrainedPlan,
    facts: dict[str, Any],
    *,
    fingerprint: str,
    method: str,
    mechanism: dict[str, Any],
    settings: dict[str, Any],
    further: list[Assumption],
    words: dict[str, str],
) -> dict[str, Any]:
    """All statements about a trained model.

    ``mechanism`` names it, its stages and its clipping norm, ``further`` are assumptions beside those of every
    certificate, ``words`` say what it is for.
    """
    descent = plan.descent
    if descent.is_sampled:
        further = [
            *further,
            (
                "accounting of samples",
                "Privacy loss distributions are composed by dp_accounting, whose pessimistic estimates are relied on.",
            ),
        ]
    return {
        "certificate": "understudy differential privacy certificate, format 1",
        "release": fingerprint,
        **status(facts),
        "created": facts.get("created"),
        "table": plan.schema.name,
        "method": method,
        "guarantee": _guarantee(plan),
        "odds": _odds(plan),
        "mechanism": {
            "noise": facts.get("noise"),
            "sampling_rate": descent.sampling_rate,
            "noise_multiplier": descent.noise_multiplier,
            "steps": descent.steps,
            **mechanism,
        },
        "composition": _composition(plan, facts),
        "public": _public(plan, facts, settings),
        "assumptions": described([*shared_assumptions(plan.schema, facts), *further]),
        "tuning": "No setting was tuned on private rows: the plan fixed all of them before a row was read.",
        **words,
        "software": facts.get("software"),
        "verify": "understudy verify DIRECTORY",
    }


class TrainedProduct(Protocol):
    """A trained model with its files, as it was read back."""

    @property
    def plan(self) -> TrainedPlan:
        """What was trained, and at which cost."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything released."""

    @property
    def is_private(self) -> bool:
        """Whether its noise was real."""


def verify_trained(made: TrainedProduct, folder: Path, expected: dict[str, bytes], *, what: str) -> Verification:
    """Compare a trained model's files with what follows from its plan, byte for byte.

    Raises:
        InputError: it names the first file that does not follow from the model.
    """
    check_files(folder, expected, what=what)
    plan = made.plan
    if max(plan.epsilon(), plan.charged_epsilon()) > plan.budget.epsilon:
        raise InputError(f"{what} '{folder}'", "spends more than its stated epsilon", "Do not rely on it")
    certificate = json.loads(expected[CERTIFICATE])
    stages = certificate["mechanism"]["stages"]
    return Verification(
        fingerprint=made.fingerprint,
        is_private=made.is_private,
        epsilon=plan.epsilon(),
        epsilon_alone=plan.epsilon(),
        delta=plan.budget.delta,
        neighbours="add-remove",
        mechanism="gaussian",
        assumptions=tuple(each["name"] for each in certificate["assumptions"]),
        noise_std=tuple(stage["noise_std"] for stage in stages),
        sensitivity=tuple(stage["sensitivity"] for stage in stages),
        checks=tuple(sorted(expected)),
    )


def gradient_stage(descent: DescentCost, numbers: int) -> dict[str, Any]:
    """What a certificate says of the steps, in units of the clipping norm."""
    chance = f"each row with chance {descent.sampling_rate:.6g}" if descent.is_sampled else "all rows"
    return {
        "name": f"sums of clipped gradients, {descent.steps} times, of {chance}",
        "numbers_released": numbers,
        "sensitivity": 1.0,
        "noise_std": descent.noise_multiplier,
    }


def _guarantee(plan: TrainedPlan) -> dict[str, Any]:
    epsilon = plan.epsilon()
    charged = sum((charge.mu_squared for charge in plan.charges), Fraction(0))
    doubled = 4 * charged  # two neighbours apart: one row removed, and one added
    slack = float(sum(charge.slack for charge in plan.charges))
    return {
        "epsilon": round_up(epsilon),
        "epsilon_charged": round_up(plan.charged_epsilon()),
        "delta": plan.budget.delta,
        "neighbours": Neighbours.ADD_REMOVE.value,
        "neighbours_in_words": NEIGHBOUR_WORDS[Neighbours.ADD_REMOVE],
        "unit": plan.schema.privacy.unit,
        "epsilon_add_remove": round_up(epsilon),
        "epsilon_replace_one": "not stated for sampled rows"
        if slack
        else round_up(epsilon_of([doubled], plan.budget.delta)),
        "mu": round_up(math.sqrt(charged)),
        "slack": slack,
        "curve": [[delta, round_up(plan.epsilon(delta))] for delta in CURVE_DELTAS if delta > slack],
    }


def _odds(plan: TrainedPlan) -> dict[str, Any]:
    epsilon, costs = plan.epsilon(), [charge.mu_squared for charge in plan.charges]
    slack = float(sum(charge.slack for charge in plan.charges))
    return {
        "best_guess_percent": round_up(100 * (best_guess_probability(costs) + slack)),
        "suspicion_from_percent": 50.0,
        "suspicion_to_percent": round_up(100 / (1 + math.exp(-epsilon))),
        "except_with_probability": round_up(
            exceedance_of_charges(plan.charges, epsilon) if slack else exceedance_probability(costs, epsilon)
        ),
    }


def _composition(plan: TrainedPlan, facts: dict[str, Any]) -> dict[str, Any]:
    ledger = facts.get("ledger")
    if ledger is None:
        words = "No ledger was given: other releases from the same table add to this one and are not counted here."
    else:
        words = "Charged to a ledger with a cap before noise was drawn; the cap covers all releases in it."
    return {
        "ledger": ledger,
        "in_words": words,
        "rule": "mu squared adds up over releases, and so does slack",
        "charged": [{"mu_squared": float(charge.mu_squared), "slack": float(charge.slack)} for charge in plan.charges],
    }


def _public(plan: TrainedPlan, facts: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    guess = f" (planned for about {plan.expected_rows})" if plan.expected_rows else ""
    return {
        **public_columns(plan.schema),
        "rows": f"private{guess}",
        "given_points": 0,
        "query": facts.get("query"),
        "settings": settings,
    }
