"""Train a locally linear classifier by DP-SGD, on inputs whitened by their noisy second moments if the plan says so.

The gradient of a row is an outer product: derivatives by the maps' answers, times what the maps
see. Both are rounded to integers inside a radius, and a sum over rows is one matrix product, exact in
float64 because every number in it stays below 2^53. No gradient of a single row is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Floats, Integers, StepProgress
from understudy.classifier.inputs import Inputs, Whitening, lengthened, unit_inputs, whitening_from
from understudy.classifier.maps import LocallyLinearMaps, MapShape, answer_gradients
from understudy.classifier.model import Classifier, load_classifier
from understudy.classifier.plan import RADIUS, ClassifierPlan
from understudy.errors import InputError
from understudy.private.dpsgd.steps import Arrays, Descent, clipped, read_rows
from understudy.private.lattice import to_lattice
from understudy.private.noise import LongNoise, NoiseSource
from understudy.private.release import release_facts
from understudy.private.sealed import sealed
from understudy.private.spending import Account, Receipt, spend, training_bill
from understudy.private.sums import PROBE_ROWS, made_up_codes
from understudy.schema.columns import NULL
from understudy.schema.encode import encode_batch

WEIGHT_UNIT = 2.0**20
"""Weights are rounded to multiples of one over this, so that products with integer inputs are exact."""

LARGEST_WEIGHTS = 2.0**38
"""Norm that a map's integer weights stay below: times ``RADIUS`` it is below 2^53, where float64 is exact."""

PROJECTION_UNIT = 2.0**20
"""Public projections are rounded to multiples of one over this, for the same reason."""

ENCODED_ROWS = 1024
"""Rows whose inputs are computed at a time, as floats, before they are rounded to 16 bits."""

BLOCK_NUMBERS = 2**20
"""Numbers of a block of rows, so that it stays in cache."""

MOST_UNPACKED = 2**26
"""Numbers of all rows that are kept unpacked, which takes half a gigabyte."""


def train_classifier(
    data: object,
    plan: ClassifierPlan,
    *,
    directory: str | Path | None = None,
    ledger: str | Path | None = None,
    key: str | None = None,
    query: str | None = None,
    noise: NoiseSource | None = None,
    progress: StepProgress | None = None,
) -> Classifier:
    """Read private rows, and publish maps that predict their label.

    Args:
        data: a file, a data frame, an image set, or a database (with ``query``).
        plan: what to train.
        directory: where to write the classifier; it must not exist.
        ledger: an SQLite ledger; it is charged before noise is drawn.
        key: names this classifier in the ledger. The same key, plan and query give the stored one back.
        query: SQL that selects the rows; a file or frame is called ``data`` in it.
        noise: for tests only.
        progress: called with the steps done and the steps in all.

    Guarantee:
        What is returned and written is (epsilon, delta)-differentially private as the plan states. If
        the data is refused, nothing is spent; nothing is written before all noise has been added (proofs/descent.md).
    """
    source = noise or LongNoise()
    facts = release_facts(source, query)

    def check() -> None:
        _check_inputs(plan)
        check_row_independence(plan.shape, plan.shape.first_weights(), plan.training.clip)

    def draw(rows: IntegerRows, receipt: Receipt) -> tuple[LocallyLinearMaps, Whitening | None]:
        return noisy_maps(rows, plan, noise=source, receipt=receipt, progress=progress)

    def make(found: tuple[LocallyLinearMaps, Whitening | None], receipt: Receipt) -> Classifier:
        return Classifier(plan, *found, (*facts, ("ledger", receipt.charged)))

    return spend(
        training_bill(plan, "classifier"),
        Account(ledger, key, directory, query),
        check=check,
        read=lambda: integer_rows(data, plan, query=query),
        draw=draw,
        make=make,
        load=load_classifier,
    )


def noisy_maps(
    rows: IntegerRows,
    plan: ClassifierPlan,
    *,
    noise: NoiseSource,
    receipt: Receipt,
    progress: StepProgress | None = None,
) -> tuple[LocallyLinearMaps, Whitening | None]:
    """Noisy second moments for whitening, if the plan asks for them, then DP-SGD."""
    receipt.check_plan(plan.fingerprint)
    whitening, steps = None, plan.descent
    if plan.look_noise is not None:
        whitening = _noisy_whitening(rows, plan.look_noise, noise, receipt)
        rows = sealed(lambda: _whitened(rows, whitening))
        steps = replace(steps, expected_rows=plan.num_rows or round(whitening.num_rows))
    descent = Descent(steps, receipt, noise, averaged=plan.training.averaged, progress=progress)
    return train_maps(rows, plan.shape, descent), whitening


