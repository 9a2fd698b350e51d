from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.classifier.plan import RADIUS, ClassifierPlan, Training
from understudy.errors import BudgetError, InputError
from understudy.methods import make_plan
from understudy.private.dpsgd import classifier as module
from understudy.private.dpsgd.classifier import integer_inputs, second_moments, train_classifier
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.noise import LongNoise, SeededNoise
from understudy.private.release import release_table
from understudy.private.spending import Receipt, _check_affordable, release_bill
from understudy.schema import PrivacyUnit, load_schema

SCHEMA = load_schema(
    {
        "name": "tiny",
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
QUICK = Training(steps=3)


def table(count: int = 400, seed: int = 0) -> pa.Table:
    x = np.random.default_rng(seed).random(count)
    return pa.table({"x": x, "y": ["yes" if value > 0.5 else "no" for value in x]})


def plan(epsilon: float = 1.0, training: Training = QUICK, **others: Any) -> ClassifierPlan:
    return ClassifierPlan(SCHEMA, Budget(epsilon), training, **others)


def test_no_row_moves_second_moments_further_than_the_radius_squared() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(40, 7)) * scale for scale in (1e-3, 1.0, 1e9)]
    rows += [np.eye(7), np.full((1, 7), np.nan), np.full((1, 7), np.inf)]
    for row in integer_inputs(np.concatenate(rows)):
        moved = second_moments(row[None])[np.triu_indices(7)]
        assert sum(int(number) ** 2 for number in moved) <= RADIUS**4


def test_second_moments_are_exact_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    inputs = integer_inputs(rng.normal(size=(300, 5)))
    expected = inputs.astype(object).T @ inputs.astype(object)
    assert (second_moments(inputs) == expected).all()
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 60)
    assert (second_moments(inputs) == expected).all()


class Recording:
    """Noise that remembers what it was asked for."""

    name, is_private = "recording", False

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        self.asked.append((len(sums), noise_std))
        return LongNoise().add_noise(sums, noise_std, receipt)

    def add_laplace_noise(self, sums: Any, scale: int, receipt: Receipt) -> Any:
        raise AssertionError


@pytest.mark.parametrize("rows", [0, 3, 400])
def test_noise_is_what_the_plan_says_whatever_the_rows_are(rows: int) -> None:
    noise, made = Recording(), plan()
    train_classifier(table(rows), made, noise=noise)
    dim = made.inputs.dim
    step = math.isqrt(math.ceil((made.descent.cost.noise_multiplier * RADIUS**2) ** 2 + 4))
    assert noise.asked[0] == (dim * (dim + 1) // 2, made.look_noise)
    assert [size for size, _ in noise.asked[1:]] == [2 * dim] * 3
    assert all(step <= std <= step + 2**20 for _, std in noise.asked[1:])


def test_a_ledger_is_charged_before_noise_is_drawn(tmp_path: Path) -> None:
    ledger = tmp_path / "l"
    create_ledger(ledger, Budget(2.0))

    class Watching(Recording):
        def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
            assert len(read_ledger(ledger).rows) == 1
            return super().add_noise(sums, noise_std, receipt)

    made = plan()
    found = train_classifier(table(), made, ledger=ledger, key="k", noise=Watching())
    (row,) = read_ledger(ledger).rows
    spent = Fraction(row.units, 2**40)
    assert sum(charge.mu_squared for charge in made.descent.charges) <= spent
    assert row.state == "published"
    assert row.fingerprint == found.fingerprint
    assert row.description == "classifier on tiny"


def test_a_classifier_of_the_whole_budget_fits_a_ledger_of_that_budget(tmp_path: Path) -> None:
    create_ledger(tmp_path / "l", Budget(1.0))
    train_classifier(table(), plan(1.0), ledger=tmp_path / "l")
    with pytest.raises(BudgetError, match="what is left"):
        train_classifier(table(), plan(0.1), ledger=tmp_path / "l")


def test_sampled_descent_needs_a_reserve(tmp_path: Path) -> None:
    sampled = plan(1.0, Training(steps=3, sampling_rate=0.5))
    create_ledger(tmp_path / "plain", Budget(2.0))
    with pytest.raises(BudgetError, match="reserve"):
        train_classifier(table(), sampled, ledger=tmp_path / "plain")
    create_ledger(tmp_path / "kept", Budget(2.0), reserve=0.1)
    train_classifier(table(), sampled, ledger=tmp_path / "kept")
    (row,) = read_ledger(tmp_path / "kept").rows
    assert row.slack_units > 0


def test_replaced_rows_are_charged_as_removed_and_added(tmp_path: Path) -> None:
    create_ledger(tmp_path / "l", Budget(4.0), neighbours=Neighbours.REPLACE_ONE)
    made = plan(1.0)
    train_classifier(table(), made, ledger=tmp_path / "l")
    (row,) = read_ledger(tmp_path / "l").rows
    total = sum(charge.mu_squared for charge in made.descent.charges)
    assert 4 * total <= Fraction(row.units, 2**40) <= 4 * total + Fraction(1, 2**39)
    sampled = plan(1.0, Training(steps=3, sampling_rate=0.5))
    with pytest.raises(InputError, match="replaced"):
        train_classifier(table(), sampled, ledger=tmp_path / "l")


def test_a_pure_ledger_refuses(tmp_path: Path) -> None:
    create_ledger(tmp_path / "l", Budget(1.0, 0))
    with pytest.raises(InputError, match="pure"):
        train_classifier(table(), plan(), ledger=tmp_path / "l")


def test_a_ledger_that_counts_for_people_refuses(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0))
    people = replace(SCHEMA, privacy=PrivacyUnit("person", 3))
    per_person = make_plan(people, Budget(1.0), method="dp-merf", options={"num_features": 4})
    visits = table(20).append_column("person", pa.array([str(i % 7) for i in range(20)]))
    release_table(visits, per_person, ledger=ledger)
    with pytest.raises(InputError, match="holds releases per person, and a cost per row"):
        train_classifier(table(), plan(), ledger=ledger)
    assert len(read_ledger(ledger).rows) == 1


