from __future__ import annotations

from pathlib import Path

import pytest

from understudy.accounting.mechanisms import Budget, mechanism_for, share_of
from understudy.errors import BudgetError, UsageError
from understudy.private.ledger import create_ledger, spend


@pytest.mark.parametrize("delta", [1e-5, 1e-9, 0.0])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("releases", [1, 2, 5, 40])
def test_a_ledger_takes_just_so_many_releases(tmp_path: Path, epsilon: float, delta: float, releases: int) -> None:
    budget = Budget(epsilon, delta)
    share = share_of(budget, releases)
    cost = mechanism_for(share).total(share)
    create_ledger(tmp_path / "ledger.db", budget)
    for number in range(releases):
        spend(tmp_path / "ledger.db", key=str(number), plan_id="p", description="d", unit="row", costs=[cost])
    with pytest.raises(BudgetError):
        spend(tmp_path / "ledger.db", key="more", plan_id="p", description="d", unit="row", costs=[cost])
    assert cost * releases > 0.999 * mechanism_for(budget).total(budget)


def test_no_release_is_no_horizon() -> None:
    with pytest.raises(UsageError, match="horizon"):
        share_of(Budget(1.0), 0)
