"""Marks lie where numbers say, words do not run into each other, and names fit."""

from __future__ import annotations

from itertools import pairwise

import pytest

from understudy.reports.charts import (
    HEIGHT,
    MOST_COLUMNS,
    WIDTH,
    Series,
    association_map,
    categories,
    chosen,
    clipped,
    counted,
    decimal,
    difference_map,
    histogram,
    line_chart,
    listed,
    most_different,
    outline,
    percent,
    residual_map,
    round_steps,
    short,
    squeezed,
)


def test_a_stepped_path_goes_over_every_bin() -> None:
    assert outline([10, 20], 5, 30, is_closed=False) == "M0 10V10H5V20H10"
    assert outline([10, 20], 5, 30, is_closed=True) == "M0 30V10V10H5V20H10V30Z"


def test_the_tallest_bin_reaches_the_top_and_an_empty_one_the_floor() -> None:
    chart = histogram(Series(("a", "b"), ("0", "1", "2"), (0.5, 0.0), (0.25, 0.25)))
    assert chart.bars.startswith("M0 128V14")
    assert "V128H300" in chart.bars
    assert chart.line == "M0 71V71H150V71H300"
    assert chart.top == "50.0\u00a0%"


def test_noise_turns_bars_into_dots_with_whiskers() -> None:
    chart = histogram(Series(("a", "b"), ("0", "1", "2"), (0.5, 0.1), (0.4, 0.2), doubt=0.05))
    assert chart.bars == ""
    assert len(chart.dots) == 2
    assert chart.whiskers.count("M") == 2
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in chart.dots)


@pytest.mark.parametrize("length", [1, 3, 5, 10, 40])
@pytest.mark.parametrize("num_bins", [1, 2, 7, 20])
def test_words_on_an_axis_do_not_touch(length: int, num_bins: int) -> None:
    words = tuple("x" * length for _ in range(num_bins + 1))
    ticks = histogram(Series(words[1:], words, (0.1,) * num_bins, (0.1,) * num_bins)).ticks
    wide = 6.4 * length
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
    starts = [tick.place - shift[tick.anchor] * wide for tick in ticks]
    if length <= 10:
        assert all(b - a > wide for a, b in pairwise(starts))
    assert ticks[0].anchor == "start"
    assert ticks[-1].place == pytest.approx(WIDTH)


def test_small_categories_share_the_last_bar_and_nothing_is_lost() -> None:
    names = tuple(f"name {i}" for i in range(12))
    shares = tuple((12 - i) / 78 for i in range(12))
    bars = categories(Series(names, (), shares, shares[::-1])).bars
    assert [bar.name for bar in bars][-1] == "6 others"
    given = [float(bar.text.split(" / ")[0]) for bar in bars]
    assert sum(given) == pytest.approx(100, abs=0.4)


def test_categories_that_nobody_has_are_not_drawn() -> None:
    bars = categories(Series(("a", "b", "c"), (), (0.6, 0.4, 0.0), (0.5, 0.5, 0.0))).bars
    assert [bar.name for bar in bars] == ["a", "b"]
    assert categories(Series(("a",), (), (0.0,), (0.0,))).bars == ()


def test_lines_keep_their_order_on_a_logarithmic_axis() -> None:
    chart = line_chart([(100, 0.7), (1_000, 0.8), (10_000, 0.85)], {"real": 0.9, "baseline": None})
    across = [x for x, _, _ in chart.points]
    up = [y for _, y, _ in chart.points]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1])
    assert up == sorted(up, reverse=True)
    assert [name for name, _ in chart.levels] == ["real"]
    assert chart.levels[0][1] < min(up)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.88), (0.81, 0.815), (0.5, 0.5), (-0.3, 0.9), (120.0, 5000.0)])
def test_the_steps_of_an_axis_are_few_round_and_hold_all(low: float, high: float) -> None:
    steps = round_steps(low, high)
    assert steps[0] <= low <= high <= steps[-1]
    assert 3 <= len(steps) <= 8
    assert all(len(f"{step:.4g}") <= 6 for step in steps)


def test_one_size_alone_is_drawn_in_the_middle() -> None:
    assert len(line_chart([(500, 0.7), (500, 0.7)], {}).points) == 2


def test_a_heat_map_has_a_path_for_each_shade_and_none_for_zero() -> None:
    found = association_map(["a", "b", "c"], ((1.0, 0.5, 0.0), (0.5, 1.0, 0.9), (0.0, 0.9, 1.0)))
    assert found.shades == (("level", 5, "M1 0h1v1h-1zM0 1h1v1h-1z"), ("level", 9, "M2 1h1v1h-1zM1 2h1v1h-1z"))


def test_lost_ties_and_made_up_ones_differ_in_colour() -> None:
    real, synthetic = ((1.0, 0.5), (0.1, 1.0)), ((1.0, 0.2), (0.4, 1.0))
    shades = difference_map(["a", "b"], real, synthetic).shades
    assert [(colour, shade) for colour, shade, _ in shades] == [("lost", 10), ("made", 10)]


def test_residuals_that_noise_explains_stay_blank() -> None:
    nan = float("nan")
    assert residual_map(["a", "b"], [[nan, 1.0], [0.5, nan]]).shades == ()
    assert residual_map(["a", "b"], [[nan, 9.0], [nan, nan]]).shades == (("lost", 10, "M1 0h1v1h-1z"),)


def test_a_wide_table_shows_the_columns_whose_ties_differ_most() -> None:
    size = 40
    real = tuple(tuple(0.0 for _ in range(size)) for _ in range(size))
    synthetic = tuple(tuple(0.5 if 35 in (i, j) else 0.0 for i in range(size)) for j in range(size))
    columns = most_different(real, synthetic)
    assert len(columns) == MOST_COLUMNS
    assert 35 in columns
    assert columns == sorted(columns)
    assert len(chosen(real, columns)) == MOST_COLUMNS


def test_numbers_and_names_are_spelt_for_people() -> None:
    assert [short(n) for n in (0, 0.5, 24.75, 1250, 12_500, 2e6, 3e9, 4e12, -15_000)] == [
        "0",
        "0.5",
        "24.8",
        "1,250",
        "12.5k",
        "2M",
        "3G",
        "4T",
        "-15k",
    ]
    assert decimal(None) == decimal(float("nan")) == "–"
    assert decimal(-0.0001) == "0.000"
    assert percent(0.1234) == "12.3\u00a0%"
    assert clipped("abcdefgh", 5) == "abcd…"
    assert squeezed("column_name_12", 10) == "column…_12"
    assert (listed(["a"]), listed(["a", "b", "c"])) == ("a", "a, b and c")
    assert (counted(1, "row"), counted(2000, "row")) == ("1 row", "2,000 rows")
