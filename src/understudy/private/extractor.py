"""Train an encoder on private images: noisy descent, charged before its first step."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.accounting import Neighbours
from understudy.encoders.extractor import ExtractorPlan
from understudy.encoders.files import save_encoder
from understudy.encoders.form import Encoder
from understudy.errors import InputError
from understudy.features.torch_runtime import load_torch
from understudy.private import ledger as ledgers
from understudy.private.descent.networks import Progress, noisy_descent
from understudy.private.descent.steps import Steps
from understudy.private.ledger_units import check_unit, described
from understudy.private.noise import NoiseSource
from understudy.private.readers import open_source
from understudy.private.sealed import sealed
from understudy.published.directories import check_new_directory
from understudy.schema.columns import NULL
from understudy.schema.encode import encode_column
from understudy.schema.pixels import Bytes, pixel_array

Rows = tuple[Bytes, npt.NDArray[np.int64], npt.NDArray[np.float32]]


def train_private_encoder(
    data: object,
    plan: ExtractorPlan,
    *,
    directory: str | Path | None = None,
    ledger: str | Path | None = None,
    key: str | None = None,
    noise: NoiseSource | None = None,
    progress: Progress | None = None,
) -> Encoder:
    """Read private images, and learn to name their classes by noisy descent.

    Args:
        data: an image set with its labels.
        plan: what to train, and at which cost.
        directory: where to write the encoder; it must not exist.
        ledger: an SQLite ledger with a reserve for slack; charged before the first step.
        key: names this release in the ledger.
        noise: for tests only.
        progress: called with steps done and steps in all.

    Guarantee:
        The encoder is (epsilon, delta)-differentially private as the plan states, between sets with one image
        more or less. In a ledger its cost adds up with that of releases made with it.
    """
    torch = load_torch()
    if directory is not None:
        check_new_directory(directory)
    if ledger is not None:
        state = ledgers.read_ledger(ledger)
        check_unit(ledger, state.descriptions, plan.schema.privacy.unit)
        if state.is_pure:
            raise InputError(
                f"ledger '{ledger}'", "is for pure differential privacy (delta 0), which Gaussian noise has not",
                "Make a ledger with a delta above 0",
            )  # fmt: skip
        if state.neighbours is not Neighbours.ADD_REMOVE:
            raise InputError(
                f"ledger '{ledger}'", "counts replaced rows, and sampling them is not accounted for",
                "Use a ledger with --neighbours add-remove",
            )  # fmt: skip
        ledgers.check_affordable(ledger, [plan.charge.mu_squared], slack=plan.charge.slack)
    rows = sealed(lambda: _rows(data, plan))
    if ledger is not None:
        ledgers.spend(
            ledger, key=key or f"{plan.schema.name}-{secrets.token_hex(6)}",
            plan_id=plan.fingerprint, costs=[plan.charge.mu_squared], slack=plan.charge.slack,
            description=described("encoder", plan.schema),
        )  # fmt: skip
    learnt = noisy_descent(
        plan.start(torch), plan.row_loss(torch), rows, cost=plan.descent, clip=plan.clip,
        expected_rows=float(plan.expected_rows), noise=noise, progress=progress,
        steps=Steps(plan.training.learning_rate, rule="adam"),
    )  # fmt: skip
    convolutions = {
        name: value.numpy() for name, value in learnt.items() if not name.startswith("last.")
    }
    encoder = plan.encoder(convolutions)
    if directory is not None:
        save_encoder(encoder, directory)
    return encoder


def _rows(data: object, plan: ExtractorPlan) -> Rows:
    """Images, classes, and whether each has one. PRIVATE."""
    images: list[Bytes] = [np.empty((0, *plan.image.axes), np.uint8)]
    labels: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    with open_source(data, columns=[*plan.image.names, plan.label.name]) as batches:
        for batch in batches:
            images.append(pixel_array(batch, plan.image))
            labels.append(encode_column(plan.label, batch.column(plan.label.name)))
    codes = np.concatenate(labels)
    shape = (-1, plan.image.height, plan.image.width, plan.image.channels)
    planes = np.concatenate(images).reshape(shape).transpose(0, 3, 1, 2)
    counts = (codes != NULL).astype(np.float32)
    return np.ascontiguousarray(planes), np.where(codes == NULL, 0, codes), counts
