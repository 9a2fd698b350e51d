"""Answers from rows and weighted points, functions of them, and expectations from features."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from understudy.errors import UsageError
from understudy.private.noise import SeededNoise
from understudy.queries import Points, PushedForward, expectation, gaussian

from .conftest import NUM_ROWS, Silence


@pytest.fixture(scope="module")
def points(world) -> Points:
    return Points(world.schema, world.table, num_rows=NUM_ROWS)


def test_rows_answer_every_kind_of_query(world, points):
    rows = world.rows
    male, age = rows["sex"] == "Male", rows["age"]
    visits = np.array([np.nan if v is None else v for v in rows["visits"]], dtype=float)
    for query, truth in {
        "count": [NUM_ROWS],
        "count where sex = Male and age > 50 and stage = low": [(male & (age > 50) & (rows["stage"] == "low")).sum()],
        "share where age > 50 by sex": [(age[~male] > 50).mean(), (age[male] > 50).mean()],
        "share by sex": [(~male).mean(), male.mean()],
        "sum(age)": [age.sum()],
        "mean(visits)": [np.nanmean(visits)],
        "mean(age) by sex": [age[~male].mean(), age[male].mean()],
        "var(age)": [age.var()],
        "std(age)": [age.std()],
        "median(age)": [np.sort(age)[NUM_ROWS // 2 - 1]],
    }.items():
        answer = points.ask(query)
        assert np.allclose([row.estimate for row in answer.rows], truth), query
        assert answer.is_model
        assert not answer.is_exact
        assert any("not how well the model fits" in note for note in answer.notes)
    histogram = points.ask("histogram(weight, 5)")
    assert len(histogram.rows) == 5
    assert sum(row.estimate for row in histogram.rows) == pytest.approx(NUM_ROWS)
    assert points.ask("median(seen)").unit == "date"


def test_the_error_of_drawn_rows_is_that_of_a_draw(points):
    row = points.ask("share where sex = Male").only
    assert row.std_error == pytest.approx(np.sqrt(row.estimate * (1 - row.estimate) / NUM_ROWS))


def test_a_noisy_row_count_makes_counts_less_sure(world):
    sure, unsure = (
        Points(world.schema, world.table, NUM_ROWS, count_error=error).ask("count").only for error in (0.0, 30.0)
    )
    assert (sure.std_error, unsure.std_error) == (pytest.approx(0), pytest.approx(30))


def test_weights_count(world):
    two = world.table.slice(0, 2)
    ages = np.asarray(two["age"])
    points = Points(world.schema, two, num_rows=10, weights=np.array([0.75, 0.25]))
    assert points.ask("mean(age)").only.estimate == pytest.approx((3 * ages[0] + ages[1]) / 4)
    with pytest.raises(UsageError, match="weights"):
        _ = Points(world.schema, two, num_rows=10, weights=np.array([3.0])).shares


def test_weights_are_summed_as_they_are_negative_ones_too(world):
    """Balog et al. 2018, eq. 4: the mean of h is the sum of w h(z), whatever the weights add up to."""
    some = world.table.slice(0, 40)
    weights = np.random.default_rng(0).normal(1 / 20, 0.1, 40)
    assert weights.min() < 0
    assert abs(weights.sum() - 1) > 0.1
    ages, male = np.asarray(some["age"]), np.array(some["sex"]) == "Male"
    points = Points(world.schema, some, num_rows=1000, weights=weights)
    for query, exact in {
        "count": 1000 * weights.sum(),
        "count where sex = Male": 1000 * weights[male].sum(),
        "share where sex = Male": weights[male].sum(),
        "sum(age)": 1000 * weights @ ages,
        "mean(age)": weights @ ages,
        "mean(age) where sex = Male": weights[male] @ ages[male] / weights[male].sum(),
        "var(age)": weights @ (ages - weights @ ages) ** 2,
    }.items():
        answer = points.ask(query)
        assert answer.only.estimate == pytest.approx(exact), query
        assert any("noise in the weights" in note for note in answer.notes)


def test_a_quantile_of_negative_weights_is_the_least_value_that_reaches_it(world):
    some = world.table.slice(0, 4).set_column(world.table.column_names.index("age"), "age", pa.array([20, 30, 30, 40]))
    points = Points(world.schema, some, num_rows=10, weights=np.array([0.6, 0.3, -0.5, 0.6]))
    # At or below 20 are 0.6 of the rows, at or below 30 are 0.4, at or below 40 all.
    assert points.ask("median(age)").only.estimate == 20
    assert points.ask("quantile(age, 0.7)").only.estimate == 40


def test_model_answers_can_be_moved_inside_their_bounds(world):
    two = world.table.slice(0, 2)
    found = Points(world.schema, two, num_rows=10, weights=np.array([-0.5, -0.5])).ask("count")
    assert found.only.estimate < 0 == found.clipped().only.estimate


def test_weights_carry_over_to_functions_of_points(world):
    points = Points(world.schema, world.table, NUM_ROWS)

    def ratio(rows: pa.Table) -> np.ndarray:
        return np.asarray(rows["weight"]) / np.asarray(rows["age"])

    pushed = points.pushed(ratio)
    wanted = world.rows["weight"] / world.rows["age"]
    assert points.expectation(ratio) == pytest.approx(wanted.mean())
    assert pushed.then(np.log).mean == pytest.approx(np.log(wanted).mean())
    kernel = gaussian(0.5)
    at = np.array([1.0, 2.0])
    by_hand = np.exp(-((at[:, None] - wanted) ** 2) / 0.5).mean(axis=1)
    assert np.allclose(pushed.embedding(kernel, at), by_hand)
    assert pushed.distance(pushed, kernel) == pytest.approx(0, abs=1e-7)
    assert pushed.distance(PushedForward(wanted + 1, pushed.weights), kernel) > 0.1


def is_older(rows: pa.Table) -> np.ndarray:
    return np.asarray(rows["age"]) >= 50


@pytest.mark.parametrize("method", ["dp-anova", "dp-merf", "dp-hp"])
def test_an_expectation_is_near_the_truth_and_says_how_near(world, method: str):
    options = {"num_features": 400} if method == "dp-merf" else {}
    release = world.release(Silence(), method=method, **options)
    truth = (world.rows["age"] >= 50).mean()
    answer = expectation(release, is_older, reference=world.table)
    assert answer.only.low < truth < answer.only.high
    assert abs(answer.only.estimate - truth) < 0.05
    assert "root mean square error of the fit" in answer.notes[0]
    assert answer.is_model


def test_a_function_that_features_span_has_the_error_of_the_noise_alone(world):
    """The share of a label value is a ratio of released counts."""

    def is_ill(rows: pa.Table) -> np.ndarray:
        return np.array([cell == "yes" for cell in rows["ill"].to_pylist()])

    truth = (world.rows["ill"] == "yes").mean()
    scores = []
    for seed in range(30):
        release = world.release(SeededNoise(seed), method="dp-merf", num_features=20, epsilon=1.0)
        only = expectation(release, is_ill).only
        scores.append((only.estimate - truth) / only.std_error)
        assert only.high - only.low < 0.2
    # Thirty squares of normal numbers: 1e-6 of the time their mean lies outside.
    assert 0.25 < np.mean(np.square(scores)) < 2.6


def test_the_same_seed_gives_the_same_expectation(noisy):
    assert expectation(noisy, is_older, seed=3) == expectation(noisy, is_older, seed=3)


def test_a_function_must_give_a_number_for_each_row(noisy):
    with pytest.raises(UsageError, match="finite number"):
        expectation(noisy, lambda rows: np.zeros(3))
    with pytest.raises(UsageError, match="two rows"):
        expectation(noisy, is_older, reference=pa.table({"age": []}))
