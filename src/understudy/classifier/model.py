"""A trained classifier, a directory of inert files: what it predicts, and what it looks at, as a whole and for one row.

A map's weights are weights on inputs, so that nothing has to be probed or approximated: the filter of
a class *is* what it looks for, and the score of a row is a sum over its columns or places.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import safetensors.numpy

from understudy.arrays import Floats, Integers
from understudy.classifier.inputs import TableInputs, Whitening, unit_inputs
from understudy.classifier.maps import LocallyLinearMaps
from understudy.classifier.plan import RADIUS, ClassifierPlan, classifier_plan_from_dict
from understudy.files import canonical_sha256, has_file
from understudy.released.certificate import trained_certificate
from understudy.released.product import Facts, load_product, product_files
from understudy.released.verify import Verification, verify_trained
from understudy.schema.encode import encode_batch

METHOD = "DP-LLM (locally linear maps)"
WORDS = {
    "post_processing": "Predictions and explanations are computed from the maps alone and cost nothing more, "
    "however often they are made.",
    "intended_use": "Predicting the label of further rows, and seeing what the prediction rests on.",
    "not_for": "Finding out about one of the rows it was trained on; decisions about people without "
    "a look at its errors.",
}
FURTHER = [
    (
        "row independence of floating-point numbers",
        "exp, square roots and Fourier transforms on this machine give a row the same inputs and the same gradient "
        "whatever other rows are computed with it; checked on made-up rows before anything was charged. Norms are "
        "checked, and sums formed, in exact integers, and the noise is discrete: no other property of floating-point "
        "numbers is relied on.",
    )
]


def classifier_certificate(plan: ClassifierPlan, facts: dict[str, Any], *, fingerprint: str) -> dict[str, Any]:
    """All statements about a classifier; they follow from its plan alone."""
    shape, dim, stages = plan.shape, plan.inputs.dim, []
    if plan.look_noise is not None:
        stages = [
            {
                "name": "second moments of inputs",
                "numbers_released": dim * (dim + 1) // 2,
                "sensitivity": 1.0,
                "noise_std": plan.look_noise / RADIUS**2,
            }
        ]
    return trained_certificate(
        plan,
        facts,
        fingerprint=fingerprint,
        method=METHOD,
        mechanism="Discrete Gaussian noise on exact integer sums of second moments and of clipped gradients",
        stages=stages,
        numbers=shape.num_maps * shape.num_classes * shape.map_dim,
        settings=plan.to_dict()["training"],
        further=FURTHER,
        words=WORDS,
    )


DOCUMENT = "classifier.json"
MODEL = "maps.safetensors"
BLOCK = 2048  # rows whose features are in memory at once


@dataclass(frozen=True)
class Classifier:
    """Noisy maps, safe to publish. ``facts`` are the public circumstances of the training."""

    plan: ClassifierPlan
    maps: LocallyLinearMaps
    whitening: Whitening | None
    facts: Facts

    @property
    def classes(self) -> tuple[Any, ...]:
        """The label's values, in the order of probabilities."""
        return self.plan.classes

    def inputs(self, codes: Integers) -> Floats:
        """What maps see of rows.  # (num_rows, num_feature_columns) -> (num_rows, dim)"""
        found = unit_inputs(self.plan.inputs, codes)
        return found if self.whitening is None else self.whitening(found)

    def probabilities(self, codes: Integers) -> Floats:
        """Chances of the classes.  # (num_rows, num_feature_columns) -> (num_rows, classes)"""
        parts = [
            self.maps.probabilities(self.inputs(codes[start : start + BLOCK])) for start in range(0, len(codes), BLOCK)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes)))

    def codes(self, rows: pa.Table | Iterable[pa.RecordBatch]) -> Integers:
        """Rows of the feature columns as codes."""
        schema = self.plan.features
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        found = [encode_batch(schema, batch) for batch in batches]
        return np.concatenate(found) if found else np.empty((0, len(schema.used)), np.int64)

    def predict(self, rows: pa.Table) -> list[Any]:
        """The likeliest class of each row."""
        best = self.probabilities(self.codes(rows)).argmax(axis=1)
        return [self.classes[place] for place in best]

    @cached_property
    def filters(self) -> Floats:
        """Weights of every map on unit inputs before whitening.  # (maps, classes, dim)"""
        found = self.maps.filters
        return found if self.whitening is None else np.asarray(found @ self.whitening.matrix.T)

    def to_dict(self) -> dict[str, Any]:
        """The classifier without its numbers; it holds their hash."""
        return {
            "format": 1,
            "plan": self.plan.to_dict(),
            "facts": dict(self.facts),
            "num_rows": None if self.whitening is None else self.whitening.num_rows,
            "descent": asdict(self.plan.descent.cost),
            "maps_sha256": hashlib.sha256(self.tensors()).hexdigest(),
        }

    def tensors(self) -> bytes:
        """The numbers as safetensors bytes."""
        named = {"weights": self.maps.weights}
        if self.whitening is not None:
            found = self.whitening
            named |= {"whitening": found.matrix, "mean": found.mean, "spread": found.spread}
        return bytes(safetensors.numpy.save(named))

    @property
    def is_private(self) -> bool:
        """Whether its noise was real."""
        return bool(dict(self.facts).get("is_private"))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything released; the ledger keeps it."""
        return canonical_sha256(self.to_dict())

    def files(self) -> dict[str, bytes]:
        """Every file of the directory."""
        certificate = classifier_certificate(self.plan, dict(self.facts), fingerprint=self.fingerprint)
        document, tensors = (DOCUMENT, self.to_dict()), (MODEL, self.tensors())
        return product_files(self.plan.schema, certificate, document=document, tensors=tensors)


def is_classifier(directory: str | Path) -> bool:
    """Whether a directory is a classifier's."""
    return has_file(directory, DOCUMENT)


