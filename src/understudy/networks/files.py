"""Encoders as directories of inert files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import safetensors.numpy

from understudy.errors import InputError
from understudy.files import CERTIFICATE, read_json, read_tensors, to_json, write_directory
from understudy.networks.form import Encoder, form_from_dict

DOCUMENT = "encoder.json"
WEIGHTS = "encoder.safetensors"


def save_encoder(encoder: Encoder, directory: str | Path) -> Path:
    """Write a public encoder into a new directory."""
    files = {DOCUMENT: to_json(document_of(encoder)), WEIGHTS: weights_of(encoder)}
    return write_directory(directory, files)


def document_of(encoder: Encoder) -> dict[str, Any]:
    """An encoder without its weights; it holds their hash."""
    return {
        "format": 1,
        "form": encoder.form.to_dict(),
        "told": encoder.told,
        "sha256": encoder.sha256,
        "private_cost": encoder.private_cost,
    }


def weights_of(encoder: Encoder) -> bytes:
    """The weights as safetensors bytes."""
    return bytes(safetensors.numpy.save(encoder.weights))


def is_encoder(directory: str | Path) -> bool:
    """Whether a directory is an encoder's."""
    return (Path(directory) / DOCUMENT).is_file()


def load_encoder(directory: str | Path) -> Encoder:
    """Read an encoder back; its weights, and what it cost, must be what it was saved with.

    One that has a certificate was learnt from private rows, and is refused if it does not say at which cost.
    """
    folder = Path(directory)
    try:
        document, weights = read_json(folder / DOCUMENT), read_tensors(folder / WEIGHTS)
        form, cost = form_from_dict(document["form"]), document["private_cost"]
        encoder = Encoder(form, weights, str(document["told"]), cost)
        is_product = "plan" in document or (folder / CERTIFICATE).exists()
        whole = encoder.sha256 == document["sha256"] and (cost or not is_product)
    except Exception:  # files may say anything
        whole = False
    if not whole:
        raise InputError(
            f"encoder '{folder}'", "is missing or damaged", "Make it: understudy encoder train PUBLIC -o DIR"
        )
    return encoder
