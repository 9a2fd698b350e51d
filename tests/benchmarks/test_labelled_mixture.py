from __future__ import annotations

import numpy as np
import pytest
from labelled_mixture import LabelledMixture
from scipy import stats

MIXTURE = LabelledMixture(
    centres=np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]), classes=np.array([0, 0, 1]), deviation=0.5
)
POINTS = np.array([[0.3, -0.2], [3.0, 0.5], [0.1, 4.2], [2.0, 2.0]])


@pytest.mark.parametrize("class_", [0, 1])
def test_the_density_is_scipys(class_):
    density = sum(
        stats.multivariate_normal(centre, 0.25).pdf(POINTS) / 3
        for centre, each in zip(MIXTURE.centres, MIXTURE.classes, strict=True)
        if each == class_
    )
    found = MIXTURE.negative_log_likelihood(POINTS, np.full(4, class_))
    np.testing.assert_allclose(found, -np.log(density), atol=1e-9)


def test_a_class_without_a_mode_is_impossible():
    assert MIXTURE.negative_log_likelihood(POINTS[:1], np.array([7])) == np.inf


def test_a_mode_is_found_only_with_its_own_class():
    points = np.repeat(MIXTURE.centres, 10, axis=0)
    right = np.repeat(MIXTURE.classes, 10)
    assert MIXTURE.modes_found(points, right) == 3
    assert MIXTURE.modes_found(points, np.zeros(30, dtype=int)) == 2
    assert MIXTURE.modes_found(points, right, least_share=0.5) == 0