def load_classifier(directory: str | Path) -> Classifier:
    """Read a classifier back; its numbers must be the ones it was trained to."""
    return load_product(
        directory, _built, what="classifier", verb="classify", document=DOCUMENT, tensors=MODEL, sha256="maps_sha256"
    )


def _built(document: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Classifier | None:
    """The classifier that a document and its numbers are of, if they fit each other."""
    plan = classifier_plan_from_dict(document["plan"])
    shape, dim, whitening = plan.shape, plan.inputs.dim, None
    sizes: dict[str, tuple[int, ...]] = {"weights": (shape.num_maps, shape.num_classes, shape.map_dim)}
    if plan.training.look:
        sizes |= {"whitening": (dim, dim), "mean": (dim,), "spread": (dim,)}
        matrix, mean, spread = (tensors[name] for name in ("whitening", "mean", "spread"))
        whitening = Whitening(matrix, mean, spread, float(document["num_rows"]))
    if {name: tensor.shape for name, tensor in tensors.items()} != sizes:
        return None
    maps = LocallyLinearMaps(shape, tensors["weights"])
    return Classifier(plan, maps, whitening, tuple(document["facts"].items()))


def verify_classifier(directory: str | Path) -> Verification:
    """Recompute what the certificate states and compare every byte.

    Raises:
        InputError: it names the first file that does not follow from the classifier.
    """
    made = load_classifier(directory)
    return verify_trained(made, made.plan.descent, directory, what="classifier")


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


def column_weights(classifier: Classifier, map_: int, class_: int) -> dict[str, list[tuple[str, float]]]:
    """How far each value of a table's columns moves the score of a class over all rows, for one map.

    The strongest values come first, and first the columns that move the score furthest.
    """
    inputs, (mean, spreads) = classifier.plan.inputs, _mean_and_spread(classifier)
    if not isinstance(inputs, TableInputs):
        raise TypeError("columns are of tables")
    weights = contrast(classifier.filters)[map_, class_, :-1]
    ends = np.cumsum([len(values) for _, values in inputs.runs])[:-1]
    parts = (np.split(each, ends) for each in (weights, np.maximum(mean[:-1], 1e-6), spreads[:-1]))
    found: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for (column, values), own, shares, spread in zip(inputs.runs, *parts, strict=True):
        # What is added to all values of a column tells nothing.
        moves = (own - np.average(own, weights=shares)) * spread
        found[column] += zip(values, moves.tolist(), strict=True)

    def reach(column: str) -> float:
        return float(np.linalg.norm([weight for _, weight in found[column]]))

    ranked = sorted(found, key=reach, reverse=True)
    return {column: sorted(found[column], key=lambda each: -abs(each[1])) for column in ranked}


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
    inputs, (mean, _) = classifier.plan.inputs, _mean_and_spread(classifier)
    seen = classifier.inputs(codes[None])
    importances, probabilities = classifier.maps.importances(seen)[0], classifier.maps.probabilities(seen)[0]
    predicted = int(probabilities.argmax())
    unit = unit_inputs(inputs, codes[None])[0]
    weighted = (importances[:, :, None] * classifier.filters).sum(axis=0)  # (classes, dim)
    against = weighted[predicted] - np.delete(weighted, predicted, axis=0).mean(axis=0)
    if classifier.whitening is not None:  # it lengthens a row as a whole
        against /= max(1e-12, float(np.linalg.norm(unit @ classifier.whitening.matrix)))
    apart = unit - mean
    by_column: defaultdict[str, float] = defaultdict(float)
    by_place = None
    if isinstance(inputs, TableInputs):
        for (column, _), part in zip(inputs.names, (against * apart)[:-1], strict=True):
            by_column[column] += float(part)
    else:
        by_place = (drawn(classifier, against) * drawn(classifier, apart)).sum(axis=0)
    ranked = tuple(sorted(by_column.items(), key=lambda each: -abs(each[1])))
    return RowExplanation(probabilities, predicted, importances[:, predicted], ranked, by_place)


def _mean_and_spread(classifier: Classifier) -> tuple[Floats, Floats]:
    """Mean and deviation of every input over the rows, as far as they are known.  # (dim,), (dim,)"""
    if classifier.whitening is None:
        return np.zeros(classifier.plan.inputs.dim), np.ones(classifier.plan.inputs.dim)
    return classifier.whitening.mean, classifier.whitening.spread
