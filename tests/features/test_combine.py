from __future__ import annotations

import numpy as np
import pytest

from understudy.features import Constant, FeatureMap, Fourier, Grid, OneHot, Scales, Sign, product

GAUSSIAN = Fourier((0,), (0.3,), (Scales(1, 1.0, 1.0),), 20, 0)
CHOICE = OneHot(((1, 4),))
CELLS = np.array([[0.25, 1, 0, 0], [0.5, 0, 1, 0], [0.75, 0, 0, 0], [1.0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("left", "right"),
    [(GAUSSIAN, CHOICE), (CHOICE, GAUSSIAN), (GAUSSIAN, GAUSSIAN), (Grid((0,), 3), Constant())],
)
def test_the_kernel_of_a_product_is_the_product_of_kernels(
    left: FeatureMap, right: FeatureMap
) -> None:
    gram = [map_(CELLS) @ map_(CELLS).T for map_ in (left, right, product(left, right))]
    assert np.abs(gram[0] * gram[1] - gram[2]).max() < 1e-6


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (Constant(), Constant(), Sign.CONSTANT),
        (Constant(), CHOICE, Sign.NONNEGATIVE),
        (CHOICE, CHOICE, Sign.NONNEGATIVE),
        (GAUSSIAN, CHOICE, Sign.SIGNED),
        (Constant(), GAUSSIAN, Sign.SIGNED),
        (GAUSSIAN, GAUSSIAN, Sign.SIGNED),
    ],
)
def test_a_product_promises_no_more_than_its_weaker_side(
    left: FeatureMap, right: FeatureMap, sign: Sign
) -> None:
    assert product(left, right).sign is sign
    assert product(right, left).sign is sign
