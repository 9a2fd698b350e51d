"""Refusals of queries: they point at the word that cannot be answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from understudy.errors import UsageError


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a query's text."""

    text: str
    start: int
    stop: int

    @property
    def picture(self) -> str:
        """The query with marks under the stretch."""
        marks = "^" * max(1, self.stop - self.start)
        return f"  {self.text}\n  {' ' * self.start}{marks}"


class QueryError(UsageError):
    """A query that cannot be read or answered; ``place`` is where."""

    def __init__(self, place: Place, rule: str, remedy: str = "") -> None:
        super().__init__("query", rule, remedy)
        self.place = place
        self.args = (f"{self.args[0]}\n{place.picture}",)


class CannotTellError(QueryError):
    """A query that is understood, and that the tables of this release do not answer."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """A known name that looks like a word, as a question; nothing if there is none."""
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"Did you mean '{by_lower[close[0]]}'?" if close else ""
