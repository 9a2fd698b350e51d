"""A decoder of images, trained on private ones by noisy descent."""

from __future__ import annotations

import numpy as np

from understudy.arrays import Singles
from understudy.networks.autoencoder import DECODER
from understudy.plan.descent import DecoderPlan
from understudy.plan.plan import Plan
from understudy.private.dpsgd.networks import check_row_gradients, descend_from, tensors_of
from understudy.private.dpsgd.steps import Steps
from understudy.private.noise import NoiseSource
from understudy.private.spending import Receipt
from understudy.readers import open_source
from understudy.schema.encode import encode_batch

Images = tuple[Singles, Singles]
Weights = dict[str, Singles]
AVERAGED = 0.2
"""The outcome is the mean of the last fifth of the steps."""


def read_images(data: object, plan: Plan, *, query: str | None) -> Images:
    """All images and their one-hot labels, in memory. PRIVATE.

    # (num_images, num_pixels), (num_images, num_labels)
    """
    layout, columns = plan.layout, [column.name for column in plan.schema.used]
    with open_source(data, columns=columns, query=query) as batches:
        cells = [layout.expand(encode_batch(plan.schema, batch)).astype(np.float32) for batch in batches]
    found = np.concatenate([np.empty((0, layout.width), dtype=np.float32), *cells])
    pixels = len(layout.numbers)
    labels = found[:, pixels:] if layout.choices else np.ones((len(found), 1), dtype=np.float32)
    return np.ascontiguousarray(found[:, :pixels]), np.ascontiguousarray(labels)


def check_decoder(plan: Plan, decoder: DecoderPlan) -> None:
    """Refuse a machine whose torch gives an image different gradients beside others, before rows are read."""
    network, layout = decoder.network, plan.layout
    pixels = len(layout.numbers)
    like = (np.empty((0, pixels), np.float32), np.empty((0, max(1, layout.width - pixels)), np.float32))
    check_row_gradients(tensors_of(network.first_parameters(decoder.descent.seed)), network.loss, like)


def train_decoder(images: Images, decoder: DecoderPlan, *, noise: NoiseSource, receipt: Receipt) -> Weights:
    """Train encoder and decoder together, and hand out the decoder.

    The paper trains the encoder without noise. A decoder's gradients are taken through the encoder, so every
    image would have a say in all of them, and clipping them one by one would bound nothing.

    Guarantee:
        What is returned is private as the descent's cost states, between sets with one image more or less
        (proofs/descent.md).
    """
    network, descent = decoder.network, decoder.descent
    found = descend_from(
        network.first_parameters(descent.seed),
        network.loss,
        images,
        cost=descent.cost,
        clip=descent.clip,
        expected_rows=float(descent.expected_rows or 1),
        steps=Steps(descent.learning_rate, rule="adam", averaged=AVERAGED),
        noise=noise,
        receipt=receipt,
    )
    return {name: value for name, value in found.items() if name.startswith(DECODER)}