def test_a_name_cannot_pass_rows_off_as_people(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0))
    named = replace(SCHEMA, name="visits; per person of at most 3 rows")
    train_classifier(table(), ClassifierPlan(named, Budget(1.0), QUICK), ledger=ledger)
    people = replace(SCHEMA, privacy=PrivacyUnit("person", 3))
    per_person = make_plan(people, Budget(1.0), method="dp-merf", options={"num_features": 4})
    with pytest.raises(InputError, match="holds releases per row, and a cost per person"):
        _check_affordable(ledger, "k", [release_bill(per_person)])


def test_a_machine_whose_gradients_hang_on_the_block_is_refused_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_ledger(tmp_path / "l", Budget(9.0))
    summed = module.gradient_sum

    def mixed(rows: Any, shape: Any, weights: Any, places: Any, *, clip: float) -> Any:
        return summed(rows, shape, weights, places, clip=clip) + len(places) ** 2

    monkeypatch.setattr(module, "gradient_sum", mixed)
    with pytest.raises(InputError, match="computes a row's gradient differently"):
        train_classifier(table(), plan(), ledger=tmp_path / "l", directory=tmp_path / "made")
    assert read_ledger(tmp_path / "l").rows == ()
    assert not (tmp_path / "made").exists()


def test_the_same_key_gives_the_stored_classifier_back(tmp_path: Path) -> None:
    create_ledger(tmp_path / "l", Budget(1.0))
    settings: dict[str, Any] = {"ledger": tmp_path / "l", "key": "k"}
    first = train_classifier(table(), plan(), directory=tmp_path / "a", **settings)
    again = train_classifier("no such file", plan(), directory=tmp_path / "b", **settings)
    assert again.fingerprint == first.fingerprint
    assert len(read_ledger(tmp_path / "l").rows) == 1
    assert (tmp_path / "b" / "certificate.html").is_file()


def test_refused_data_costs_nothing(tmp_path: Path) -> None:
    create_ledger(tmp_path / "l", Budget(1.0))
    with pytest.raises(InputError):
        train_classifier(pa.table({"x": [0.5]}), plan(), ledger=tmp_path / "l")
    assert read_ledger(tmp_path / "l").rows == ()


def test_rows_without_a_label_add_nothing() -> None:
    rows = table()
    unlabelled = pa.table({"x": [0.9] * 50, "y": ["maybe"] * 50})
    weights = [
        train_classifier(each, plan(), noise=SeededNoise(0)).maps.weights
        for each in (rows, pa.concat_tables([rows, unlabelled]))
    ]
    assert np.array_equal(*weights)


def test_seeded_noise_is_not_private_and_says_so() -> None:
    found = train_classifier(table(), plan(), noise=SeededNoise(0))
    assert b"NOT PRIVATE" in found.files()["certificate.json"]


def test_projected_maps_without_a_look_are_the_papers() -> None:
    training = Training(look=0, projected=4, num_maps=3, steps=20, learning_rate=4.0)
    found = train_classifier(table(2000), plan(5.0, training, num_rows=2000))
    assert found.whitening is None
    rows = table(500, seed=1)
    right = [a == b for a, b in zip(found.predict(rows), rows["y"].to_pylist(), strict=True)]
    assert np.mean(right) > 0.8
