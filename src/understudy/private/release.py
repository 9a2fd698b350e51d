"""Make a release: exact integer aggregation of private rows, a write-ahead charge, then discrete noise.

The one step that reads private rows; all that follows it is post-processing.
"""

from __future__ import annotations

import datetime as dt
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.accounting import Neighbours
from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.features.perceptual import NetworkLayers
from understudy.plan.plan import Plan
from understudy.private.dpsgd.networks import Images, Weights, check_decoder, read_images, train_decoder
from understudy.private.noise import ExactNoise, NoiseSource
from understudy.private.passes import Run, can_be_read_again, sum_table
from understudy.private.spending import Receipt, release_bill, spend
from understudy.private.sums import Work, check_row_independence
from understudy.released.release import Release, load_release

SOFTWARE = ("understudy", "numpy", "opendp", "dp-accounting")


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
        key: names this release in the ledger. The same key and plan give the stored release back,
            at no further cost and without reading the data. By default it is a new random name.
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

    def total_after(vectors: tuple[Integers, ...]) -> Integers:
        total = private_total(data, plan, vectors, query=query, run=how)
        check_row_count(plan, int(total[-1]))
        return total[:-1]

    def read() -> tuple[Images | None, Integers]:
        if len(plan.stages) > 1 or plan.descent is not None:
            check_read_again(data)
        images = read_images(data, plan, query=query) if plan.descent is not None else None
        return images, total_after(())

    def draw(private: tuple[Images | None, Integers], receipt: Receipt) -> tuple[tuple[Integers, ...], Weights]:
        images, first = private
        weights: Weights = {}
        if plan.descent is not None and images is not None:
            weights = train_decoder(images, plan.descent, noise=source, receipt=receipt)
        vectors: tuple[Integers, ...] = (noisy(first, plan, 0, source, receipt),)
        while len(vectors) < len(plan.stages):
            vectors = (*vectors, noisy(total_after(vectors), plan, len(vectors), source, receipt))
        return vectors, weights

    def make(found: tuple[tuple[Integers, ...], Weights], receipt: Receipt) -> Release:
        vectors, weights = found
        return Release(plan, vectors, (*facts(), ("ledger", receipt.charged)), tuple(sorted(weights.items())))

    return spend(
        release_bill(plan),
        ledger=ledger,
        key=key,
        directory=directory,
        check=check,
        read=read,
        draw=draw,
        make=make,
        load=load_release,
    )


def check_read_again(data: object) -> None:
    """Refuse a stream where rows are read once per stage."""
    if not can_be_read_again(data):
        raise InputError(
            "data",
            "the plan reads it once per stage, and a stream can be read once",
            "Pass a file, a table or a dataset",
        )


def work_of(plan: Plan, vectors: tuple[Integers, ...]) -> Work:
    """What the next stage sums, given the noisy vectors before it."""
    return Work(plan.layout, plan.embeddings(vectors)[len(vectors)], plan.lattice)


def private_total(data: object, plan: Plan, vectors: tuple[Integers, ...], *, query: str | None, run: Run) -> Integers:
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
