"""Answers: exact without noise, and with noise as far off as they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from understudy import ask
from understudy.errors import UsageError
from understudy.private.noise import SeededNoise
from understudy.queries import Asker, CannotTellError, QueryError, bind
from understudy.released.release import save_release

from .conftest import NUM_ROWS, Rows, Silence


def exact_truths(rows: Rows) -> dict[str, list[float]]:
    """Queries that cells of the release express exactly, with their truths."""
    male, ill, age = rows["sex"] == "Male", rows["ill"] == "yes", rows["age"]
    region, visits = rows["region"], np.array([-1 if v is None else v for v in rows["visits"]])
    seen = visits >= 0
    return {
        "count": [NUM_ROWS],
        "count where sex = Male": [male.sum()],
        "count by sex": [(~male).sum(), male.sum()],
        "count where age >= 30 and age < 40": [((age >= 30) & (age < 40)).sum()],
        "count where region is null": [sum(name is None for name in region)],
        "count by region": [*((region == name).sum() for name in ("n", "s", "e", None))],
        "count by sex, ill": [(~male & ~ill).sum(), (~male & ill).sum(), (male & ~ill).sum(), (male & ill).sum()],
        "count where sex = Male and region = 'n'": [(male & (region == "n")).sum()],
        "share where visits = 0": [(visits == 0).mean()],
        "share where sex = Male by ill": [male[~ill].mean(), male[ill].mean()],
        "share by sex": [(~male).mean(), male.mean()],
        "sum(age)": [age.sum()],
        "mean(age)": [age.mean()],
        "mean(visits)": [visits[seen].mean()],
        "mean(visits) by ill": [visits[seen & ~ill].mean(), visits[seen & ill].mean()],
        "mean(age) where age > 40": [age[age > 40].mean()],
        "var(age)": [age.var()],
        "std(visits)": [visits[seen].std()],
        "median(age)": [np.sort(age)[NUM_ROWS // 2 - 1]],
        "quantile(age, 0.9)": [np.sort(age)[math.ceil(0.9 * NUM_ROWS) - 1]],
    }


def cut_truths(rows: Rows) -> dict[str, list[float]]:
    """Queries that are finer than the cells."""
    male, age, weight = rows["sex"] == "Male", rows["age"], rows["weight"]
    return {
        "mean(weight)": [weight.mean()],
        "sum(weight)": [weight.sum()],
        "std(weight)": [weight.std()],
        "count where weight >= 71.3": [(weight >= 71.3).sum()],
        "mean(weight) where weight >= 71.3": [weight[weight >= 71.3].mean()],
        "median(weight)": [np.sort(weight)[NUM_ROWS // 2 - 1]],
        "mean(age) by sex": [age[~male].mean(), age[male].mean()],
        "var(age) by sex": [age[~male].var(), age[male].var()],
        "share where age < 33 by sex": [(age[~male] < 33).mean(), (age[male] < 33).mean()],
        "median(age) by sex": [float(np.sort(age[s])[math.ceil(s.sum() / 2) - 1]) for s in (~male, male)],
    }


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_without_noise_answers_are_the_truth(world, neighbours: str):
    asker = Asker(world.release(Silence(), neighbours=neighbours, epsilon=8.0))
    for query, truth in exact_truths(world.rows).items():
        answer = asker.ask(query)
        found = [row.estimate for row in answer.rows]
        # Variances add that of the mean's noise, which is planned and not there.
        room = 2e-2 if query.startswith(("var", "std")) else 1e-6
        assert np.allclose(found, truth, rtol=room), query
        assert answer.is_exact, query


def test_where_cells_are_too_coarse_the_interval_holds_whatever_lies_in_them(world, silent):
    """Without noise in the sums the interval would still hold if it had no room for noise at all."""
    asker = Asker(silent)
    for query, truth in cut_truths(world.rows).items():
        answer = asker.ask(query, level=0.5)
        assert not answer.is_exact, query
        assert any("coarser" in note for note in answer.notes), query
        for row, true in zip(answer.rows, truth, strict=True):
            assert row.low <= true <= row.high, query


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_errors_are_as_large_as_they_are_said_to_be(world, neighbours: str):
    """Over 30 releases: the mean square of errors in deviations is 1, and 95 % of intervals hold.

    Estimates of one release depend on one another; as if only 30 * 6 were independent, six
    deviations of a mean of squares are 6 sqrt(2 / 180), and of a share 6 sqrt(0.95 0.05 / 180).
    Where cells turned out too coarse, intervals hold more often and errors are no noise alone.
    """
    truths = exact_truths(world.rows)
    smooth = [q for q in truths if not q.startswith(("median", "quantile"))]
    squares, held = [], []
    for seed in range(30):
        asker = Asker(world.release(SeededNoise(seed), neighbours=neighbours, epsilon=1.0))
        for query in smooth:
            for row, true in zip(asker.ask(query).rows, truths[query], strict=True):
                if row.std_error > 0 and row.is_exact:
                    squares.append(((row.estimate - true) / row.std_error) ** 2)
                    held.append(row.low <= true <= row.high)
    assert len(squares) > 600
    assert abs(np.mean(squares) - 1) < 6 * math.sqrt(2 / 180)
    assert abs(np.mean(held) - 0.95) < 6 * math.sqrt(0.95 * 0.05 / 180)


def test_quantiles_are_held_at_least_as_often_as_stated(world):
    """A chance of 5 % to miss, 80 times: more than 19 misses have a chance below 1e-6."""
    truths = exact_truths(world.rows)
    missed = 0
    for seed in range(40):
        asker = Asker(world.release(SeededNoise(seed), epsilon=0.3))
        for query in ("median(age)", "quantile(age, 0.9)"):
            row = asker.ask(query).only
            missed += not row.low <= truths[query][0] <= row.high
            assert row.low <= row.estimate <= row.high
    assert missed <= 19


def test_a_public_row_count_is_used_and_said(world):
    answer = Asker(world.release(SeededNoise(1), neighbours="replace-one")).ask("count")
    assert (answer.only.estimate, answer.only.std_error) == (pytest.approx(NUM_ROWS), 0.0)
    assert answer.source == "the public row count"


def test_several_tables_together_beat_any_one_of_them(noisy):
    asker = Asker(noisy)
    alone = min(table.noise for table in asker.sources.measured.tables if table.columns == (0,))
    assert asker.ask("count where sex = Male").only.std_error < alone


def test_counts_below_zero_stay_unless_asked_otherwise(world):
    asker = Asker(world.release(SeededNoise(2), epsilon=0.05))
    answer = asker.ask("histogram(weight)")
    assert min(row.estimate for row in answer.rows) < 0
    clipped = answer.clipped()
    assert min(row.estimate for row in clipped.rows) == 0
    assert min(row.low for row in clipped.rows) == 0
    assert any("no longer unbiased" in note for note in clipped.notes)


def test_the_population_is_less_sure_than_the_data_set(noisy):
    asker = Asker(noisy)
    for query in ("mean(age)", "share where sex = Male", "std(age)"):
        data, people = asker.ask(query).only, asker.ask(query, population=True).only
        assert people.high - people.low > data.high - data.low
    queries = [f"quantile(weight, {level / 20})" for level in range(1, 20)]
    widths = [
        [one.high - one.low for one in (asker.ask(q, population=is_pop).only for q in queries)]
        for is_pop in (False, True)
    ]
    assert (np.subtract(*widths) <= 0).all()  # ends are edges of cells, and may be the same ones
    assert sum(widths[0]) < sum(widths[1])
    spread = asker.ask("std(age)").only.estimate / math.sqrt(NUM_ROWS)
    error = asker.ask("mean(age)").only.std_error
    found = asker.ask("mean(age)", population=True).only.std_error
    assert found == pytest.approx(math.hypot(error, spread), rel=0.05)
    with pytest.raises(UsageError, match="population"):
        asker.ask("count", population=True)


def test_a_group_that_may_be_empty_has_the_bounds_of_its_column(world):
    asker = Asker(world.release(SeededNoise(3), epsilon=0.02, pairs=True))
    row = asker.ask("mean(visits) by region").rows[-1]
    assert (row.low, row.high) == (0.0, 5.0)


def test_dates_come_back_as_dates(world, silent):
    answer = Asker(silent).ask("mean(seen)")
    days = np.mean([d.toordinal() for d in world.rows["seen"]]) - 719163  # 1970-01-01
    assert answer.only.estimate == pytest.approx(days, abs=1)
    assert answer.shown(answer.only.estimate).startswith("2020-0")


def test_nulls_are_left_out_and_the_answer_says_so(silent):
    assert "nulls are left out: those of visits" in Asker(silent).ask("mean(visits)").notes


def test_a_histogram_adds_up_to_all_rows(silent):
    asker = Asker(silent)
    for query in ("histogram(age)", "histogram(weight, 7)", "histogram(visits)", "histogram(region)"):
        answer = asker.ask(query)
        assert sum(row.estimate for row in answer.rows) == pytest.approx(NUM_ROWS, abs=1e-4)
    assert len(asker.ask("histogram(weight, 7)").rows) <= 7


def test_columns_that_no_table_is_over_are_refused_with_those_that_there_are(world):
    release = world.release(SeededNoise(1), pairs=False)
    with pytest.raises(CannotTellError, match="no table over sex and age together"):
        ask(release, "mean(age) by sex")
    assert len(ask(release, "mean(age) by ill").rows) == 2


def test_numbers_that_a_method_did_not_count_are_refused(world):
    release = world.release(SeededNoise(1), method="dp-merf", num_features=60)
    with pytest.raises(CannotTellError, match="no counts of column 'age'"):
        ask(release, "mean(age)")
    assert len(ask(release, "count by sex, ill").rows) == 4
    assert len(ask(release, "count where visits is null").rows) == 1


def test_too_many_groups_are_refused(silent, monkeypatch):
    monkeypatch.setattr(bind, "MOST_GROUPS", 3)
    with pytest.raises(QueryError, match="4 groups"):
        ask(silent, "count by sex, ill")


def test_a_level_is_a_level(noisy):
    narrow, wide = (ask(noisy, "mean(age)", level=level).only for level in (0.8, 0.99))
    assert wide.high - wide.low > narrow.high - narrow.low
    with pytest.raises(UsageError, match="level"):
        ask(noisy, "count", level=1.0)


def test_a_release_is_asked_by_its_directory_too(noisy, tmp_path):
    save_release(noisy, tmp_path / "release")
    assert ask(tmp_path / "release", "count by sex") == ask(noisy, "count by sex")


def test_an_answer_is_a_table_and_a_document(noisy):
    answer = ask(noisy, "count by sex, ill")
    assert answer.to_table().column_names == ["sex", "ill", "estimate", "std_error", "low", "high", "is_exact"]
    assert answer.to_dict()["rows"][3]["group"] == {"sex": "Male", "ill": "yes"}
    with pytest.raises(ValueError, match="several"):
        _ = answer.only


def test_rows_that_break_the_schema_show_in_the_answer(world):
    """Nulls in a column that is never null have a cell of their own: totals stay, and answers on it tell."""
    rows = dict(world.rows)
    ages = rows["age"].astype(object)
    ages[:800] = None
    broken = replace(world, rows={**rows, "age": ages})
    asker = Asker(broken.release(SeededNoise(2), epsilon=5.0))
    by_sex = asker.ask("count by sex")
    assert by_sex.notes == ()
    for row in by_sex.rows:
        (name,) = dict(row.group).values()
        assert row.low < (rows["sex"] == name).sum() < row.high
    note, *_ = asker.ask("mean(age)").notes
    assert abs(int(note.split()[2]) - 800) < 40
    assert "'age' cannot be read as a whole number, or is blank" in note
