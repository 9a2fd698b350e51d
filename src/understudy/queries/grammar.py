"""The language of queries: text in, a syntax tree out.

    query      = aggregate ["where" condition] [["group"] "by" column {"," column}]
    aggregate  = "count" | "share" | name "(" column ["," number] ")"
    condition  = conjunct {"or" conjunct}
    conjunct   = test {"and" test}
    test       = "not" test | "(" condition ")" | column comparison
    comparison = ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
               | ["not"] "in" "(" value {"," value} ")"
               | ["not"] "between" value "and" value
               | "is" ["not"] "null"

Columns are words, or "in double quotes" or `backticks`; values are numbers, words or 'in single
quotes', doubled inside. Keywords may be in capitals. There is no arithmetic, so a word may hold
points and hyphens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from understudy.errors import UsageError

# Refusals of queries: they point at the word that cannot be answered.


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


AGGREGATES = ("count", "share", "sum", "mean", "var", "std", "median", "quantile", "histogram", "min", "max")
ALSO = {"avg": "mean", "average": "mean", "variance": "var", "stddev": "std", "sd": "std"}
WITHOUT_COLUMN = ("count", "share")
COMPARISONS = ("<=", ">=", "!=", "<>", "==", "=", "<", ">")
KEYWORDS = ("where", "by", "and", "or", "not", "in", "between", "is", "null")

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
    """A word of a query, and where it stands."""

    kind: str
    value: str
    place: Place

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords."""
        return self.kind == "word" and self.value.lower() in words


