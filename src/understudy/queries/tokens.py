"""The words of a query, and refusals that point at one of them.

Columns are words, or "in double quotes" or `backticks`; values are numbers, words or 'in single
quotes', doubled inside. Keywords may be in capitals. There is no arithmetic, so a word may hold
points and hyphens.
"""

from __future__ import annotations

import re
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
    def written(self) -> str:
        """The stretch itself."""
        return self.text[self.start : self.stop]

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


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*"|`[^`]*`)
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.-]))
    | (?P<word>[^\s'"`(),<>=!*]+)
    | (?P<sign><=|>=|!=|<>|==|[=<>(),*])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, sign, name or value of a query, without its quotation marks, and where it stands."""

    kind: str
    value: str | float
    place: Place

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords."""
        return self.kind == "word" and self.place.written.lower() in words

    def is_sign(self, *signs: str) -> bool:
        """Whether it is one of these signs."""
        return self.kind == "sign" and self.value in signs


def tokens_of(text: str) -> list[Token]:
    """The tokens of a query, and one for its end.

    Raises:
        QueryError: a sign means nothing, or a quotation mark is not closed.
    """
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            opened = text[start] in "'\"`"
            rule = "a quotation mark is not closed" if opened else "this sign means nothing here"
            raise QueryError(Place(text, start, start + 1), rule)
        kind = match.lastgroup or ""
        found.append(Token(kind, _meant(kind, match[kind]), Place(text, match.start(kind), match.end(kind))))
        at = match.end()
    end = len(text.rstrip())
    return [*found, Token("end", "", Place(text, end, end + 1))]


def _meant(kind: str, written: str) -> str | float:
    """What is meant by a token: quoted text without its marks, a number, a word as it is."""
    if kind in ("text", "name"):
        mark = written[0]
        return written[1:-1].replace(mark * 2, mark)
    if kind == "number":
        number = float(written)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return written
