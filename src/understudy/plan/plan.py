"""The plan of a release: every decision that is made before a row is read, with its sensitivity, noise and cost.

A plan is public and complete: feature maps, weights, sensitivity, noise and cost follow from
it alone. It can be printed, argued about and stored before any data is opened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.accounting.dpsgd import epsilon_of_replacement, slack_for
from understudy.accounting.mechanisms import (
    NO_CHARGE,
    Budget,
    Charge,
    Mechanism,
    Neighbours,
    mechanism_for,
    neighbours_by_name,
)
from understudy.codec import FLAT, OMIT_DEFAULT, decode, encode, keys_of
from understudy.errors import InputError, UsageError
from understudy.features.base import Norm, PublicInput
from understudy.features.embedding import Block, Embedding
from understudy.files import canonical_sha256
from understudy.plan.descent import DecoderPlan
from understudy.plan.stage import Stage, weighed_for_laplace
from understudy.rules import RULES, SETTLED_BLOCKS
from understudy.rules.measurement import Measurement
from understudy.schema import Layout, Schema

__all__ = ["LARGEST_NOISE", "LATTICE", "LATTICE_BITS", "MOST_NUMBERS", "ROW_CAP", "Plan", "Stage", "plan_from_dict"]

LATTICE_BITS = 32
"""A feature vector of norm one has an integer norm of 2^32 (proofs/lattice.md)."""

LATTICE: int = 2**LATTICE_BITS
ROW_CAP = 2 ** (62 - LATTICE_BITS)
"""Rows that an int64 sum of lattice vectors holds without wrapping around; more are refused."""

MOST_NUMBERS = 2**26
"""Numbers that all stages release together: 512 MiB of them, and every thread that sums rows holds as many."""

MOST_PARTIES = 10**6
"""Each party adds the whole noise, so its standard deviation grows with the root of their number."""

LARGEST_NOISE = 2**56
"""Noise of a larger deviation might not fit an int64 sum either."""


@dataclass(frozen=True)
class Plan:
    """A public, complete description of a release that has not happened yet.

    The budget decides on the mechanism: Laplace noise if delta is 0, else Gaussian noise. Stages
    whose weights were meant for Gaussian noise are weighed anew if the noise is Laplace's, so that
    methods need not know of it. If there are several ``parties``, each adds the whole noise to the sum
    of its own rows, so that the released vectors, which are the sums of theirs, have that noise several times.
    A noisy ``descent`` that trains a decoder of images comes before all stages.

    Guarantee:
        Releasing every stage's integer sum with the mechanism's discrete noise of ``noise_scales``
        is (epsilon, delta)-differentially private between tables that are ``neighbours`` (proofs/noise.md).
    """

    schema: Schema
    method: str
    budget: Budget = field(metadata=FLAT)
    neighbours: Neighbours
    stages: tuple[Stage, ...]
    num_rows: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    descent: DecoderPlan | None = field(default=None, metadata=OMIT_DEFAULT)
    parties: int = field(default=1, metadata=OMIT_DEFAULT)
    lattice = LATTICE  # integer norm of a feature vector of norm one

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", neighbours_by_name(self.neighbours))
        if self.budget.is_pure and all(s.embedding.norm is Norm.L2 for s in self.stages):
            object.__setattr__(self, "stages", weighed_for_laplace(self.stages))
        self._check_unit()
        if self.neighbours is Neighbours.REPLACE_ONE and self.num_rows is None:
            raise UsageError("rows", "replace-one needs the public row count", "Give --rows N or rows: in the schema")
        if self.parties < 1 or (self.parties > 1 and self.neighbours is Neighbours.REPLACE_ONE):
            raise UsageError(
                "parties",
                "must be at least 1, and with replace-one 1: their row counts are not public",
                "Use --neighbours add-remove",
            )
        if self.parties > MOST_PARTIES:
            raise UsageError("parties", f"must be at most {MOST_PARTIES}")
        if self.num_rows is not None and self.num_rows > ROW_CAP:
            raise UsageError("rows", f"must be at most {ROW_CAP}", "Release parts of the table")
        self._check_stages()
        self._check_descent()
        self._check_network()

    def _check_unit(self) -> None:
        """Refuse a unit of privacy that rows could not be told apart by."""
        unit, where = self.schema.privacy, f"schema '{self.schema.name}'"
        if unit.is_row and unit.max_rows != 1:
            raise InputError(
                where,
                "allows several rows, but does not say whose rows belong together",
                "Set privacy: {unit: COLUMN, max_rows: K} with the name of the column of ids",
            )
        if unit.unit in {*self.schema.file_names, *(column.name for column in self.schema.used)}:
            raise InputError(
                f"column '{unit.unit}'",
                "names whom the guarantee is for, so it cannot be released",
                "Set kind: id for it, or take it out of columns:",
            )
        if not unit.is_row and self.neighbours is Neighbours.REPLACE_ONE:
            raise UsageError(
                "neighbours",
                f"replace-one tells the row count, which one {unit.unit} can change",
                "Use --neighbours add-remove",
            )

    def _check_stages(self) -> None:
        """Refuse what no memory holds, or what would make the guarantee false, whoever composed the stages."""
        numbers = sum(stage.embedding.dim for stage in self.stages)
        if not 0 < numbers <= MOST_NUMBERS:
            raise UsageError(
                "plan",
                f"would release more than {MOST_NUMBERS} numbers, or none",
                "Ask for fewer features, orders, products or bins, or leave columns out",
            )
        shares = [stage.share for stage in self.stages]
        if not all(share > 0 for share in shares) or sum(shares) > 1 + 1e-12:
            raise ValueError("shares of the budget are positive and add up to at most 1")
        if any(stage.embedding.norm != self.mechanism.norm for stage in self.stages):
            raise ValueError("norms are of the kind that the noise is paid for by")
        blocks = [block.name for stage in self.stages for block in stage.embedding.blocks]
        for names in ([stage.name for stage in self.stages], blocks):
            if len(set(names)) < len(names):
                raise ValueError("stages, and blocks of all stages, need names of their own")
        spans = {(choice.start, choice.stop) for choice in self.layout.choices}
        for index, stage in enumerate(self.stages):
            if stage.embedding.label is not None and stage.embedding.label not in spans:
                raise ValueError("a label is one choice of the layout")
            if stage.rule is not None and (index == 0 or stage.rule not in RULES):
                raise ValueError("a rule has a name and an earlier stage to look at")
            known = {block.name for earlier in self.stages[: index + 1] for block in earlier.embedding.blocks}
            if not known.issuperset(SETTLED_BLOCKS.get(stage.rule or "", ())):
                raise ValueError("a rule has the blocks to look at and to settle")
            if not all(block.map.fits(self.layout) for block in stage.embedding.blocks):
                raise ValueError("tables are of columns that the schema has, and of all their codes")
        scales = [b.scales(LATTICE).min() for s in self.stages for b in s.embedding.blocks]
        if min(scales) < 1 or max(self.noise_stds) > LARGEST_NOISE:
            raise UsageError(
                "plan",
                "a part of it has so small a share that only noise would come out",
                "Give it more of the budget, or leave it out",
            )

    def _check_descent(self) -> None:
        """A descent is accounted for rows that come or go, beside Gaussian noise."""
        if self.descent is None:
            return
        if self.neighbours is not Neighbours.ADD_REMOVE:
            raise UsageError("neighbours", "noisy descent is accounted for add-remove", "Use --neighbours add-remove")
        if not self.schema.privacy.is_row or self.parties > 1:
            raise UsageError(
                "method",
                "noisy descent protects single rows of one party",
                "Use a method without descent, or set privacy: {unit: row}",
            )
        spent = sum(self.cost(), Fraction(0))
        if spent > self._total:
            raise ValueError("the descent leaves less of the budget than the stages take")

    def _check_network(self) -> None:
        """What a network has cost that was learnt from the same rows adds up with costs of its kind alone."""
        if self.network_cost is None:
            return
        if not all(isinstance(self.network_cost.get(name), float | int) for name in ("epsilon", "delta")):
            raise ValueError("a private network states what it has cost, which the certificate repeats")
        if not self.schema.privacy.is_row:
            raise UsageError(
                "encoder",
                f"was learnt at a cost per row, which does not add to one per {self.schema.privacy.unit}",
                "Use a public encoder, or set privacy: {unit: row}",
            )
        if self.neighbours is not Neighbours.ADD_REMOVE:
            raise UsageError(
                "neighbours",
                "the encoder was learnt at a cost for add-remove",
                "Use --neighbours add-remove, or a public encoder",
            )
        if self.budget.delta <= self.network_charge.slack:
            raise UsageError(
                "delta",
                "is so small that the encoder, which was learnt with Gaussian noise, has used it up",
                f"Use a delta above {float(self.network_charge.slack):.1e}, or a public encoder",
            )

    @cached_property
    def layout(self) -> Layout:
        """Where the columns lie among the cells."""
        return Layout(self.schema)

    @property
    def public_inputs(self) -> tuple[PublicInput, ...]:
        """Whatever the feature maps hold of the world outside the schema: points, networks, directions of images."""
        return tuple(g for stage in self.stages for block in stage.embedding.blocks for g in block.map.public_inputs)

    @property
    def mechanism(self) -> Mechanism:
        """Discrete Gaussian or discrete Laplace noise, and its accounting."""
        return mechanism_for(self.budget)

    @cached_property
    def mechanism_sensitivities(self) -> tuple[tuple[int, ...], ...]:
        """Integer sensitivity of every release, by stage, for the plan's neighbours.

        In the mechanism's additive units: squares of Euclidean norms, or L1 norms.
        """
        return self._sensitivities(self.neighbours)

    def _sensitivities(self, neighbours: Neighbours) -> tuple[tuple[int, ...], ...]:
        is_replaced, unit = (neighbours_by_name(neighbours) is Neighbours.REPLACE_ONE, self.schema.privacy)
        # All rows of an id go, and if it is replaced, as many others come (proofs/units.md).
        moved = 1 if unit.is_row else (2 if is_replaced else 1) * unit.max_rows
        factor = moved if self.budget.is_pure else moved**2
        of_row = (
            stage.embedding.mechanism_sensitivities(self.lattice, replace=is_replaced and unit.is_row)
            for stage in self.stages
        )
        return tuple(tuple(factor * part for part in parts) for parts in of_row)

    @cached_property
    def charge(self) -> Charge:
        """What the descent costs; nothing, if there is none."""
        if self.descent is None:
            return NO_CHARGE
        return self.descent.cost.charge(slack_for(self.budget, self.descent.cost.sampling_rate))

    @property
    def network_cost(self) -> dict[str, Any] | None:
        """What the network that features are taken from has cost, if it was learnt from the private rows before."""
        return (self.setting("encoder") or {}).get("private_cost") or None

    @cached_property
    def network_charge(self) -> Charge:
        """The same as a charge; nothing, if there is no such network."""
        if self.network_cost is None:
            return NO_CHARGE
        return decode(Charge, {name: self.network_cost[name] for name in ("mu_squared", "slack")})

    @property
    def network_has_test_noise(self) -> bool:
        """Whether the network was learnt with noise that protects nobody; then nothing made with it does."""
        return self.network_cost is not None and not self.network_cost.get("is_private", True)

    @property
    def network_noise(self) -> str:
        """Where the noise came from that the network was learnt with."""
        return str((self.network_cost or {}).get("noise", "an unknown source"))

    @property
    def _total(self) -> Fraction:
        """What stages and descent may cost together, in the mechanism's units."""
        return self.mechanism.total(self.budget.without(self.charge.slack))

    @cached_property
    def noise_scales(self) -> tuple[int, ...]:
        """Integer scale of the noise of each stage, on the lattice."""
        total = self._total
        shares = [Fraction(stage.share) for stage in self.stages]
        if self.budget.is_pure:  # epsilons add up exactly, and so must their shares
            shares = [share / max(Fraction(1), sum(shares)) for share in shares]
        return tuple(
            self.mechanism.noise_scale(sum(parts), total * share)
            for share, parts in zip(shares, self.mechanism_sensitivities, strict=True)
        )

    @cached_property
    def noise_stds(self) -> tuple[float, ...]:
        """Standard deviation of the noise of each stage, on the lattice; that of all parties together."""
        times = math.sqrt(self.parties)
        return tuple(times * self.mechanism.deviation(scale) for scale in self.noise_scales)

    def noise_std_of_sum(self, stage: int, block: Block) -> float:
        """Noise on the sum of a feature of a block, in units of the feature; the largest, if
        features differ in the last digits.
        """
        return float(self.noise_stds[stage] / block.scales(self.lattice).min())

    def cost(self, neighbours: Neighbours | None = None) -> tuple[Fraction, ...]:
        """Cost of every separately charged release, in order, as the mechanism counts: in mu
        squared or in epsilon. The descent's comes last, and leaves the chance ``charge.slack``.
        """
        stages = tuple(chain.from_iterable(self.stage_costs(neighbours)))
        if self.descent is not None and neighbours is Neighbours.REPLACE_ONE:
            raise UsageError("neighbours", "noisy descent is charged for add-remove", "Make a ledger for add-remove")
        return stages if self.descent is None else (*stages, self.charge.mu_squared)

    def stage_costs(self, neighbours: Neighbours | None = None) -> tuple[tuple[Fraction, ...], ...]:
        """The costs of the stages alone, stage by stage."""
        sensitivities = self._sensitivities(neighbours or self.neighbours)
        return tuple(
            tuple(self.mechanism.cost(part, scale) for part in parts)
            for parts, scale in zip(sensitivities, self.noise_scales, strict=True)
        )

    @cached_property
    def charges(self) -> tuple[Charge, ...]:
        """Everything that the guarantee rests on, as Gaussian mechanisms: the stages, the descent, and the
        network that was learnt from the same rows before. A ledger is charged ``cost`` for what is new of it.
        """
        stages = chain.from_iterable(self.stage_costs())
        own = [Charge(cost) for cost in self.mechanism.mu_squared(stages)]
        own += [] if self.descent is None else [self.charge]
        return (*own, *([] if self.network_cost is None else [self.network_charge]))

    def epsilon(self, neighbours: Neighbours | None = None, *, delta: float | None = None) -> float:
        """The epsilon of the release and of the network that it was made with, at a delta, by default the budget's."""
        delta = self.budget.delta if delta is None else delta
        if self.network_cost is None:
            return self.own_epsilon(neighbours, delta=delta)
        whole = sum(self.charges, NO_CHARGE)
        if neighbours is Neighbours.REPLACE_ONE:
            return epsilon_of_replacement(whole.epsilon, delta)
        return whole.epsilon(delta)

    def own_epsilon(self, neighbours: Neighbours | None = None, *, delta: float | None = None) -> float:
        """The epsilon that the release's own noise gives; this is what the budget is for."""
        delta = self.budget.delta if delta is None else delta
        if self.descent is None:
            return self.mechanism.epsilon(self.cost(neighbours), delta)
        cost, beside = self.descent.cost, tuple(chain.from_iterable(self.stage_costs()))
        whole = sum(map(Charge, beside), self.charge)

        def least(part: float) -> float:
            """By privacy loss distributions or as almost Gaussian mechanisms: neither is ever below the truth."""
            return min(cost.epsilon(part, beside=beside), whole.epsilon(part))

        return epsilon_of_replacement(least, delta) if neighbours is Neighbours.REPLACE_ONE else least(delta)

    @property
    def best_guess(self) -> float:
        """How often the best attacker is right about one person, from a coin toss."""
        if self.budget.is_pure:
            return self.mechanism.best_guess(self.cost())
        return sum(self.charges, NO_CHARGE).best_guess

    @property
    def exceedance(self) -> float:
        """How often, at most, odds about one person move past what epsilon allows."""
        if self.descent is None and self.network_cost is None:
            return self.mechanism.exceedance(self.cost(), self.epsilon())
        return sum(self.charges, NO_CHARGE).exceedance(self.epsilon())

    def embeddings(self, vectors: Sequence[npt.NDArray[np.int64]]) -> tuple[Embedding, ...]:
        """The embeddings of the first ``len(vectors) + 1`` stages, rules applied."""
        nothing = np.empty(0, dtype=np.int64)
        found: list[Measurement] = []
        for index, stage in enumerate(self.stages[: len(vectors) + 1]):
            vector = vectors[index] if index < len(vectors) else nothing
            noise = self.noise_stds[index], self.lattice, self.mechanism.deviations
            embedding = stage.embedding
            if stage.rule is not None:
                embedding = RULES[stage.rule](Measurement(embedding, nothing, *noise), found)
                self._check_settled(stage.embedding, embedding)
            found.append(Measurement(embedding, vector, *noise))
        return tuple(measurement.embedding for measurement in found)

    def _check_settled(self, planned: Embedding, settled: Embedding) -> None:
        """A rule may choose what is measured, never how far a row can move it, nor more than memory holds."""
        if settled.dim > MOST_NUMBERS:
            raise ValueError("a rule would release more numbers than memory holds")
        for replaced in (False, True):
            before, after = (
                embedding.mechanism_sensitivities(self.lattice, replace=replaced) for embedding in (planned, settled)
            )
            same = planned.label == settled.label and planned.norm is settled.norm
            if before != after or not same:
                raise ValueError("a rule has changed the sensitivity of its stage")

    def setting(self, name: str, default: Any = None) -> Any:
        """A public setting of the method."""
        return dict(self.settings).get(name, default)

    def to_dict(self) -> dict[str, Any]:
        """The plan in its canonical form."""
        return encode(self) | {"lattice_bits": LATTICE_BITS, "settings": dict(self.settings)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form."""
        return canonical_sha256(self.to_dict())


def plan_from_dict(document: dict[str, Any]) -> Plan:
    """Read a plan back from its canonical form."""
    try:
        if document["lattice_bits"] != LATTICE_BITS:
            raise ValueError("another version's plan")
        # Whatever else it says has no say: noise and cost follow from these fields.
        fields = {key: value for key, value in document.items() if key in keys_of(Plan)}
        return decode(Plan, fields | {"settings": list(document["settings"].items())})
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, UsageError):
        pass
    raise InputError(
        "plan",
        "its description is damaged or from another version of Understudy",
        "Use the version that made it, or fetch it again",
    )
