"""A budget that must last for several releases of a table that grows."""

from __future__ import annotations

from understudy.accounting.budget import Budget
from understudy.accounting.mechanisms import mechanism_for
from understudy.errors import UsageError

STEP = 1e-7
MOST_RELEASES = 10**6


def share_of(budget: Budget, releases: int) -> Budget:
    """The budget of each of so many releases that, together, meet a budget.

    Guarantee:
        ``releases`` times what the mechanism may spend under the share is at most what it may spend under
        the whole, in exact units of a ledger: a ledger with the whole as its cap takes them all.
    """
    if not 1 <= releases <= MOST_RELEASES:
        raise UsageError("horizon", f"must lie between 1 and {MOST_RELEASES:,} releases")
    if releases == 1:
        return budget
    mechanism = mechanism_for(budget)
    part = mechanism.total(budget) / releases
    epsilon = mechanism.epsilon([part], budget.delta)
    while mechanism.total(share := Budget(epsilon, budget.delta)) > part:
        epsilon *= 1 - STEP
    return share
