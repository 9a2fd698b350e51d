"""Train a locally linear classifier by DP-SGD, on inputs whitened by their noisy second moments if the plan says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.arrays import Integers, StepProgress
from understudy.classifier.inputs import Inputs, Whitening, lengthened, unit_inputs, whitening_from
from understudy.classifier.maps import LocallyLinearMaps
from understudy.classifier.model import Classifier, load_classifier
from understudy.classifier.plan import RADIUS, ClassifierPlan
from understudy.errors import InputError
from understudy.private.dpsgd.linear import (
    BLOCK_NUMBERS,
    IntegerRows,
    check_row_independence,
    integer_inputs,
    train_maps,
)
from understudy.private.dpsgd.steps import OptimizerSettings, check_size
from understudy.private.noise import LongNoise, NoiseSource
from understudy.private.release import release_facts
from understudy.private.sealed import sealed
from understudy.private.spending import Bill, Receipt, spend, training_bill
from understudy.readers import open_source
from understudy.schema.columns import NULL
from understudy.schema.encode import encode_batch

PROBE_ROWS = 12
"""Made-up rows on which row independence is checked."""

ENCODED_ROWS = 1024
"""Rows whose inputs are computed at a time, as floats, before they are rounded to 16 bits."""


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
        key: names this classifier in the ledger. The same key and plan give the stored one back.
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
        _check_row_independence(plan)
        check_row_independence(plan.shape, plan.shape.first_weights(), plan.training.clip)

    def draw(rows: IntegerRows, receipt: Receipt) -> tuple[LocallyLinearMaps, Whitening | None]:
        return noisy_maps(rows, plan, noise=source, receipt=receipt, progress=progress)

    def make(found: tuple[LocallyLinearMaps, Whitening | None], receipt: Receipt) -> Classifier:
        return Classifier(plan, *found, (*facts, ("ledger", receipt.charged)))

    return spend(
        classifier_bill(plan),
        ledger=ledger,
        key=key,
        directory=directory,
        check=check,
        read=lambda: integer_rows(data, plan, query=query),
        draw=draw,
        make=make,
        load=load_classifier,
    )


def classifier_bill(plan: ClassifierPlan) -> Bill:
    """The noise of every step, and that of second moments if inputs are whitened by them."""
    moment_draws = 0 if plan.look_noise is None else 1
    return training_bill(plan, what="classifier", num_draws=plan.descent.cost.steps + moment_draws)


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
    whitening, num_rows = None, plan.expected_rows
    if plan.look_noise is not None:
        whitening = _noisy_whitening(rows, plan.look_noise, noise, receipt)
        rows = sealed(lambda: _whitened(rows, whitening))
        num_rows = plan.num_rows or round(whitening.num_rows)
    maps = train_maps(
        rows,
        plan.shape,
        cost=plan.descent.cost,
        clip=plan.descent.clip,
        expected_rows=float(num_rows or 1),
        steps=OptimizerSettings(plan.descent.learning_rate, averaged=plan.training.averaged),
        receipt=receipt,
        noise=noise,
        progress=progress,
    )
    return maps, whitening


def integer_rows(data: object, plan: ClassifierPlan, *, query: str | None) -> IntegerRows:
    """All rows as integer inputs and labels; a row without a label is no row that adds. PRIVATE."""
    schema = plan.schema
    names = [column.name for column in schema.used]
    place = names.index(plan.label.name)
    inputs, labels = [np.empty((0, plan.inputs.dim), np.int16)], [np.empty(0, np.int64)]
    with open_source(data, columns=names, query=query) as batches:
        for batch in batches:
            codes = encode_batch(schema, batch)
            label, features = codes[:, place], np.delete(codes, place, axis=1)
            whole = _encoded(plan.inputs, features)
            whole[label == NULL] = 0
            inputs.append(whole)
            labels.append(np.where(label == NULL, 0, label))
    check_size(sum(map(len, labels)))
    return IntegerRows(np.concatenate(inputs), np.concatenate(labels))


def _encoded(inputs: Inputs, codes: Integers) -> npt.NDArray[np.int16]:
    parts = [np.empty((0, inputs.dim), np.int16)]
    for start in range(0, len(codes), ENCODED_ROWS):
        parts.append(integer_inputs(unit_inputs(inputs, codes[start : start + ENCODED_ROWS])))
    return np.concatenate(parts)


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


def _check_row_independence(plan: ClassifierPlan) -> None:
    """Check on made-up rows that this machine computes a row's inputs the same way in any batch."""
    rng = np.random.default_rng(0)
    inputs, used = plan.inputs, plan.features.used
    largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in used]
    codes = rng.integers(0, np.asarray(largest) + 1, (PROBE_ROWS, len(used)))
    whole = _encoded(inputs, codes)
    if any(not np.array_equal(whole[i], _encoded(inputs, codes[i : i + 1])[0]) for i in range(PROBE_ROWS)):
        raise InputError(
            "this machine", "computes a row's inputs differently in different batches", "Use another build of NumPy"
        )
