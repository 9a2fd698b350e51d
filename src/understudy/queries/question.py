"""What a query asks of a release: columns by their places, conditions as sets of codes.

Nulls are as in SQL: a comparison never holds for a null, only ``is null`` does, and aggregates of a
column leave nulls out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from understudy.errors import InputError
from understudy.queries.grammar import Comparison, Junction, Literal, Name, Place, QueryError, Syntax, parse, suggestion
from understudy.schema import Column, Schema
from understudy.schema.columns import Kind
from understudy.schema.scales import Family, Operator, family_of, own_scale
from understudy.schema.values import CodeSet, code_set, codes_of, every_code, spelt_known

OF_NUMBERS = ("sum", "mean", "var", "std", "median", "quantile")
NOT_OF_DATES = ("sum", "var", "std")
MOST_BARS = 1000


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
    def grouping(self) -> tuple[int, ...]:
        """The places of the columns that rows are grouped by, in order; a histogram groups by its own."""
        is_histogram = self.aggregate == "histogram" and self.column is not None
        return (self.column or 0,) if is_histogram else tuple(sorted(self.by))

    def is_of_dates(self, columns: Sequence[Column]) -> bool:
        """Whether its answer is a moment."""
        if self.column is None or self.aggregate == "histogram":
            return False
        return columns[self.column].kind is Kind.DATETIME


def understand(text: str, schema: Schema) -> Question:
    """Read a query that is asked of a table with this schema.

    Raises:
        QueryError: it points at the word, says what is wrong and what can be written.
    """
    return _Reader(schema).question(parse(text))


class _Reader:
    """Looks up names and values in a schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.names = [column.name for column in schema.used]

    def question(self, syntax: Syntax) -> Question:
        if syntax.aggregate in ("min", "max"):
            raise QueryError(
                syntax.place,
                f"the {syntax.aggregate} hangs on a single row, which is just what a private release hides",
                "Ask for quantile(column, 0.99) or quantile(column, 0.01)",
            )
        place = None if syntax.column is None else self.place(syntax.column)
        if syntax.column is not None and place is not None:
            self.check_column(syntax, self.schema.used[place])
        by = tuple(self.place(name) for name in syntax.by)
        if len(set(by)) < len(by):
            raise QueryError(syntax.by[-1].place, "a column is grouped by twice")
        if syntax.aggregate == "histogram" and by:
            raise QueryError(syntax.by[0].place, "a histogram is of one column", "Write: count by x, y")
        if syntax.aggregate == "share" and syntax.where is None and not by:
            raise QueryError(syntax.place, "a share needs a condition", "Write: share where ...")
        return Question(
            text=syntax.text.strip(),
            aggregate=syntax.aggregate,
            column=place,
            number=self.number(syntax),
            where=self.box(syntax.where) if syntax.where is not None else {},
            by=by,
            whole=Place(syntax.text, 0, len(syntax.text)),
        )

    def place(self, name: Name) -> int:
        """Where a column stands among the used ones."""
        if name.text in self.names:
            return self.names.index(name.text)
        lower = [each.lower() for each in self.names]
        if lower.count(name.text.lower()) == 1:
            return lower.index(name.text.lower())
        listed = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
        rule = f"'{name.text}' is no column of this release"
        if name.text in {column.name for column in self.schema.columns}:
            rule = f"column '{name.text}' was not read (its role is id, split or aux)"
        hint = suggestion(name.text, self.names)
        raise QueryError(name.place, rule, f"{hint} Columns are {listed}".strip())

    def check_column(self, syntax: Syntax, column: Column) -> None:
        """Refuse what makes no sense of a column of such a kind."""
        place = syntax.column.place if syntax.column is not None else syntax.place
        family = family_of(column)
        if syntax.aggregate in OF_NUMBERS and family in (Family.NAME, Family.RANK):
            raise QueryError(
                place,
                f"column '{column.name}' has names, of which there is no {syntax.aggregate}",
                f"Ask for count by {column.name}, or share where {column.name} = ...",
            )
        if syntax.aggregate in NOT_OF_DATES and family is Family.MOMENT:
            raise QueryError(
                place,
                f"column '{column.name}' has dates, of which there is no {syntax.aggregate}",
                f"Ask for mean, median or quantile of {column.name}",
            )

    def number(self, syntax: Syntax) -> float | None:
        """The level of a quantile, or the bars of a histogram."""
        if syntax.aggregate == "median":
            return 0.5
        given = syntax.number
        if given is None and syntax.aggregate == "quantile":
            raise QueryError(syntax.place, "a quantile needs a level", "Write: quantile(age, 0.9)")
        if given is None:
            return None
        if not isinstance(given.value, int | float):
            raise QueryError(given.place, "expected a number here")
        if syntax.aggregate == "quantile" and not 0 < given.value < 1:
            raise QueryError(given.place, "a level lies between 0 and 1", "0.9 has 90 % below it")
        if syntax.aggregate == "histogram" and given.value not in range(1, MOST_BARS + 1):
            raise QueryError(given.place, f"a histogram has a whole number of bars, at most {MOST_BARS}")
        return float(given.value)

    def box(self, tree: Comparison | Junction) -> dict[int, CodeSet]:
        """The codes that each column must have."""
        if isinstance(tree, Comparison):
            return self.tested(tree)
        parts = [self.box(part) for part in tree.parts]
        if tree.op == "and":
            found: dict[int, CodeSet] = {}
            for part in parts:
                for place, codes in part.items():
                    found[place] = found[place] & codes if place in found else codes
            return found
        places = {place for part in parts for place in part}
        if len(places) > 1:
            raise QueryError(
                tree.place,
                f"'{tree.op}' may join conditions on one column only",
                "Ask for the parts one by one; counts of cases that exclude each other add up",
            )
        place = places.pop()
        if tree.op == "not":
            return {place: self.known(place) - parts[0][place]}
        ranges = [each for part in parts for each in part[place].ranges]
        has_null = any(part[place].has_null for part in parts)
        return {place: code_set(ranges, has_null=has_null)}

    def known(self, place: int) -> CodeSet:
        """All codes of a column but null."""
        return CodeSet(every_code(self.schema.used[place]).ranges)

    def tested(self, test: Comparison) -> dict[int, CodeSet]:
        place = self.place(test.column)
        column = self.schema.used[place]
        if test.op == "null":
            if not column.nullable:
                raise QueryError(test.column.place, f"column '{column.name}' is never null, says its schema")
            return {place: self.known(place) if test.is_negated else CodeSet((), has_null=True)}
        if test.op == "in":
            codes = [self.compared(column, "=", value) for value in test.values]
            found = code_set(each for part in codes for each in part.ranges)
        elif test.op == "between":
            low, high = test.values
            found = self.compared(column, ">=", low) & self.compared(column, "<=", high)
        else:
            found = self.compared(column, test.op, test.values[0])
        return {place: self.known(place) - found if test.is_negated else found}

    def compared(self, column: Column, op: str, literal: Literal) -> CodeSet:
        """The codes of a column that stand so to a value; never null."""
        value = self.spelt(column, literal)
        known = CodeSet(every_code(column).ranges)
        if op == "=":
            return codes_of(column, value) & known
        if op == "!=":
            return known - codes_of(column, value)
        if column.is_choice and family_of(column) is Family.NAME:
            raise QueryError(
                literal.place, f"column '{column.name}' has names, which have no order", "Write: = or in (...)"
            )
        found = own_scale(column).subset(Operator(op), value)
        return CodeSet(found.ranges) & known

    def spelt(self, column: Column, literal: Literal) -> Any:
        try:
            return spelt_known(column, literal.value)
        except InputError as refusal:
            names = [str(category) for category in column.categories]
            hint = suggestion(str(literal.value), names) if names else ""
            remedy = " ".join(filter(None, [hint, refusal.remedy]))
            rule = f"{refusal.where} {refusal.rule}"
        raise QueryError(literal.place, rule, remedy)
