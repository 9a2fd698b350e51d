"""Incremental releases: rows of new people added to an earlier one, by parallel composition (proofs/parties.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.private.noise import ExactNoise, NoiseSource
from understudy.private.passes import Run, sum_table
from understudy.private.release import check_read_again, noisy, release_facts
from understudy.private.spending import Receipt, release_bill, spend
from understudy.private.sums import Work, check_row_independence
from understudy.released.assumptions import facts_of_all
from understudy.released.release import Release, Settled


def append_rows(
    data: object,
    earlier: Release,
    *,
    directory: Path | str | None = None,
    query: str | None = None,
    ledger: Path | str | None = None,
    key: str | None = None,
    run: Run | None = None,
    noise: NoiseSource | None = None,
) -> Release:
    """A release of the rows of an earlier one and of these together, which reads these alone.

    They are measured by the earlier release's maps, under its plan and with the whole noise of it, and
    their noisy sums are added to its own. The ledger is that of the new rows' people.

    Guarantee:
        For these rows this is the plan's mechanism, charged before noise is drawn; for those before it is
        post-processing. Whoever has rows in one part only is protected by the plan's epsilon, once (proofs/parties.md).
    """
    if earlier.weights:
        raise UsageError("release", "was trained on its rows, and what was learnt does not add up", "Make a new one")
    plan = replace(earlier.plan, parties=earlier.plan.parties + 1)  # refuses public row counts
    if len(plan.stages) > 1:
        check_read_again(data)
    source, earlier_facts = noise or ExactNoise(), dict(earlier.facts)
    own = dict(release_facts(source, query))
    works = [Work(plan.layout, embedding, plan.lattice) for embedding in earlier.embeddings]

    def check() -> None:
        for work in works:
            check_row_independence(work.layout, work.embedding, work.lattice)

    def total(work: Work) -> Integers:
        return sum_table(data, work, query=query, run=run or Run())[:-1]

    def draw(first: Integers, receipt: Receipt) -> tuple[Integers, ...]:
        found = []
        for stage, (work, before) in enumerate(zip(works, earlier.vectors, strict=True)):
            sums = total(work) if stage else first
            found.append(_sum(before, noisy(sums, plan, stage, source, receipt)))
        return tuple(found)

    def make(vectors: tuple[Integers, ...], receipt: Receipt) -> Release:
        facts = (
            own
            | facts_of_all([earlier_facts, own])
            | {
                "ledger": receipt.charged,
                "appended": int(earlier_facts.get("appended", 0)) + 1,
                "appended_to": earlier.fingerprint,
            }
        )
        facts |= {name: earlier_facts[name] for name in ("merged_from",) if earlier_facts.get(name)}
        settled = earlier.settled
        if settled is None and any(stage.rule is not None for stage in plan.stages):
            settled = Settled(earlier.vectors, earlier.plan.parties)
        return Release(plan, vectors, tuple(facts.items()), settled=settled)

    return spend(
        release_bill(plan),
        ledger=ledger,
        key=key,
        directory=directory,
        check=check,
        read=lambda: total(works[0]),
        draw=draw,
        make=make,
    )


def _sum(before: Integers, vector: Integers) -> Integers:
    if int(np.abs(before).max(initial=0)) + int(np.abs(vector).max(initial=0)) >= 2**63:
        raise InputError("release", "is too large to be added to", "Make a release of its own")
    return before + vector
