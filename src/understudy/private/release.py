"""Make a release: exact integer aggregation of private rows, a write-ahead charge, then discrete noise.

The one step that reads private rows; all that follows it is post-processing. Rows of new people are added to an earlier
release by parallel composition (proofs/parties.md).
"""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from understudy.accounting.mechanisms import Neighbours
from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.features.perceptual import NetworkLayers
from understudy.plan.plan import Plan
from understudy.private.dpsgd.networks import Weights, check_decoder, read_images, train_decoder
from understudy.private.dpsgd.steps import Arrays
from understudy.private.noise import ExactNoise, NoiseSource
from understudy.private.passes import Run, check_read_again, sum_table
from understudy.private.spending import Account, Receipt, release_bill, spend
from understudy.private.sums import Work, check_row_independence
from understudy.released.assumptions import facts_of_all
from understudy.released.release import Release, Settled, load_release

Vectors = tuple[Integers, ...]

SOFTWARE = ("understudy", "numpy", "opendp", "dp-accounting")
ONCE_PER_STAGE = "the plan reads it once per stage"
"""Why a stream is refused."""


def release_table(
    data: object,
    plan: Plan,
    *,
    directory: str | Path | None = None,
    ledger: str | Path | None = None,
    key: str | None = None,
    query: str | None = None,
    run: Run | None = None,
    noise: NoiseSource | None = None,
) -> Release:
    """Read private rows once per stage and publish the plan's noisy vectors.

    Args:
        data: a file, a directory or pattern of files, a data frame, an Arrow table, a dictionary of columns,
            a list of dictionaries, or a database (with ``query``).
        plan: what to release; see ``understudy.methods``.
        directory: where to write the release; it must not exist.
        ledger: an SQLite ledger made by ``create_ledger``; it is charged before noise is drawn.
        key: names this release in the ledger. The same key, plan and query give the stored release back,
            at no further cost and without reading the data; another plan or query is refused. By default it is a new
            random name.
        query: SQL that selects the rows; a file or frame is called ``data`` in it.
        run: how rows are passed over: threads and progress.
        noise: for tests only.

    Guarantee:
        What is returned and written is (epsilon, delta)-differentially private as the plan
        states. If the data is refused in the first pass, nothing is spent; nothing is ever
        written before all noise has been added (proofs/ledger.md).
    """
    if plan.parties > 1:
        raise UsageError(
            "parties",
            "the plan states the noise of several parties' sums together",
            "Use understudy partial and merge, or plan without --parties",
        )
    source, how = noise or ExactNoise(), run or Run()
    extra = ("torch",) if any(isinstance(given, NetworkLayers) for given in plan.public_inputs) else ()

    @cache
    def facts() -> tuple[tuple[str, Any], ...]:
        return release_facts(source, query, (*SOFTWARE, *extra))

    def check() -> None:
        facts()  # software that is missing is found before a row is read, and not missed if a release is resumed
        for stage in plan.stages:
            check_row_independence(plan.layout, stage.embedding, plan.lattice)
        if plan.descent is not None:
            check_decoder(plan, plan.descent)

    def total_after(vectors: Vectors) -> Integers:
        total = private_total(data, plan, vectors, query=query, run=how)
        check_row_count(plan, int(total[-1]))
        return total[:-1]

    def read() -> tuple[Arrays | None, Integers]:
        if len(plan.stages) > 1 or plan.descent is not None:
            check_read_again(data, ONCE_PER_STAGE)
        images = read_images(data, plan, query=query) if plan.descent is not None else None
        return images, total_after(())

    def draw(private: tuple[Arrays | None, Integers], receipt: Receipt) -> tuple[Vectors, Weights]:
        images, first = private
        weights: Weights = {}
        if plan.descent is not None and images is not None:
            weights = train_decoder(images, plan.descent, noise=source, receipt=receipt)
        return noisy_stages(first, plan, total_after=total_after, source=source, receipt=receipt), weights

    def make(found: tuple[Vectors, Weights], receipt: Receipt) -> Release:
        vectors, weights = found
        return Release(plan, vectors, (*facts(), ("ledger", receipt.charged)), tuple(sorted(weights.items())))

    return spend(
        release_bill(plan),
        Account(ledger, key, directory, query),
        check=check,
        read=read,
        draw=draw,
        make=make,
        load=load_release,
    )


