"""The certificate: every claim a governance board or a privacy engineer needs, from public facts.

It is a pure function of the plan and the circumstances of the release, so anyone who holds
the release can compute it again. It never holds a row count that is private, a minimum or
maximum of the data, or a hash of anything that has no noise in it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from understudy.accounting.mechanisms import LAPLACE, Neighbours, round_up
from understudy.codec import kind_of
from understudy.plan.descent import DescentPlan, TrainedPlan
from understudy.plan.plan import Plan
from understudy.released.assumptions import (
    Assumption,
    domain_words,
    given_points,
    public_networks,
    release_assumptions,
    shared_assumptions,
)
from understudy.schema import Schema
from understudy.schema.images import LIGHTEST, without_pixels

CURVE_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
COLUMNS_SHOWN = 40  # columns whose domains the page lists
PRIVATE = "PRIVATE"
NOT_PRIVATE = "NOT PRIVATE"

MECHANISM_NAMES = {
    "gaussian": "Discrete Gaussian noise on an exact integer sum of norm-bounded features",
    "laplace": "Discrete Laplace noise on an exact integer sum of features whose absolute values have a bounded sum",
}
NEIGHBOUR_WORDS = {
    Neighbours.ADD_REMOVE: "Any one row may be added or removed. The number of rows is private too.",
    Neighbours.REPLACE_ONE: "Any one row may be replaced by any other. The number of rows is public.",
}
PERSON_WORDS = (
    "All rows of any one '{unit}' may be added or removed, however many they are; at most {max_rows} of them "
    "count. The numbers of rows and of ids are private too."
)
NO_LEDGER = "No ledger was given: other releases from the same table add to this one and are not counted here."
CHARGED = "Charged to a ledger with a cap before {} was drawn; the cap covers all releases in it."
SAMPLING = (
    "accounting of samples",
    "Privacy loss distributions are composed by dp_accounting, whose pessimistic estimates are relied on.",
)


Price = Plan | DescentPlan
"""What a certificate asks about its cost: the plan of a release, or the descent of a trained product."""


def certificate_of(
    schema: Schema, price: Price, own: dict[str, Any], facts: dict[str, Any], *, fingerprint: str
) -> dict[str, Any]:
    """All statements about a product: ``own`` are those of its kind, which add to the sections that all have."""
    assumptions = [*shared_assumptions(schema, facts), *own["assumptions"]]
    shared: dict[str, Any] = {
        "certificate": "understudy differential privacy certificate, format 1",
        "release": fingerprint,
        "created": facts.get("created"),
        "table": schema.name,
        "odds": {
            "best_guess_percent": round_up(100 * price.best_guess),
            "suspicion_from_percent": 50.0,
            "suspicion_to_percent": round_up(100 / (1 + math.exp(-price.epsilon()))),
            "except_with_probability": round_up(price.exceedance),
        },
        "tuning": "No setting was tuned on private rows: the plan fixed all of them before a row was read.",
        "software": facts.get("software"),
        "verify": "understudy verify DIRECTORY",
    }
    return (
        shared
        | own
        | {
            "guarantee": _guarantee(schema, price) | own["guarantee"],
            "mechanism": {"noise": facts.get("noise")} | own["mechanism"],
            "composition": {"ledger": facts.get("ledger")} | own["composition"],
            "public": _columns(schema) | {"query": facts.get("query")} | own["public"],
            "assumptions": [{"name": name, "statement": statement} for name, statement in assumptions],
        }
    )


def _guarantee(schema: Schema, price: Price) -> dict[str, Any]:
    replaced, unit = price.epsilon(Neighbours.REPLACE_ONE), schema.privacy
    # Without a delta there is one epsilon and no curve.
    deltas = () if price.budget.is_pure else CURVE_DELTAS
    curve = [(delta, price.epsilon(delta=delta)) for delta in deltas]
    return {
        "epsilon": round_up(price.epsilon()),
        "delta": price.budget.delta,
        "neighbours": price.neighbours.value,
        "neighbours_in_words": NEIGHBOUR_WORDS[price.neighbours]
        if unit.is_row
        else PERSON_WORDS.format(unit=unit.unit, max_rows=unit.max_rows),
        "unit": unit.unit,
        "epsilon_add_remove": round_up(price.epsilon(Neighbours.ADD_REMOVE)),
        "epsilon_replace_one": round_up(replaced) if math.isfinite(replaced) else "not stated for sampled rows",
        "mu": round_up(math.sqrt(sum(charge.mu_squared for charge in price.charges))),
        "curve": [[delta, round_up(epsilon)] for delta, epsilon in curve if math.isfinite(epsilon)],
    }


def status(facts: dict[str, Any], plan: Plan | None = None) -> dict[str, str]:
    """Whether everything that a product rests on had real noise; if not, what had not."""
    if not facts.get("is_private"):
        return {"status": NOT_PRIVATE, "status_reason": f"Its noise came from {facts.get('noise')}."}
    if plan is not None and plan.network_has_test_noise:
        reason = f"The network it was made with is not: that noise came from {plan.network_noise}."
        return {"status": NOT_PRIVATE, "status_reason": reason}
    return {"status": PRIVATE}


def build_certificate(plan: Plan, facts: dict[str, Any], *, fingerprint: str) -> dict[str, Any]:
    """All statements about a release."""
    is_replaced = plan.neighbours is Neighbours.REPLACE_ONE
    guarantee: dict[str, Any] = {
        "rows_of_a_unit_that_count": plan.schema.privacy.max_rows,
        "epsilon_add_remove_covers": "the noisy numbers alone: the row count is public"
        if is_replaced
        else "the whole release",
    }
    if plan.network_cost is not None:  # the network was learnt from the same rows, and is a part of the guarantee
        guarantee |= {
            "epsilon_alone": round_up(plan.own_epsilon()),
            "epsilon_of_the_network": round_up(float(plan.network_cost["epsilon"])),
            "slack": float(sum(charge.slack for charge in plan.charges)),
        }
    guess = f" (planned for about {plan.num_rows})" if plan.num_rows else ""
    own: dict[str, Any] = {
        **status(facts, plan),
        "method": plan.method,
        "guarantee": guarantee,
        "mechanism": _mechanism(plan),
        "composition": _composition(plan, facts),
        "public": {
            "rows": f"public: {plan.num_rows}"
            if is_replaced
            else f"private; a noisy count is part of the release{guess}",
            "given_points": given_points(plan),
            **_networks(plan),
            "settings": dict(plan.settings),
        },
        "assumptions": release_assumptions(plan, facts),
        "post_processing": "Generators, samples, answers and reports are computed from the release alone "
        "and cost nothing more, however often they are made.",
        "intended_use": "Statistics, model building, teaching and software tests on the table as a whole.",
        "not_for": "Decisions about, or statements on, a single person; rare groups smaller than the noise.",
    }
    return certificate_of(plan.schema, plan, own, facts, fingerprint=fingerprint)


def trained_certificate(
    plan: TrainedPlan,
    facts: dict[str, Any],
    *,
    fingerprint: str,
    method: str,
    mechanism: str,
    stages: list[dict[str, Any]],
    numbers: int,
    settings: dict[str, Any],
    further: list[Assumption],
    words: dict[str, str],
) -> dict[str, Any]:
    """All statements about a model that noisy descent trains.

    ``stages`` are released before the descent, whose steps release ``numbers`` gradients each; ``further`` are
    assumptions beside those of every certificate.
    """
    descent, cost = plan.descent, plan.descent.cost
    if cost.is_sampled:
        further = [*further, SAMPLING]
    chance = f"each row with chance {cost.sampling_rate:.6g}" if cost.is_sampled else "all rows"
    steps = {
        "name": f"sums of clipped gradients, {cost.steps} times, of {chance}",
        "numbers_released": numbers,
        "sensitivity": 1.0,  # in units of the clipping norm
        "noise_std": cost.noise_multiplier,
    }
    guess = f" (planned for about {descent.expected_rows})" if descent.expected_rows else ""
    charged = [{"mu_squared": float(each.mu_squared), "slack": float(each.slack)} for each in descent.charges]
    own: dict[str, Any] = {
        **status(facts),
        **words,
        "method": method,
        "guarantee": {"epsilon_charged": round_up(descent.charged_epsilon()), "slack": float(descent.charge.slack)},
        "mechanism": {**asdict(cost), "clip": descent.clip, "name": mechanism, "stages": [*stages, steps]},
        "composition": {
            "in_words": NO_LEDGER if facts.get("ledger") is None else CHARGED.format("noise"),
            "rule": "mu squared adds up over releases, and so does slack",
            "charged": charged,
        },
        "public": {"rows": f"private{guess}", "given_points": 0, "settings": settings},
        "assumptions": further,
    }
    return certificate_of(plan.schema, descent, own, facts, fingerprint=fingerprint)


def render_html(certificate: dict[str, Any]) -> str:
    """The certificate as one page for people."""
    return str(_template().render(c=certificate))


@cache
def _template() -> Any:
    import jinja2

    template = files("understudy.released").joinpath("certificate.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(template)


def _mechanism(plan: Plan) -> dict[str, Any]:
    return {
        "name": MECHANISM_NAMES[plan.mechanism.name],
        "lattice": plan.lattice,
        **_descent(plan),
        "stages": [
            {
                "name": stage.name,
                "numbers_released": stage.embedding.dim,
                "share_of_budget": stage.share,
                "separately_charged_releases": len(parts),
                "sensitivity": round_up(plan.mechanism.length(sum(parts)) / plan.lattice),
                "noise_std": plan.noise_stds[index] / plan.lattice,
                **_laplace_numbers(plan, index),
                "blocks": [
                    {
                        "name": block.name,
                        "features": block.map.dim,
                        "weight": block.weight,
                        "copies": stage.embedding.copies(block),
                        "kind": kind_of(block.map),
                        "noise_std_of_a_sum": plan.noise_std_of_sum(index, block),
                    }
                    for block in stage.embedding.blocks
                ],
            }
            for index, (stage, parts) in enumerate(zip(plan.stages, plan.mechanism_sensitivities, strict=True))
        ],
    }


def _descent(plan: Plan) -> dict[str, Any]:
    """What a plan with a network that is trained on rows states of it."""
    if plan.descent is None:
        return {}
    return {
        "descent": {
            **asdict(plan.descent.cost),
            "clip": plan.descent.clip,
            "mu": round_up(math.sqrt(plan.charge.mu_squared)),
            "except_with_probability": float(plan.charge.slack),
        }
    }


def _laplace_numbers(plan: Plan, index: int) -> dict[str, Any]:
    """What a stage with Laplace noise states besides: its scale, and its part of epsilon."""
    if plan.mechanism is not LAPLACE:
        return {}
    parts, scale = plan.mechanism_sensitivities[index], plan.noise_scales[index]
    spent = plan.mechanism.epsilon([plan.mechanism.cost(part, scale) for part in parts], 0.0)
    return {"sensitivity_norm": "L1", "noise_scale": scale / plan.lattice, "epsilon": round_up(spent)}


def _composition(plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
    words = CHARGED.format("the noise")
    if facts.get("ledger") is None:
        is_theirs = facts.get("merged_from") and plan.parties > 1
        words = "Each party keeps a ledger of its own, which this release does not know of." if is_theirs else NO_LEDGER
    whole = plan.setting("horizon")
    if whole is not None:
        words += (
            f" It was planned as one of {whole['releases']} releases of the same people, which together "
            f"have epsilon {whole['epsilon']:g} at delta {whole['delta']:g}"
            f"{'' if plan.network_cost is None else ', without the network'}."
        )
    return {"in_words": words, "rule": f"{plan.mechanism.cost_name} adds up over releases"}


def _columns(schema: Schema) -> dict[str, Any]:
    """Columns, their domains, and where these come from."""
    used, image = schema.used, schema.image
    listed = without_pixels(image, used)
    columns = [{"name": c.name, "domain": domain_words(c), "source": c.bounds_from} for c in listed[:COLUMNS_SHOWN]]
    if image is not None:
        size = f"{image.height} x {image.width} x {image.channels} pixels"
        columns.insert(0, {"name": "image", "domain": f"{size} from 0 to {LIGHTEST}", "source": "image format"})
    return {
        "columns": columns,
        "columns_not_shown": max(0, len(listed) - COLUMNS_SHOWN),
        "sources": dict(sorted(Counter(column.bounds_from for column in schema.in_files).items())),
    }


def _networks(plan: Plan) -> dict[str, Any]:
    """What is said of networks, where there are any."""
    learnt = {} if plan.network_cost is None else {"learnt_from": "the private rows"}
    found = [
        {"name": name, "sha256": sha256, "layers": list(layers), **learnt}
        for (name, sha256), layers in public_networks(plan).items()
    ]
    return {"networks": found} if found else {}
