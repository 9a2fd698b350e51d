"""Encoders as directories of inert files."""

from __future__ import annotations

from pathlib import Path

import safetensors.numpy

from understudy.encoders.form import Encoder, form_from_dict
from understudy.errors import InputError
from understudy.inert_files import read_json, read_tensors
from understudy.published.directories import write_directory
from understudy.published.release import to_json

DOCUMENT, WEIGHTS = "encoder.json", "encoder.safetensors"


def save_encoder(encoder: Encoder, directory: str | Path) -> Path:
    """Write an encoder into a new directory."""
    document = {
        "format": 1, "form": encoder.form.to_dict(), "told": encoder.told, "sha256": encoder.sha256,
        "private_cost": encoder.private_cost,
    }  # fmt: skip
    weights = bytes(safetensors.numpy.save(encoder.weights))
    return write_directory(directory, {DOCUMENT: to_json(document), WEIGHTS: weights})


def load_encoder(directory: str | Path) -> Encoder:
    """Read an encoder back; its weights must be the ones that it was saved with."""
    folder = Path(directory)
    try:
        document, weights = read_json(folder / DOCUMENT), read_tensors(folder / WEIGHTS)
        form, cost = form_from_dict(document["form"]), document["private_cost"]
        encoder = Encoder(form, weights, str(document["told"]), cost)
        if encoder.sha256 == document["sha256"]:
            return encoder
    except Exception:  # noqa: S110  # files may say anything
        pass
    raise InputError(
        f"encoder '{folder}'",
        "is missing or damaged",
        "Make it: understudy encoder train PUBLIC -o DIR",
    )
