"""The internal report: one page that shows real beside synthetic rows, for those who hold both.

It is computed from real rows and lies outside the certificate, which it says on every page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from understudy.evaluation.metrics import Associations, ColumnView, Evaluation, ModelScores, Prediction, Score
from understudy.reports.charts import (
    LARGEST_DIFFERENCE,
    Series,
    association_map,
    categories,
    chosen,
    decimal,
    difference_map,
    histogram,
    line_chart,
    most_different,
    percent,
    render,
    short,
)
from understudy.reports.verdict import Tie, bare_title, judge, kept, level_of, mean_score

BANNER = "Internal: computed from real rows, outside the certificate. Do not publish."
COLUMNS_DRAWN = 24
TIES_LISTED = 8


def render_report(
    evaluation: Evaluation,
    *,
    name: str,
    version: str,
    reference: str = "as given",
    certificate: dict[str, Any] | None = None,
    pictures: tuple[str, str] | None = None,
) -> str:
    """The internal report as HTML.

    Args:
        evaluation: what was found.
        name: what the table is called.
        version: of the program.
        reference: where the real rows came from, in words.
        certificate: of the release that the synthetic rows were made from.
        pictures: of real and of synthetic images, as data addresses.
    """
    verdict = judge(evaluation, epsilon=stated_epsilon(certificate))
    cards = [_card(view, is_drawn=i < COLUMNS_DRAWN) for i, view in enumerate(evaluation.columns)]
    prediction = evaluation.prediction
    return render(
        "report.html.jinja",
        {
            "banner": BANNER,
            "name": name,
            "version": version,
            "reference": reference,
            "certificate": certificate,
            "pictures": pictures,
            "evaluation": evaluation,
            "verdict": verdict,
            "scores": [_score(score) for score in evaluation.scores],
            "cards": cards[:COLUMNS_DRAWN],
            "rest": cards[COLUMNS_DRAWN:],
            "maps": _maps(evaluation.associations, verdict.ties),
            "ties": verdict.ties[:TIES_LISTED],
            "models": _models(prediction) if prediction and prediction.models else None,
            "sizes": _sizes(prediction) if prediction and len(prediction.by_set_size) > 1 else None,
        },
    )


def stated_epsilon(certificate: dict[str, Any] | None) -> float | None:
    """The epsilon of a release; none where there is no release, or a release without privacy."""
    if certificate is None or certificate["status"] != "PRIVATE":
        return None
    return float(certificate["guarantee"]["epsilon"])


def _score(score: Score) -> dict[str, Any]:
    share, level = kept(score), level_of(score)
    way = percent(min(max(share or 0.0, 0.0), 1.0), 0)
    return {
        "title": score.metric.title,
        "meaning": score.metric.meaning,
        "value": decimal(score.value),
        "floor": decimal(score.floor),
        "baseline": decimal(score.baseline),
        "share": share,
        "share_words": f"{score.metric.title}: {way} of the way from independent columns to real rows",
        "level": level.name.lower().replace("_", "-") if level is not None else "",
        "level_words": level.words if level is not None else "",
    }


def _card(view: ColumnView, *, is_drawn: bool) -> dict[str, Any]:
    words = f"{decimal(view.distance)} ({decimal(view.floor)})"
    if not is_drawn:
        return {"name": view.name, "words": words}
    if max(view.null_share_real, view.null_share_synthetic) > 0:
        words += f", null {percent(view.null_share_real)} / {percent(view.null_share_synthetic)}"
    series = Series(view.bins, edge_words(view.bins), view.real, view.synthetic)
    is_number = view.kind == "number"
    return {
        "name": view.name,
        "words": words,
        "label": _described(view),
        "histogram": histogram(series) if is_number else None,
        "categories": None if is_number else categories(series),
    }


def edge_words(bins: Sequence[str]) -> tuple[str, ...]:
    """What stands at the edges of bins called ``17 to 21``; bins of one value keep their names."""
    parts = [name.split(" to ") for name in bins]
    if not all(len(pair) == 2 for pair in parts):
        return tuple(map(_tick, bins))
    return (*(_tick(start) for start, _ in parts), _tick(parts[-1][1]))


def _tick(word: str) -> str:
    try:
        return short(float(word))
    except ValueError:
        return word.split(" ")[0]  # a date, without its time


def _described(view: ColumnView) -> str:
    """The picture in words, for whoever does not see it."""
    apart = sorted(zip(view.bins, view.real, view.synthetic, strict=True), key=lambda row: -abs(row[1] - row[2]))
    worst = [
        f"{bin_}: {percent(real)} of real, {percent(synthetic)} of synthetic rows"
        for bin_, real, synthetic in apart[:3]
    ]
    return f"{view.name}, distance {decimal(view.distance)}. Most different: {'; '.join(worst)}."


def _maps(found: Associations, ties: Sequence[Tie]) -> dict[str, Any]:
    shown = most_different(found.real, found.synthetic)
    names = [found.columns[i] for i in shown]
    real, synthetic = chosen(found.real, shown), chosen(found.synthetic, shown)
    worst = [f"{tie.pair[0]} with {tie.pair[1]} {decimal(tie.difference, 2)}" for tie in ties[:3]]
    return {
        "real": association_map(names, real),
        "synthetic": association_map(names, synthetic),
        "difference": difference_map(names, real, synthetic),
        "label": f"Heat map of the differences, synthetic less real. Largest: {'; '.join(worst)}.",
        "limit": decimal(LARGEST_DIFFERENCE, 1),
        "shown": len(shown),
        "left_out": len(found.columns) - len(shown),
    }


def _models(prediction: Prediction) -> dict[str, Any]:
    keys = list(prediction.models[0].synthetic)
    mean = ModelScores(
        "Mean",
        *(
            {key: _mean([getattr(model, side).get(key) for model in prediction.models]) for key in keys}
            for side in ("synthetic", "real", "baseline")
        ),
    )
    first = [
        side[keys[0]]
        for model in prediction.models
        for side in (model.synthetic, model.real, model.baseline)
        if keys[0] in side
    ]
    low, high = min(first), max(first)
    return {
        "label": prediction.label,
        "task": prediction.task,
        "protocol": prediction.protocol,
        "test_rows": prediction.test_rows,
        "is_held_out": prediction.is_held_out,
        "scores": [bare_title(key) for key in keys],
        "low": low,
        "high": high,
        "rows": [_model(model, keys, low, high, is_mean=model is mean) for model in (*prediction.models, mean)],
    }


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("nan")


def _model(model: ModelScores, keys: Sequence[str], low: float, high: float, *, is_mean: bool) -> dict[str, Any]:
    sides = {"baseline-dot": model.baseline, "given-dot": model.real, "synthetic-dot": model.synthetic}
    span = high - low or 1.0
    dots = [
        (kind, (side[keys[0]] - low) / span)
        for kind, side in sides.items()
        if side.get(keys[0]) == side.get(keys[0], float("nan"))  # neither missing nor NaN
    ]
    spoken = (
        f"{model.model}: {decimal(model.synthetic.get(keys[0]))} trained on synthetic rows, "
        f"{decimal(model.real.get(keys[0]))} on real ones, "
        f"{decimal(model.baseline.get(keys[0]))} by a constant guess"
    )
    cells = [[decimal(side.get(key)) for side in (model.synthetic, model.real, model.baseline)] for key in keys]
    return {"name": model.model, "dots": dots, "label": spoken, "cells": cells, "is_mean": is_mean}


def _sizes(prediction: Prediction) -> dict[str, Any]:
    score = mean_score(prediction)
    chart = line_chart(prediction.by_set_size, {"real": score.floor, "baseline": score.baseline})
    points = ", ".join(f"{value:.3f} with {rows:,} rows" for rows, value in prediction.by_set_size)
    return {
        "chart": chart,
        "has_baseline": score.baseline is not None,
        "label": f"{score.metric.title}: {points}; all real rows reach {decimal(score.floor)}.",
    }
