"""Sentences follow from numbers, and change with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from understudy.evaluation.metrics import METRICS, Evaluation, Score
from understudy.reports.verdict import Level, find_ties, judge, kept, level_of

Make = Callable[..., Evaluation]


@pytest.mark.parametrize(("value", "level"), [(0.01, 3), (0.02, 2), (0.04, 1), (0.07, 0), (0.2, 0)])
def test_a_distance_is_judged_by_where_it_lies_between_real_and_independent(value: float, level: int) -> None:
    assert level_of(Score(METRICS["marginal_2"], value, 0.01, 0.08)) == Level(level)


def test_a_score_where_more_is_better_is_judged_the_other_way_round() -> None:
    score = Score(METRICS["roc_auc"], 0.87, 0.88, 0.5)
    assert kept(score) == pytest.approx(0.37 / 0.38)
    assert level_of(score) is Level.LIKE_REAL
    assert level_of(replace(score, value=0.55)) is Level.WEAK
    assert level_of(replace(score, floor=float("nan"))) is kept(replace(score, baseline=float("nan"))) is None


def test_where_independent_columns_do_as_well_the_distance_itself_is_judged() -> None:
    score = Score(METRICS["marginal_1"], 0.006, 0.004, 0.004)
    assert kept(score) is None
    assert level_of(score) is Level.LIKE_REAL
    assert level_of(replace(score, value=0.2)) is Level.WEAK


@pytest.mark.parametrize("key", ["kernel_p_value", "copied_rows", "neighbour_distance"])
def test_scores_that_are_no_question_of_more_or_less_are_not_judged(key: str) -> None:
    score = Score(METRICS[key], 0.5, 0.4, 0.1)
    assert level_of(score) is None
    assert kept(score) is None


def test_the_headline_says_what_for_and_where_it_is_worst(make: Make) -> None:
    headline = judge(make(), epsilon=1.0).headline
    assert headline.startswith("At epsilon 1: good enough for single columns, pairs of columns and ")
    assert "training models of 'income'" in headline
    assert "not for three and more columns at once" in headline
    assert "worst in 'column_0' (distance 0.120" in headline
    assert headline.count(".") == headline.count("0.") + 1  # one sentence


def test_weak_scores_turn_the_headline_round(make: Make) -> None:
    evaluation = make()
    weak = tuple(replace(score, value=score.baseline or 0.0) for score in evaluation.scores)
    headline = judge(replace(evaluation, scores=weak)).headline
    assert "not for pairs of columns" in headline


def test_columns_and_ties_that_are_off_are_named_and_the_others_trusted(make: Make) -> None:
    verdict = judge(make())
    doubts = " ".join(verdict.doubt)
    assert "'column_0' (12.0\u00a0%)" in doubts
    assert "Weaker than in real rows: 'column_1' with 'column_0' (0.50 became 0.30)" in doubts
    assert "'column_0' (5.0\u00a0% became 9.0\u00a0%)" in doubts
    assert "Stronger" not in doubts
    assert any("ties between columns" in words for words in verdict.trust)


def test_ties_that_were_made_up_are_told_from_ties_that_were_lost(make: Make) -> None:
    evaluation = make()
    ties = evaluation.associations
    swapped = replace(ties, real=ties.synthetic, synthetic=ties.real)
    doubts = " ".join(judge(replace(evaluation, associations=swapped)).doubt)
    assert "Stronger than in real rows: 'column_1'" in doubts
    assert "Weaker" not in doubts


def test_ties_that_cannot_be_known_are_left_out(make: Make) -> None:
    evaluation = make(3)
    unknown = tuple(tuple(float("nan") for _ in row) for row in evaluation.associations.real)
    ties = replace(evaluation.associations, real=unknown)
    assert find_ties(replace(evaluation, associations=ties)) == []


def test_models_that_lose_much_are_named(make: Make) -> None:
    evaluation = make()
    assert evaluation.prediction is not None
    first, *others = evaluation.prediction.models
    worse = replace(first, synthetic={"roc_auc": 0.6, "prc_auc": 0.3})
    prediction = replace(evaluation.prediction, models=(worse, *others))
    verdict = judge(replace(evaluation, prediction=prediction))
    assert any("Logistic regression (loses 0.280)" in words for words in verdict.doubt)
    assert any("2 of 3 models" in words for words in verdict.trust)


def test_models_are_judged_by_the_mean_of_their_scores(make: Make) -> None:
    prediction = make().prediction
    assert prediction is not None
    first, second = prediction.scores
    assert (first.metric.key, second.metric.key) == ("roc_auc", "prc_auc")
    assert (first.value, first.floor, first.baseline) == pytest.approx((0.88, 0.89, 0.5))
    (use,) = (use for use in judge(make()).uses if use.words == "training models of 'income'")
    assert use.reason == "ROC-AUC on real test rows 0.880, real rows 0.890, baseline 0.500"


def test_what_bins_hide_is_said_where_it_is_bad_and_not_where_it_is_good(make: Make) -> None:
    evaluation = make()
    assert any("a ROC-AUC of 0.660" in words for words in judge(evaluation).doubt)
    good = tuple(
        replace(score, value=0.501) if score.metric.key == "two_sample_auc_raw" else score
        for score in evaluation.scores
    )
    assert not any("Passing for" in words for words in judge(replace(evaluation, scores=good)).doubt)


def test_rows_that_equal_real_ones_too_often_are_the_first_doubt(make: Make) -> None:
    found = make()
    assert not any("being synthetic" in words for words in judge(found).doubt)
    scores = tuple(replace(score, value=0.5) if score.metric.key == "copied_rows" else score for score in found.scores)
    assert judge(replace(found, scores=scores)).doubt[0].startswith("These rows being synthetic: 50.0")
