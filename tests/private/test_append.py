from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.codec import encode
from understudy.errors import BudgetError, InputError, UsageError
from understudy.methods import fit_release, make_plan
from understudy.plan.plan import Plan
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.noise import SeededNoise
from understudy.private.passes import Run, sum_table
from understudy.private.release import append_rows, release_table
from understudy.private.spending import Receipt
from understudy.private.sums import Work
from understudy.released import Release, load_release, verify_release
from understudy.schema import load_schema

SCHEMA = load_schema(
    {
        "name": "patients",
        "columns": [
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80]},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Lima"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)


def table_of(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "bmi": 10 + 70 * rng.random(count) ** 3,
            "city": rng.choice(["Bonn", "Lima"], count).tolist(),
            "ill": rng.choice(["no", "yes"], count).tolist(),
        }
    )


def plan_for(method: str = "dp-merf", delta: float = 1e-5, **options: Any) -> Plan:
    wishes = {"num_features": 6} if method == "dp-merf" else {}
    return make_plan(SCHEMA, Budget(1.0, delta), method=method, options=wishes | options)


class NoNoise(SeededNoise):
    def __init__(self) -> None:
        super().__init__(0)

    def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        return sums.copy()


@pytest.mark.parametrize("method", ["dp-merf", "dp-anova"])
def test_new_rows_are_added_to_the_old_by_the_old_maps(tmp_path: Path, method: str) -> None:
    first, new, newest = (table_of(n, n) for n in (400, 90, 31))
    earlier = release_table(first, plan_for(method), noise=SeededNoise(1))
    made = append_rows(new, earlier, noise=NoNoise())
    made = append_rows(newest, made, directory=tmp_path / "all", noise=NoNoise())
    both = pa.concat_tables([new, newest])
    for stage, embedding in enumerate(earlier.embeddings):
        work = Work(earlier.plan.layout, embedding, earlier.plan.lattice)
        added = sum_table(both, work, query=None, run=Run())[:-1]
        assert np.array_equal(made.vectors[stage], earlier.vectors[stage] + added)
    for found in (made, load_release(tmp_path / "all")):
        assert [encode(e) for e in found.embeddings] == [encode(e) for e in earlier.embeddings]
        assert found.plan.parties == 3
        assert abs(found.label_counts.sum() - 521) < 250


def test_the_noise_of_all_parts_is_stated_and_each_has_the_whole() -> None:
    earlier = release_table(table_of(50), plan_for())
    drawn: list[int] = []

    class Watched(SeededNoise):
        def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
            drawn.append(noise_std)
            return super().add_noise(sums, noise_std, receipt)

    made = append_rows(table_of(50, 1), earlier, noise=Watched(0))
    assert drawn == list(earlier.plan.noise_scales) == list(made.plan.noise_scales)
    assert made.plan.noise_stds[0] == pytest.approx(math.sqrt(2) * earlier.plan.noise_stds[0])
    assert made.plan.epsilon() == earlier.plan.epsilon()


def test_the_ledger_is_charged_for_the_new_rows_before_noise_is_drawn(tmp_path: Path) -> None:
    ledger, earlier = tmp_path / "ledger.db", release_table(table_of(40), plan_for("dp-anova"))
    create_ledger(ledger, Budget(1.0))
    charged_then: list[int] = []

    class Watched(SeededNoise):
        def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
            charged_then.append(len(read_ledger(ledger).rows))
            return super().add_noise(sums, noise_std, receipt)

    new = table_of(30, 1)
    made = append_rows(new, earlier, ledger=ledger, key="2027", directory=tmp_path / "x", noise=Watched(0))
    assert set(charged_then) == {1}
    (row,) = read_ledger(ledger).rows
    assert (row.key, row.state, row.fingerprint) == ("2027", "published", made.fingerprint)
    assert dict(made.facts)["ledger"] == {"key": "2027", "row": 1}
    with pytest.raises(BudgetError):
        append_rows(new, made, ledger=ledger, directory=tmp_path / "y", noise=Watched(0))
    assert len(charged_then) == len(made.plan.stages)
    assert not (tmp_path / "y").exists()


