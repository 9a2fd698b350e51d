"""Make a release: the one step that reads private rows."""

from __future__ import annotations

import datetime as dt
import platform
import secrets
from collections.abc import Iterable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.accounting import Neighbours
from understudy.arrays import Integers
from understudy.errors import BudgetError, InputError, UsageError
from understudy.files import check_new_directory
from understudy.plan.plan import Plan
from understudy.private import ledger as ledgers
from understudy.private.dpsgd.decoder import Arrays, check_decoder, read_images, train_decoder
from understudy.private.engines.passes import Run, can_be_read_again, sum_table
from understudy.private.ledger import described
from understudy.private.noise import ExactNoise, NoiseSource
from understudy.private.row_independence import check_purity
from understudy.private.sealed import sealed
from understudy.private.spending import publish, stored
from understudy.private.sums import Work
from understudy.released.public_inputs import public_networks
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
        written before all noise has been added.
    """
    if plan.parties > 1:
        raise UsageError(
            "parties",
            "the plan states the noise of several parties' sums together",
            "Use understudy partial and merge, or plan without --parties",
        )
    fresh = key is None
    key = key or f"{plan.schema.name}-{secrets.token_hex(6)}"
    if directory is not None:
        check_new_directory(directory)
    if (len(plan.stages) > 1 or plan.descent is not None) and not can_be_read_again(data):
        raise InputError(
            "data",
            "the plan reads it once per stage, and a stream can be read once",
            "Pass a file, a table or a dataset",
        )
    if ledger is not None:
        found = (
            None if fresh else stored(ledger, key=key, plan_id=plan.fingerprint, load=load_release, directory=directory)
        )
        if found is not None:
            return found
        check_affordable(ledger, plan)
    for stage in plan.stages:
        check_purity(plan.layout, stage.embedding, plan.lattice)
    source = noise or ExactNoise()
    extra = ("torch",) if public_networks(plan) else ()
    facts = release_facts(source, query, (*SOFTWARE, *extra))
    row: int | None = None
    vectors: tuple[Integers, ...] = ()

    def next_vector() -> Integers:
        nonlocal row
        total = private_total(data, plan, vectors, query=query, run=run or Run())
        check_row_count(plan, int(total[-1]))
        if ledger is not None and row is None:
            row = charge(ledger, plan, key=key)
        return noisy(total[:-1], plan, len(vectors), source)

    weights: Arrays = {}
    if plan.decoder is not None:
        images = sealed(lambda: read_images(data, plan, query=query))
        check_decoder(images, plan.decoder)
        row = charge(ledger, plan, key=key) if ledger is not None else None
        weights = train_decoder(images, plan.decoder, noise=source)
    while len(vectors) < len(plan.stages):
        vectors = (*vectors, sealed(next_vector))
    charged = {"key": key, "row": row} if row is not None else None
    facts = (*facts, ("ledger", charged))
    release = Release(plan, vectors, facts, tuple(sorted(weights.items())))
    publish(release, directory=directory, ledger=ledger, row=row)
    return release


def work_of(plan: Plan, vectors: tuple[Integers, ...]) -> Work:
    """What the next stage sums, given the noisy vectors before it."""
    return Work(plan.layout, plan.embeddings(vectors)[len(vectors)], plan.lattice)


def private_total(data: object, plan: Plan, vectors: tuple[Integers, ...], *, query: str | None, run: Run) -> Integers:
    """The exact sum of the next stage, and how many rows count.  # (dim + 1,)

    PRIVATE: it must meet noise before it goes anywhere.
    """
    work = work_of(plan, vectors)
    check_purity(work.layout, work.embedding, work.lattice)
    return sum_table(data, work, query=query, run=run)


def check_row_count(plan: Plan, num_rows: int) -> None:
    """Refuse a table that has not the number of rows that replace-one makes public."""
    if plan.neighbours is Neighbours.REPLACE_ONE and num_rows != plan.num_rows:
        raise InputError(
            "row count",
            "differs from the public one that replace-one was told",
            "Mend --rows or rows: in the schema, or use --neighbours add-remove",
        )


def noisy(sums: Integers, plan: Plan, stage: int, source: NoiseSource) -> Integers:
    """The sum of a stage with the plan's noise, which makes it safe to publish once it is paid for."""
    add_noise = source.add_laplace_noise if plan.budget.is_pure else source.add_noise
    return add_noise(sums, plan.noise_scales[stage])


def check_affordable(ledger: str | Path, plan: Plan, *, stages: Iterable[int] | None = None) -> None:
    """Refuse what the ledger would refuse, before rows are read; ``stages`` are charged one by one."""
    try:
        each = [None] if stages is None else stages
        costs = tuple(cost for stage in each for cost in _cost_in(ledger, plan, stage))
        unit = plan.schema.privacy.unit
        ledgers.check_affordable(ledger, costs, unit=unit, slack=plan.charge.slack)
    except BudgetError as refusal:
        if not plan.budget.is_pure or ledgers.read_ledger(ledger).is_pure:
            raise
        where, rule = refusal.where, refusal.rule
        remedy = "Keep a ledger made with --delta 0 for pure releases: among Gaussian ones they cost more"
        raise BudgetError(where, rule, remedy) from None


def charge(ledger: str | Path, plan: Plan, *, key: str, stage: int | None = None) -> int:
    """Pay for all stages, or for one of them, in the ledger's notion of neighbours."""
    return ledgers.spend(
        ledger,
        key=key,
        plan_id=plan.fingerprint,
        costs=_cost_in(ledger, plan, stage),
        description=described(plan.method, plan.schema),
        unit=plan.schema.privacy.unit,
        slack=plan.charge.slack,
    )


def _cost_in(ledger: str | Path, plan: Plan, stage: int | None) -> tuple[Fraction, ...]:
    """What a plan, or one stage of it, costs in a ledger's notion of neighbours, and in what it counts.

    A replace-one release tells the row count, which an add-remove ledger promises to hide.
    Gaussian noise has a delta, which a pure ledger promises to be 0.
    """
    state = ledgers.read_ledger(ledger)
    notion = state.neighbours
    if notion is Neighbours.ADD_REMOVE and plan.neighbours is Neighbours.REPLACE_ONE:
        raise InputError(
            f"ledger '{ledger}'",
            "hides the row count (add-remove), and a replace-one release tells it",
            "Release with --neighbours add-remove, or make a ledger with --neighbours replace-one",
        )
    costs = plan.cost(notion) if stage is None else plan.stage_costs(notion)[stage]
    if not state.is_pure:
        return plan.mechanism.mu_squared(costs)
    if not plan.budget.is_pure:
        raise InputError(
            f"ledger '{ledger}'",
            "is for pure differential privacy (delta 0), which Gaussian noise has not",
            "Release with --delta 0, or make a ledger with a delta above 0",
        )
    return costs


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
