"""Federated releases: each party sums its own rows, and the sums are merged (proofs/parties.md).

If the plan is for one noise, a party's file holds an exact sum, encrypted for the merger, who adds the noise once.
If the plan has ``parties``, each of them adds noise of its own, and nobody else need be trusted.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy.accounting.mechanisms import round_up
from understudy.arrays import Integers
from understudy.errors import BudgetError, InputError, UsageError
from understudy.files import check_new_directory
from understudy.plan.request import Request
from understudy.private.noise import ExactNoise, NoiseSource
from understudy.private.passes import Run
from understudy.private.release import check_row_count, exact_sum, noisy, private_total, release_facts, work_of
from understudy.private.sealed import sealed
from understudy.private.secret_files import check_secret_target, read_secret, write_secret
from understudy.private.spending import Receipt, paid, publish, release_bill
from understudy.released.assumptions import facts_of_all
from understudy.released.release import Release

KIND = "partial sum"
LARGEST_DELTA = 1e-5
"""A limit on epsilon is for the request's delta, or for this one if that is larger."""


@dataclass(frozen=True)
class Answer:
    """A party's file, opened. PRIVATE unless the party's own noise is in it."""

    where: str
    header: dict[str, Any]
    vector: Integers


def write_partial(
    data: object,
    request: Request,
    *,
    party: str,
    path: Path | str,
    key: bytes,
    query: str | None = None,
    ledger: Path | str | None = None,
    max_epsilon: float | None = None,
    run: Run | None = None,
    noise: NoiseSource | None = None,
) -> dict[str, Any]:
    """Sum the rows of one party and write an encrypted file for the merger; give its public header.

    If parties add noise of their own, this one says what it allows: by ``max_epsilon``, for all rounds of the request
    together, or by a ledger, which is charged for this round before noise is drawn.

    Guarantee:
        The file tells the request, the party's name, its query and a random number. What is encrypted in it is the
        exact sum, or the party's own differentially private vector if the plan says so. Its epsilon is computed from
        the noise that is drawn here, whatever the request says of it, and no row is read if it is more than is allowed
        (proofs/parties.md).
    """
    if not party.strip() or not party.isprintable():
        raise UsageError("party", "must be a printable name", "Use the same one in every round")
    check_secret_target(path, key)
    plan, own_noise = request.plan, request.plan.parties > 1
    _check_allowed(request, ledger=ledger, max_epsilon=max_epsilon)
    if request.answered_by.get(party, query) != query:
        raise _other_query(party)
    source = noise or ExactNoise()
    header = {
        "kind": KIND,
        "request": request.fingerprint,
        "round": request.round,
        "party": party,
        "id": secrets.token_hex(16),
        "own_noise": own_noise,
        "is_private": source.is_private,
        "query": query,
    }

    def read() -> Integers:
        return private_total(data, plan, request.vectors, query=query, run=run or Run())

    def draw(total: Integers, receipt: Receipt) -> Integers:
        return noisy(total[:-1], plan, request.round, source, receipt)

    if own_noise:
        bill = release_bill(plan, stage=request.round)
        name = f"{party}-{header['id']}"
        vector, _ = paid(bill, ledger=ledger, key=name, read=read, draw=draw)
    else:  # the exact sum, which meets its noise, and the charge for it, at the merger's
        vector = sealed(read)
    write_secret(path, header, vector.astype("<i8").tobytes(), key=key)
    return header


def _check_allowed(request: Request, *, ledger: Path | str | None, max_epsilon: float | None) -> None:
    """Refuse a request that asks a party for more than it allows, or for another kind of answer."""
    plan = request.plan
    if plan.parties == 1:
        if ledger is not None:
            raise UsageError("ledger", "is charged when the parties' sums are merged", "Give it to: understudy merge")
        if max_epsilon is not None:
            raise UsageError(
                "max epsilon",
                "limits noise of a party's own, and this request asks for the exact sum of its rows",
                "Leave it out if whoever merges may see that sum; else ask for a plan made with --parties",
            )
        return
    if max_epsilon is None:
        if ledger is None:
            raise UsageError(
                "max epsilon",
                f"this answer leaves with noise of its own, for epsilon {round_up(plan.epsilon())} "
                "in all rounds, and nothing says that so much is allowed",
                "Add --max-epsilon E, or a --ledger that is charged",
            )
        return
    delta = min(plan.budget.delta, LARGEST_DELTA)
    asked = plan.epsilon(delta=delta)
    if not asked <= max_epsilon:
        raise BudgetError(
            "request",
            f"asks for epsilon {round_up(asked)} at delta {delta:g}, and at most {max_epsilon:g} is allowed",
            "Agree on a smaller epsilon, or allow more",
        )


def _other_query(party: str) -> InputError:
    return InputError(
        f"party '{party}'",
        "has another query than in the rounds before, and stages would be of different rows",
        "Use the same query in every round",
    )


