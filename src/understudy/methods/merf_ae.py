"""DP-MERF+AE: the first version's images by way of codes, with a decoder that noisy descent trains."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Annotated

from understudy.accounting import Budget, Neighbours, mu_squared_of_budget, neighbours_by_name
from understudy.accounting.dpsgd import calibrated_descent, slack_for
from understudy.errors import UsageError
from understudy.fits.images import DECODED, ImageTraining
from understudy.methods.common import (
    ROWS_IF_UNSAID,
    Labels,
    LengthScale,
    Option,
    Steps,
    image_set,
    images_alone,
    labelled_columns,
)
from understudy.methods.merf import dp_merf
from understudy.networks.autoencoder import AutoEncoder
from understudy.plan.descent import DecoderPlan, DescentPlan
from understudy.plan.plan import Plan
from understudy.schema import Schema

EMBEDDING_SHARE = 0.3
"""Of mu squared, for the embedding; the rest trains the decoder, which has more to learn."""

FEWEST_CODES = 10
HIDDEN = 64
"""Units of the auto-encoder: of its code, if there are fewer classes, and of its wider hidden layer."""

BATCH = 500
"""Expected rows of a step of DP-SGD, which takes each row with probability ``BATCH / rows``."""

STEPS = 300
CLIP = 1.0
"""L2 norm that the gradient of one row is clipped to."""

LEARNING_RATE = 1e-2


def dp_merf_ae(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    length_scale: LengthScale = None,
    num_features: Annotated[int | None, Option("Fourier features (default: by the error bound).", "--features")] = None,
    descent_steps: Annotated[
        int, Option("Steps of the descent that trains the decoder (default: 300).", least=1)
    ] = STEPS,
    embedding_share: float = EMBEDDING_SHARE,
    seed: int = 0,
    training: ImageTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a release of images with two mechanisms: noisy descent for a decoder, then DP-MERF's embedding.

    A generator of codes is then trained so that decoded codes have the embedding (Algorithm 2 of the first
    version). The epsilon is that of both together, by privacy loss distributions. Descent is accounted for
    with a delta above 0, add-remove neighbours and rows as units.

    Args:
        schema: images with at most one label of named classes.
        budget: the guarantee to meet; delta is above 0.
        neighbours: ``add-remove``, which descent is accounted for.
        num_rows: a public guess that sizes are planned for. By default what the schema says.
        labels: as for ``dp_merf``, but for ``none``: images alone, the label is neither read nor made.
        length_scale: as for ``dp_merf``, but for ``private``.
        num_features: as for ``dp_merf``.
        descent_steps: steps of the descent, each on about 500 images, or a tenth of all if they are few.
        embedding_share: of mu squared, for the embedding.
        seed: public seed of frequencies and first parameters.
        training: settings of the generator of codes.
        steps: its training steps, if only their number should differ.
    """
    schema = images_alone(schema) if labels == "none" else schema
    labels = "auto" if labels == "none" else labels
    image = image_set(schema)
    if image is None:
        raise UsageError(
            "method",
            "dp-merf-ae is for images with at most one label of named classes",
            "Use dp-merf for other tables, or drop the other columns",
        )
    if not 0.01 <= embedding_share <= 0.99:
        raise UsageError("embedding share", "must lie between 0.01 and 0.99")
    if neighbours_by_name(neighbours) is not Neighbours.ADD_REMOVE:
        raise UsageError("neighbours", "must be add-remove for dp-merf-ae")
    if isinstance(length_scale, str):
        raise UsageError("length scale", "must be a number for dp-merf-ae")
    rows = num_rows or schema.rows or ROWS_IF_UNSAID
    num_labels = labelled_columns(schema, labels).num_labels
    network = AutoEncoder(image.num_pixels, num_labels, max(FEWEST_CODES, num_labels), (HIDDEN, HIDDEN // 2), HIDDEN)
    rate = min(0.1, BATCH / rows)
    spendable = Budget(budget.epsilon, float(Fraction(budget.delta) - slack_for(budget, rate)))
    beside = mu_squared_of_budget(spendable) * Fraction(embedding_share)
    cost = calibrated_descent(budget, sampling_rate=rate, steps=descent_steps, beside=(beside,))
    codes = training or ImageTraining(noise_dim=network.code_dim, seed=seed)
    codes = replace(codes, architecture=DECODED, channels=(network.code_dim, network.decoder))
    plan = dp_merf(
        schema,
        budget,
        num_rows=num_rows,
        labels=labels,
        length_scale=length_scale,
        num_features=num_features,
        seed=seed,
        training=codes,
        steps=steps,
    )
    explanation = [
        f"decoder: {descent_steps} steps, each on about {rate * rows:.0f} images, with noise of "
        f"{cost.noise_multiplier:.3g} clipping norms; all images are held in memory meanwhile",
        f"embedding: {embedding_share:.0%} of the budget",
    ]
    return replace(
        plan,
        settings=(*plan.settings, ("explanation", explanation)),
        method="dp-merf-ae",
        stages=tuple(replace(stage, share=embedding_share) for stage in plan.stages),
        decoder=DecoderPlan(network, DescentPlan(budget, cost, CLIP, LEARNING_RATE, rows, seed)),
    )
