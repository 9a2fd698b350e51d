"""Marks lie where numbers say, words do not run into each other, and names fit."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from understudy.reports.charts import (
    WIDTH,
    Series,
    axis_ticks,
    category_bars,
    counted,
    decimal,
    environment,
    first_few,
    heat_map,
    line_chart,
    listed,
    out_of,
    percent,
    round_steps,
    short,
    squeezed,
)

NAN = float("nan")


def drawn(macro: str, *values: Any) -> str:
    """What a macro of the templates draws, in one line."""
    module = environment().get_template("charts.jinja").module
    return str(getattr(module, macro)(*values, "words")).replace("\n", "")


def paths(picture: str, kind: str) -> list[str]:
    return re.findall(f'<path class="{kind}" d="([^"]*)"', picture)


def test_a_stepped_path_goes_over_every_bin_the_tallest_to_the_top_and_an_empty_one_to_the_floor() -> None:
    picture = drawn("histogram", Series(("a", "b"), ("0", "1", "2"), (0.5, 0.0), (0.25, 0.25)))
    assert paths(picture, "given-fill") == ["M0 128V14V14H150V128H300V128Z"]
    assert paths(picture, "synthetic-line") == ["M0 71V71H150V71H300"]
    assert "50.0\u00a0%" in picture


def test_noise_turns_bars_into_dots_with_whiskers() -> None:
    picture = drawn("histogram", Series(("a", "b"), ("0", "1", "2"), (0.5, 0.1), (0.4, 0.2), 0.05))
    assert paths(picture, "given-fill") == []
    assert paths(picture, "given-line")[0].count("M") == 2
    dots = [(float(x), float(y)) for x, y in re.findall(r'given-dot" cx="([^"]*)" cy="([^"]*)"', picture)]
    assert len(dots) == 2
    assert all(0 <= x <= WIDTH and 14 <= y <= 128 for x, y in dots)


@pytest.mark.parametrize("length", [1, 3, 5, 10, 40])
@pytest.mark.parametrize("num_bins", [1, 2, 7, 20])
def test_words_on_an_axis_do_not_touch(length: int, num_bins: int) -> None:
    words = tuple("x" * length for _ in range(num_bins + 1))
    ticks = axis_ticks(Series(words[1:], words, (0.1,) * num_bins, (0.1,) * num_bins))
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
    bars = category_bars(Series(names, (), shares, shares[::-1]))
    assert [bar.name for bar in bars][-1] == "6 others"
    given = [float(bar.text.split(" / ")[0]) for bar in bars]
    assert sum(given) == pytest.approx(100, abs=0.4)


def test_categories_that_nobody_has_are_not_drawn_and_long_names_are_cut() -> None:
    bars = category_bars(Series(("a", "b", "c"), (), (0.6, 0.4, 0.0), (0.5, 0.5, 0.0)))
    assert [bar.name for bar in bars] == ["a", "b"]
    assert [bar.given for bar in bars] == pytest.approx([1, 0.4 / 0.6])
    assert category_bars(Series(("a",), (), (0.0,), (0.0,))) == ()
    assert ">abcdefghijkl…<" in drawn("categories", Series(("abcdefghijklmn",), (), (1.0,), (1.0,)))
    assert ">abcdefghijklm<" in drawn("categories", Series(("abcdefghijklm",), (), (1.0,), (1.0,)))


def test_lines_keep_their_order_on_a_logarithmic_axis() -> None:
    chart = line_chart([(100, 0.7), (1_000, 0.8), (10_000, 0.85)], {"real": 0.9})
    assert [share for share, _, _ in chart.points] == pytest.approx([0, 0.5, 1])
    picture = drawn("line", chart)
    up = [float(y) for y in re.findall(r'synthetic-dot" cx="[^"]*" cy="([^"]*)"', picture)]
    assert up == sorted(up, reverse=True)
    (level,) = paths(picture, "level-line real")
    assert float(level.removeprefix("M44 ").removesuffix("H402")) < min(up)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.88), (0.81, 0.815), (0.5, 0.5), (-0.3, 0.9), (120.0, 5000.0)])
def test_the_steps_of_an_axis_are_few_round_and_hold_all(low: float, high: float) -> None:
    steps = round_steps(low, high)
    assert steps[0] <= low <= high <= steps[-1]
    assert 3 <= len(steps) <= 8
    assert all(len(f"{step:.4g}") <= 6 for step in steps)


def test_one_size_alone_is_drawn_in_the_middle() -> None:
    assert [share for share, _, _ in line_chart([(500, 0.7), (500, 0.7)], {}).points] == [0.5, 0.5]


def test_a_heat_map_has_a_path_for_each_shade_and_none_for_zero() -> None:
    matrix = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.9], [0.0, 0.9, 1.0]])
    found = heat_map(["a", "b", "c"], matrix, darkest=1.0, above="level")
    assert found.shades == (("level", 5, "M1 0h1v1h-1zM0 1h1v1h-1z"), ("level", 9, "M2 1h1v1h-1zM1 2h1v1h-1z"))


def test_values_below_zero_have_a_colour_of_their_own_or_none() -> None:
    matrix = np.array([[0.0, -0.3], [0.3, 0.0]])
    shades = heat_map(["a", "b"], matrix, darkest=0.3, above="made", below="lost").shades
    assert [(colour, shade) for colour, shade, _ in shades] == [("lost", 10), ("made", 10)]
    shades = heat_map(["a", "b"], np.array([[NAN, 0.0], [-0.5, NAN]]), darkest=2.0, above="lost").shades
    assert shades == ()
    shades = heat_map(["a", "b"], np.array([[NAN, 8.0], [NAN, NAN]]), darkest=2.0, above="lost").shades
    assert shades == (("lost", 10, "M1 0h1v1h-1z"),)


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
    assert squeezed("column_name_12", 10) == "column…_12"
    assert (listed(["a"]), listed(["a", "b", "c"])) == ("a", "a, b and c")
    assert (counted(1, "row"), counted(2000, "row")) == ("1 row", "2,000 rows")
    assert (out_of(3, 3, "row"), out_of(1, 3, "row")) == ("all 3 rows", "1 of 3 rows")
    assert (first_few("abc"), first_few("abcdefg")) == ("a, b, c", "a, b, c, d, e and 2 more")
    assert first_few("abcdef", "column") == "a, b, c, d, e and 1 more column"
