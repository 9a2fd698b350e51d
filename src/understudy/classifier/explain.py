"""What a classifier looks at: as a whole, and for one row.

A map's weights are weights on inputs, so that nothing has to be probed or approximated: the filter of
a class *is* what it looks for, and the score of a row is a sum over its columns or places.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.classifier.inputs import TableInputs, Whitening, unit_inputs
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
    known = _known(classifier)
    weights = contrast(classifier.filters)[map_, class_, :-1]
    shares = np.maximum(known.mean[:-1], 1e-6)
    for start, stop in inputs.blocks:  # what is added to all values of a column tells nothing
        weights[start:stop] -= np.average(weights[start:stop], weights=shares[start:stop])
    weights *= known.spread[:-1]
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


def drawn(classifier: Classifier, weights: Floats) -> Floats:
    """Weights on what maps see of images, by place.  # (..., dim) -> (..., channels, rows, columns)

    Weights on cosines are images; weights on strokes have a channel for brightness and one for every direction.
    """
    inputs = classifier.plan.inputs
    if isinstance(inputs, TableInputs):
        raise TypeError("places are of images")
    return inputs.by_place(weights[..., :-1])


def explain_row(classifier: Classifier, codes: Integers) -> RowExplanation:
    """Why a row is predicted as it is.  # codes: (num_feature_columns,)"""
    inputs, known = classifier.plan.inputs, _known(classifier)
    seen = classifier.inputs(codes[None])
    answers = classifier.maps.answers(seen)
    _, importances = class_scores(answers, classifier.maps.shape.inverse_temperature)
    probabilities = classifier.maps.probabilities(seen)[0]
    predicted = int(probabilities.argmax())
    unit = unit_inputs(inputs, codes[None])[0]
    weighted = (importances[0][:, :, None] * classifier.filters).sum(axis=0)  # (classes, dim)
    against = weighted[predicted] - np.delete(weighted, predicted, axis=0).mean(axis=0)
    # Whitening lengthens a row as a whole.
    against /= max(1e-12, float(np.linalg.norm(unit @ known.matrix)))
    apart = unit - known.mean
    by_column: defaultdict[str, float] = defaultdict(float)
    by_place = None
    if isinstance(inputs, TableInputs):
        for (column, _), part in zip(inputs.names, (against * apart)[:-1], strict=True):
            by_column[column] += float(part)
    else:
        by_place = (drawn(classifier, against) * drawn(classifier, apart)).sum(axis=0)
    ranked = tuple(sorted(by_column.items(), key=lambda each: -abs(each[1])))
    return RowExplanation(probabilities, predicted, importances[0, :, predicted], ranked, by_place)


def _known(classifier: Classifier) -> Whitening:
    """What second moments of the inputs tell, or what stands for it where none were released."""
    dim = classifier.plan.inputs.dim
    return classifier.whitening or Whitening(np.eye(dim), np.zeros(dim), np.ones(dim), 1.0)
