"""The certificate of an encoder that was learnt from private images; it follows from the plan alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from understudy.encoders.extractor import ExtractorPlan
from understudy.published.trained import gradient_stage, trained_certificate

METHOD = "encoder of images, by noisy descent"
WORDS = {
    "post_processing": "What the encoder makes of public images costs nothing more. A release of what it makes of the "
    "private ones has a cost of its own, and its certificate counts both.",
    "intended_use": "Taking features of images for releases (dp-mepf), where no public images are to be had.",
    "not_for": "Finding out about one of the images it was trained on.",
}
FURTHER = [
    (
        "row independence of gradients",
        "torch on this machine gives a row the same gradient whatever other rows are in its block; checked on "
        "made-up rows before anything was charged.",
    )
]


def encoder_certificate(plan: ExtractorPlan, facts: dict[str, Any], *, fingerprint: str) -> dict[str, Any]:
    """All statements about an encoder."""
    return trained_certificate(
        plan,
        facts,
        fingerprint=fingerprint,
        method=METHOD,
        mechanism={
            "name": "Discrete Gaussian noise on exact integer sums of clipped gradients",
            "stages": [gradient_stage(plan.descent, plan.num_parameters)],
            "clip": plan.clip,
        },
        settings=asdict(plan.training),
        further=FURTHER,
        words=WORDS,
    )
