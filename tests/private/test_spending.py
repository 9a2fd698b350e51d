"""The protocol that spends privacy, and the receipts that noise asks for."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from receipts import unrecorded

from understudy.accounting.mechanisms import Budget
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.errors import InputError, UsageError
from understudy.methods import dp_merf
from understudy.plan.request import Request
from understudy.private import ledger as ledgers
from understudy.private import parties, release, spending
from understudy.private.dpsgd import classifier
from understudy.private.dpsgd.classifier import integer_rows, noisy_maps, train_classifier
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.noise import ExactNoise, LongNoise, OpenDPNoise, SeededNoise
from understudy.private.parties import merge_partials, write_partial
from understudy.private.release import append_rows, noisy, release_table
from understudy.private.spending import Account, Receipt, charge, release_bill, training_bill
from understudy.schema import load_schema

SCHEMA = load_schema(
    {
        "name": "ward",
        "rows": 40,
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 99]},
            {"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"},
        ],
    }
)
ROWS = pa.table({"age": list(range(40)), "ill": [0, 1] * 20})
PLAN = dp_merf(SCHEMA, Budget(1.0, 1e-5), num_features=20)
LEARNING = ClassifierPlan(SCHEMA, Budget(1.0, 1e-5), Training(steps=3))
KEY = bytes(32)
ZEROS = np.zeros(3, dtype=np.int64)
SOURCES = {"ExactNoise": ExactNoise, "LongNoise": LongNoise, "OpenDP": OpenDPNoise, "seeded": lambda: SeededNoise(0)}


@pytest.mark.parametrize("draw", ["add_noise", "add_laplace_noise"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_noise_without_a_receipt_is_refused(source: Callable[[], Any], draw: str) -> None:
    add = getattr(source(), draw)
    for nothing in (None, "paid", object(), {"key": "k", "row": 1}):
        with pytest.raises(UsageError, match="not paid for"):
            add(ZEROS, 10, nothing)
    with pytest.raises(TypeError):
        add(ZEROS, 10)
    assert len(add(ZEROS, 10, unrecorded(1))) == 3


def test_a_receipt_pays_for_as_many_noisy_vectors_as_were_charged() -> None:
    receipt = unrecorded(2)
    for _ in range(2):
        SeededNoise(0).add_noise(ZEROS, 10, receipt)
    with pytest.raises(UsageError, match="not paid for"):
        SeededNoise(0).add_noise(ZEROS, 10, receipt)


def test_nobody_but_the_charge_makes_a_receipt() -> None:
    with pytest.raises(UsageError, match="by a charge alone"):
        Receipt("plan", "key", 1, object())
    with pytest.raises(UsageError, match="by a charge alone"):
        Receipt("plan", "key", 1, None)


def test_a_copy_of_a_receipt_pays_for_nothing() -> None:
    receipt = unrecorded(1)
    with pytest.raises((TypeError, ValueError)):
        replace(receipt, plan_id="another")
    copies = copy.copy(receipt), copy.deepcopy(receipt), pickle.loads(pickle.dumps(receipt))
    for each in copies:
        with pytest.raises(UsageError, match="not paid for"):
            SeededNoise(0).add_noise(ZEROS, 10, each)
    with pytest.raises(AttributeError):
        receipt.plan_id = "another"  # type: ignore[misc]


def test_the_child_of_a_fork_has_no_receipts() -> None:
    """Two processes must not draw what was paid for once."""
    receipt = unrecorded(1)
    child = os.fork()
    if child == 0:
        try:
            SeededNoise(0).add_noise(ZEROS, 10, receipt)
        except UsageError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_receipt_of_another_plan_is_refused() -> None:
    other = dp_merf(SCHEMA, Budget(8.0, 1e-5), num_features=20)
    sums = np.zeros(PLAN.stages[0].embedding.dim, dtype=np.int64)
    with pytest.raises(UsageError, match="another plan"):
        noisy(sums, PLAN, 0, SeededNoise(0), charge(release_bill(other), ledger=None, key=None))
    rows = integer_rows(ROWS, LEARNING, query=None)
    with pytest.raises(UsageError, match="another plan"):
        noisy_maps(rows, LEARNING, noise=SeededNoise(0), receipt=charge(release_bill(PLAN), ledger=None, key=None))


def test_a_receipt_says_whether_a_ledger_was_charged(tmp_path: Path) -> None:
    create_ledger(tmp_path / "ledger", Budget(9.0, 1e-5))
    paid = charge(release_bill(PLAN), ledger=tmp_path / "ledger", key="k")
    assert (paid.plan_id, paid.charged) == (PLAN.fingerprint, {"key": "k", "row": 1})
    assert charge(release_bill(PLAN), ledger=None, key="k").charged is None


@pytest.mark.parametrize("look", [0.0, 0.3])
def test_a_training_is_charged_for_the_noise_of_every_step_and_no_more(look: float) -> None:
    plan = ClassifierPlan(SCHEMA, Budget(1.0, 1e-5), Training(steps=3, look=look))
    receipt = charge(training_bill(plan, "classifier"), ledger=None, key=None)
    noisy_maps(integer_rows(ROWS, plan, query=None), plan, noise=SeededNoise(0), receipt=receipt)
    with pytest.raises(UsageError, match="not paid for"):
        SeededNoise(0).add_noise(ZEROS, 10, receipt)


def _release(folder: Path, **given: Any) -> None:
    release_table(ROWS, PLAN, directory=folder / "out", key="k", **given)


def _append(folder: Path, **given: Any) -> None:
    append_rows(ROWS, release_table(ROWS, PLAN), directory=folder / "out", key="k", **given)


def _classifier(folder: Path, **given: Any) -> None:
    train_classifier(ROWS, LEARNING, directory=folder / "out", key="k", **given)


def _merge(folder: Path, **given: Any) -> None:
    write_partial(ROWS, Request(PLAN), party="north", path=folder / "sum", key=KEY)
    merge_partials(Request(PLAN), [folder / "sum"], keys=[KEY], directory=folder / "out", **given)


def _partial(folder: Path, **given: Any) -> None:
    plan = replace(PLAN, parties=2)
    write_partial(ROWS, Request(plan), party="north", path=folder / "sum", key=KEY, **given)


VERBS = {"release": _release, "append": _append, "classifier": _classifier, "merge": _merge, "partial": _partial}


class Watched(SeededNoise):
    """Noise that says when it is drawn."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(0)
        self.told = told

    def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        self.told.append("noise")
        return super().add_noise(sums, noise_std, receipt)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_goes_through_the_steps_in_order(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_ledger(tmp_path / "ledger", Budget(9.0, 1e-5))
    told: list[str] = []

    def watch(owner: Any, name: str, step: str) -> None:
        true = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **given: (told.append(step), true(*args, **given))[1])

    steps = {"afford": "check_affordable", "charge": "spend", "mark": "mark_published"}
    for step, name in steps.items():
        watch(ledgers, name, step)
    watch(spending, "write_directory", "write")
    for owner, name in ((release, "sum_table"), (classifier, "integer_rows")):
        watch(owner, name, "read")
    VERBS[verb](tmp_path, ledger=tmp_path / "ledger", noise=Watched(told))
    told = told[told.index("afford") :]
    unique = list(dict.fromkeys(told))
    expected = ["afford", "read", "charge", "noise", "write", "mark"]
    if verb == "merge":  # the parties have read
        expected.remove("read")
    if verb == "partial":  # its file is the merger's, and nothing is found again by its key
        expected = expected[:4]
    assert unique == expected
    (row,) = read_ledger(tmp_path / "ledger").rows
    assert row.state == ("spent" if verb == "partial" else "published")


