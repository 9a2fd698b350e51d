"""What a classifier looks at: as a whole, and for one row.

A map's weights are weights on inputs, so that nothing has to be probed or approximated: the filter of
a class *is* what it looks for, and the score of a row is a sum over its columns or places.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.classifier.inputs import CosineInputs, StrokeInputs, TableInputs, unit_inputs
from understudy.classifier.maps import class_scores
from understudy.classifier.model import Classifier


@dataclass(frozen=True)
class ColumnWeights:
    """What the values of a column do to the score of a class, for one map."""

    column: str
    values: tuple[tuple[str, float], ...]
    """Values and how far each moves the score over all rows; strongest first."""
    reach: float
    """How far the column moves the score over all rows."""


@dataclass(frozen=True)
class RowExplanation:
    """Why one row is predicted as it is."""

    probabilities: Floats  # (classes,)
    predicted: int
    importances: Floats  # (maps,) of the predicted class
    by_column: tuple[tuple[str, float], ...]
    """For tables: what each column adds, compared with a mean row, to the score of the predicted class
    against the mean of the others.
    """
    by_place: Floats | None
    """For images: what each place adds.  # (rows, columns)"""


def contrast(filters: Floats) -> Floats:
    """Filters against the mean of all classes: what tells a class, not what all have.  # (maps, classes, dim)"""
    return np.asarray(filters - filters.mean(axis=1, keepdims=True))


def column_weights(classifier: Classifier, map_: int, class_: int) -> tuple[ColumnWeights, ...]:
    """What a map of a class looks for in a table, the column of largest reach first."""
    inputs = classifier.plan.inputs
    if not isinstance(inputs, TableInputs):
        raise TypeError("columns are of tables")
    weights = _centred(classifier, inputs, contrast(classifier.filters)[map_, class_, :-1])
    weights *= _spread(classifier)[:-1]
    groups: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for (column, value), weight in zip(inputs.names, weights, strict=True):
        groups[column].append((value, float(weight)))
    found = []
    for column, listed in groups.items():
        ranked = tuple(sorted(listed, key=lambda each: -abs(each[1])))
        reach = float(np.linalg.norm([weight for _, weight in ranked]))
        found.append(ColumnWeights(column, ranked, reach))
    return tuple(sorted(found, key=lambda each: -each.reach))


def patterns(classifier: Classifier) -> Floats:
    """What inputs have in common where a map answers strongly.  # (maps, classes, dim)

    Weights say what a map multiplies inputs by, and cancel what disturbs; the pattern that goes with
    an answer is the second moments times the weights (Haufe et al. 2014). It shows what a class looks like.
    """
    found = classifier.maps.filters
    if classifier.whitening is None:
        return found
    return np.asarray(found @ np.linalg.pinv(classifier.whitening.matrix))


def drawn_images(classifier: Classifier, weights: Floats) -> Floats:
    """Weights on cosines as images.  # (..., dim) -> (..., height, width, channels)"""
    inputs = classifier.plan.inputs
    if not isinstance(inputs, CosineInputs):
        raise TypeError("images are of cosines")
    flat = weights[..., :-1].reshape(-1, weights.shape[-1] - 1)
    shape = inputs.cosines.shape
    sides = (shape.height, shape.width, shape.channels)
    return inputs.cosines.images(flat).reshape(*weights.shape[:-1], *sides)


def drawn_strokes(classifier: Classifier, weights: Floats) -> Floats:
    """Weights on strokes as brightness and strokes by place.  # (..., dim) -> (..., channels, rows, columns)"""
    inputs = classifier.plan.inputs
    if not isinstance(inputs, StrokeInputs):
        raise TypeError("strokes are of images")
    return inputs.strokes.place_weights(weights[..., :-1])


def explain_row(classifier: Classifier, codes: Integers) -> RowExplanation:
    """Why a row is predicted as it is.  # codes: (num_feature_columns,)"""
    seen = classifier.inputs(codes[None])
    answers = classifier.maps.answers(seen)
    _, importances = class_scores(answers, classifier.maps.shape.inverse_temperature)
    probabilities = classifier.maps.probabilities(seen)[0]
    predicted = int(probabilities.argmax())
    unit = unit_inputs(classifier.plan.inputs, codes[None])[0]
    weighted = (importances[0][:, :, None] * classifier.filters).sum(axis=0)  # (classes, dim)
    against = weighted[predicted] - np.delete(weighted, predicted, axis=0).mean(axis=0)
    against *= _lengthening(classifier, unit)
    apart = unit - (classifier.whitening.mean if classifier.whitening is not None else 0.0)
    return RowExplanation(
        probabilities,
        predicted,
        importances[0, :, predicted],
        _by_column(classifier, against * apart),
        _by_place(classifier, against, apart),
    )


def _centred(classifier: Classifier, inputs: TableInputs, weights: Floats) -> Floats:
    """Weights around the middle of their block: what is added to all values of a column tells nothing."""
    shares = np.ones(len(weights))
    if classifier.whitening is not None:
        shares = np.maximum(classifier.whitening.mean[:-1], 1e-6)
    found = weights.copy()
    for start, stop in inputs.blocks:
        part = slice(start, stop)
        found[part] -= np.average(weights[part], weights=shares[part])
    return found


def _spread(classifier: Classifier) -> Floats:
    """Deviation of every input over the rows, as far as it is known."""
    if classifier.whitening is None:
        return np.ones(classifier.plan.inputs.dim)
    return classifier.whitening.spread


def _lengthening(classifier: Classifier, unit: Floats) -> float:
    """How much a row is lengthened as a whole when it is whitened."""
    if classifier.whitening is None:
        return 1.0
    return 1 / max(1e-12, float(np.linalg.norm(unit @ classifier.whitening.matrix)))


def _by_column(classifier: Classifier, parts: Floats) -> tuple[tuple[str, float], ...]:
    inputs = classifier.plan.inputs
    if not isinstance(inputs, TableInputs):
        return ()
    sums: defaultdict[str, float] = defaultdict(float)
    for (column, _), part in zip(inputs.names, parts[:-1], strict=True):
        sums[column] += float(part)
    return tuple(sorted(sums.items(), key=lambda each: -abs(each[1])))


def _by_place(classifier: Classifier, against: Floats, apart: Floats) -> Floats | None:
    inputs = classifier.plan.inputs
    if isinstance(inputs, StrokeInputs):
        weights, found = (inputs.strokes.place_weights(each[:-1]) for each in (against, apart))
        return np.asarray((weights * found).sum(axis=0))
    if isinstance(inputs, CosineInputs):
        shape = inputs.cosines.shape
        weights, found = (inputs.cosines.images(each[None, :-1])[0] for each in (against, apart))
        return np.asarray((weights * found).reshape(shape.height, shape.width, -1).sum(axis=2))
    return None
