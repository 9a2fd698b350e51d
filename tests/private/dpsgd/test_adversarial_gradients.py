"""The gradient of one row never has more than the norm that noise is paid for, whatever the row."""

from __future__ import annotations

from fractions import Fraction

import pytest
from adversarial_gradients import gradient_ratios


@pytest.fixture(scope="module")
def ratios() -> dict[str, Fraction]:
    return gradient_ratios()


def test_no_gradient_is_longer_than_what_noise_is_paid_for(ratios: dict[str, Fraction]) -> None:
    """Inputs that are huge, tiny, not finite or not there, in linear maps and in networks; in exact integers."""
    assert max(ratios.values()) <= 1, {name: float(ratio) for name, ratio in ratios.items()}


def test_an_adversary_comes_near_to_it_everywhere(ratios: dict[str, Fraction]) -> None:
    assert min(ratios.values()) > Fraction(99, 100)
