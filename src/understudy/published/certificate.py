"""The certificate: every claim a governance board or a privacy engineer needs, from public facts.

It is a pure function of the plan and the circumstances of the release, so anyone who holds
the release can compute it again. It never holds a row count that is private, a minimum or
maximum of the data, or a hash of anything that has no noise in it.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from understudy.accounting import LAPLACE, Neighbours
from understudy.accounting.descent import Charge, epsilon_of_charges
from understudy.features import (
    FeatureMap,
    Lengths,
    Perceptual,
    Points,
    Sides,
    Spectrum,
    Tensors,
)
from understudy.plan import ROW_CAP, Plan
from understudy.schema import Column
from understudy.schema.images import LIGHTEST, without_pixels

CURVE_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
COLUMNS_SHOWN = 40

MECHANISM_NAMES = {
    "gaussian": "Discrete Gaussian noise on an exact integer sum of norm-bounded features",
    "laplace": "Discrete Laplace noise on an exact integer sum of features whose absolute values have a bounded sum",
}
NEIGHBOUR_WORDS = {
    Neighbours.ADD_REMOVE: "Any one row may be added or removed. The number of rows is private too.",
    Neighbours.REPLACE_ONE: "Any one row may be replaced by any other. The number of rows is public.",
}
_OWN_NOISE = (
    " Each party added the whole noise to its own sum, so that the guarantee holds towards the merger and the other "
    "parties too; the release states the noise of all of them together."
)
PERSON_WORDS = (
    "All rows of any one '{unit}' may be added or removed, however many they are; at most {max_rows} of them "
    "count. The numbers of rows and of ids are private too."
)


def build_certificate(plan: Plan, facts: dict[str, Any], *, fingerprint: str) -> dict[str, Any]:
    """All statements about a release."""
    cost, mechanism = plan.cost(), plan.mechanism
    return {
        "certificate": "understudy differential privacy certificate, format 1",
        "release": fingerprint,
        "status": "PRIVATE" if facts.get("is_private") else "NOT PRIVATE",
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
            "epsilon_replace_one": round_up(plan.epsilon(Neighbours.REPLACE_ONE)),
            "mu": round_up(math.sqrt(sum(mechanism.mu_squared(cost)))),
            # Without a delta there is one epsilon and no curve.
            "curve": []
            if plan.budget.is_pure
            else [[delta, round_up(plan.epsilon(delta=delta))] for delta in CURVE_DELTAS],
        },
        "odds": _odds(plan),
        "mechanism": _mechanism(plan, facts),
        "composition": _composition(plan, facts),
        "public": _public(plan, facts),
        "assumptions": _assumptions(plan, facts),
        "tuning": "No setting was tuned on private rows: the plan fixed all of them before a row was read.",
        "post_processing": "Generators, samples, answers and reports are computed from the release alone "
        "and cost nothing more, however often they are made.",
        "intended_use": "Statistics, model building, teaching and software tests on the table as a whole.",
        "not_for": "Decisions about, or statements on, a single person; rare groups smaller than the noise.",
        "software": facts.get("software"),
        "verify": "understudy verify DIRECTORY",
    }


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

    template = files("understudy.published").joinpath("certificate.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.from_string(template)


def round_up(value: float) -> float:
    """Four significant digits, never below the value."""
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    rounded = float(f"{math.ceil(value / step) * step:.6g}")
    return rounded if rounded >= value else float(f"{rounded + step:.6g}")


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
                        "name": block.name, "features": block.map.dim, "weight": block.weight,
                        "copies": stage.embedding.copies(block),
                        "kind": block.map.to_dict()["kind"],
                        "noise_std_of_a_sum": plan.noise_std_of_sum(index, block),
                    }
                    for block in stage.embedding.blocks
                ],
            }
            for index, (stage, parts) in enumerate(
                zip(plan.stages, plan.mechanism_sensitivities, strict=True)
            )
        ],
    }  # fmt: skip


def _descent(plan: Plan) -> dict[str, Any]:
    """What a plan with a network that is trained on rows states of it."""
    if plan.descent is None:
        return {}
    described = plan.descent.to_dict()
    told = {
        name: described[name] for name in ("sampling_rate", "noise_multiplier", "steps", "clip")
    }
    return {
        "descent": told
        | {
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
    return {
        "sensitivity_norm": "L1", "noise_scale": scale / plan.lattice, "epsilon": round_up(spent),
    }  # fmt: skip


def _composition(plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
    ledger = facts.get("ledger")
    if ledger is None:
        words = "No ledger was given: other releases from the same table add to this one and are not counted here."
    else:
        words = "Charged to a ledger with a cap before the noise was drawn; the cap covers all releases in it."
    rule = f"{plan.mechanism.cost_name} adds up over releases"
    return {"ledger": ledger, "in_words": words, "rule": rule}


def _public(plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
    used = plan.schema.used
    sources = Counter(column.bounds_from for column in used)
    if plan.neighbours is Neighbours.REPLACE_ONE:
        rows = f"public: {plan.num_rows}"
    else:
        guess = f" (planned for about {plan.num_rows})" if plan.num_rows else ""
        rows = f"private; a noisy count is part of the release{guess}"
    listed = without_pixels(plan.schema.image, used)
    columns = [
        {"name": c.name, "domain": domain_words(c), "source": c.bounds_from}
        for c in listed[:COLUMNS_SHOWN]
    ]
    image = plan.schema.image
    if image is not None:
        size = f"{image.height} x {image.width} x {image.channels} pixels"
        columns.insert(
            0, {"name": "image", "domain": f"{size} from 0 to {LIGHTEST}", "source": "image format"}
        )
    return {
        "columns": columns,
        "columns_not_shown": max(0, len(listed) - COLUMNS_SHOWN),
        "sources": dict(sorted(sources.items())),
        "rows": rows,
        "given_points": given_points(plan),
        **_networks(plan),
        "query": facts.get("query"),
        "settings": dict(plan.settings),
    }


def given_points(plan: Plan) -> int:
    """How many rows the plan was given as public points, which the release holds as they are."""
    if str(plan.setting("points")).startswith("drawn"):
        return 0
    maps = [block.map for stage in plan.stages for block in stage.embedding.blocks]
    points = [getattr(map_, "points", None) for map_ in maps]
    return max((len(each) for each in points if isinstance(each, Points)), default=0)


def public_networks(plan: Plan) -> dict[tuple[str, str], tuple[str, ...]]:
    """Name and hash of every public network that features are taken from, and its layers."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for stage in plan.stages:
        for block in stage.embedding.blocks:
            for map_ in _factors(block.map):
                if isinstance(map_, Perceptual):
                    key = (map_.network, map_.sha256)
                    found[key] = tuple(dict.fromkeys((*found.get(key, ()), *map_.layers)))
    return found


