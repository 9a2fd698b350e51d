"""What a guarantee rests on that no proof can give: the certificate's assumptions, from the plan and the facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from understudy.accounting.mechanisms import round_up
from understudy.features import Points
from understudy.features.image_bases import Principal
from understudy.features.perceptual import NetworkLayers
from understudy.plan.plan import ROW_CAP, Plan
from understudy.schema import Column, Schema


def given_points(plan: Plan) -> int:
    """How many rows the plan was given as public points, which the release holds as they are."""
    if str(plan.setting("points")).startswith("drawn"):
        return 0
    return max((len(given) for given in plan.public_inputs if isinstance(given, Points)), default=0)


def public_networks(plan: Plan) -> dict[tuple[str, str], tuple[str, ...]]:
    """Name and hash of every public network that features are taken from, and its layers."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for given in plan.public_inputs:
        if isinstance(given, NetworkLayers):
            key = (given.network, given.sha256)
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *given.layers)))
    return found


OWN_NOISE = (
    " Each party added the whole noise to its own sum, so that the guarantee holds towards the merger and the other "
    "parties too; the release states the noise of all of them together."
)
GRADIENTS = (
    "torch on this machine gives a row the same gradient whatever other rows are in its block; checked on made-up rows "
    "before {}."
)


def facts_of_all(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What facts of parts say of the whole.

    Guarantee:
        What one part rests on, the whole rests on: noise for tests in one of them makes it not private, and the queries
        of all are its queries. ``query`` is None, the one that there is, or a list in which each stands once
        (proofs/parties.md).
    """
    told = list(parts)
    queries = list(dict.fromkeys(query for facts in told for query in queries_in(facts)))
    return {
        "is_private": all(bool(facts["is_private"]) for facts in told),
        "query": queries if len(queries) > 1 else next(iter(queries), None),
    }


def queries_in(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The queries that selected the rows of a release; none, if all rows of all parts were read."""
    found = facts.get("query")
    if not found:
        return ()
    return (found,) if isinstance(found, str) else tuple(found)


def domain_words(column: Column) -> str:
    """A column's public domain in a few words."""
    if column.is_choice:
        words = f"{len(column.categories)} categories"
    else:
        low, high = column.to_dict()["bounds"]
        words = f"{_plain(low)} to {_plain(high)}"
    return words + (", may be null" if column.nullable else "")


def _plain(bound: object) -> str:
    return f"{bound:,.10g}" if isinstance(bound, int | float) else str(bound)


Assumption = tuple[str, str]
"""A name, and a statement in words."""

ALWAYS: tuple[Assumption, ...] = (
    ("public schema", "Bounds, categories and settings were chosen without looking at the private rows."),
    (
        "types fixed in advance",
        "The column types of a data frame, an array, a typed file or a query's result were declared, not guessed "
        "from its rows; one that does not fit the schema is refused. (Cells of text files, of SQLite, of lists and "
        "of columns of objects are read as text, one by one. Where a library did guess, and one row made it choose "
        "another type, the other rows keep their codes as far as it kept their cells: integers beyond 2^53 that it "
        "turned into floats, truths that it turned into numbers or dates into text where these are categories, and "
        "what it replaced by null are not kept.)",
    ),
    ("randomness", "The operating system's random numbers are unpredictable to an attacker."),
    ("size", f"The table has at most {ROW_CAP:,} rows, which integer sums hold; a larger one is refused."),
    (
        "trusted curator",
        "Whoever runs the release sees the rows, and what that machine shows while running (time, memory, "
        "refusals of malformed files) is not published.",
    ),
)


def shared_assumptions(schema: Schema, facts: dict[str, Any]) -> list[Assumption]:
    """What every product of private rows rests on, whatever was computed of them."""
    unit, queries = schema.privacy, queries_in(facts)
    rounded, unstated = (_bounds_from(schema, source) for source in ("rounded", "not stated"))
    unit_words = (
        ("one row, one unit", "Each protected person or thing has at most one row in the table as read.")
        if unit.is_row
        else (
            "one id, one unit",
            f"All rows of a protected person or thing have the same cell in '{unit.unit}', and no two of them "
            "share one. Rows whose cell there is null, blank or a word for null, such as NA, are left out.",
        )
    )
    table = [
        (
            bool(queries),
            "row by row query",
            f"{'The query' if len(queries) == 1 else 'Every query'} makes each of its rows from the data of one "
            "protected person or thing alone. Limits, joins, rankings and totals over other rows would break "
            "this, and with it the guarantee.",
        ),
        (
            bool(rounded),
            "bounds from data",
            f"The bounds of {rounded} are the data's own extremes rounded outward. They are outside the guarantee.",
        ),
        (
            bool(unstated),
            "source of bounds",
            f"The schema does not say where the bounds or categories of {unstated} come from; they are taken to be "
            "public.",
        ),
    ]
    return [unit_words, *ALWAYS, *_that_hold(table)]


def release_assumptions(plan: Plan, facts: dict[str, Any]) -> list[Assumption]:
    """What a release rests on beside what every product does."""
    points = given_points(plan)
    table = [
        (
            True,
            "row independence of features",
            "cos, sin, exp, log1p and exact integer products on this machine give a row the same features wherever it "
            "stands; checked on made-up rows before each pass over the data.",
        ),
        (
            bool(facts.get("merged_from")),
            "one party, one unit",
            f"The rows of {facts.get('merged_from')} parties were summed apart and merged. Each protected person or "
            "thing has rows at one of them only." + OWN_NOISE * (plan.parties > 1),
        ),
        (
            bool(facts.get("appended")),
            "one part, one unit",
            f"Rows were added to this release {facts.get('appended')} time(s), and each protected person or thing "
            "has rows in one part only. Every part has the whole noise; the release states the noise of all of them "
            "together.",
        ),
        (
            bool(points),
            "public points",
            f"The {points} rows that were given as public points are part of the release as they are. "
            "They were public before, and which rows they are does not depend on any other row of the table. What "
            "they themselves tell is outside the guarantee.",
        ),
        (
            any(isinstance(given, Principal) for given in plan.public_inputs),
            "public images",
            "The images whose principal directions are the basis were public before and are no part of the "
            "table. What the directions, which the release holds as they are, tell of them is outside the guarantee.",
        ),
        (plan.descent is not None, "row independence of gradients", GRADIENTS.format("training")),
    ]
    networks = [row for network in public_networks(plan) for row in _network_assumptions(plan, *network)]
    return _that_hold([*table, *networks])


def _network_assumptions(plan: Plan, name: str, sha256: str) -> list[tuple[bool, str, str]]:
    """Where a network comes from, what that adds to the guarantee, and how it is evaluated."""
    cost, network = plan.network_cost, f"The network '{name}' (SHA-256 {sha256})"
    learnt: list[tuple[bool, str, str]] = []
    if cost is not None:
        learnt = [
            (
                True,
                "network learnt from the same rows",
                f"{network} was learnt from the private rows by noisy descent, in a release of its own with epsilon "
                f"{round_up(cost['epsilon'])} at delta {cost['delta']:g}. The guarantee above counts both; the moments "
                f"alone have epsilon {round_up(plan.own_epsilon())} at delta {plan.budget.delta:g} (add-remove).",
            ),
            (
                "is_private" not in cost,
                "noise of the network",
                f"The files of the network '{name}' are of an earlier version and do not say which noise it was learnt "
                "with; it is taken to be that of private releases.",
            ),
        ]
    return [
        (
            cost is None,
            "public network",
            f"{network} was public before, and nothing in it was learnt from the private rows.",
        ),
        *learnt,
        (
            True,
            "row independence of the network",
            "Torch on this machine gives an image the same numbers at every place of a padded block, whatever "
            "images are beside it; tested on made-up images before the data is read. Norms do not rest on the "
            "network: they are enforced on whole numbers, row by row.",
        ),
    ]


def _that_hold(table: Iterable[tuple[bool, str, str]]) -> list[Assumption]:
    """The rows of a table of assumptions that apply."""
    return [(name, statement) for holds, name, statement in table if holds]


def _bounds_from(schema: Schema, source: str) -> str:
    """How many columns have their bounds from a source, with an example; nothing, if none has."""
    names = [column.name for column in schema.in_files if column.bounds_from == source]
    return f"{len(names)} column(s), such as '{names[0]}'," if names else ""
