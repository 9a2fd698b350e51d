"""Rows of other people, added to a release that was made before them (proofs/parties.md)."""

from __future__ import annotations

import secrets
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.files import check_new_directory
from understudy.private.engines.passes import Run, can_be_read_again, sum_table
from understudy.private.noise import ExactNoise, NoiseSource
from understudy.private.release import charge, check_affordable, noisy, release_facts
from understudy.private.row_independence import check_purity
from understudy.private.sealed import sealed
from understudy.private.spending import publish
from understudy.private.sums import Work
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
        post-processing. Whoever has rows in one part only is protected by the plan's epsilon, once.
    """
    if earlier.weights:
        raise UsageError("release", "was trained on its rows, and what was learnt does not add up", "Make a new one")
    if directory is not None:
        check_new_directory(directory)
    plan = replace(earlier.plan, parties=earlier.plan.parties + 1)  # refuses public row counts
    if len(plan.stages) > 1 and not can_be_read_again(data):
        raise InputError(
            "data",
            "the plan reads it once per stage, and a stream can be read once",
            "Pass a file, a table or a dataset",
        )
    if ledger is not None:
        check_affordable(ledger, plan)
    source, told = noise or ExactNoise(), dict(earlier.facts)
    key = key or f"{plan.schema.name}-{secrets.token_hex(6)}"
    row: int | None = None

    def added(stage: int) -> Integers:
        nonlocal row
        work = Work(plan.layout, earlier.embeddings[stage], plan.lattice)
        check_purity(work.layout, work.embedding, work.lattice)
        total = sum_table(data, work, query=query, run=run or Run())
        if ledger is not None and row is None:
            row = charge(ledger, plan, key=key)
        return noisy(total[:-1], plan, stage, source)

    vectors = tuple(_sum(before, sealed(partial(added, stage))) for stage, before in enumerate(earlier.vectors))
    own = dict(release_facts(source, query))
    facts = (
        own
        | facts_of_all([told, own])
        | {
            "ledger": {"key": key, "row": row} if row is not None else None,
            "appended": int(told.get("appended", 0)) + 1,
            "appended_to": earlier.fingerprint,
        }
    )
    facts |= {name: told[name] for name in ("merged_from",) if told.get(name)}
    settled = earlier.settled
    if settled is None and any(stage.rule is not None for stage in plan.stages):
        settled = Settled(earlier.vectors, earlier.plan.parties)
    release = Release(plan, vectors, tuple(facts.items()), settled=settled)
    publish(release, directory=directory, ledger=ledger, row=row)
    return release


def _sum(before: Integers, vector: Integers) -> Integers:
    if int(np.abs(before).max(initial=0)) + int(np.abs(vector).max(initial=0)) >= 2**63:
        raise InputError("release", "is too large to be added to", "Make a release of its own")
    return before + vector
