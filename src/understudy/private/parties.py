"""Many parties: each sums its own rows, and the sums are merged (proofs/parties.md).

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

from understudy.errors import InputError, UsageError
from understudy.private import ledger as ledgers
from understudy.private.engines.passes import Run
from understudy.private.noise import ExactNoise, Integers, NoiseSource
from understudy.private.products import publish
from understudy.private.release import (
    charge,
    check_affordable,
    check_row_count,
    noisy,
    private_total,
    release_facts,
    work_of,
)
from understudy.private.requests import Request
from understudy.private.sealed import sealed
from understudy.private.secret_files import read_secret, write_secret
from understudy.published.directories import check_new_directory
from understudy.published.release import Release

KIND = "partial sum"


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
    run: Run | None = None,
    noise: NoiseSource | None = None,
) -> dict[str, Any]:
    """Sum the rows of one party and write an encrypted file for the merger; give its public header.

    If parties add noise of their own, the ledger is charged for this round before noise is drawn.

    Guarantee:
        The file tells the request, the party's name and a random number. What is encrypted in it is the exact
        sum, or the party's own differentially private vector if the plan says so.
    """
    if not party.strip() or not party.isprintable():
        raise UsageError("party", "must be a printable name", "Use the same one in every round")
    if Path(path).exists():
        raise InputError(f"file '{path}'", "exists already", "Choose another name")
    plan, own_noise = request.plan, request.plan.parties > 1
    if ledger is not None and not own_noise:
        raise UsageError(
            "ledger", "is charged when the parties' sums are merged", "Give it to: understudy merge"
        )
    source = noise or ExactNoise()
    if ledger is not None:
        check_affordable(ledger, plan, stages=[request.round])
    header = {
        "kind": KIND, "request": request.fingerprint, "round": request.round, "party": party,
        "id": secrets.token_hex(16), "own_noise": own_noise, "is_private": source.is_private,
    }  # fmt: skip

    def content() -> Integers:
        total = private_total(data, plan, request.vectors, query=query, run=run or Run())
        if not own_noise:
            return total
        if ledger is not None:
            charge(ledger, plan, key=f"{party}-{header['id']}", stage=request.round)
        return noisy(total[:-1], plan, request.round, source)

    vector = sealed(content)
    write_secret(path, header, vector.astype("<i8").tobytes(), key=key)
    return header


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
        the ledger has not enough for all of them.
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
            "ledger", "must be the same in every round, or there must be none in any",
            "Give the one that the first round was charged to",
        )  # fmt: skip
    charged = request.ledger
    if own_noise:
        vector = _added(answers)
        is_private = all(answer.header["is_private"] for answer in answers)
    else:
        if ledger is not None:
            check_affordable(ledger, plan, stages=range(request.round, len(plan.stages)))

        def exact() -> Integers:
            work = work_of(plan, request.vectors)
            total = work.nothing()
            for answer in answers:
                work.add(total, answer.vector)
            check_row_count(plan, int(total[-1]))
            return total[:-1]

        sums, is_private = sealed(exact), source.is_private
        if ledger is not None:
            key = key or (charged or {}).get("key") or f"{plan.schema.name}-{secrets.token_hex(6)}"
            # The same sums may be merged again, and the mean of many noises is less than one.
            row = charge(ledger, plan, key=key, stage=request.round)
            charged = {"key": key, "row": row}
        vector = sealed(lambda: noisy(sums, plan, request.round, source))
    names = tuple(sorted(answer.header["party"] for answer in answers))
    following = request.after(vector, charged, is_private=is_private, answered_by=names)
    if following.round < len(plan.stages):
        if ledger is not None and charged is not None:
            ledgers.mark_published(
                ledger, charged["row"], fingerprint=following.fingerprint, directory=None
            )
        return following
    facts = dict(release_facts(source, None)) | {
        "is_private": following.is_private, "ledger": charged, "merged_from": len(answers),
    }  # fmt: skip
    release = Release(plan, following.vectors, tuple(facts.items()))
    paid = charged["row"] if charged is not None else None
    publish(release, directory=directory, ledger=ledger, row=paid)
    return release


def _opened(path: Path | str, keys: Sequence[bytes]) -> Answer:
    header, content = read_secret(path, keys)
    where = f"file '{Path(path).name}'"
    if header.get("kind") != KIND or len(content) % 8:
        raise InputError(where, "is not a partial sum", "Make one: understudy partial --help")
    return Answer(where, header, np.frombuffer(content, "<i8").astype(np.int64))


def _check_together(request: Request, answers: Sequence[Answer]) -> None:
    """Refuse sums that must not be added."""
    plan = request.plan
    seen: dict[str, str] = {}
    size = work_of(plan, request.vectors).embedding.dim + (plan.parties == 1)
    for answer in answers:
        told = answer.header
        if told["request"] != request.fingerprint or len(answer.vector) != size:
            raise InputError(
                answer.where, "was made for another request: its plan, or an earlier round, differs",
                "All parties answer the same request file; send this one to them",
            )  # fmt: skip
        for name in (f"party {told['party']}", f"id {told['id']}"):
            if name in seen:
                raise InputError(
                    answer.where, f"comes from the same party as {seen[name]}, whose rows would count twice",
                    "Give one file for each party",
                )  # fmt: skip
            seen[name] = answer.where
        if told["own_noise"] != (plan.parties > 1):
            raise InputError(answer.where, "does not fit the plan's noise", "Make it again")
    others = {answer.header["party"] for answer in answers} ^ set(request.answered_by)
    if request.answered_by and others:
        raise InputError(
            "partial sums", f"party '{min(others)}' is not in all rounds, and stages would be of different rows",
            "Give a file of each party of the first round: " + ", ".join(request.answered_by),
        )  # fmt: skip
    wanted = plan.parties if plan.parties > 1 else max(1, len(answers))
    if len(answers) != wanted:
        raise InputError(
            "partial sums", f"are {len(answers)}, and the plan is for {wanted} parties",
            "The noise that the release states is that of all of them",
        )  # fmt: skip


def _added(answers: Sequence[Answer]) -> Integers:
    """The sum of noisy vectors, if integers hold it."""
    largest = sum(int(np.abs(answer.vector).max(initial=0)) for answer in answers)
    if largest >= 2**63:
        raise InputError("partial sums", "are too large to be added", "Release parts of the table")
    total: Integers = np.sum([answer.vector for answer in answers], axis=0, dtype=np.int64)
    return total
