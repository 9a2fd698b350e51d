"""What a comparison says, and how it is drawn."""

from __future__ import annotations

import builtins
import io
from typing import Any

import numpy as np
import pytest

from understudy.errors import MissingExtraError
from understudy.two_sample.results import Comparison, Difference, Question, chance, describe, draw_comparison


def found(**options: Any) -> Comparison:
    settings: dict[str, Any] = {
        "question": Question.SAME_POPULATION,
        "level": 0.05,
        "p_value": 0.4,
        "distance": 0.05,
        "by_chance": 0.04,
        "threshold": 0.06,
        "effect": 0.03,
        "detectable": 0.045,
        "detectable_share": 0.021,
        "rows": (1000.0, 500.0),
        "columns": (Difference(("age",), 0.02, 0.03, 0.2, 0.4),),
        "together": (),
        "compared": ("columns", "cells"),
        "left_out": (),
        "draws": np.random.default_rng(0).gamma(9.0, 0.005, 500),
    }
    return Comparison(**(settings | options))


def clear(*columns: str, p: float = 1e-9) -> Difference:
    return Difference(columns, 0.1, 0.03, p, p)


def test_where_nothing_is_seen_it_says_what_could_have_been() -> None:
    words = " ".join(describe(found()))
    assert "No difference can be seen (p = 0.4)" in words
    assert "A true distance of 0.045 is noticed in four of five" in words
    assert "2.1 % of the rows were replaced by copies of one row" in words
    assert "smaller ones mostly go unnoticed" in words


def test_where_they_differ_it_names_the_columns() -> None:
    many = tuple(clear(f"c{i}") for i in range(7))
    words = " ".join(describe(found(p_value=1e-9, columns=many)))
    assert "They differ (p < 0.000001)" in words
    assert "c0 (p < 0.000001), c1" in words
    assert "and 2 more" in words
    assert "c5" not in words


def test_where_no_column_differs_it_names_sets_of_them() -> None:
    together = (clear("age", "dose", p=0.001),)
    words = " ".join(describe(found(p_value=0.001, together=together)))
    assert "how columns go together does: age with dose (p = 0.001)" in words
    nowhere = " ".join(describe(found(p_value=0.001)))
    assert "spread over many" in nowhere


def test_the_question_of_the_same_rows_is_worded_as_such() -> None:
    words = " ".join(describe(found(question=Question.SAME_ROWS, p_value=1e-3)))
    assert "both sides are the same rows" in words
    assert "Privacy noise alone" in words
    alike = " ".join(describe(found(question=Question.SAME_ROWS, detectable_share=None)))
    assert "may well be the same rows" in alike
    assert "copies" not in alike


def test_what_was_not_comparable_is_said() -> None:
    assert "not comparable: pairs" in describe(found(left_out=("pairs",)))[-1]


@pytest.mark.parametrize(("p", "words"), [(0.0312, "p = 0.031"), (1.0, "p = 1"), (1e-9, "p < 0.000001")])
def test_p_values_for_people(p: float, words: str) -> None:
    assert chance(p) == words


def test_json_holds_everything_but_the_draws() -> None:
    document = found().to_dict()
    assert document["differs"] is False
    assert document["question"] == "same population"
    assert "draws" not in document
    assert document["columns"][0]["columns"] == ("age",)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"p_value": 1e-9, "distance": 0.4, "columns": tuple(clear(f"c{i}") for i in range(30))},
        {"p_value": 1e-9, "together": (clear("a" * 30, "b" * 30),)},
        {"columns": (), "together": (clear(),)},
    ],
)
def test_a_picture_is_a_png(options: dict[str, Any]) -> None:
    from matplotlib.image import imread

    image = imread(io.BytesIO(draw_comparison(found(**options), title="a title")))
    assert image.shape[1] > 1000
    assert image.std() > 0.05  # something is drawn


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match="'demo'"):
        draw_comparison(found(), title="a title")