def _origin(plan: Plan, name: str, sha256: str) -> tuple[str, str]:
    """Where a network comes from, and what that adds to the guarantee."""
    cost = (plan.setting("encoder") or {}).get("private_cost")
    if not cost:
        return (
            "public network",
            f"The network '{name}' (SHA-256 {sha256}) was public before, and nothing in it was learnt from the "
            "private rows.",
        )
    charges = [
        Charge(Fraction(cost["mu_squared"]), Fraction(cost["slack"])),
        *(Charge(each) for each in plan.mechanism.mu_squared(plan.cost(Neighbours.ADD_REMOVE))),
    ]
    together = round_up(epsilon_of_charges(charges, plan.budget.delta))
    return (
        "network learnt from the same rows",
        f"The network '{name}' (SHA-256 {sha256}) was learnt from the private rows by noisy descent, in a release of "
        f"its own with epsilon {round_up(cost['epsilon'])} at delta {cost['delta']:g}. The guarantee above is that of "
        f"the moments alone; both together have epsilon {together} at delta {plan.budget.delta:g} (add-remove).",
    )


def has_given_basis(plan: Plan) -> bool:
    """Whether the plan holds directions that were found in images given as public."""
    maps = [
        map_
        for stage in plan.stages
        for block in stage.embedding.blocks
        for map_ in _factors(block.map)
    ]
    return any(
        isinstance(map_, Spectrum | Lengths | Sides) and map_.weighted.principal is not None
        for map_ in maps
    )


def _networks(plan: Plan) -> dict[str, Any]:
    """What is said of public networks, where there are any."""
    found = [
        {"name": name, "sha256": sha256, "layers": list(layers)}
        for (name, sha256), layers in public_networks(plan).items()
    ]
    return {"networks": found} if found else {}


