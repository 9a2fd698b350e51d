from __future__ import annotations

import math

import pytest

from understudy.accounting.mechanisms import Budget
from understudy.errors import UsageError


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, -math.inf, math.nan, 1e-9, 1e9])
def test_an_epsilon_that_is_no_guarantee_is_refused(epsilon: float) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [1e-16, 1.0, -1e-5, math.nan, math.inf, 0.5])
def test_a_delta_that_is_no_guarantee_is_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        Budget(1.0, delta)


def test_common_budgets_are_taken_as_they_are() -> None:
    assert Budget(1) == Budget(1.0, 1e-5)
