"""What a guarantee rests on that no proof can give: the certificate's assumptions, from the plan and the facts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from understudy.plan.plan import ROW_CAP, Plan
from understudy.released.public_inputs import given_points, has_given_basis, public_networks
from understudy.schema import Column, Schema

# The facts of a release that is made of parts: of several parties, or of rows that were added later.


def facts_of_all(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What facts of parts say of the whole.

    Guarantee:
        What one part rests on, the whole rests on: noise for tests in one of them makes it not private, and the queries
        of all are its queries. ``query`` is None, the one that there is, or a list in which each stands once.
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


# Numbers and domains as certificates word them.


def round_up(value: float) -> float:
    """Four significant digits, never below the value."""
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    rounded = float(f"{math.ceil(value / step) * step:.6g}")
    return rounded if rounded >= value else float(f"{rounded + step:.6g}")


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

TYPES = (
    "types fixed in advance",
    "The column types of a data frame, an array, a typed file or a query's result were declared, not guessed from its "
    "rows; one that does not fit the schema is refused. (Cells of text files, of SQLite, of lists and of columns of "
    "objects are read as text, one by one. Where a library did guess, and one row made it choose another type, the "
    "other rows keep their codes as far as it kept their cells: integers beyond 2^53 that it turned into floats, "
    "truths that it turned into numbers or dates into text where these are categories, and what it replaced by null "
    "are not kept.)",
)
_OWN_NOISE = (
    " Each party added the whole noise to its own sum, so that the guarantee holds towards the merger and the other "
    "parties too; the release states the noise of all of them together."
)


def described(found: list[Assumption]) -> list[dict[str, str]]:
    """Assumptions as certificates hold them."""
    return [{"name": name, "statement": statement} for name, statement in found]


def shared_assumptions(schema: Schema, facts: dict[str, Any]) -> list[Assumption]:
    """What every product of private rows rests on, whatever was computed of them."""
    unit = schema.privacy
    found = [
        ("one row, one unit", "Each protected person or thing has at most one row in the table as read.")
        if unit.is_row
        else (
            "one id, one unit",
            f"All rows of a protected person or thing have the same cell in '{unit.unit}', and no two of them "
            "share one. Rows whose cell there is null, blank or a word for null, such as NA, are left out.",
        ),
        ("public schema", "Bounds, categories and settings were chosen without looking at the private rows."),
        TYPES,
        ("randomness", "The operating system's random numbers are unpredictable to an attacker."),
        ("size", f"The table has at most {ROW_CAP:,} rows, which integer sums hold; a larger one is refused."),
        (
            "trusted curator",
            "Whoever runs the release sees the rows, and what that machine shows while running (time, memory, "
            "refusals of malformed files) is not published.",
        ),
    ]
    queries = queries_in(facts)
    if queries:
        found.append(
            (
                "row by row query",
                f"{'The query' if len(queries) == 1 else 'Every query'} makes each of its rows from the data of one "
                "protected person or thing alone. Limits, joins, rankings and totals over other rows would break "
                "this, and "
                "with it the guarantee.",
            )
        )
    rounded = [column.name for column in schema.used if column.bounds_from == "rounded"]
    if rounded:
        found.append(
            (
                "bounds from data",
                f"The bounds of {len(rounded)} column(s), such as '{rounded[0]}', are the data's own extremes rounded "
                "outward. They are outside the guarantee.",
            )
        )
    unstated = [column.name for column in schema.used if column.bounds_from == "not stated"]
    if unstated:
        found.append(
            (
                "source of bounds",
                f"The schema does not say where the bounds or categories of {len(unstated)} column(s), such as "
                f"'{unstated[0]}', come from; they are taken to be public.",
            )
        )
    return found


def assumptions(plan: Plan, facts: dict[str, Any]) -> list[dict[str, str]]:
    """Every assumption of a release by name, in words."""
    found = [
        *shared_assumptions(plan.schema, facts),
        (
            "row independence of features",
            "cos, sin, exp, log1p and exact integer products on this machine give a row the same features wherever it "
            "stands; checked on made-up rows before each pass over the data.",
        ),
    ]
    if facts.get("merged_from"):
        found.append(
            (
                "one party, one unit",
                f"The rows of {facts['merged_from']} parties were summed apart and merged. Each protected person or "
                "thing "
                "has rows at one of them only." + _OWN_NOISE * (plan.parties > 1),
            )
        )
    if facts.get("appended"):
        found.append(
            (
                "one part, one unit",
                f"Rows were added to this release {facts['appended']} time(s), and each protected person or thing "
                "has rows "
                "in one part only. Every part has the whole noise; the release states the noise of all of them "
                "together.",
            )
        )
    if given_points(plan):
        found.append(
            (
                "public points",
                f"The {given_points(plan)} rows that were given as public points are part of the release as they are. "
                "They were public before, and which rows they are does not depend on any other row of the table. What "
                "they themselves tell is outside the guarantee.",
            )
        )
    if has_given_basis(plan):
        found.append(
            (
                "public images",
                "The images whose principal directions are the basis were public before and are no part of the "
                "table. What "
                "the directions, which the release holds as they are, tell of them is outside the guarantee.",
            )
        )
    if plan.descent is not None:
        found.append(
            (
                "row independence of gradients",
                "torch on this machine gives a row the same gradient whatever other rows are in its block; checked on "
                "made-up rows before training.",
            )
        )
    for name, sha256 in public_networks(plan):
        found += [
            *_origin(plan, name, sha256),
            (
                "row independence of the network",
                "Torch on this machine gives an image the same numbers at every place of a padded block, whatever "
                "images are beside it; tested on made-up images before the data is read. Norms do not rest on the "
                "network: they are enforced on whole numbers, row by row.",
            ),
        ]
    return described(found)


def _origin(plan: Plan, name: str, sha256: str) -> list[Assumption]:
    """Where a network comes from, and what that adds to the guarantee."""
    cost, network = plan.network_cost, f"The network '{name}' (SHA-256 {sha256})"
    if cost is None:
        return [("public network", f"{network} was public before, and nothing in it was learnt from the private rows.")]
    found = [
        (
            "network learnt from the same rows",
            f"{network} was learnt from the private rows by noisy descent, in a release of its own with epsilon "
            f"{round_up(cost['epsilon'])} at delta {cost['delta']:g}. The guarantee above counts both; the moments "
            "alone "
            f"have epsilon {round_up(plan.own_epsilon())} at delta {plan.budget.delta:g} (add-remove).",
        )
    ]
    if "is_private" not in cost:
        found.append(
            (
                "noise of the network",
                f"The files of the network '{name}' are of an earlier version and do not say which noise it was learnt "
                "with; it is taken to be that of private releases.",
            )
        )
    return found