def _factors(map_: FeatureMap) -> tuple[FeatureMap, ...]:
    return map_.factors if isinstance(map_, Tensors) else (map_,)


def _plain(bound: object) -> str:
    return f"{bound:,.10g}" if isinstance(bound, int | float) else str(bound)


def domain_words(column: Column) -> str:
    """A column's public domain in a few words."""
    if column.is_choice:
        words = f"{len(column.categories)} categories"
    else:
        low, high = column.to_dict()["bounds"]
        words = f"{_plain(low)} to {_plain(high)}"
    return words + (", may be null" if column.nullable else "")


def _assumptions(plan: Plan, facts: dict[str, Any]) -> list[dict[str, str]]:
    unit = plan.schema.privacy
    found = [
        (
            "one row, one unit",
            "Each protected person or thing has at most one row in the table as read.",
        )
        if unit.is_row
        else (
            "one id, one unit",
            f"All rows of a protected person or thing have the same cell in '{unit.unit}', and rows without a cell "
            "there are left out.",
        ),
        (
            "public schema",
            "Bounds, categories and settings were chosen without looking at the private rows.",
        ),
        (
            "types fixed in advance",
            "The column types of a data frame or typed file were declared, not guessed from its rows. "
            "(Cells of CSV files and of untyped columns are read as text, one by one.)",
        ),
        (
            "row independence of features",
            "cos, sin, exp, log1p and exact integer products on this machine give a row the same features wherever it "
            "stands; checked on made-up rows before each pass over the data.",
        ),
        ("randomness", "The operating system's random numbers are unpredictable to an attacker."),
        (
            "size",
            f"The table has at most {ROW_CAP:,} rows, which integer sums hold; a larger one is refused.",
        ),
        (
            "trusted curator",
            "Whoever runs the release sees the rows, and what that machine shows while running (time, memory, "
            "refusals of malformed files) is not published.",
        ),
    ]
    if facts.get("merged_from"):
        found.append((
            "one party, one unit",
            f"The rows of {facts['merged_from']} parties were summed apart and merged. Each protected person or thing "
            "has rows at one of them only." + _OWN_NOISE * (plan.parties > 1),
        ))  # fmt: skip
    if facts.get("query"):
        found.append((
            "row by row query",
            "The query makes each of its rows from the data of one protected person or thing alone. Limits, "
            "joins, rankings and totals over other rows would break this, and with it the guarantee.",
        ))  # fmt: skip
    if given_points(plan):
        found.append((
            "public points",
            f"The {given_points(plan)} rows that were given as public points are part of the release as they are. "
            "They were public before, and which rows they are does not depend on any other row of the table. What "
            "they themselves tell is outside the guarantee.",
        ))  # fmt: skip
    if has_given_basis(plan):
        found.append((
            "public images",
            "The images whose principal directions are the basis were public before and are no part of the table. What "
            "the directions, which the release holds as they are, tell of them is outside the guarantee.",
        ))  # fmt: skip
    if plan.descent is not None:
        found.append((
            "row independence of gradients",
            "torch on this machine gives a row the same gradient whatever other rows are in its block; checked on "
            "made-up rows before training.",
        ))  # fmt: skip
    for name, sha256 in public_networks(plan):
        found += [
            _origin(plan, name, sha256),
            (
                "row independence of the network",
                "Torch on this machine gives an image the same numbers at every place of a padded block, whatever "
                "images are beside it; tested on made-up images before the data is read. Norms do not rest on the "
                "network: they are enforced on whole numbers, row by row.",
            ),
        ]
    rounded = [column.name for column in plan.schema.used if column.bounds_from == "rounded"]
    if rounded:
        found.append((
            "bounds from data",
            f"The bounds of {len(rounded)} column(s), such as '{rounded[0]}', are the data's own extremes rounded "
            "outward. They are outside the guarantee.",
        ))  # fmt: skip
    unstated = [column.name for column in plan.schema.used if column.bounds_from == "not stated"]
    if unstated:
        found.append((
            "source of bounds",
            f"The schema does not say where the bounds or categories of {len(unstated)} column(s), such as "
            f"'{unstated[0]}', come from; they are taken to be public.",
        ))  # fmt: skip
    return [{"name": name, "statement": statement} for name, statement in found]
