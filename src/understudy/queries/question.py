"""What a query asks of a release: columns by their places, conditions as sets of codes.

    query      = aggregate ["where" condition] [["group"] "by" column {"," column}]
    aggregate  = "count" | "share" | name "(" column ["," number] ")"
    condition  = conjunct {"or" conjunct}
    conjunct   = test {"and" test}
    test       = "not" test | "(" condition ")" | column comparison
    comparison = ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
               | ["not"] "in" "(" value {"," value} ")"
               | ["not"] "between" value "and" value
               | "is" ["not"] "null"

Nulls are as in SQL: a comparison never holds for a null, only ``is null`` does, and aggregates of a
column leave nulls out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from understudy.errors import InputError
from understudy.queries.tokens import Place, QueryError, Token, suggestion, tokens_of
from understudy.schema import Column, Schema
from understudy.schema.onehot import grouped
from understudy.schema.scales import Family, Operator, family_of, own_scale
from understudy.schema.values import CodeSet, code_set, codes_of, every_code, spelt_known

AGGREGATES = ("count", "share", "sum", "mean", "var", "std", "median", "quantile", "histogram")
ALSO = {"avg": "mean", "average": "mean", "variance": "var", "stddev": "std", "sd": "std"}
OF_ONE_ROW = ("min", "max")
WITHOUT_COLUMN = ("count", "share")
WITH_NUMBER = ("quantile", "histogram")
OF_NUMBERS = ("sum", "mean", "var", "std", "median", "quantile")
SENSELESS = {Family.NUMBER: (), Family.MOMENT: ("sum", "var", "std"), Family.RANK: OF_NUMBERS, Family.NAME: OF_NUMBERS}
"""Aggregates that make no sense of columns of a family."""

KEYWORDS = ("where", "by", "and", "or", "not", "in", "between", "is", "null")
COMPARISONS = ("<=", ">=", "!=", "<>", "==", "=", "<", ">")
MOST_BARS = 1000  # of a histogram that is asked for

Box = dict[int, CodeSet]
"""The codes that columns must have, by their places."""


@dataclass(frozen=True)
class Question:
    """A query with its names and values understood.

    ``where`` holds the codes that columns must have; ``number`` is the level of a quantile or the
    bars of a histogram.
    """

    text: str
    aggregate: str
    column: int | None = None
    number: float | None = None
    where: Mapping[int, CodeSet] = field(default_factory=dict)
    by: tuple[int, ...] = ()
    whole: Place = field(default=Place("", 0, 0), compare=False)

    @property
    def columns(self) -> tuple[int, ...]:
        """The places of all columns that it is about, in order."""
        own = () if self.column is None else (self.column,)
        return tuple(sorted({*own, *self.where, *self.by}))

    @property
    def valued(self) -> int | None:
        """The place of the column whose values it asks for, not only their counts."""
        return None if self.aggregate == "histogram" else self.column

    @property
    def grouping(self) -> tuple[int, ...]:
        """The places of the columns that rows are grouped by, in order; a histogram groups by its own."""
        is_histogram = self.aggregate == "histogram" and self.column is not None
        return (self.column or 0,) if is_histogram else tuple(sorted(self.by))


def understand(text: str, schema: Schema) -> Question:
    """Read a query that is asked of a table with this schema.

    Raises:
        QueryError: it points at the word, says what is wrong and what can be written.
    """
    return _Reader(text, schema).question()


class _Reader:
    """Reads a query from left to right, one function per line of the grammar, by the names and values of a schema."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema, self.tokens, self.at = text, schema, tokens_of(text), 0
        self.names = [column.name for column in schema.used]

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def takes(self, *words: str) -> bool:
        """Whether the next token is one of these words or signs, which is then read."""
        is_it = self.next.is_word(*words) or self.next.is_sign(*words)
        self.at += is_it
        return is_it

    def refuse(self, rule: str, remedy: str = "") -> QueryError:
        return QueryError(self.next.place, rule, remedy)

    def need(self, word: str, why: str) -> None:
        if not self.takes(word):
            raise self.refuse(f"expected '{word}' {why}")

    def name(self, why: str) -> Token:
        if self.next.kind not in ("name", "word") or self.next.is_word(*KEYWORDS):
            raise self.refuse(f"expected a column {why}")
        return self.take()

    def value(self, why: str) -> Token:
        if self.next.is_word("null"):
            raise self.refuse("nothing equals null", "Write: is null, or is not null")
        if self.next.kind in ("sign", "end"):
            raise self.refuse(f"expected a value {why}")
        return self.take()

    def question(self) -> Question:
        first = self.next
        aggregate, column, number = self.aggregate()
        where = self.condition() if self.takes("where") else {}
        by = self.grouping()
        if self.next.kind != "end":
            word = self.next.place.written
            hint = "A query goes on with where ..., then by ..., each once"
            if word.lower() not in ("where", "by"):
                hint = suggestion(word, ("where", "by")) or hint
            raise self.refuse(f"cannot read on from '{word}'", hint.rstrip("?"))
        if aggregate == "histogram" and by:
            raise QueryError(by[0].place, "a histogram is of one column", "Write: count by x, y")
        if aggregate == "share" and not where and not by:
            raise QueryError(first.place, "a share needs a condition", "Write: share where ...")
        places = tuple(self.place(name) for name in by)
        if len(set(places)) < len(places):
            raise QueryError(by[-1].place, "a column is grouped by twice")
        whole = Place(self.text, 0, len(self.text))
        return Question(self.text.strip(), aggregate, column, number, where, places, whole)

    def aggregate(self) -> tuple[str, int | None, float | None]:
        """What is asked for, of which column; the level of a quantile or the bars of a histogram."""
        first = self.next.place
        aggregate = ALSO.get(first.written.lower(), first.written.lower())
        if self.next.kind != "word" or aggregate not in AGGREGATES + OF_ONE_ROW:
            rule = f"'{first.written}' is nothing that can be asked for" if first.written else "is empty"
            raise self.refuse(rule, f"A query begins with one of {', '.join(AGGREGATES)}")
        if aggregate in OF_ONE_ROW:
            raise self.refuse(
                f"the {aggregate} hangs on a single row, which is just what a private release hides",
                "Ask for quantile(column, 0.99) or quantile(column, 0.01)",
            )
        self.take()
        if aggregate in WITHOUT_COLUMN:
            if self.takes("("):
                self.takes("*")
                self.need(")", f"after '{aggregate}('; conditions go after 'where'")
            return aggregate, None, None
        self.need("(", f"after '{aggregate}': it is asked of a column, such as {aggregate}(age)")
        name, number = self.name(f"in '{aggregate}(...)'"), 0.5 if aggregate == "median" else None
        if self.takes(","):
            if aggregate not in WITH_NUMBER:
                raise self.refuse(f"{aggregate} takes a column and nothing else")
            number = _number(aggregate, self.value("after the comma"))
        self.need(")", "here")
        place = self.place(name)
        if aggregate not in aggregates_of(self.schema.used[place]):
            raise _senseless(aggregate, self.schema.used[place], name)
        if aggregate == "quantile" and number is None:
            raise QueryError(first, "a quantile needs a level", "Write: quantile(age, 0.9)")
        return aggregate, place, number

    def grouping(self) -> list[Token]:
        grouped = self.takes("group")
        if not self.takes("by"):
            if grouped:
                raise self.refuse("expected 'by' after 'group'")
            return []
        by = [self.name("after 'by'")]
        while self.takes(","):
            by.append(self.name("after the comma"))
        return by

    def place(self, name: Token) -> int:
        """Where a column stands among the used ones."""
        word = str(name.value)
        if word in self.names:
            return self.names.index(word)
        lower = [each.lower() for each in self.names]
        if lower.count(word.lower()) == 1:
            return lower.index(word.lower())
        listed = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
        rule = f"'{word}' is no column of this release"
        if word in {column.name for column in self.schema.columns}:
            found = grouped(self.schema.onehot_groups, word)
            if found is not None:
                raise QueryError(name.place, f"column '{word}' {found[0]}", found[1])
            rule = f"column '{word}' was not read (its role is id, split or aux)"
        raise QueryError(name.place, rule, f"{suggestion(word, self.names)} Columns are {listed}".strip())

    def condition(self) -> Box:
        place, parts = self.next.place, [self.conjunct()]
        while self.takes("or"):
            parts.append(self.conjunct())
        if len(parts) == 1:
            return parts[0]
        column = _only_column("or", place, parts)
        ranges = [each for part in parts for each in part[column].ranges]
        return {column: code_set(ranges, has_null=any(part[column].has_null for part in parts))}

    def conjunct(self) -> Box:
        found = self.test()
        while self.takes("and"):
            for place, codes in self.test().items():
                found[place] = found[place] & codes if place in found else codes
        return found

    def test(self) -> Box:
        place = self.next.place
        if self.takes("not"):
            inside = self.test()
            column = _only_column("not", place, [inside])
            return {column: _known(self.schema.used[column]) - inside[column]}
        if self.takes("("):
            inside = self.condition()
            self.need(")", "at the end of the condition")
            return inside
        return self.comparison()

    def comparison(self) -> Box:
        name = self.name("in the condition")
        place = self.place(name)
        column = self.schema.used[place]
        if self.takes("is"):
            is_negated = self.takes("not")
            self.need("null", "after 'is'")
            if not column.nullable:
                raise QueryError(name.place, f"column '{column.name}' is never null, says its schema")
            return {place: _known(column) if is_negated else CodeSet((), has_null=True)}
        is_negated = self.takes("not")
        if self.takes("in"):
            self.need("(", "after 'in'")
            listed = [_compared(column, "=", self.value("in the list"))]
            while self.takes(","):
                listed.append(_compared(column, "=", self.value("in the list")))
            self.need(")", "at the end of the list")
            found = code_set(each for codes in listed for each in codes.ranges)
        elif self.takes("between"):
            found = _compared(column, ">=", self.value("after 'between'"))
            self.need("and", "between the two ends")
            found &= _compared(column, "<=", self.value("after 'and'"))
        elif is_negated or not self.next.is_sign(*COMPARISONS):
            raise self.refuse(
                f"expected a comparison after '{name.value}'",
                "Comparisons are = != < <= > >=, in (...), between ... and ..., is null",
            )
        else:
            op = str(self.take().value)
            found = _compared(column, op, self.value(f"after '{op}'"))
        return {place: _known(column) - found if is_negated else found}


