"""The papers' numbers are all there, and stand beside ours."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from paper_marginals import planned
from paper_numbers import CAVEATS, MEAN, all_published, read_table, table_names
from paper_prediction import OURS, Runs, beside

from understudy.evaluation.models import Protocol, models_for

TABLES = table_names(metrics=("roc", "f1", "tv2", "tv3", "rows"))


def test_the_tables_of_both_papers_that_hold_results_on_tables_are_there():
    assert {f"002.{i}" for i in (1, 2, 5, 6, 7, 8)} <= set(TABLES)
    assert {f"001.{i}" for i in (1, 2, 3, 5, 7, 8)} <= set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_holds_every_number_once(name: str):
    assert max(Counter(each.key for each in read_table(name)).values()) == 1


def test_scores_and_distances_lie_between_0_and_1():
    for each in all_published():
        if each.metric in ("roc", "prc", "f1", "tv2", "tv3", "tv4"):
            assert 0 < each.value <= 1, each


def test_every_caveat_has_words_and_a_number_that_needs_it():
    assert {name for each in all_published() for name in each.caveats} == set(CAVEATS)


def test_no_printed_epsilon_of_our_methods_stands_without_a_caveat():
    for each in all_published():
        assert each.epsilon == "" or each.caveats, each


@pytest.mark.parametrize("name", ["002.5", "002.6", "002.7", "002.8"])
def test_the_printed_mean_is_that_of_the_twelve(name: str):
    by_column = defaultdict(dict)
    for each in read_table(name):
        by_column[each.method, each.epsilon, each.metric][each.model] = each.value
    expected = {*models_for("binary", Protocol.PAPERS).by_name, MEAN}
    for values in by_column.values():
        assert values.keys() == expected
        mean = values.pop(MEAN)
        assert np.mean(list(values.values())) == pytest.approx(mean, abs=0.011)  # some are cut off, not rounded


def test_our_score_stands_beside_the_printed_one_and_citations_stay_without():
    rows = read_table("002.2", datasets=["cervical"])
    scores = {("lda", metric): np.array([0.25, 0.75]) for metric in ("roc", "prc")}
    scores |= {("mlp", metric): np.array([0.5, 1.0]) for metric in ("roc", "prc")}
    lines = beside(rows, {"dp-merf": Runs(scores, 3.0), "dp-anova": Runs(scores, 2.0)}, seeds=[0, 4])
    by_run = {(line[3], line[5], line[6]): line[7:] for line in lines}
    ours = ["0.375", "0.875", "0 4"]
    assert by_run["dp-merf", "1", "roc"][:5] == [*ours, "3", 0.545]
    assert "hard predictions" in by_run["dp-merf", "1", "roc"][5]
    assert by_run["dp-merf", "inf", "roc"][:5] == ["", "", "", "", 0.896]
    assert by_run["dp-cgan", "1", "roc"][:4] == ["", "", "", ""]
    assert by_run["dp-anova", "1", "roc"] == [*ours, "2", "", "not in the paper"]


def test_a_single_classifier_is_printed_by_itself():
    rows = [each for each in read_table("002.8") if each.model == "lda" and each.epsilon == "1"]
    (line,) = beside(rows, {"dp-merf": Runs({("lda", "f1"): np.array([0.5, 0.75])}, 3.0)}, seeds=[0])
    assert line[7:9] == ["0.500", "0.750"]
    assert line[11] == 0.925


def test_settings_that_a_table_varies_belong_to_its_own_method():
    runs = planned(read_table("001.8"), list(OURS))
    assert [settings for *_, settings in runs] == [f"--product-dim {i}" for i in (2, 5, 7)]
    assert {method for _, method, *_ in runs} == {"dp-hp"}
    plain = planned(read_table("001.1", datasets=["adult"]), ["dp-hp", "dp-anova"])
    assert sorted(plain)[0] == ("adult", "dp-anova", "0.1", "")
    assert len(plain) == 4
