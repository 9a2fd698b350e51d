"""What every product of private rows is as a directory of inert files: a release, a classifier, or an encoder.

Numbers as safetensors, a document that holds their hash, the schema, and the certificate as JSON and as a page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from understudy.errors import InputError
from understudy.files import (
    CERTIFICATE,
    CERTIFICATE_PAGE,
    MOST_TENSOR_BYTES,
    has_file,
    parse_tensors,
    read_file,
    read_json,
    to_json,
)
from understudy.released.certificate import render_html
from understudy.schema import Schema

SCHEMA = "schema.yaml"
T = TypeVar("T")
Facts = tuple[tuple[str, Any], ...]
"""The public circumstances of a product: when, with which software and noise, under which ledger row."""


class Product(Protocol):
    """A product as it was made or read back."""

    @property
    def facts(self) -> Facts:
        """Its public circumstances."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything released; the ledger keeps it."""

    @property
    def is_private(self) -> bool:
        """Whether all noise that it rests on was real."""

    def files(self) -> dict[str, bytes]:
        """Every file of its directory, computed anew."""


def product_files(
    schema: Schema, certificate: dict[str, Any], *, document: tuple[str, dict[str, Any]], tensors: tuple[str, bytes]
) -> dict[str, bytes]:
    """Every file of a directory; ``document`` and ``tensors`` with their names."""
    stated = to_json(certificate)
    return {
        tensors[0]: tensors[1],
        document[0]: to_json(document[1]),
        SCHEMA: schema.to_yaml().encode(),
        CERTIFICATE: stated,
        CERTIFICATE_PAGE: render_html(json.loads(stated)).encode(),
    }


def load_product(
    directory: str | Path,
    build: Callable[[dict[str, Any], dict[str, npt.NDArray[Any]]], T | None],
    *,
    what: str,
    verb: str,
    document: str,
    tensors: str,
    sha256: str,
) -> T:
    """Read a product back; its numbers must be the ones it was made with.

    Args:
        directory: where it is.
        build: from the document and the named arrays to the product, or None if they do not fit each other.
        what: a product is called so.
        verb: of the command that makes one.
        document: name of the file of the document.
        tensors: name of the file of arrays.
        sha256: the document's field with the hash of that file.
    """
    folder = Path(directory)
    if not has_file(folder, document):
        raise InputError(f"'{folder}'", f"is not the directory of a {what}", f"Make one: understudy {verb} --help")
    content = read_file(folder / tensors, most=MOST_TENSOR_BYTES)
    try:
        described = read_json(folder / document)
        is_theirs = hashlib.sha256(content).hexdigest() == described[sha256]
        found = build(described, parse_tensors(content)) if is_theirs else None
    except Exception:  # rules run on what the files say, and may stumble over anything in them
        found = None
    if found is None:
        raise InputError(f"{what} '{folder}'", "is damaged: its files do not fit each other", "Fetch it again")
    return found
