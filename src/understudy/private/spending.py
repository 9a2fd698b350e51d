"""Spending of the privacy budget, with a write-ahead charge: resume, afford, check, read, charge, noise, publish.

Releases, appended rows, sums of parties, classifiers and encoders differ in what they read and which noise they
draw; ``spend`` has the order of the steps. Noise sources ask for the ``Receipt`` that its charge makes, so that
noise which nobody paid for is an error of types, and refused at run time (proofs/ledger.md).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from understudy.accounting.mechanisms import Neighbours
from understudy.errors import BudgetError, InputError, UsageError
from understudy.files import check_new_directory, write_directory
from understudy.plan.descent import TrainedPlan
from understudy.plan.plan import Plan
from understudy.private import ledger as ledgers
from understudy.private.ledger import LedgerState
from understudy.private.sealed import sealed
from understudy.schema import Schema


class Product(Protocol):
    """A release, a classifier or an encoder: a directory of files with a certificate."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything released."""

    @property
    def is_private(self) -> bool:
        """Whether all noise that it rests on was real."""

    @property
    def facts(self) -> tuple[tuple[str, Any], ...]:
        """Its public circumstances, the query among them."""

    def files(self) -> dict[str, bytes]:
        """Every file of its directory."""


_Product = TypeVar("_Product", bound=Product)
_Private = TypeVar("_Private")
_Noisy = TypeVar("_Noisy")


@dataclass(frozen=True)
class Bill:
    """What a plan, or one stage of it, asks a ledger for; all of it is public.

    ``costs_in`` gives one cost for each mechanism, in what a ledger counts and for its notion of neighbours.
    """

    plan_id: str
    what: str  # a method, or what is trained
    schema: Schema
    num_draws: int  # noisy vectors that it pays for
    costs_in: Callable[[str | Path, LedgerState], tuple[Fraction, ...]]
    slack: Fraction = Fraction(0)
    is_pure: bool = False

    def new_key(self) -> str:
        """A random idempotency key, for a product whose maker named none."""
        return f"{self.schema.name}-{secrets.token_hex(6)}"


_CHARGE = object()
"""Known to the charge alone: whoever makes a receipt must show it."""

_UNDRAWN: WeakKeyDictionary[Receipt, tuple[str, int]] = WeakKeyDictionary()
"""Which plan each receipt pays for, and how many noisy vectors of it still. Copies of a receipt are not in it."""

_LOCK = Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _UNDRAWN.clear())  # or two processes would draw what was paid for once


@dataclass(frozen=True, eq=False)
class Receipt:
    """That noise may be drawn, and how often: it was charged to a row of a ledger, or there is no ledger.

    Guarantee:
        ``charge`` alone makes one that a noise source accepts, after the ledger's commit. It pays for the
        noisy vectors of one bill, each once, in this process alone; a copy pays for nothing (proofs/ledger.md).
    """

    plan_id: str
    key: str | None
    row: int | None
    """The row of the ledger; None if no ledger was given, and none was charged."""

    made_by: InitVar[object]

    def __post_init__(self, made_by: object) -> None:
        if made_by is not _CHARGE:
            raise UsageError("receipt", "is made by a charge alone", "Go through understudy.private.spending")

    @property
    def charged(self) -> dict[str, Any] | None:
        """What a certificate says of the ledger."""
        return {"key": self.key, "row": self.row} if self.row is not None else None

    def check_plan(self, plan_id: str) -> None:
        """Refuse to pay for the noise of another plan."""
        if _left(self)[0] != plan_id:
            raise UsageError("receipt", "is for another plan", "Charge this one")


def redeem(receipt: Receipt) -> None:
    """Pay for one noisy vector. Every source of noise does this before it draws."""
    with _LOCK:
        plan_id, left = _left(receipt)
        if left < 1:
            raise UsageError("noise", "is not paid for", "Charge it first; a receipt pays for each noisy vector once")
        _UNDRAWN[receipt] = plan_id, left - 1


def _left(receipt: object) -> tuple[str, int]:
    """The plan and the vectors that a receipt still pays for: what the charge noted, whatever the receipt says."""
    return _UNDRAWN.get(receipt, ("", 0)) if type(receipt) is Receipt else ("", 0)