def append_rows(
    data: object,
    earlier: Release,
    *,
    directory: str | Path | None = None,
    query: str | None = None,
    ledger: str | Path | None = None,
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
    source, earlier_facts = noise or ExactNoise(), dict(earlier.facts)
    own = dict(release_facts(source, query))
    works = [Work(plan.layout, embedding, plan.lattice) for embedding in earlier.embeddings]

    def check() -> None:
        for work in works:
            check_row_independence(work.layout, work.embedding, work.lattice)

    def total_after(vectors: Vectors) -> Integers:
        return sum_table(data, works[len(vectors)], query=query, run=run or Run())[:-1]

    def read() -> Integers:
        if len(plan.stages) > 1:
            check_read_again(data, ONCE_PER_STAGE)
        return total_after(())

    def draw(first: Integers, receipt: Receipt) -> Vectors:
        added = noisy_stages(first, plan, total_after=total_after, source=source, receipt=receipt)
        refusal = InputError("release", "is too large to be added to", "Make a release of its own")
        return tuple(exact_sum(pair, refusal) for pair in zip(earlier.vectors, added, strict=True))

    def make(vectors: Vectors, receipt: Receipt) -> Release:
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

    account = Account(ledger, key, directory)
    return spend(release_bill(plan), account, check=check, read=read, draw=draw, make=make)


def exact_sum(vectors: Sequence[Integers], refusal: InputError) -> Integers:
    """The sum of noisy vectors, if integers hold it."""
    if sum(int(np.abs(vector).max(initial=0)) for vector in vectors) >= 2**63:
        raise refusal
    total: Integers = np.sum(vectors, axis=0, dtype=np.int64)
    return total


def work_of(plan: Plan, vectors: Vectors) -> Work:
    """What the next stage sums, given the noisy vectors before it."""
    longest = max(stage.embedding.dim for stage in plan.stages)
    return Work(plan.layout, plan.embeddings(vectors)[len(vectors)], plan.lattice, longest)


def private_total(data: object, plan: Plan, vectors: Vectors, *, query: str | None, run: Run) -> Integers:
    """The exact sum of the next stage, and how many rows count.  # (dim + 1,)

    PRIVATE: it must meet noise before it goes anywhere.
    """
    work = work_of(plan, vectors)
    check_row_independence(work.layout, work.embedding, work.lattice)
    return sum_table(data, work, query=query, run=run)


def check_row_count(plan: Plan, num_rows: int) -> None:
    """Refuse a table that has not the number of rows that replace-one makes public."""
    if plan.neighbours is Neighbours.REPLACE_ONE and num_rows != plan.num_rows:
        raise InputError(
            "row count",
            "differs from the public one that replace-one was told",
            "Mend --rows or rows: in the schema, or use --neighbours add-remove",
        )


def noisy_stages(
    first: Integers, plan: Plan, *, total_after: Callable[[Vectors], Integers], source: NoiseSource, receipt: Receipt
) -> Vectors:
    """The noisy vectors of all stages: of the first stage's sum, and of those that are read after earlier vectors."""
    vectors: Vectors = (noisy(first, plan, 0, source, receipt),)
    while len(vectors) < len(plan.stages):
        vectors = (*vectors, noisy(total_after(vectors), plan, len(vectors), source, receipt))
    return vectors


def noisy(sums: Integers, plan: Plan, stage: int, source: NoiseSource, receipt: Receipt) -> Integers:
    """The sum of a stage with the plan's noise, which makes it safe to publish."""
    receipt.check_plan(plan.fingerprint)
    add_noise = source.add_laplace_noise if plan.budget.is_pure else source.add_noise
    return add_noise(sums, plan.noise_scales[stage], receipt)


def release_facts(
    source: NoiseSource, query: str | None, packages: tuple[str, ...] = SOFTWARE
) -> tuple[tuple[str, Any], ...]:
    """The public circumstances of a release: when, and with which noise and software."""
    software = {"python": platform.python_version()} | {name: version(name) for name in packages}
    return (
        ("created", dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("is_private", source.is_private),
        ("noise", source.name),
        ("query", query),
        ("software", software),
    )
