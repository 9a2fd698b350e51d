"""Receipts for noise that tests and benchmarks draw by itself: no ledger is charged, and they say so."""

from __future__ import annotations

from understudy.private.spending import Bill, Receipt, charge
from understudy.schema import load_schema

MANY = 10**9


def unrecorded(num_draws: int = MANY, *, plan_id: str = "no plan") -> Receipt:
    """A receipt for so many noisy vectors of a plan."""
    schema = load_schema({"columns": [{"name": "x", "kind": "binary", "categories": [0, 1]}]})
    return charge(Bill(plan_id, "noise", schema, num_draws, lambda *_: ()), ledger=None, key=None)