def release_bill(plan: Plan, *, stage: int | None = None) -> Bill:
    """What a release costs, or one stage of it."""

    def costs_in(ledger: str | Path, state: LedgerState) -> tuple[Fraction, ...]:
        # A replace-one release tells the row count, which an add-remove ledger promises to hide.
        if state.neighbours is Neighbours.ADD_REMOVE and plan.neighbours is Neighbours.REPLACE_ONE:
            raise InputError(
                f"ledger '{ledger}'",
                "hides the row count (add-remove), and a replace-one release tells it",
                "Release with --neighbours add-remove, or make a ledger with --neighbours replace-one",
            )
        notion = state.neighbours
        costs = plan.cost(notion) if stage is None else plan.stage_costs(notion)[stage]
        if not state.is_pure:
            return plan.mechanism.mu_squared(costs)
        if not plan.budget.is_pure:
            raise _no_delta(ledger, "Release with --delta 0, or make a ledger with a delta above 0")
        return costs

    steps = plan.descent.cost.steps if plan.descent is not None else 0
    return Bill(
        plan.fingerprint,
        plan.method,
        plan.schema,
        num_draws=len(plan.stages) + steps if stage is None else 1,
        costs_in=costs_in,
        slack=plan.charge.slack,
        is_pure=plan.budget.is_pure,
    )


def training_bill(plan: TrainedPlan, what: str) -> Bill:
    """What noisy descent costs that trains a classifier or an encoder: every step, and what is released beside it."""

    def costs_in(ledger: str | Path, state: LedgerState) -> tuple[Fraction, ...]:
        costs = tuple(each.mu_squared for each in plan.descent.charges)
        if state.is_pure:
            raise _no_delta(ledger, "Make a ledger with a delta above 0")
        if state.neighbours is Neighbours.ADD_REMOVE:
            return costs
        if plan.descent.cost.is_sampled:
            raise InputError(
                f"ledger '{ledger}'",
                "counts replaced rows, and sampling them is not accounted for",
                "Use a sampling rate of 1, or a ledger with --neighbours add-remove",
            )
        return tuple(4 * cost for cost in costs)  # replacing a row is removing one and adding one

    return Bill(
        plan.fingerprint,
        what,
        plan.schema,
        num_draws=plan.descent.cost.steps + len(plan.descent.beside),
        costs_in=costs_in,
        slack=sum((each.slack for each in plan.descent.charges), Fraction(0)),
    )


def _no_delta(ledger: str | Path, remedy: str) -> InputError:
    return InputError(
        f"ledger '{ledger}'", "is for pure differential privacy (delta 0), which Gaussian noise has not", remedy
    )


@dataclass(frozen=True)
class Account:
    """Who pays for a product, and how it is found again.

    Args:
        ledger: charged before noise is drawn, and told what came of it.
        key: names the product in the ledger; by default it is a new random name.
        directory: where to write the product; it must not exist.
        query: what selects its rows; a key is resumed with the same one only.
    """

    ledger: str | Path | None
    key: str | None
    directory: str | Path | None
    query: str | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.ledger is None:
            raise UsageError("key", "names a product in a ledger, and none was given", "Add --ledger FILE")


def spend(
    bill: Bill,
    account: Account,
    *,
    check: Callable[[], None],
    read: Callable[[], _Private],
    draw: Callable[[_Private, Receipt], _Noisy],
    make: Callable[[_Noisy, Receipt], _Product],
    load: Callable[[str], _Product] | None = None,
) -> _Product:
    """Make a product, or give back the one that was paid for under the same key.

    Args:
        bill: what it costs.
        account: who pays for it, and where it is kept.
        check: probes of this machine on made-up rows; see ``paid``.
        read: gives what has no noise yet; see ``paid``.
        draw: adds the noise; see ``paid``.
        make: the product, from what is noisy and public.
        load: reads a stored product; without it a key is never resumed.

    Guarantee:
        If rows are refused in the first pass, nothing is spent; nothing is written before all noise has been
        drawn, and no noise is drawn before it is charged (proofs/ledger.md).
    """
    ledger, directory = account.ledger, account.directory
    if directory is not None:
        check_new_directory(directory)
    if load is not None:
        found = _stored(account, bill.plan_id, load)
        if found is not None:
            publish(found.fingerprint, found.files, directory=directory)
            return found
    noisy, receipt = paid(bill, ledger=ledger, key=account.key or bill.new_key(), check=check, read=read, draw=draw)
    product = make(noisy, receipt)
    publish(product.fingerprint, product.files, directory=directory, ledger=ledger, receipt=receipt)
    return product