@dataclass(frozen=True, slots=True)
class Name:
    """A column as it is written."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as it is written."""

    value: str | float | int
    place: Place


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared: ``op`` is a sign, ``in``, ``between`` or ``null``."""

    column: Name
    op: str
    values: tuple[Literal, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Junction:
    """Conditions joined by ``and`` or ``or``, or one with ``not`` before it."""

    op: str
    parts: tuple[Any, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Syntax:
    """A query as it is written."""

    text: str
    aggregate: str
    place: Place
    column: Name | None
    number: Literal | None
    where: Comparison | Junction | None
    by: tuple[Name, ...]


def parse(text: str) -> Syntax:
    """The syntax tree of a query.

    Raises:
        QueryError: it points at the first word that does not fit.
    """
    return _Parser(text).query()


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            place = Place(text, start, start + 1)
            opened = text[start] in "'\"`"
            rule = "a quotation mark is not closed" if opened else "this sign means nothing here"
            raise QueryError(place, rule)
        kind = match.lastgroup or ""
        found.append(Token(kind, match[kind], Place(text, match.start(kind), match.end(kind))))
        at = match.end()
    return [*found, Token("end", "", Place(text, len(text.rstrip()), len(text.rstrip()) + 1))]


class _Parser:
    """Reads tokens from left to right, one function per line of the grammar."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, _tokens(text), 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def takes(self, *words: str) -> bool:
        """Whether the next token is one of these words or signs, which is then read."""
        is_it = self.next.is_word(*words) or (self.next.kind == "sign" and self.next.value in words)
        self.at += is_it
        return is_it

    def refuse(self, rule: str, remedy: str = "") -> QueryError:
        return QueryError(self.next.place, rule, remedy)

    def need(self, word: str, why: str) -> None:
        if not self.takes(word):
            raise self.refuse(f"expected '{word}' {why}")

    def query(self) -> Syntax:
        place = self.next.place
        aggregate, column, number = self.aggregate()
        where = self.condition() if self.takes("where") else None
        by: list[Name] = []
        grouped = self.takes("group")
        if self.takes("by"):
            by.append(self.name("after 'by'"))
            while self.takes(","):
                by.append(self.name("after the comma"))
        elif grouped:
            raise self.refuse("expected 'by' after 'group'")
        if self.next.kind != "end":
            word = self.next.value
            hint = suggestion(word, ("where", "by")) or "A query goes on with where ... or by ..."
            raise self.refuse(f"cannot read on from '{word}'", hint.rstrip("?"))
        return Syntax(self.text, aggregate, place, column, number, where, tuple(by))

    def aggregate(self) -> tuple[str, Name | None, Literal | None]:
        word = self.next.value.lower()
        aggregate = ALSO.get(word, word)
        if self.next.kind != "word" or aggregate not in AGGREGATES:
            rule = f"'{self.next.value}' is nothing that can be asked for" if word else "is empty"
            known = ", ".join(AGGREGATES[:-2])
            raise self.refuse(rule, f"A query begins with one of {known}")
        self.take()
        if aggregate in WITHOUT_COLUMN:
            if self.takes("("):
                self.takes("*")
                self.need(")", f"after '{aggregate}('; conditions go after 'where'")
            return aggregate, None, None
        self.need("(", f"after '{aggregate}': it is asked of a column, such as {aggregate}(age)")
        column = self.name(f"in '{aggregate}(...)'")
        number = None
        if self.takes(","):
            if aggregate not in ("quantile", "histogram"):
                raise self.refuse(f"{aggregate} takes a column and nothing else")
            number = self.value("after the comma")
        self.need(")", "here")
        return aggregate, column, number

    def condition(self) -> Comparison | Junction:
        return self._joined("or", self._conjunct)

    def _conjunct(self) -> Comparison | Junction:
        return self._joined("and", self._test)

    def _joined(self, op: str, part: Callable[[], Comparison | Junction]) -> Comparison | Junction:
        place, parts = self.next.place, [part()]
        while self.takes(op):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(op, tuple(parts), place)

    def _test(self) -> Comparison | Junction:
        place = self.next.place
        if self.takes("not"):
            return Junction("not", (self._test(),), place)
        if self.takes("("):
            inside = self.condition()
            self.need(")", "at the end of the condition")
            return inside
        return self._comparison(self.name("in the condition"))

    def _comparison(self, column: Name) -> Comparison:
        if self.takes("is"):
            negated = self.takes("not")
            self.need("null", "after 'is'")
            return Comparison(column, "null", (), negated)
        negated = self.takes("not")
        if self.takes("in"):
            self.need("(", "after 'in'")
            values = [self.value("in the list")]
            while self.takes(","):
                values.append(self.value("in the list"))
            self.need(")", "at the end of the list")
            return Comparison(column, "in", tuple(values), negated)
        if self.takes("between"):
            low = self.value("after 'between'")
            self.need("and", "between the two ends")
            return Comparison(column, "between", (low, self.value("after 'and'")), negated)
        if negated or not (self.next.kind == "sign" and self.next.value in COMPARISONS):
            raise self.refuse(
                f"expected a comparison after '{column.text}'",
                "Comparisons are = != < <= > >=, in (...), between ... and ..., is null",
            )
        op = self.take().value
        value = self.value(f"after '{op}'")
        return Comparison(column, {"<>": "!=", "==": "="}.get(op, op), (value,))

    def name(self, why: str) -> Name:
        token = self.next
        if token.kind == "name":
            mark = token.value[0]
            return Name(token.value[1:-1].replace(mark * 2, mark), self.take().place)
        if token.kind != "word" or token.value.lower() in KEYWORDS:
            raise self.refuse(f"expected a column {why}")
        return Name(token.value, self.take().place)

    def value(self, why: str) -> Literal:
        token = self.next
        if token.kind == "number":
            number = float(token.value)
            whole = number.is_integer() and abs(number) < 2**53
            return Literal(int(number) if whole else number, self.take().place)
        if token.is_word("null"):
            raise self.refuse("nothing equals null", "Write: is null, or is not null")
        if token.kind == "text":
            return Literal(token.value[1:-1].replace("''", "'"), self.take().place)
        if token.kind not in ("word", "name"):
            raise self.refuse(f"expected a value {why}")
        return Literal(token.value.strip('"`'), self.take().place)