def integer_rows(data: object, plan: ClassifierPlan, *, query: str | None) -> IntegerRows:
    """All rows as integer inputs and labels; a row without a label is no row that adds. PRIVATE."""
    schema = plan.schema
    names = schema.file_names
    place = schema.used.index(plan.label)

    def encode(batch: pa.RecordBatch) -> Arrays:
        codes = encode_batch(schema, batch)
        label, features = codes[:, place], np.delete(codes, place, axis=1)
        whole = _encoded(plan.inputs, features)
        whole[label == NULL] = 0
        return whole, np.where(label == NULL, 0, label)

    empty = np.empty((0, plan.inputs.dim), np.int16), np.empty(0, np.int64)
    return IntegerRows(*read_rows(data, names, encode, query=query, empty=empty))


def _encoded(inputs: Inputs, codes: Integers) -> npt.NDArray[np.int16]:
    blocks = [codes[start : start + ENCODED_ROWS] for start in range(0, len(codes), ENCODED_ROWS)]
    encoded = [integer_inputs(unit_inputs(inputs, block)) for block in blocks]
    return np.concatenate([np.empty((0, inputs.dim), np.int16), *encoded])


def _noisy_whitening(rows: IntegerRows, noise_std: int, noise: NoiseSource, receipt: Receipt) -> Whitening:
    """Whitening by second moments with discrete Gaussian noise: a Gaussian mechanism, then post-processing."""
    dim = rows.inputs.shape[1]
    upper = np.triu_indices(dim)
    exact = sealed(lambda: second_moments(rows.inputs)[upper])
    moments = np.zeros((dim, dim))
    moments[upper] = noise.add_noise(exact, noise_std, receipt) / RADIUS**2
    moments += np.triu(moments, 1).T
    return whitening_from(moments, noise_std / RADIUS**2)