def test_an_appended_release_verifies_says_what_it_assumes_and_can_be_fitted(tmp_path: Path) -> None:
    earlier = release_table(table_of(300), plan_for("dp-anova", steps=3))
    made = append_rows(table_of(200, 1), earlier, directory=tmp_path / "all")
    assert verify_release(tmp_path / "all").is_private
    stated = json.loads((tmp_path / "all" / "certificate.json").read_text())
    (words,) = [a["statement"] for a in stated["assumptions"] if a["name"] == "one part, one unit"]
    assert "1 time" in words
    assert fit_release(made).sample(5, seed=0).num_rows == 5
    facts = dict(made.facts)
    assert facts["appended_to"] == earlier.fingerprint


def test_noise_for_tests_in_any_part_marks_the_whole() -> None:
    seeded = release_table(table_of(9), plan_for(), noise=SeededNoise(0))
    real = release_table(table_of(9), plan_for())
    assert not dict(append_rows(table_of(9), seeded).facts)["is_private"]
    assert not dict(append_rows(table_of(9), real, noise=SeededNoise(0)).facts)["is_private"]
    assert dict(append_rows(table_of(9), real).facts)["is_private"]


def test_queries_of_all_parts_stay_in_the_certificate(tmp_path: Path) -> None:
    everybody, bonn = "SELECT * FROM data", "SELECT * FROM data WHERE city = 'Bonn'"
    plain = append_rows(table_of(9), release_table(table_of(9), plan_for()))
    assert dict(plain.facts)["query"] is None
    made = release_table(table_of(9), plan_for(), query=everybody)
    told = [dict(made.facts)["query"]]
    for number, query in enumerate([None, everybody, bonn, None]):
        made = append_rows(table_of(9), made, query=query, directory=tmp_path / str(number))
        told.append(dict(made.facts)["query"])
        stated = json.loads((tmp_path / str(number) / "certificate.json").read_text())
        assert stated["public"]["query"] == told[-1]
        assert "row by row query" in verify_release(tmp_path / str(number)).assumptions
        made = load_release(tmp_path / str(number))
    assert told == [everybody] * 3 + [[everybody, bonn]] * 2


def test_what_does_not_add_up_is_refused(tmp_path: Path) -> None:
    new = table_of(9)
    counted = plan_for(neighbours=Neighbours.REPLACE_ONE, num_rows=9)
    with pytest.raises(UsageError, match="row counts are not public"):
        append_rows(new, release_table(new, counted))
    earlier = release_table(new, plan_for("dp-anova"))
    learnt = (("weight", np.zeros(1, dtype=np.float32)),)
    with pytest.raises(UsageError, match="trained on its rows"):
        append_rows(new, Release(earlier.plan, earlier.vectors, earlier.facts, learnt))
    with pytest.raises(InputError, match="once per stage"):
        append_rows(new.to_reader(), earlier)
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="there"):
        append_rows(new, earlier, directory=tmp_path / "there")


def test_sums_past_the_integers_are_refused() -> None:
    earlier = release_table(table_of(9), plan_for())
    vectors = tuple(np.full_like(vector, 2**63 - 1) for vector in earlier.vectors)
    with pytest.raises(InputError, match="too large"):
        append_rows(table_of(9), Release(earlier.plan, vectors, earlier.facts))


def test_pure_releases_are_appended_with_laplace_noise() -> None:
    earlier = release_table(table_of(60), plan_for(delta=0.0))
    made = append_rows(table_of(60, 1), earlier)
    assert made.plan.epsilon() <= 1.0
    assert made.plan.noise_stds[0] == pytest.approx(math.sqrt(2) * earlier.plan.noise_stds[0])
