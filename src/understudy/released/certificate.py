"""The certificate: every claim a governance board or a privacy engineer needs, from public facts.

It is a pure function of the plan and the circumstances of the release, so anyone who holds
the release can compute it again. It never holds a row count that is private, a minimum or
maximum of the data, or a hash of anything that has no noise in it.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import Any

from understudy.accounting import LAPLACE, Neighbours
from understudy.plan.plan import Plan
from understudy.released.assumptions import assumptions, domain_words, round_up
from understudy.released.public_inputs import given_points, public_networks
from understudy.schema import Schema
from understudy.schema.images import LIGHTEST, without_pixels

CURVE_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
COLUMNS_SHOWN = 40
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


def build_certificate(plan: Plan, facts: dict[str, Any], *, fingerprint: str) -> dict[str, Any]:
    """All statements about a release."""
    return {
        "certificate": "understudy differential privacy certificate, format 1",
        "release": fingerprint,
        **status(facts, plan),
        "created": facts.get("created"),
        "table": plan.schema.name,
        "method": plan.method,
        "guarantee": {
            "epsilon": round_up(plan.epsilon()),
            "delta": plan.budget.delta,
            "neighbours": plan.neighbours.value,
            "neighbours_in_words": _neighbours_in_words(plan),
            "unit": plan.schema.privacy.unit,
            "rows_of_a_unit_that_count": plan.schema.privacy.max_rows,
            "epsilon_add_remove": round_up(plan.epsilon(Neighbours.ADD_REMOVE)),
            "epsilon_add_remove_covers": "the whole release"
            if plan.neighbours is Neighbours.ADD_REMOVE
            else "the noisy numbers alone: the row count is public",
            "epsilon_replace_one": _replaced(plan),
            "mu": round_up(math.sqrt(sum(charge.mu_squared for charge in plan.charges()))),
            **_parts(plan),
            "curve": _curve(plan),
        },
        "odds": _odds(plan),
        "mechanism": _mechanism(plan, facts),
        "composition": _composition(plan, facts),
        "public": _public(plan, facts),
        "assumptions": assumptions(plan, facts),
        "tuning": "No setting was tuned on private rows: the plan fixed all of them before a row was read.",
        "post_processing": "Generators, samples, answers and reports are computed from the release alone "
        "and cost nothing more, however often they are made.",
        "intended_use": "Statistics, model building, teaching and software tests on the table as a whole.",
        "not_for": "Decisions about, or statements on, a single person; rare groups smaller than the noise.",
        "software": facts.get("software"),
        "verify": "understudy verify DIRECTORY",
    }


def status(facts: dict[str, Any], plan: Plan | None = None) -> dict[str, str]:
    """Whether everything that a product rests on had real noise; if not, what had not."""
    if not facts.get("is_private"):
        return {"status": NOT_PRIVATE, "status_reason": f"Its noise came from {facts.get('noise')}."}
    if plan is not None and plan.network_has_test_noise:
        reason = f"The network it was made with is not: that noise came from {plan.network_noise}."
        return {"status": NOT_PRIVATE, "status_reason": reason}
    return {"status": PRIVATE}


def _replaced(plan: Plan) -> float | str:
    epsilon = plan.epsilon(Neighbours.REPLACE_ONE)
    return round_up(epsilon) if math.isfinite(epsilon) else "not stated for sampled rows"


def _parts(plan: Plan) -> dict[str, Any]:
    """What a guarantee consists of, where a network that was learnt from the rows is a part of it."""
    if plan.network_cost is None:
        return {}
    return {
        "epsilon_alone": round_up(plan.own_epsilon()),
        "epsilon_of_the_network": round_up(float(plan.network_cost["epsilon"])),
        "slack": float(sum(charge.slack for charge in plan.charges())),
    }


def _curve(plan: Plan) -> list[list[float]]:
    """Epsilons at other deltas. Without a delta there is one epsilon and no curve."""
    if plan.budget.is_pure:
        return []
    found = [[delta, plan.epsilon(delta=delta)] for delta in CURVE_DELTAS]
    return [[delta, round_up(epsilon)] for delta, epsilon in found if math.isfinite(epsilon)]


def _neighbours_in_words(plan: Plan) -> str:
    unit = plan.schema.privacy
    if unit.is_row:
        return NEIGHBOUR_WORDS[plan.neighbours]
    return PERSON_WORDS.format(unit=unit.unit, max_rows=unit.max_rows)


def render_html(certificate: dict[str, Any]) -> str:
    """The certificate as one page for people."""
    return str(_template().render(c=certificate))


@cache
def _template() -> Any:
    import jinja2

    template = files("understudy.released").joinpath("certificate.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(template)


def _odds(plan: Plan) -> dict[str, Any]:
    epsilon = plan.epsilon()
    return {
        "best_guess_percent": round_up(100 * plan.best_guess),
        "suspicion_from_percent": 50.0,
        "suspicion_to_percent": round_up(100 / (1 + math.exp(-epsilon))),
        "except_with_probability": round_up(plan.exceedance),
    }


def _mechanism(plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": MECHANISM_NAMES[plan.mechanism.name],
        "noise": facts.get("noise"),
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
                        "kind": block.map.to_dict()["kind"],
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
    described = plan.descent.to_dict()
    told = {name: described[name] for name in ("sampling_rate", "noise_multiplier", "steps", "clip")}
    return {
        "descent": told
        | {"mu": round_up(math.sqrt(plan.charge.mu_squared)), "except_with_probability": float(plan.charge.slack)}
    }


def _laplace_numbers(plan: Plan, index: int) -> dict[str, Any]:
    """What a stage with Laplace noise states besides: its scale, and its part of epsilon."""
    if plan.mechanism is not LAPLACE:
        return {}
    parts, scale = plan.mechanism_sensitivities[index], plan.noise_scales[index]
    spent = plan.mechanism.epsilon([plan.mechanism.cost(part, scale) for part in parts], 0.0)
    return {"sensitivity_norm": "L1", "noise_scale": scale / plan.lattice, "epsilon": round_up(spent)}


def _composition(plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
    ledger = facts.get("ledger")
    if ledger is None and facts.get("merged_from") and plan.parties > 1:
        words = "Each party keeps a ledger of its own, which this release does not know of."
    elif ledger is None:
        words = "No ledger was given: other releases from the same table add to this one and are not counted here."
    else:
        words = "Charged to a ledger with a cap before the noise was drawn; the cap covers all releases in it."
    whole = plan.setting("horizon")
    if whole is not None:
        words += (
            f" It was planned as one of {whole['releases']} releases of the same people, which together "
            f"have epsilon {whole['epsilon']:g} at delta {whole['delta']:g}"
            f"{'' if plan.network_cost is None else ', without the network'}."
        )
    rule = f"{plan.mechanism.cost_name} adds up over releases"
    return {"ledger": ledger, "in_words": words, "rule": rule}


def _public(plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
    if plan.neighbours is Neighbours.REPLACE_ONE:
        rows = f"public: {plan.num_rows}"
    else:
        guess = f" (planned for about {plan.num_rows})" if plan.num_rows else ""
        rows = f"private; a noisy count is part of the release{guess}"
    return {
        **public_columns(plan.schema),
        "rows": rows,
        "given_points": given_points(plan),
        **_networks(plan),
        "query": facts.get("query"),
        "settings": dict(plan.settings),
    }


def public_columns(schema: Schema) -> dict[str, Any]:
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
        "sources": dict(sorted(Counter(column.bounds_from for column in used).items())),
    }


def _networks(plan: Plan) -> dict[str, Any]:
    """What is said of networks, where there are any."""
    learnt = {} if plan.network_cost is None else {"learnt_from": "the private rows"}
    found = [
        {"name": name, "sha256": sha256, "layers": list(layers), **learnt}
        for (name, sha256), layers in public_networks(plan).items()
    ]
    return {"networks": found} if found else {}