def second_moments(inputs: npt.NDArray[np.int16 | np.float64]) -> Integers:
    """The exact sum of all rows' outer products. PRIVATE.  # (dim, dim)

    Guarantee:
        The upper triangle of a row's outer product has norm at most RADIUS^2 (proofs/descent.md).
    """
    dim = inputs.shape[1]
    total = np.zeros((dim, dim), dtype=np.int64)
    step = max(1, BLOCK_NUMBERS // dim)
    for start in range(0, len(inputs), step):
        part = inputs[start : start + step].astype(np.float64)
        total += (part.T @ part).astype(np.int64)
    return total


def _whitened(rows: IntegerRows, whitening: Whitening) -> IntegerRows:
    """Whitened inputs as integers: exact products, then each row by itself. PRIVATE."""
    found = np.empty_like(rows.inputs)
    step = max(1, BLOCK_NUMBERS // len(whitening.matrix))
    for start in range(0, len(found), step):
        part = rows.inputs[start : start + step].astype(np.float64)
        found[start : start + step] = integer_inputs(lengthened(part @ whitening.matrix))
    return IntegerRows(found, rows.labels)


def _check_inputs(plan: ClassifierPlan) -> None:
    """Check on made-up rows that this machine computes a row's inputs the same way in any batch."""
    inputs, codes = plan.inputs, made_up_codes(plan.features, lowest=0)
    whole = _encoded(inputs, codes)
    if any(not np.array_equal(whole[i], _encoded(inputs, codes[i : i + 1])[0]) for i in range(len(codes))):
        raise InputError(
            "this machine", "computes a row's inputs differently in different batches", "Use another build of NumPy"
        )


@dataclass(frozen=True)
class IntegerRows:
    """Private rows as a descent sees them: integer inputs inside ``RADIUS``, and labels."""

    inputs: npt.NDArray[np.int16 | np.float64]  # (num_rows, num_features), whole numbers
    labels: Integers  # (num_rows,)

    def unpacked(self) -> IntegerRows:
        """The same as float64, if they fit memory: steps then need not convert them."""
        if self.inputs.size > MOST_UNPACKED:
            return self
        return IntegerRows(self.inputs.astype(np.float64), self.labels)


def integer_inputs(inputs: Floats) -> npt.NDArray[np.int16]:
    """Inputs of norm at most one as integers; longer ones are shortened, broken ones become zero."""
    return to_lattice(inputs, RADIUS).astype(np.int16)


def train_maps(rows: IntegerRows, shape: MapShape, descent: Descent) -> LocallyLinearMaps:
    """Train maps, of a shape with public projections, on private rows by DP-SGD.

    The plan's clipping norm is for per-example derivatives by the maps' answers, for inputs of norm one.

    Guarantee:
        The maps are private as the plan's cost states, between tables with one row more or less. Every row adds
        an integer matrix of norm at most RADIUS^2 to a step's sum, a function of that row and of
        earlier noisy sums alone, and the sum is exact (proofs/descent.md).
    """
    rows, first, clip = rows.unpacked(), shape.first_weights(), descent.plan.clip
    check_row_independence(shape, first, clip)

    def summed(weights: Floats, drawn: Integers) -> Integers:
        return gradient_sum(rows, shape, weights.reshape(first.shape), drawn, clip=clip)

    found = descent.run(first.ravel(), summed, num_rows=len(rows.labels), radius=RADIUS**2)
    return LocallyLinearMaps(shape, found.reshape(first.shape))


def exact_answers(seen: Floats, whole: Floats) -> Floats:
    """Whole inputs times whole weights, in units of one.  # (groups, rows, dim), (groups, maps, dim)

    Guarantee:
        Every partial sum is a whole number below 2^53, so answers are exact, and the same in any block
        (proofs/descent.md).
    """
    return np.asarray(np.matmul(seen, np.swapaxes(whole, 1, 2)) / (RADIUS * WEIGHT_UNIT))


def gradient_sum(rows: IntegerRows, shape: MapShape, weights: Floats, places: Integers, *, clip: float) -> Integers:
    """The exact sum of the drawn rows' integer gradients. PRIVATE.  # (maps, classes, map_dim)"""
    projections = None if shape.projections is None else np.rint(shape.projections * PROJECTION_UNIT)
    groups = shape.num_maps if projections is not None else 1  # maps that see the same are one
    whole = _whole_weights(weights).reshape(groups, -1, shape.map_dim)
    total = np.zeros(whole.shape, dtype=np.int64)
    step = max(1, BLOCK_NUMBERS // (shape.num_features + groups * shape.map_dim))
    for start in range(0, len(places), step):
        part = places[start : start + step]
        inputs = rows.inputs[_run(part)].astype(np.float64, copy=False)
        seen = inputs[None] if projections is None else _projected(inputs, projections)
        answers = exact_answers(seen, whole)
        by_row = np.moveaxis(answers, 0, 1).reshape(len(part), shape.num_maps, shape.num_classes)
        slopes = answer_gradients(by_row, rows.labels[part], shape.inverse_temperature)
        pulls = to_lattice(clipped(slopes.reshape(len(part), -1), clip), RADIUS)
        by_group = np.moveaxis(pulls.reshape(len(part), groups, -1), 0, 2)
        total += np.matmul(by_group, seen).astype(np.int64)
    return total.reshape(weights.shape)


def _run(places: Integers) -> Integers | slice:
    """Places as a slice where they follow each other, which copies nothing."""
    first, last = int(places[0]), int(places[-1])
    is_run = last - first + 1 == len(places) and bool((np.diff(places) == 1).all())
    return slice(first, last + 1) if is_run else places


def check_row_independence(shape: MapShape, weights: Floats, clip: float) -> None:
    """Check on made-up rows that this machine computes a row's gradient the same way in any block."""
    rng = np.random.default_rng(0)
    inputs = integer_inputs(rng.normal(size=(PROBE_ROWS, shape.num_features)))
    rows = IntegerRows(inputs, rng.integers(0, shape.num_classes, PROBE_ROWS))

    def summed(places: Integers) -> Integers:
        return gradient_sum(rows, shape, weights, places, clip=clip)

    every = np.arange(PROBE_ROWS)
    if not np.array_equal(summed(every), sum(summed(every[i : i + 1]) for i in every)):
        raise InputError(
            "this machine", "computes a row's gradient differently in different blocks", "Use another build of NumPy"
        )


def _whole_weights(weights: Floats) -> Floats:
    """Weights as whole numbers, so small that their products with inputs are exact."""
    whole = np.rint(weights * WEIGHT_UNIT)
    longest = np.sqrt((whole**2).sum(axis=2).max())
    return whole if longest < LARGEST_WEIGHTS else np.trunc(whole * (LARGEST_WEIGHTS / 2 / longest))


def _projected(inputs: Floats, projections: Floats) -> Floats:
    """Each map's inputs by its integer projection, rounded and clipped to the radius again.  # (maps, rows, map_dim)"""
    scale = RADIUS * PROJECTION_UNIT
    return np.stack([to_lattice(inputs @ each / scale, RADIUS) for each in projections])
