"""The page that shows what a classifier looks at: every class, and single rows if they are given."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.classifier.inputs import DIRECTIONS, CosineInputs, StrokeInputs, TableInputs
from understudy.classifier.model import Classifier, column_weights, contrast, drawn, explain_row, patterns
from understudy.files import CERTIFICATE
from understudy.reports.charts import render
from understudy.reports.pictures import plain_picture, signed_picture

MOST_COLUMNS = 8  # columns listed for a class or a row
MOST_CLASSES = 24  # classes that the page explains
MOST_MAPS = 8  # locally linear maps drawn for a class
STROKES_DRAWN = 140  # strongest strokes of a picture
CELL = 20.0  # side of a cell of strokes in the drawing


def render_explanation(classifier: Classifier, rows: Integers | None = None) -> str:
    """A page about a classifier, and about rows if there are any.  # rows: (num_rows, num_feature_columns)"""
    kind = {TableInputs: "table", CosineInputs: "cosines", StrokeInputs: "strokes"}[type(classifier.plan.inputs)]
    values = {
        "certificate": json.loads(classifier.files()[CERTIFICATE]),
        "label": classifier.plan.label.name,
        "kind": kind,
        "maps": classifier.maps.shape.num_maps,
        "classes": list(zip(classifier.classes[:MOST_CLASSES], _drawn_maps(classifier, kind), strict=True)),
        "left_out": max(0, len(classifier.classes) - MOST_CLASSES),
        "rows": [] if rows is None else [_row(classifier, codes) for codes in rows],
        "version": version("understudy"),
    }
    return render("explanation.html.jinja", values)


def _drawn_maps(classifier: Classifier, kind: str) -> list[list[Any]]:
    """The first maps of each of the first classes."""
    maps = range(min(classifier.maps.shape.num_maps, MOST_MAPS))
    classes = range(min(len(classifier.classes), MOST_CLASSES))
    if kind == "table":
        return [[_strongest_columns(classifier, m, k) for m in maps] for k in classes]
    weights = drawn(classifier, contrast(patterns(classifier)))  # (maps, classes, channels, rows, columns)
    draw: Callable[[Floats, float], Any] = strokes_of
    share = 0.999
    if kind == "cosines":
        weights, draw, share = weights.mean(axis=2), signed_picture, 0.995
    largest = float(np.quantile(np.abs(weights), share))
    return [[draw(weights[m, k], largest) for m in maps] for k in classes]


def _strongest_columns(classifier: Classifier, map_: int, class_: int) -> dict[str, Any]:
    columns = list(column_weights(classifier, map_, class_).items())[:MOST_COLUMNS]
    largest = max((abs(weight) for _, values in columns for _, weight in values), default=1.0) or 1.0
    return {"columns": columns, "largest": largest}


def strokes_of(weights: Floats, largest: float) -> dict[str, Any]:
    """The strongest weights of strokes as lines where they are looked for.  # (channels, rows, columns)

    A line is where it begins, where it ends, and how much it speaks for a class, in units of ``largest``.
    """
    _, rows, columns = weights.shape
    directed = weights[np.arange(len(weights)) % (1 + 2 * DIRECTIONS) != 0]
    order = np.argsort(-np.abs(directed), axis=None)[:STROKES_DRAWN][::-1]  # the strongest lie on top
    channel, row, column = np.unravel_index(order, directed.shape)
    # An edge runs across the direction in which brightness changes; every other set of directions is coarse.
    angle = np.pi * (channel % DIRECTIONS) / DIRECTIONS + np.pi / 2
    half = CELL * np.where(channel // DIRECTIONS % 2, 0.72, 0.42)
    x, y, across, down = (column + 0.5) * CELL, (row + 0.5) * CELL, half * np.cos(angle), half * np.sin(angle)
    strength = directed.ravel()[order] / (largest or 1.0)
    lines = np.stack([x - across, y - down, x + across, y + down, strength], axis=1)
    return {"lines": lines.tolist(), "width": columns * CELL, "height": rows * CELL}


def _row(classifier: Classifier, codes: Integers) -> dict[str, Any]:
    found, shape = explain_row(classifier, codes), classifier.plan.schema.image
    places = found.by_place
    return {
        "predicted": classifier.classes[found.predicted],
        "chances": [(classifier.classes[k], found.probabilities[k]) for k in np.argsort(-found.probabilities)[:3]],
        "importances": [(m + 1, found.importances[m]) for m in np.argsort(-found.importances)[:3]],
        "columns": found.by_column[:MOST_COLUMNS],
        "largest": max((abs(part) for _, part in found.by_column), default=1.0) or 1.0,
        "image": shape and plain_picture(codes.reshape(shape.height, shape.width, shape.channels)),
        "places": None if places is None else signed_picture(places, float(np.abs(places).max())),
    }
