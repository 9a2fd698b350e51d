"""The certificate of a classifier: what is claimed of it follows from its plan alone."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from understudy.accounting import (
    Neighbours,
    best_guess_probability,
    epsilon_of,
    exceedance_probability,
)
from understudy.accounting.descent import exceedance_of_charges
from understudy.classifier.plan import RADIUS, ClassifierPlan
from understudy.published.assumptions import TYPES
from understudy.published.certificate import COLUMNS_SHOWN, CURVE_DELTAS, NEIGHBOUR_WORDS
from understudy.published.words import domain_words, round_up
from understudy.schema.images import LIGHTEST, without_pixels

METHOD = "DP-LLM (locally linear maps)"


def classifier_certificate(
    plan: ClassifierPlan, facts: dict[str, Any], *, fingerprint: str
) -> dict[str, Any]:
    """All statements about a classifier."""
    epsilon = plan.epsilon()
    return {
        "certificate": "understudy differential privacy certificate, format 1",
        "release": fingerprint,
        "status": "PRIVATE" if facts.get("is_private") else "NOT PRIVATE",
        "created": facts.get("created"),
        "table": plan.schema.name,
        "method": METHOD,
        "guarantee": _guarantee(plan, epsilon),
        "odds": _odds(plan, epsilon),
        "mechanism": _mechanism(plan, facts),
        "composition": _composition(plan, facts),
        "public": _public(plan, facts),
        "assumptions": _assumptions(plan, facts),
        "tuning": "No setting was tuned on private rows: the plan fixed all of them before a row was read.",
        "post_processing": "Predictions and explanations are computed from the maps alone and cost nothing more, "
        "however often they are made.",
        "intended_use": "Predicting the label of further rows, and seeing what the prediction rests on.",
        "not_for": "Finding out about one of the rows it was trained on; decisions about people without "
        "a look at its errors.",
        "software": facts.get("software"),
        "verify": "understudy verify DIRECTORY",
    }


def _guarantee(plan: ClassifierPlan, epsilon: float) -> dict[str, Any]:
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
        "epsilon_replace_one": round_up(_replaced(plan, doubled)) if not slack else "not stated for sampled rows",
        "mu": round_up(math.sqrt(charged)),
        "slack": slack,
        "curve": [[delta, round_up(plan.epsilon(delta))] for delta in CURVE_DELTAS if delta > slack],
    }  # fmt: skip


def _replaced(plan: ClassifierPlan, mu_squared: Fraction) -> float:
    return epsilon_of([mu_squared], plan.budget.delta)


def _odds(plan: ClassifierPlan, epsilon: float) -> dict[str, Any]:
    costs = [charge.mu_squared for charge in plan.charges]
    slack = float(sum(charge.slack for charge in plan.charges))
    return {
        "best_guess_percent": round_up(100 * (best_guess_probability(costs) + slack)),
        "suspicion_from_percent": 50.0,
        "suspicion_to_percent": round_up(100 / (1 + math.exp(-epsilon))),
        "except_with_probability": round_up(
            exceedance_of_charges(plan.charges, epsilon)
            if slack
            else exceedance_probability(costs, epsilon)
        ),
    }


def _mechanism(plan: ClassifierPlan, facts: dict[str, Any]) -> dict[str, Any]:
    stages = []
    if plan.look_noise is not None:
        dim = plan.inputs.dim
        stages.append({
            "name": "second moments of inputs", "numbers_released": dim * (dim + 1) // 2,
            "sensitivity": 1.0, "noise_std": plan.look_noise / RADIUS**2,
        })  # fmt: skip
    shape, descent = plan.shape, plan.descent
    chance = (
        "all rows"
        if not descent.is_sampled
        else f"each row with chance {descent.sampling_rate:.6g}"
    )
    stages.append({
        "name": f"sums of clipped gradients, {descent.steps} times, of {chance}",
        "numbers_released": shape.num_maps * shape.num_classes * shape.map_dim,
        "sensitivity": 1.0, "noise_std": descent.noise_multiplier,
    })  # fmt: skip
    return {
        "name": "Discrete Gaussian noise on exact integer sums of second moments and of clipped gradients",
        "noise": facts.get("noise"),
        "stages": stages,
        "sampling_rate": descent.sampling_rate,
        "noise_multiplier": descent.noise_multiplier,
        "steps": descent.steps,
        "clip": plan.training.clip,
    }


def _composition(plan: ClassifierPlan, facts: dict[str, Any]) -> dict[str, Any]:
    ledger = facts.get("ledger")
    if ledger is None:
        words = "No ledger was given: other releases from the same table add to this one and are not counted here."
    else:
        words = "Charged to a ledger with a cap before noise was drawn; the cap covers all releases in it."
    return {
        "ledger": ledger, "in_words": words,
        "rule": "mu squared adds up over releases, and so does slack",
        "charged": [
            {"mu_squared": float(charge.mu_squared), "slack": float(charge.slack)}
            for charge in plan.charges
        ],
    }  # fmt: skip


def _public(plan: ClassifierPlan, facts: dict[str, Any]) -> dict[str, Any]:
    used, image = plan.schema.used, plan.schema.image
    listed = without_pixels(image, used)
    columns = [
        {"name": c.name, "domain": domain_words(c), "source": c.bounds_from}
        for c in listed[:COLUMNS_SHOWN]
    ]
    if image is not None:
        size = f"{image.height} x {image.width} x {image.channels} pixels from 0 to {LIGHTEST}"
        columns.insert(0, {"name": "image", "domain": size, "source": "image format"})
    guess = f" (planned for about {plan.expected_rows})" if plan.expected_rows else ""
    return {
        "columns": columns,
        "columns_not_shown": max(0, len(listed) - COLUMNS_SHOWN),
        "sources": dict(sorted(Counter(column.bounds_from for column in used).items())),
        "rows": f"private{guess}",
        "given_points": 0,
        "query": facts.get("query"),
        "settings": plan.to_dict()["training"],
    }


def _assumptions(plan: ClassifierPlan, facts: dict[str, Any]) -> list[dict[str, str]]:
    found = [
        ("one row, one unit", "Each protected person or thing has at most one row in the table as read."),
        ("public schema", "Bounds, categories and settings were chosen without looking at the private rows."),
        TYPES,
        (
            "row independence of floating-point numbers",
            "exp, square roots and Fourier transforms on this machine give a row the same inputs and the same gradient "
            "whatever other rows are computed with it; checked on made-up rows before training. Norms are checked, and "
            "sums formed, in exact integers, and the noise is discrete: no other property of floating-point numbers is "
            "relied on.",
        ),
        ("randomness", "The operating system's random numbers are unpredictable to an attacker."),
        (
            "trusted curator",
            "Whoever trains sees the rows, and what that machine shows while running (time, memory, refusals of "
            "malformed files) is not published.",
        ),
    ]  # fmt: skip
    if facts.get("query"):
        found.append((
            "row by row query",
            "The query makes each of its rows from the data of one protected person or thing alone.",
        ))  # fmt: skip
    if plan.descent.is_sampled:
        found.append((
            "accounting of samples",
            "Privacy loss distributions are composed by dp_accounting, whose pessimistic estimates are relied on.",
        ))  # fmt: skip
    return [{"name": name, "statement": statement} for name, statement in found]
