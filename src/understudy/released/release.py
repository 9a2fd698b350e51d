"""A release: noisy integer vectors with the plan that made them, as a directory of inert files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from understudy.arrays import Floats, Integers
from understudy.features import Block, Embedding
from understudy.files import canonical_sha256, write_directory
from understudy.plan.plan import Plan, plan_from_dict
from understudy.released.certificate import build_certificate
from understudy.released.product import Facts, load_product, product_files
from understudy.rules.measurement import Measurement

FORMAT = 1
LEARNT = "learnt/"
SETTLED = "settled/"
"""How the names of what a descent has learnt, and of the vectors that settled maps, begin in the file of vectors."""

EMBEDDING = "embedding.safetensors"
DOCUMENT = "release.json"

STAGE_NUMBERS = {"gaussian": ("noise_std", "squared_sensitivities"), "laplace": ("noise_scale", "l1_sensitivities")}
"""What a stage's scale of noise and its sensitivities are called in files."""


@dataclass(frozen=True)
class Settled:
    """The vectors that rules have settled the maps by, if rows were added since, and whose noise was in them then."""

    vectors: tuple[Integers, ...]
    parties: int


@dataclass(frozen=True)
class Release:
    """Noisy sums of features, safe to publish; everything made from it is free.

    ``vectors`` are integers on the plan's lattice, one per stage. ``facts`` are the public
    circumstances of the release: when, with which software and noise, under which ledger row.
    ``weights`` are what a descent has learnt, by name.
    """

    plan: Plan
    vectors: tuple[Integers, ...]
    facts: Facts
    weights: tuple[tuple[str, npt.NDArray[np.float32]], ...] = ()
    settled: Settled | None = None

    @cached_property
    def embeddings(self) -> tuple[Embedding, ...]:
        """The embedding of each stage."""
        first = self.settled or Settled(self.vectors, self.plan.parties)
        plan = replace(self.plan, parties=first.parties)
        return plan.embeddings(first.vectors)[: len(plan.stages)]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of all stages; no two share a name."""
        return tuple(block for embedding in self.embeddings for block in embedding.blocks)

    @property
    def label(self) -> tuple[int, int] | None:
        """The label's span of cells, which all stages with a label share."""
        return next((e.label for e in self.embeddings if e.label is not None), None)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """The vector of each stage, ready to be read."""
        parts = zip(self.embeddings, self.vectors, self.plan.noise_stds, strict=True)
        lattice, tail = self.plan.lattice, self.plan.mechanism.deviations
        return tuple(Measurement(*part, lattice, tail) for part in parts)

    def measurement_of(self, name: str) -> Measurement:
        """The stage that holds a block."""
        return next(measurement for measurement in self.measurements if measurement.has(name))

    def sums(self, name: str) -> Floats:
        """Estimated sum over all rows of a block's features.  # (copies, block dim)"""
        return self.measurement_of(name).sums(name)

    @cached_property
    def total_rows(self) -> float:
        """Noisy number of rows, also of those whose label is not listed; at least 1."""
        return max(1.0, float(self.measurement_of("count").all_sums("count").sum()))

    def noise_std(self, name: str) -> float:
        """Standard deviation of the noise in the entries of ``sums(name)``.

        Entries of products differ in the last digits; it is that of the noisiest.
        """
        return self.measurement_of(name).noise_of_sum(name)

    @cached_property
    def label_counts(self) -> Floats:
        """Noisy number of rows of each label value (one entry without a label), at least 1.

        If only the total was counted, label values share it equally.
        """
        counts = np.maximum(self.sums("count")[:, 0], 1.0)
        num_labels = self.label[1] - self.label[0] if self.label else 1
        return counts if len(counts) == num_labels else np.full(num_labels, counts[0] / num_labels)

    def to_dict(self) -> dict[str, Any]:
        """The release without its vectors; it holds their hash."""
        scale_name, sensitivity_name = STAGE_NUMBERS[self.plan.mechanism.name]
        settled = {} if self.settled is None else {"settled_by_parties": self.settled.parties}
        return settled | {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            "facts": dict(self.facts),
            "stages": [
                {"name": stage.name, scale_name: scale, sensitivity_name: list(parts)}
                for stage, scale, parts in zip(
                    self.plan.stages, self.plan.noise_scales, self.plan.mechanism_sensitivities, strict=True
                )
            ],
            "embedding_sha256": hashlib.sha256(self.tensors()).hexdigest(),
        }

    def tensors(self) -> bytes:
        """The vectors, and what a descent has learnt, as safetensors bytes."""
        names = [stage.name for stage in self.plan.stages]
        named: dict[str, npt.NDArray[Any]] = dict(zip(names, self.vectors, strict=True))
        named |= {f"{LEARNT}{name}": value for name, value in self.weights}
        if self.settled is not None:
            named |= {f"{SETTLED}{name}": value for name, value in zip(names, self.settled.vectors, strict=True)}
        return bytes(safetensors.numpy.save(named))

    @property
    def is_private(self) -> bool:
        """Whether its noise was real, and that of the network that it was made with."""
        return bool(dict(self.facts).get("is_private")) and not self.plan.network_has_test_noise

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything released; the ledger keeps it."""
        return canonical_sha256(self.to_dict())

    def files(self) -> dict[str, bytes]:
        """Every file of the release directory."""
        certificate = build_certificate(self.plan, dict(self.facts), fingerprint=self.fingerprint)
        document, tensors = (DOCUMENT, self.to_dict()), (EMBEDDING, self.tensors())
        return product_files(self.plan.schema, certificate, document=document, tensors=tensors)


def save_release(release: Release, directory: str | Path) -> Path:
    """Write a release so that the directory is either whole or not there at all."""
    return write_directory(directory, release.files())


def load_release(directory: str | Path) -> Release:
    """Read a release back; its vectors must be the ones it was made with."""
    return load_product(
        directory,
        _built,
        what="release",
        verb="release",
        document=DOCUMENT,
        tensors=EMBEDDING,
        sha256="embedding_sha256",
    )


def _built(document: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Release | None:
    """The release that a document and its numbers are of, if they fit each other."""
    plan = plan_from_dict(document["plan"])
    learnt = [(name, tensors[name]) for name in sorted(tensors) if name.startswith(LEARNT)]
    settled = None
    if "settled_by_parties" in document:
        vectors = tuple(tensors[f"{SETTLED}{stage.name}"] for stage in plan.stages)
        settled = Settled(vectors, int(document["settled_by_parties"]))
    release = Release(
        plan=plan,
        vectors=tuple(tensors[stage.name] for stage in plan.stages),
        facts=tuple(document["facts"].items()),
        weights=tuple((name.removeprefix(LEARNT), value) for name, value in learnt),
        settled=settled,
    )
    sizes = [embedding.dim for embedding in release.embeddings]
    kept = [release.vectors] + ([release.settled.vectors] if release.settled else [])
    is_whole = all(
        v.dtype == np.int64 and v.shape == (n,) for vectors in kept for v, n in zip(vectors, sizes, strict=True)
    )
    return release if is_whole else None