def test_what_is_refused_before_the_charge_costs_nothing(tmp_path: Path) -> None:
    create_ledger(tmp_path / "ledger", Budget(9.0, 1e-5))

    def refuse() -> None:
        raise UsageError("machine", "is refused")

    def never(*_: Any) -> Any:
        raise AssertionError

    with pytest.raises(UsageError, match="is refused"):
        spending.paid(release_bill(PLAN), ledger=tmp_path / "ledger", key="k", check=refuse, read=never, draw=never)
    with pytest.raises(UsageError, match="is refused"):
        spending.paid(release_bill(PLAN), ledger=tmp_path / "ledger", key="k", read=refuse, draw=never)
    assert read_ledger(tmp_path / "ledger").rows == ()


def test_what_a_receipt_pays_for_is_what_was_charged_and_not_what_it_says() -> None:
    dear = dp_merf(SCHEMA, Budget(9.0, 1e-5), num_features=20)
    receipt = charge(release_bill(PLAN), ledger=None, key=None)
    object.__setattr__(receipt, "plan_id", dear.fingerprint)
    with pytest.raises(UsageError, match="another plan"):
        receipt.check_plan(dear.fingerprint)


def test_a_subclass_that_equals_a_receipt_pays_for_nothing() -> None:
    receipt = charge(release_bill(PLAN), ledger=None, key=None)
    twin = type(
        "Twin", (Receipt,), {"__hash__": lambda _: hash(receipt), "__eq__": lambda *_: True, "__reduce__": None}
    )
    with pytest.raises(UsageError, match="not paid"):
        LongNoise().add_noise(ZEROS, 5, object.__new__(twin))


