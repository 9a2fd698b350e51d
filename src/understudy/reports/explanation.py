"""The page that shows what a classifier looks at: every class, and single rows if they are given."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from typing import Any

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.classifier.inputs import DIRECTIONS, CosineInputs, StrokeInputs, TableInputs
from understudy.classifier.model import Classifier, column_weights, contrast, drawn, explain_row, patterns
from understudy.files import CERTIFICATE
from understudy.reports.charts import render
from understudy.reports.pictures import plain_picture, signed_picture

MOST_COLUMNS = 8
MOST_VALUES = 4
MOST_CLASSES = 24
MOST_MAPS = 8
STROKES_DRAWN = 140
CELL = 20.0


def render_explanation(classifier: Classifier, rows: Integers | None = None) -> str:
    """A page about a classifier, and about rows if there are any.  # rows: (num_rows, num_feature_columns)"""
    inputs = classifier.plan.inputs
    kind = {TableInputs: "table", CosineInputs: "cosines", StrokeInputs: "strokes"}[type(inputs)]
    files = classifier.files()
    values = {
        "certificate": json.loads(files[CERTIFICATE]),
        "label": classifier.plan.label.name,
        "kind": kind,
        "maps": classifier.maps.shape.num_maps,
        "classes": _classes(classifier, kind),
        "left_out": max(0, len(classifier.classes) - MOST_CLASSES),
        "rows": [] if rows is None else [_row(classifier, codes) for codes in rows],
        "version": version("understudy"),
    }
    return render("explanation.html.jinja", values)


def _classes(classifier: Classifier, kind: str) -> list[dict[str, Any]]:
    shown = range(min(len(classifier.classes), MOST_CLASSES))
    maps = range(min(classifier.maps.shape.num_maps, MOST_MAPS))
    draw = {"table": _tables, "cosines": _images, "strokes": _strokes}[kind](classifier)
    return [{"name": str(classifier.classes[k]), "maps": [draw(m, k) for m in maps]} for k in shown]


def _tables(classifier: Classifier) -> Any:
    def draw(map_: int, class_: int) -> list[dict[str, Any]]:
        columns = list(column_weights(classifier, map_, class_).items())[:MOST_COLUMNS]
        largest = max((abs(weight) for _, values in columns for _, weight in values), default=1.0) or 1.0
        return [
            {
                "column": column,
                "values": [{"value": value, "share": weight / largest} for value, weight in values[:MOST_VALUES]],
            }
            for column, values in columns
        ]

    return draw


def _images(classifier: Classifier) -> Any:
    shown = contrast(patterns(classifier))
    images = drawn(classifier, shown).mean(axis=2)  # (maps, classes, height, width)
    largest = float(np.quantile(np.abs(images), 0.995))

    def draw(map_: int, class_: int) -> str:
        return signed_picture(images[map_, class_], largest)

    return draw


def _strokes(classifier: Classifier) -> Any:
    weights = drawn(classifier, contrast(patterns(classifier)))
    largest = float(np.quantile(np.abs(weights), 0.999))

    def draw(map_: int, class_: int) -> dict[str, Any]:
        return strokes_of(weights[map_, class_], largest)

    return draw


def strokes_of(weights: Floats, largest: float) -> dict[str, Any]:
    """The strongest weights of strokes as lines where they are looked for.  # (channels, rows, columns)"""
    _, rows, columns = weights.shape
    directed = weights[np.arange(len(weights)) % (1 + 2 * DIRECTIONS) != 0]
    order = np.argsort(-np.abs(directed), axis=None)[:STROKES_DRAWN]
    lines = []
    for channel, row, column in zip(*np.unravel_index(order, directed.shape), strict=True):
        weight = float(directed[channel, row, column])
        # An edge runs across the direction in which brightness changes.
        angle = math.pi * (channel % DIRECTIONS) / DIRECTIONS + math.pi / 2
        is_coarse = (channel // DIRECTIONS) % 2
        half = CELL * (0.72 if is_coarse else 0.42)
        x, y = (column + 0.5) * CELL, (row + 0.5) * CELL
        lines.append(
            {
                "x1": x - half * math.cos(angle),
                "y1": y - half * math.sin(angle),
                "x2": x + half * math.cos(angle),
                "y2": y + half * math.sin(angle),
                "for": weight > 0,
                "strength": min(1.0, abs(weight) / largest),
            }
        )
    lines.sort(key=lambda line: line["strength"])
    return {"lines": lines, "width": columns * CELL, "height": rows * CELL}


def _row(classifier: Classifier, codes: Integers) -> dict[str, Any]:
    found = explain_row(classifier, codes)
    order = np.argsort(-found.probabilities)[:3]
    best = np.argsort(-found.importances)[:3]
    largest = max((abs(part) for _, part in found.by_column), default=1.0) or 1.0
    return {
        "predicted": str(classifier.classes[found.predicted]),
        "chances": [(str(classifier.classes[k]), float(found.probabilities[k])) for k in order],
        "importances": [(int(m) + 1, float(found.importances[m])) for m in best],
        "columns": [
            {"column": column, "part": part, "share": part / largest} for column, part in found.by_column[:MOST_COLUMNS]
        ],
        "image": _image(classifier, codes),
        "places": None
        if found.by_place is None
        else signed_picture(found.by_place, float(np.abs(found.by_place).max())),
    }


def _image(classifier: Classifier, codes: Integers) -> str | None:
    shape = classifier.plan.schema.image
    if shape is None:
        return None
    return plain_picture(codes.reshape(shape.height, shape.width, shape.channels).astype(np.float64))
