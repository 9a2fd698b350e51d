"""The internal report: one page that shows real beside synthetic rows, for those who hold both.

It is computed from real rows and lies outside the certificate, which it says on every page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.evaluation.metrics import Associations, ColumnView, Evaluation, Prediction
from understudy.reports.charts import MOST_COLUMNS, Series, heat_map, line_chart, render, short
from understudy.reports.verdict import judge, kept, level_of

BANNER = "Internal: computed from real rows, outside the certificate. Do not publish."
COLUMNS_DRAWN = 24
LARGEST_DIFFERENCE = 0.3
"""A difference of associations from which on the shade is the darkest."""


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
            "verdict": judge(evaluation, epsilon=stated_epsilon(certificate)),
            "kept": kept,
            "level_of": level_of,
            "cards": [(view, _series(view), _worst_bins(view)) for view in evaluation.columns[:COLUMNS_DRAWN]],
            "rest": evaluation.columns[COLUMNS_DRAWN:],
            "maps": _maps(evaluation.associations),
            "prediction": evaluation.prediction and _prediction(evaluation.prediction),
        },
    )


def stated_epsilon(certificate: dict[str, Any] | None) -> float | None:
    """The epsilon of a release; none where there is no release, or a release without privacy."""
    if certificate is None or certificate["status"] != "PRIVATE":
        return None
    return float(certificate["guarantee"]["epsilon"])


def _series(view: ColumnView) -> Series:
    ticks = edge_words(view.bins) if view.kind == "number" else ()
    return Series(view.bins, ticks, view.real, view.synthetic)


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


def _worst_bins(view: ColumnView) -> list[tuple[str, float, float]]:
    """The bins that differ most, with their shares: the picture in words, for whoever does not see it."""
    bins = zip(view.bins, view.real, view.synthetic, strict=True)
    return sorted(bins, key=lambda row: -abs(row[1] - row[2]))[:3]


def _maps(found: Associations) -> dict[str, Any]:
    """Heat maps of the columns whose ties differ most, in their own order."""
    real, synthetic = np.array(found.real), np.array(found.synthetic)
    difference = synthetic - real
    sums = np.nansum(np.abs(difference), axis=1)
    shown = np.sort(np.argsort(-sums, kind="stable")[:MOST_COLUMNS])
    names, part = [found.columns[i] for i in shown], np.ix_(shown, shown)
    return {
        "real": heat_map(names, real[part], darkest=1.0, above="level"),
        "synthetic": heat_map(names, synthetic[part], darkest=1.0, above="level"),
        "difference": heat_map(names, difference[part], darkest=LARGEST_DIFFERENCE, above="made", below="lost"),
        "limit": LARGEST_DIFFERENCE,
        "left_out": len(found.columns) - len(shown),
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    """A row for every model and one for their mean: each score of synthetic rows, of real ones and of a guess."""
    means = prediction.scores
    rows = [
        (model.model, [(model.synthetic[key], model.real[key], model.baseline[key]) for key in model.synthetic])
        for model in prediction.models
    ]
    rows.append(("Mean", [(mean.value, mean.floor, mean.baseline) for mean in means]))
    levels = {"real": means[0].floor, "baseline": means[0].baseline}
    is_curve = len(prediction.by_set_size) > 1
    return {
        "of": prediction,
        "rows": rows,
        "low": min(min(cells[0]) for _, cells in rows),
        "high": max(max(cells[0]) for _, cells in rows),
        "curve": line_chart(prediction.by_set_size, levels) if is_curve else None,
    }
