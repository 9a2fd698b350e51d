"""The facts of a release that is made of parts: of several parties, or of rows that were added later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


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