def paid(
    bill: Bill,
    *,
    ledger: str | Path | None,
    key: str | None,
    read: Callable[[], _Private],
    draw: Callable[[_Private, Receipt], _Noisy],
    check: Callable[[], None] | None = None,
    ahead: Sequence[Bill] = (),
) -> tuple[_Noisy, Receipt]:
    """Afford, check, read, charge and draw noise, in this order; give what is noisy, and its receipt.

    Args:
        bill: what is charged.
        ledger: where; None says that nobody counts.
        key: names it in the ledger.
        read: gives what has no noise yet, and refuses rows that must not be released. PRIVATE.
        draw: adds the noise that the receipt pays for; it may read further stages, settled by this noise.
        check: probes of this machine on made-up rows, before anything is read or paid; or ``read`` begins with them.
        ahead: later bills of the same plan that the ledger must have room for as well.
    """
    if ledger is not None:
        _check_affordable(ledger, str(key), (bill, *ahead))
    if check is not None:
        check()

    def steps() -> tuple[_Noisy, Receipt]:  # what they hold is in no frame that an error could show
        private = read()
        receipt = charge(bill, ledger=ledger, key=key)
        return draw(private, receipt), receipt

    return sealed(steps)


def charge(bill: Bill, *, ledger: str | Path | None, key: str | None) -> Receipt:
    """Pay, in the ledger's notion of neighbours: the receipt is made after the commit.

    Without a ledger, the receipt says so: it has no row.
    """
    row: int | None = None
    if ledger is not None:
        row = ledgers.spend(
            ledger,
            key=str(key),
            plan_id=bill.plan_id,
            costs=bill.costs_in(ledger, ledgers.read_ledger(ledger)),
            description=f"{bill.what} on {bill.schema.name}",  # for people alone
            unit=bill.schema.privacy.unit,
            slack=bill.slack,
        )
    receipt = Receipt(bill.plan_id, key, row, _CHARGE)
    _UNDRAWN[receipt] = bill.plan_id, bill.num_draws
    return receipt


def _check_affordable(ledger: str | Path, key: str, bills: Sequence[Bill]) -> None:
    """Refuse what the ledger would refuse, before rows are read; bills are charged one by one."""
    state, first = ledgers.read_ledger(ledger), bills[0]
    try:
        costs = tuple(cost for bill in bills for cost in bill.costs_in(ledger, state))
        unit = first.schema.privacy.unit
        ledgers.check_affordable(ledger, costs, key=key, plan_id=first.plan_id, unit=unit, slack=first.slack)
    except BudgetError as refusal:
        if not first.is_pure or state.is_pure:
            raise
        remedy = "Keep a ledger made with --delta 0 for pure releases: among Gaussian ones they cost more"
        raise BudgetError(refusal.where, refusal.rule, remedy) from None


def _stored(account: Account, plan_id: str, load: Callable[[str], _Product]) -> _Product | None:
    """What was paid for before under a key, if its directory is still there, unchanged and private.

    Giving out the same bits again costs nothing. Those of another query would be of other rows.
    """
    if account.ledger is None or account.key is None:
        return None
    row = ledgers.find_published(account.ledger, key=account.key, plan_id=plan_id)
    if row is None or row.directory is None or not Path(row.directory).is_dir():
        return None
    found = load(row.directory)
    if found.fingerprint != row.fingerprint or not found.is_private:
        return None
    if dict(found.facts).get("query") != account.query:
        raise InputError(f"key '{account.key}'", "was used with another query", "Choose a new key")
    return found


def publish(
    fingerprint: str,
    files: Callable[[], dict[str, bytes]] = dict,
    *,
    directory: str | Path | None = None,
    ledger: str | Path | None = None,
    receipt: Receipt | None = None,
) -> None:
    """Write files, if they are to be kept, and tell the ledger's row what came of it."""
    if directory is not None:
        write_directory(directory, files())
    if ledger is not None and receipt is not None and receipt.row is not None:
        where = str(Path(directory).resolve()) if directory is not None else None
        ledgers.mark_published(ledger, receipt.row, fingerprint=fingerprint, directory=where)
