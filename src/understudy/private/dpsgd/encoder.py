"""Train a convolutional encoder on private images by DP-SGD, charged before its first step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bytes, StepProgress, load_torch
from understudy.plan.encoder import ExtractorPlan
from understudy.private.dpsgd.networks import Tensors, check_row_gradients, noisy_descent
from understudy.private.dpsgd.steps import OptimizerSettings, check_size
from understudy.private.noise import LongNoise, NoiseSource
from understudy.private.release import SOFTWARE, release_facts
from understudy.private.sealed import sealed
from understudy.private.spending import Receipt, spend, training_bill
from understudy.readers import open_source
from understudy.released.encoder import PrivateEncoder, load_private_encoder
from understudy.schema.columns import NULL
from understudy.schema.encode import encode_column, pixel_array

Rows = tuple[Bytes, npt.NDArray[np.int64], npt.NDArray[np.float32]]


def train_private_encoder(
    data: object,
    plan: ExtractorPlan,
    *,
    directory: str | Path | None = None,
    ledger: str | Path | None = None,
    key: str | None = None,
    noise: NoiseSource | None = None,
    progress: StepProgress | None = None,
) -> PrivateEncoder:
    """Train an encoder to classify private images by DP-SGD, and publish its convolutions.

    Args:
        data: an image set with its labels.
        plan: what to train, and at which cost.
        directory: where to write the encoder; it must not exist.
        ledger: an SQLite ledger with a reserve for slack; charged before the first step.
        key: names this encoder in the ledger. The same key and plan give the stored one back, at no cost.
        noise: for tests only.
        progress: called with steps done and steps in all.

    Guarantee:
        The encoder is (epsilon, delta)-differentially private as the plan states, between sets with one image
        more or less. In a ledger its cost adds up with that of releases made with it (proofs/descent.md).
    """
    torch = load_torch()
    source = noise or LongNoise()
    facts = release_facts(source, None, (*SOFTWARE, "torch"))
    start, row_loss = plan.start(torch), plan.row_loss(torch)

    def check() -> None:
        if isinstance(data, str | Path):
            sealed(lambda: _check_opens(data, plan))
        check_row_gradients(start, row_loss, _no_rows(plan))

    def draw(rows: Rows, receipt: Receipt) -> Tensors:
        receipt.check_plan(plan.fingerprint)
        return noisy_descent(
            start,
            row_loss,
            rows,
            cost=plan.descent.cost,
            clip=plan.clip,
            expected_rows=float(plan.expected_rows),
            steps=OptimizerSettings(plan.training.learning_rate, rule="adam"),
            receipt=receipt,
            noise=source,
            progress=progress,
        )

    def make(learnt: Tensors, receipt: Receipt) -> PrivateEncoder:
        convolutions = {name: value.numpy() for name, value in learnt.items() if not name.startswith("last.")}
        own = (*facts, ("ledger", receipt.charged))
        return PrivateEncoder(plan, plan.encoder(convolutions, dict(own)), own)

    return spend(
        training_bill(plan, what="encoder", num_draws=plan.training.steps),
        ledger=ledger,
        key=key,
        directory=directory,
        check=check,
        read=lambda: _rows(data, plan),
        draw=draw,
        make=make,
        load=load_private_encoder,
    )


def _check_opens(data: str | Path, plan: ExtractorPlan) -> None:
    """Refuse a file that cannot be opened before the gradients are probed, which takes seconds."""
    with open_source(data, columns=[*plan.image.names, plan.label.name]):
        pass


def _no_rows(plan: ExtractorPlan) -> Rows:
    """Empty arrays of the rows' types and shapes, for the check of per-example gradients."""
    axes = (0, plan.image.channels, plan.image.height, plan.image.width)
    return np.empty(axes, np.uint8), np.empty(0, np.int64), np.empty(0, np.float32)


def _rows(data: object, plan: ExtractorPlan) -> Rows:
    """Images, classes, and whether each has one. PRIVATE."""
    images: list[Bytes] = [np.empty((0, *plan.image.axes), np.uint8)]
    labels: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    with open_source(data, columns=[*plan.image.names, plan.label.name]) as batches:
        for batch in batches:
            images.append(pixel_array(batch, plan.image))
            labels.append(encode_column(plan.label, batch.column(plan.label.name)))
    codes = np.concatenate(labels)
    check_size(len(codes))
    shape = (-1, plan.image.height, plan.image.width, plan.image.channels)
    planes = np.concatenate(images).reshape(shape).transpose(0, 3, 1, 2)
    counts = (codes != NULL).astype(np.float32)
    return np.ascontiguousarray(planes), np.where(codes == NULL, 0, codes), counts
