"""A request to the parties of a federated release: the plan and the noisy vectors of earlier rounds. Public."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.files import read_json, to_json
from understudy.plan.plan import Plan, plan_from_dict

FORMAT = "understudy request, format 1"


@dataclass(frozen=True)
class Request:
    """The next stage of a plan, which parties answer with partial sums.

    ``vectors`` are the noisy vectors of the stages before, ``is_private`` unless some had noise for tests;
    ``ledger`` is what the merger's ledger was charged, ``answered_by`` the parties of the rounds before, each with the
    query that selects its rows, which the certificate will print.
    """

    plan: Plan
    vectors: tuple[Integers, ...] = ()
    ledger: dict[str, Any] | None = None
    is_private: bool = True
    answered_by: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.plan.descent is not None:
            raise UsageError("method", "trains on rows, which parties cannot add up", "Use a method without descent")

    @property
    def round(self) -> int:
        """Which stage is asked for, from 0."""
        return len(self.vectors)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the plan and what was found so far: two requests with the same one ask the same."""
        digest = hashlib.sha256(self.plan.fingerprint.encode())
        for vector in self.vectors:
            digest.update(len(vector).to_bytes(8, "big") + vector.astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def epsilon_of_round(self) -> float:
        """What the answers to this round cost by themselves, at the plan's delta."""
        costs = self.plan.stage_costs()[self.round]
        return self.plan.mechanism.epsilon(costs, self.plan.budget.delta)

    def after(
        self, vector: Integers, ledger: dict[str, Any] | None, *, is_private: bool, answered_by: dict[str, str | None]
    ) -> Request:
        """The request of the next round."""
        vectors, alike = (*self.vectors, vector), self.is_private and is_private
        return replace(self, vectors=vectors, ledger=ledger, is_private=alike, answered_by=answered_by)

    def save(self, path: Path | str) -> None:
        """Write it as a file; it must not exist."""
        document = {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            "ledger": self.ledger,
            "vectors": [base64.b64encode(v.astype("<i8").tobytes()).decode() for v in self.vectors],
            "fingerprint": self.fingerprint,
            "is_private": self.is_private,
            "answered_by": self.answered_by,
        }
        try:
            with Path(path).open("xb") as file:
                file.write(to_json(document))
        except OSError:
            raise InputError(
                f"request '{path}'", "exists already or cannot be written", "Choose another name"
            ) from None


def load_request(path: Path | str) -> Request:
    """Read a request back."""
    try:
        document = read_json(path, follow=True)
        plan = plan_from_dict(document["plan"])
        vectors = tuple(np.frombuffer(base64.b64decode(v), "<i8").astype(np.int64) for v in document["vectors"])
        queries = dict(document["answered_by"])
        request = Request(plan, vectors, document["ledger"], bool(document["is_private"]), queries)
        sizes = [embedding.dim for embedding in plan.embeddings(vectors)[: len(vectors)]]
        whole = (
            document["format"] == FORMAT
            and request.fingerprint == document["fingerprint"]
            and len(vectors) < len(plan.stages)
            and [len(vector) for vector in vectors] == sizes
            and all(isinstance(query, str | None) for query in queries.values())
        )
    except Exception:  # rules run on what the file says, and may stumble over anything in it
        whole = False
    if not whole:
        raise InputError(f"request '{path}'", "is damaged or is no request", "Make one: understudy plan -o FILE")
    return request
