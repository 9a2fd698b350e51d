from __future__ import annotations

import numpy as np
import pytest

from understudy.evaluation.tables import code_table
from understudy.evaluation.two_sample import kernel_test, make_geometry, two_sample_auc


def test_real_rows_cannot_be_told_from_real_rows_but_shifted_ones_can(schema, clinic, other_clinic):
    real, fresh = code_table(schema, clinic), code_table(schema, other_clinic)
    shifted = code_table(schema, other_clinic.assign(weight=other_clinic["weight"] + 60))
    for binned in (True, False):
        assert 0.4 < two_sample_auc(real, fresh, binned=binned, num_folds=2) < 0.6
        assert two_sample_auc(real, shifted, binned=binned, num_folds=2) > 0.9


def test_bins_hide_what_exact_values_show(schema, clinic, other_clinic):
    # Rounding to 10 moves no weight out of its bin of 10.
    weight = np.floor(other_clinic["weight"] / 10) * 10
    real, rounded = (code_table(schema, clinic), code_table(schema, other_clinic.assign(weight=weight)))
    assert two_sample_auc(real, rounded, binned=True, num_folds=2) < 0.6
    assert two_sample_auc(real, rounded, binned=False, num_folds=2) > 0.75


def test_the_kernel_distance_approaches_that_of_the_exact_kernel(schema, clinic, other_clinic):
    real = code_table(schema, clinic)
    shifted = code_table(schema, other_clinic.assign(weight=other_clinic["weight"] + 60))
    geometry = make_geometry(real, seed=0)
    points = [geometry.points(table) for table in (real, shifted)]

    def kernel(left, right):
        squares = ((left[:, None] - right[None]) ** 2).sum(axis=2)
        return np.exp(-squares / (2 * geometry.length_scale**2)).mean()

    exact = kernel(points[0], points[0]) + kernel(points[1], points[1]) - 2 * kernel(*points)
    found = [kernel_test(real, shifted, geometry=geometry, seed=seed)[0] for seed in range(5)]
    assert np.mean(found) == pytest.approx(np.sqrt(exact), rel=0.1)


def test_the_kernel_test_holds_its_level_and_sees_a_shift(schema, clinic):
    real = code_table(schema, clinic)
    geometry = make_geometry(real, seed=0)
    order = np.random.default_rng(0)
    p_values = []
    for seed in range(40):
        rows = order.permutation(len(real))
        halves = real.take(rows[:150]), real.take(rows[150:300])
        p_values.append(kernel_test(*halves, geometry=geometry, seed=seed)[1])
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) < 0.1) < 0.3
    shifted = code_table(schema, clinic.assign(age=clinic["age"] // 2))
    assert kernel_test(real, shifted, geometry=geometry, seed=0)[1] == 1 / 200


def test_two_categories_are_as_far_apart_as_numbers_one_deviation_apart(schema, clinic):
    real = code_table(schema, clinic)
    geometry = make_geometry(real, seed=0)
    base = clinic.iloc[[0]].assign(city="a", age=50, weight=80.0)
    moves = {
        "city": base.assign(city="b"),
        "null city": base.assign(city=None),
        "age": base.assign(age=50 + clinic["age"].std(ddof=0)),
    }
    start = geometry.points(code_table(schema, base))
    for name, moved in moves.items():
        distance = np.linalg.norm(geometry.points(code_table(schema, moved)) - start)
        assert distance == pytest.approx(1.0), name


def test_columns_of_nulls_or_of_one_value_have_a_geometry(schema, clinic):
    table = code_table(schema, clinic.assign(weight=np.nan, age=3))
    geometry = make_geometry(table, seed=0)
    assert np.isfinite(geometry.points(table)).all()
    assert geometry.length_scale > 0


@pytest.mark.parametrize("known", [0, 1, 3])
def test_a_number_that_is_nearly_always_null_is_no_obstacle(schema, clinic, other_clinic, known):
    real, fresh = (
        code_table(schema, rows.assign(weight=rows["weight"].fillna(50.0).where(rows.index < known)))
        for rows in (clinic, other_clinic)
    )
    assert 0.4 < two_sample_auc(real, fresh, binned=False, num_folds=2) < 0.6


def test_nulls_on_one_side_alone_are_found_out(schema, clinic, other_clinic):
    real, null = code_table(schema, clinic), code_table(schema, other_clinic.assign(weight=None))
    assert two_sample_auc(real, null, binned=False, num_folds=2) > 0.9