def merge_partials(
    request: Request,
    paths: Sequence[Path | str],
    *,
    keys: Sequence[bytes],
    directory: Path | str | None = None,
    ledger: Path | str | None = None,
    key: str | None = None,
    noise: NoiseSource | None = None,
) -> Release | Request:
    """Add the parties' sums, and the noise once unless they added their own.

    Returns:
        The release after the last round; before it, the request of the next one.

    Guarantee:
        Sums of another request, of the same party, or the same file twice are refused. Every noise that is drawn
        is charged before, however often the same sums are merged; the first round is refused if
        the ledger has not enough for all of them (proofs/parties.md).
    """
    plan = request.plan
    if directory is not None:
        check_new_directory(directory)
    answers = [_opened(path, keys) for path in paths]
    _check_together(request, answers)
    own_noise, source = plan.parties > 1, noise or ExactNoise()
    if ledger is not None and own_noise:
        raise UsageError("ledger", "each party has charged its own", "Leave it out here")
    if not own_noise and request.round > 0 and (ledger is None) != (request.ledger is None):
        raise UsageError(
            "ledger",
            "must be the same in every round, or there must be none in any",
            "Give the one that the first round was charged to",
        )
    parts = sorted((answer.header for answer in answers), key=lambda header: str(header["party"]))
    together = facts_of_all(parts)
    receipt, charged = None, None
    if own_noise:
        refusal = InputError("partial sums", "are too large to be added", "Release parts of the table")
        vector = exact_sum([answer.vector for answer in answers], refusal)
    else:
        bill, *ahead = (release_bill(plan, stage=stage) for stage in range(request.round, len(plan.stages)))
        if ledger is not None:
            key = key or (request.ledger or {}).get("key") or bill.new_key()

        def exact() -> Integers:
            work = work_of(plan, request.vectors)
            total = work.zero_sum()
            for answer in answers:
                work.add(total, answer.vector)
            check_row_count(plan, int(total[-1]))
            return total[:-1]

        def draw(sums: Integers, receipt: Receipt) -> Integers:
            return noisy(sums, plan, request.round, source, receipt)

        # The same sums may be merged again, and the mean of many noises is less than one: each is charged.
        vector, receipt = paid(bill, ledger=ledger, key=key, read=exact, draw=draw, ahead=ahead)
        charged = receipt.charged
    after = request.after(
        vector,
        charged or request.ledger,
        is_private=source.is_private and together["is_private"],
        answered_by={header["party"]: header["query"] for header in parts},
    )
    if after.round < len(plan.stages):
        publish(after.fingerprint, ledger=ledger, receipt=receipt)
        return after
    facts = (
        dict(release_facts(source, None))
        | together
        | {"is_private": after.is_private, "ledger": after.ledger, "merged_from": len(answers)}
    )
    release = Release(plan, after.vectors, tuple(facts.items()))
    publish(release.fingerprint, release.files, directory=directory, ledger=ledger, receipt=receipt)
    return release


def _opened(path: Path | str, keys: Sequence[bytes]) -> Answer:
    header, content = read_secret(path, keys)
    where = f"file '{Path(path).name}'"
    if header.get("kind") != KIND or len(content) % 8:
        raise InputError(where, "is not a partial sum", "Make one: understudy partial --help")
    return Answer(where, header, np.frombuffer(content, "<i8").astype(np.int64))


def _check_together(request: Request, answers: Sequence[Answer]) -> None:
    """Refuse to aggregate answers to another request, repeated or missing parties, and different queries."""
    plan = request.plan
    seen: dict[str, str] = {}
    size = work_of(plan, request.vectors).embedding.dim + (plan.parties == 1)
    for answer in answers:
        header = answer.header
        if header["request"] != request.fingerprint or len(answer.vector) != size:
            raise InputError(
                answer.where,
                "was made for another request: its plan, or an earlier round, differs",
                "All parties answer the same request file; send this one to them",
            )
        for name in (f"party {header['party']}", f"id {header['id']}"):
            if name in seen:
                raise InputError(
                    answer.where,
                    f"comes from the same party as {seen[name]}, whose rows would count twice",
                    "Give one file for each party",
                )
            seen[name] = answer.where
        if header["own_noise"] != (plan.parties > 1):
            raise InputError(answer.where, "does not fit the plan's noise", "Make it again")
        if "query" not in header:
            raise InputError(
                answer.where,
                "does not say by which query its rows were selected, as files of old versions did not",
                "Make it again with this version",
            )
        if request.answered_by.get(header["party"], header["query"]) != header["query"]:
            raise _other_query(header["party"])
    others = {answer.header["party"] for answer in answers} ^ set(request.answered_by)
    if request.answered_by and others:
        raise InputError(
            "partial sums",
            f"party '{min(others)}' is not in all rounds, and stages would be of different rows",
            "Give a file of each party of the first round: " + ", ".join(request.answered_by),
        )
    wanted = plan.parties if plan.parties > 1 else max(1, len(answers))
    if len(answers) != wanted:
        raise InputError(
            "partial sums",
            f"are {len(answers)}, and the plan is for {wanted} parties",
            "The noise that the release states is that of all of them",
        )
