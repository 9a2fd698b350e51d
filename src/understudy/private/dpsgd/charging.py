"""What a ledger is charged for a model that noisy descent trains: a classifier, or an encoder."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from understudy.accounting import Neighbours
from understudy.errors import InputError
from understudy.plan.descent import TrainedPlan
from understudy.plan.plan import ROW_CAP
from understudy.private import ledger as ledgers
from understudy.private.ledger import described


def check_affordable(ledger: str | Path, plan: TrainedPlan) -> None:
    """Refuse what the ledger would refuse, before rows are read."""
    costs = _costs_in(ledger, plan)
    ledgers.check_affordable(ledger, costs, unit=plan.schema.privacy.unit, slack=_slack(plan))


def charge(ledger: str | Path, plan: TrainedPlan, *, key: str, what: str) -> int:
    """Pay for the whole training, in the ledger's notion of neighbours."""
    return ledgers.spend(
        ledger,
        key=key,
        plan_id=plan.fingerprint,
        costs=_costs_in(ledger, plan),
        slack=_slack(plan),
        description=described(what, plan.schema),
        unit=plan.schema.privacy.unit,
    )


def check_size(num_rows: int) -> None:
    """Refuse more rows than certificates say that sums hold."""
    if num_rows > ROW_CAP:
        raise InputError("data", "has more rows than can be trained on", "Train on parts of it")


def _slack(plan: TrainedPlan) -> Fraction:
    return sum((charge.slack for charge in plan.descent.charges), Fraction(0))


def _costs_in(ledger: str | Path, plan: TrainedPlan) -> tuple[Fraction, ...]:
    """Mu squared in a ledger's notion of neighbours: replacing a row is removing one and adding one."""
    state, costs = ledgers.read_ledger(ledger), tuple(each.mu_squared for each in plan.descent.charges)
    if state.is_pure:
        raise InputError(
            f"ledger '{ledger}'",
            "is for pure differential privacy (delta 0), which Gaussian noise has not",
            "Make a ledger with a delta above 0",
        )
    if state.neighbours is Neighbours.ADD_REMOVE:
        return costs
    if plan.descent.cost.is_sampled:
        raise InputError(
            f"ledger '{ledger}'",
            "counts replaced rows, and sampling them is not accounted for",
            "Use a sampling rate of 1, or a ledger with --neighbours add-remove",
        )
    return tuple(4 * cost for cost in costs)