def aggregates_of(column: Column) -> tuple[str, ...]:
    """What can be asked of a column of such a kind."""
    return tuple(each for each in AGGREGATES if each not in SENSELESS[family_of(column)])


def _senseless(aggregate: str, column: Column, name: Token) -> QueryError:
    what, remedy = "names", f"count by {column.name}, or share where {column.name} = ..."
    if family_of(column) is Family.MOMENT:
        what, remedy = "dates", f"mean, median or quantile of {column.name}"
    rule = f"column '{column.name}' has {what}, of which there is no {aggregate}"
    return QueryError(name.place, rule, f"Ask for {remedy}")


def _number(aggregate: str, given: Token) -> float:
    """The level of a quantile, or the bars of a histogram."""
    if isinstance(given.value, str):
        raise QueryError(given.place, "expected a number here")
    if aggregate == "quantile" and not 0 < given.value < 1:
        raise QueryError(given.place, "a level lies between 0 and 1", "0.9 has 90 % below it")
    if aggregate == "histogram" and given.value not in range(1, MOST_BARS + 1):
        raise QueryError(given.place, f"a histogram has a whole number of bars, at most {MOST_BARS}")
    return float(given.value)


def _only_column(op: str, place: Place, parts: Sequence[Box]) -> int:
    columns = {column for part in parts for column in part}
    if len(columns) > 1:
        raise QueryError(
            place,
            f"'{op}' may join conditions on one column only",
            "Ask for the parts one by one; counts of cases that exclude each other add up",
        )
    return columns.pop()


def _known(column: Column) -> CodeSet:
    """All codes of a column but null."""
    return CodeSet(every_code(column).ranges)


def _compared(column: Column, op: str, given: Token) -> CodeSet:
    """The codes of a column that stand so to a value; never null."""
    value, family = _spelt(column, given), family_of(column)
    if op in ("=", "=="):
        return codes_of(column, value) & _known(column)
    if op in ("!=", "<>"):
        return _known(column) - codes_of(column, value)
    if family is Family.NAME:
        raise QueryError(given.place, f"column '{column.name}' has names, which have no order", "Write: = or in (...)")
    return CodeSet(own_scale(column).subset(Operator(op), value).ranges)


def _spelt(column: Column, given: Token) -> Any:
    try:
        return spelt_known(column, given.value)
    except InputError as refusal:
        hint = suggestion(str(given.value), map(str, column.categories))
        rule, remedy = f"{refusal.where} {refusal.rule}", f"{hint} {refusal.remedy}".strip()
    raise QueryError(given.place, rule, remedy)
