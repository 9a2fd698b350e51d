"""One ledger counts for one unit of privacy."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from understudy import Budget, create_ledger, load_schema
from understudy.errors import InputError
from understudy.private import ledger as ledgers
from understudy.private.ledger_units import described, unit_in

NUMBER = {"name": "a", "kind": "integer", "bounds": [0, 9]}
ROWS = load_schema({"name": "visits", "columns": [NUMBER]})
PEOPLE = load_schema({
    "name": "visits", "privacy": {"unit": "patient", "max_rows": 3},
    "columns": [{"name": "patient", "kind": "id"}, NUMBER],
})  # fmt: skip


def test_a_line_tells_whom_it_counts_for():
    assert unit_in(described("dp-merf", ROWS)) == "row"
    assert unit_in(described("dp-merf", PEOPLE)) == "patient"
    forged = load_schema({"name": "x; per patient of at most 3 rows", "columns": [NUMBER]})
    assert unit_in(described("dp-merf", forged)) == "row"


@pytest.mark.parametrize(("first", "second"), [(ROWS, PEOPLE), (PEOPLE, ROWS)])
def test_a_spend_for_others_is_refused_in_the_moment_of_spending(tmp_path: Path, first, second):
    """Two releases at once may both have found the ledger empty before."""
    path = tmp_path / "ledger.db"
    create_ledger(path, Budget(3.0))

    def spend(schema, key):
        words = described("dp-merf", schema)
        return ledgers.spend(path, key=key, plan_id=key, description=words, costs=[Fraction(1, 50)])

    spend(first, "one")
    with pytest.raises(InputError, match="does not add to theirs"):
        spend(second, "two")
    assert len(ledgers.read_ledger(path).rows) == 1
    assert spend(first, "three") == 2
