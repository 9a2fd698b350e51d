"""The certificate of a classifier: what is claimed of it follows from its plan alone."""

from __future__ import annotations

from typing import Any

from understudy.classifier.plan import RADIUS, ClassifierPlan
from understudy.published.trained import gradient_stage, trained_certificate

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
    """All statements about a classifier."""
    return trained_certificate(
        plan,
        facts,
        fingerprint=fingerprint,
        method=METHOD,
        mechanism={
            "name": "Discrete Gaussian noise on exact integer sums of second moments and of clipped gradients",
            "stages": _stages(plan),
            "clip": plan.training.clip,
        },
        settings=plan.to_dict()["training"],
        further=FURTHER,
        words=WORDS,
    )


def _stages(plan: ClassifierPlan) -> list[dict[str, Any]]:
    shape, stages = plan.shape, []
    if plan.look_noise is not None:
        dim = plan.inputs.dim
        stages.append(
            {
                "name": "second moments of inputs",
                "numbers_released": dim * (dim + 1) // 2,
                "sensitivity": 1.0,
                "noise_std": plan.look_noise / RADIUS**2,
            }
        )
    numbers = shape.num_maps * shape.num_classes * shape.map_dim
    return [*stages, gradient_stage(plan.descent, numbers)]
