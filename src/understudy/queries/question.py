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
from understudy.queries.tokens import Place, QueryError, Token, Tokens, suggestion
from understudy.schema import Column, Schema
from understudy.schema.scales import Family, Operator, family_of, own_scale
from understudy.schema.values import CodeSet, code_set, codes_of, every_code, measure, spelt_known

AGGREGATES = ("count", "share", "sum", "mean", "var", "std", "median", "quantile", "histogram")
ALSO = {"avg": "mean", "average": "mean", "variance": "var", "stddev": "std", "sd": "std"}
OF_ONE_ROW = ("min", "max")
WITHOUT_COLUMN = ("count", "share")
WITH_NUMBER = ("quantile", "histogram")
OF_NUMBERS = ("sum", "mean", "var", "std", "median", "quantile")
SENSELESS = {Family.NUMBER: (), Family.MOMENT: ("sum", "var", "std"), Family.RANK: OF_NUMBERS, Family.NAME: OF_NUMBERS}
"""Aggregates that make no sense of columns of a family."""

COMPARISONS = ("<=", ">=", "!=", "<>", "==", "=", "<", ">")
MOST_BARS = 1000

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
        self.text, self.schema, self.tokens = text, schema, Tokens(text)
        self.names = [column.name for column in schema.used]

    def question(self) -> Question:
        first, tokens = self.tokens.next, self.tokens
        aggregate, column, number = self.aggregate()
        where = self.condition() if tokens.takes("where") else {}
        by = self.grouping()
        if tokens.next.kind != "end":
            word = tokens.next.place.written
            hint = suggestion(word, ("where", "by")) or "A query goes on with where ... or by ..."
            raise tokens.refuse(f"cannot read on from '{word}'", hint.rstrip("?"))
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
        tokens, first = self.tokens, self.tokens.next.place
        aggregate = ALSO.get(first.written.lower(), first.written.lower())
        if tokens.next.kind != "word" or aggregate not in AGGREGATES + OF_ONE_ROW:
            rule = f"'{first.written}' is nothing that can be asked for" if first.written else "is empty"
            raise tokens.refuse(rule, f"A query begins with one of {', '.join(AGGREGATES)}")
        if aggregate in OF_ONE_ROW:
            raise tokens.refuse(
                f"the {aggregate} hangs on a single row, which is just what a private release hides",
                "Ask for quantile(column, 0.99) or quantile(column, 0.01)",
            )
        tokens.take()
        if aggregate in WITHOUT_COLUMN:
            if tokens.takes("("):
                tokens.takes("*")
                tokens.need(")", f"after '{aggregate}('; conditions go after 'where'")
            return aggregate, None, None
        tokens.need("(", f"after '{aggregate}': it is asked of a column, such as {aggregate}(age)")
        name, number = tokens.name(f"in '{aggregate}(...)'"), 0.5 if aggregate == "median" else None
        if tokens.takes(","):
            if aggregate not in WITH_NUMBER:
                raise tokens.refuse(f"{aggregate} takes a column and nothing else")
            number = _number(aggregate, tokens.value("after the comma"))
        tokens.need(")", "here")
        place = self.place(name)
        if aggregate not in aggregates_of(self.schema.used[place]):
            raise _senseless(aggregate, self.schema.used[place], name)
        if aggregate == "quantile" and number is None:
            raise QueryError(first, "a quantile needs a level", "Write: quantile(age, 0.9)")
        return aggregate, place, number

    def grouping(self) -> list[Token]:
        tokens = self.tokens
        grouped = tokens.takes("group")
        if not tokens.takes("by"):
            if grouped:
                raise tokens.refuse("expected 'by' after 'group'")
            return []
        by = [tokens.name("after 'by'")]
        while tokens.takes(","):
            by.append(tokens.name("after the comma"))
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
            rule = f"column '{word}' was not read (its role is id, split or aux)"
        raise QueryError(name.place, rule, f"{suggestion(word, self.names)} Columns are {listed}".strip())

    def condition(self) -> Box:
        place, parts = self.tokens.next.place, [self.conjunct()]
        while self.tokens.takes("or"):
            parts.append(self.conjunct())
        if len(parts) == 1:
            return parts[0]
        column = _only_column("or", place, parts)
        ranges = [each for part in parts for each in part[column].ranges]
        return {column: code_set(ranges, has_null=any(part[column].has_null for part in parts))}

    def conjunct(self) -> Box:
        found = self.test()
        while self.tokens.takes("and"):
            for place, codes in self.test().items():
                found[place] = found[place] & codes if place in found else codes
        return found

    def test(self) -> Box:
        place = self.tokens.next.place
        if self.tokens.takes("not"):
            inside = self.test()
            column = _only_column("not", place, [inside])
            return {column: _known(self.schema.used[column]) - inside[column]}
        if self.tokens.takes("("):
            inside = self.condition()
            self.tokens.need(")", "at the end of the condition")
            return inside
        return self.comparison()

    def comparison(self) -> Box:
        tokens, name = self.tokens, self.tokens.name("in the condition")
        place = self.place(name)
        column = self.schema.used[place]
        if tokens.takes("is"):
            is_negated = tokens.takes("not")
            tokens.need("null", "after 'is'")
            if not column.nullable:
                raise QueryError(name.place, f"column '{column.name}' is never null, says its schema")
            return {place: _known(column) if is_negated else CodeSet((), has_null=True)}
        is_negated = tokens.takes("not")
        if tokens.takes("in"):
            tokens.need("(", "after 'in'")
            listed = [_compared(column, "=", tokens.value("in the list"))]
            while tokens.takes(","):
                listed.append(_compared(column, "=", tokens.value("in the list")))
            tokens.need(")", "at the end of the list")
            found = code_set(each for codes in listed for each in codes.ranges)
        elif tokens.takes("between"):
            found = _compared(column, ">=", tokens.value("after 'between'"))
            tokens.need("and", "between the two ends")
            found &= _compared(column, "<=", tokens.value("after 'and'"))
        elif is_negated or not tokens.next.is_sign(*COMPARISONS):
            raise tokens.refuse(
                f"expected a comparison after '{name.value}'",
                "Comparisons are = != < <= > >=, in (...), between ... and ..., is null",
            )
        else:
            op = str(tokens.take().value)
            found = _compared(column, op, tokens.value(f"after '{op}'"))
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
    if family is Family.RANK:
        value = column.categories.index(value)
    elif not column.is_choice:
        value = measure(column, value)
    return CodeSet(own_scale(column).subset(Operator(op), value).ranges)


def _spelt(column: Column, given: Token) -> Any:
    try:
        return spelt_known(column, given.value)
    except InputError as refusal:
        hint = suggestion(str(given.value), map(str, column.categories))
        rule, remedy = f"{refusal.where} {refusal.rule}", f"{hint} {refusal.remedy}".strip()
    raise QueryError(given.place, rule, remedy)