@pytest.mark.parametrize(("file", "key"), [("nowhere/part", KEY), ("part", b"abc")], ids=["no folder", "a short key"])
def test_an_answer_that_cannot_be_written_is_refused_before_it_is_paid_for(
    file: str, key: bytes, tmp_path: Path
) -> None:
    create_ledger(tmp_path / "ledger", Budget(9.0, 1e-5))
    asked = Request(replace(PLAN, parties=2))
    with pytest.raises((UsageError, InputError)):
        write_partial(ROWS, asked, party="north", path=tmp_path / file, key=key, ledger=tmp_path / "ledger")
    assert not read_ledger(tmp_path / "ledger").rows


MADE: dict[str, Callable[..., Any]] = {
    "release": lambda data, **given: release_table(data, PLAN, **given),
    "classifier": lambda data, **given: train_classifier(data, LEARNING, **given),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_key_is_not_resumed_with_another_query(made: Callable[..., Any], tmp_path: Path) -> None:
    """What is stored is of the rows that its own query selected."""
    create_ledger(tmp_path / "ledger", Budget(9.0, 1e-5))
    older, younger = "SELECT * FROM data WHERE age > 50", "SELECT * FROM data WHERE age < 50"
    paid = {"ledger": tmp_path / "ledger", "key": "k"}
    first = made(ROWS, directory=tmp_path / "first", query=older, **paid)
    for other in (younger, None):
        with pytest.raises(InputError, match="key 'k': was used with another query"):
            made("no such file.csv", directory=tmp_path / "other", query=other, **paid)
    assert made("no such file.csv", query=older, **paid).fingerprint == first.fingerprint
    assert not (tmp_path / "other").exists()
    assert len(read_ledger(tmp_path / "ledger").rows) == 1


def _append_nothing(folder: Path, **given: Any) -> None:
    append_rows("no such file.csv", release_table(ROWS, PLAN), key="k", **given)


UNREAD = {name: lambda _, made=each, **given: made("no such file.csv", key="k", **given) for name, each in MADE.items()}
UNREAD |= {"append": _append_nothing, "merge": lambda folder, **given: _merge(folder, key="k", **given)}


@pytest.mark.parametrize("verb", UNREAD)
def test_a_key_of_another_plan_is_refused_before_rows_are_read(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_ledger(tmp_path / "ledger", Budget(9.0, 1e-5))
    ledgers.spend(tmp_path / "ledger", key="k", plan_id="another", description="d", unit="row", costs=[0.01])

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(parties, "check_row_count", never)
    with pytest.raises(InputError, match="key 'k': was used for another plan"):
        UNREAD[verb](tmp_path, ledger=tmp_path / "ledger")
    assert len(read_ledger(tmp_path / "ledger").rows) == 1


def test_a_key_without_a_ledger_is_refused() -> None:
    """It would name nothing: the next call with it would charge and read anew."""
    with pytest.raises(UsageError, match="names a product in a ledger"):
        Account(None, "a", None)
