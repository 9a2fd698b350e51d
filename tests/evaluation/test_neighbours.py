from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from understudy.evaluation.tables import code_table
from understudy.evaluation.two_sample import copied_share, make_geometry, nearest_distances


def test_the_nearest_real_row_is_the_nearest(schema, clinic, other_clinic):
    real, made = code_table(schema, clinic), code_table(schema, other_clinic)
    geometry = make_geometry(real, seed=0)
    expected = cdist(geometry.points(made), geometry.points(real)).min(axis=1)
    found = nearest_distances(made, real, geometry=geometry)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_copies_are_counted_with_their_nulls_and_near_misses_are_not(schema, clinic, other_clinic):
    real = code_table(schema, clinic)
    with_nulls = clinic[clinic["weight"].isna() & clinic["city"].isna()]
    assert len(with_nulls) > 3
    moved = other_clinic.assign(weight=other_clinic["weight"].fillna(50) + 0.001)
    made = pd.concat([with_nulls, moved[: 3 * len(with_nulls)]])
    assert copied_share(code_table(schema, made), real) == pytest.approx(0.25)


def test_zero_is_zero_whatever_its_sign(schema, clinic):
    row = clinic.iloc[[0]].assign(weight=0.0)
    minus = row.assign(weight=-0.0)
    assert copied_share(code_table(schema, minus), code_table(schema, row)) == 1.0
