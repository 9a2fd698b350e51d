from __future__ import annotations

import json
import math
import re
import traceback
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pytest

from understudy.accounting.mechanisms import (
    LAPLACE,
    UNITS_PER_COST,
    Budget,
    Neighbours,
    mu_squared_of_budget,
    mu_squared_of_epsilon,
)
from understudy.errors import BudgetError, InputError, UnderstudyError
from understudy.methods import dp_merf
from understudy.plan.plan import Plan
from understudy.private import ledger as ledgers
from understudy.private import passes as passing
from understudy.private import release as releasing
from understudy.private import sums as summing
from understudy.private.ledger import create_capped_ledger, read_ledger
from understudy.private.noise import ExactNoise, SeededNoise
from understudy.private.release import release_table
from understudy.private.spending import Receipt
from understudy.released import load_release, verify_release
from understudy.schema import Layout, load_schema

SCHEMA = load_schema(
    {
        "name": "patients",
        "columns": [
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80], "nullable": True},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Lima"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
DISTINCTIVE = 4813
LOWEST, HIGHEST = 12.3456789, 76.5432198


def plan_for(**options: Any) -> Plan:
    return dp_merf(SCHEMA, Budget(1.0), **({"num_features": 4} | options))


def table_of(count: int) -> pa.Table:
    rng = np.random.default_rng(count)
    bmi = rng.uniform(LOWEST, HIGHEST, count)
    bmi[: min(count, 2)] = [LOWEST, HIGHEST][: min(count, 2)]
    city = rng.choice(["Bonn", "Lima"], count).tolist()
    ill = rng.choice(["no", "yes"], count).tolist()
    kinds = {"bmi": pa.float64(), "city": pa.string(), "ill": pa.string()}
    return pa.table({"bmi": bmi, "city": city, "ill": ill}, schema=pa.schema(kinds))


def new_ledger(folder: Path, *, epsilon: float = 10.0, **options: Any) -> Path:
    path = folder / "ledger.db"
    cap = mu_squared_of_budget(Budget(epsilon))
    create_capped_ledger(path, Budget(epsilon, 1e-5), cap=cap, **options)
    return path


class BrokenNoise:
    name = "broken"
    is_private = True

    def add_noise(self, sums: npt.NDArray[np.int64], noise_std: int, receipt: Receipt) -> npt.NDArray[np.int64]:
        raise RuntimeError(f"cannot add noise to {sums.tolist()}")


# What a release says about the table


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The same plan on tables of no row, one row, and many rows."""
    folder = tmp_path_factory.mktemp("sizes")
    for count in (0, 1, 500, DISTINCTIVE):
        release_table(table_of(count), plan_for(), directory=folder / str(count))
    return {int(path.name): path for path in folder.iterdir()}


def test_no_file_s_size_depends_on_the_number_of_rows(releases: dict[int, Path]) -> None:
    sizes = [{path.name: path.stat().st_size for path in folder.iterdir()} for folder in releases.values()]
    assert all(each == sizes[0] for each in sizes)


def test_nothing_but_the_noisy_vector_and_its_hashes_depends_on_the_rows(releases: dict[int, Path]) -> None:
    texts = [
        {
            path.name: re.sub(r"[0-9a-f]{64}|\d{4}-\d\d-\d\d \d\d:\d\d", "#", path.read_text())
            for path in folder.iterdir()
            if path.name != "embedding.safetensors"
        }
        for folder in releases.values()
    ]
    assert all(each == texts[0] for each in texts)


def test_no_file_holds_the_row_count_or_an_extreme_of_the_data(releases: dict[int, Path]) -> None:
    for path in releases[DISTINCTIVE].iterdir():
        if path.name == "embedding.safetensors":
            continue
        text = re.sub(r"[0-9a-f]{64}", "", path.read_text())
        assert not re.search(rf"(?<![\d.]){DISTINCTIVE}(?!\d)", text), path.name
        for extreme in (LOWEST, HIGHEST):
            assert str(extreme)[:6] not in text, path.name


def test_the_count_in_the_release_is_noisy(releases: dict[int, Path]) -> None:
    release = load_release(releases[DISTINCTIVE])
    counts = release.sums("count")
    assert abs(counts.sum() - DISTINCTIVE) > 1e-9
    assert abs(counts.sum() - DISTINCTIVE) < 30 * release.noise_std("count")


def test_a_table_with_a_header_only_is_released_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("bmi,city,ill\n")
    release_table(tmp_path / "empty.csv", plan_for(), directory=tmp_path / "out")
    assert verify_release(tmp_path / "out").is_private


def test_a_public_row_count_that_is_wrong_is_refused_without_saying_the_true_one(tmp_path: Path) -> None:
    plan = plan_for(neighbours=Neighbours.REPLACE_ONE, num_rows=DISTINCTIVE + 1)
    path = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(table_of(DISTINCTIVE), path)
    ledger = new_ledger(tmp_path, neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(InputError, match="differs from the public one") as caught:
        release_table(path, plan, directory=tmp_path / "out", ledger=ledger)
    full = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    # A folder's number, an address and a random key may hold any digits.
    said = "".join(full.format()).replace(str(tmp_path), "")
    said = re.sub(r"0x[0-9a-f]+|patients-[0-9a-f]{12}", "", said)
    assert str(DISTINCTIVE) not in said
    assert not (tmp_path / "out").exists()
    assert read_ledger(ledger).rows == ()


def test_a_public_row_count_that_is_right_is_released_and_stated(tmp_path: Path) -> None:
    plan = plan_for(neighbours=Neighbours.REPLACE_ONE, num_rows=500)
    release_table(table_of(500), plan, directory=tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["public"]["rows"] == "public: 500"


# Noise


def test_two_releases_of_one_table_differ_in_every_number() -> None:
    one, other = (release_table(table_of(5), plan_for()) for _ in range(2))
    assert (one.vectors[0] != other.vectors[0]).all()


def test_a_release_is_the_exact_sum_plus_the_plan_s_noise() -> None:
    plan, table = plan_for(), table_of(300)
    release = release_table(table, plan)
    *exact, count = summing.Work(plan.layout, release.embeddings[0], plan.lattice).sum(table.to_batches())
    scaled = (release.vectors[0] - exact) / plan.noise_stds[0]
    assert count == 300
    assert len(scaled) == 23
    assert 0.25 < np.sqrt((scaled**2).mean()) < 2.5, "23 draws: once in a hundred million outside"


@pytest.mark.parametrize("length_scale", [None, "private"])
def test_seeded_noise_marks_a_release_as_not_private_everywhere(tmp_path: Path, length_scale: Any) -> None:
    plan = plan_for(length_scale=length_scale)
    release_table(table_of(9), plan, directory=tmp_path / "out", noise=SeededNoise(0))
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    page = (tmp_path / "out" / "certificate.html").read_text()
    assert certificate["status"] == "NOT PRIVATE"
    assert "tests only" in certificate["mechanism"]["noise"]
    assert "This release is NOT PRIVATE" in page
    assert ">PRIVATE<" not in page
    assert not verify_release(tmp_path / "out").is_private


def test_every_stage_meets_its_own_noise() -> None:
    plan = plan_for(length_scale="private")
    drawn: list[int] = []

    class Watched(ExactNoise):
        def add_noise(self, sums: npt.NDArray[np.int64], noise_std: int, receipt: Receipt) -> Any:
            drawn.append(noise_std)
            return super().add_noise(sums, noise_std, receipt)

    release = release_table(table_of(50), plan, noise=Watched())
    assert tuple(drawn) == plan.noise_stds
    assert [len(vector) for vector in release.vectors] == [s.embedding.dim for s in plan.stages]


def test_a_stream_is_refused_by_a_plan_that_reads_twice_and_nothing_is_spent(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with pytest.raises(InputError, match="read once"):
        release_table(table_of(5).to_reader(), plan_for(length_scale="private"), ledger=ledger)
    assert read_ledger(ledger).rows == ()
    assert release_table(table_of(5).to_reader(), plan_for(), ledger=ledger).vectors


# The ledger


def test_a_failed_read_spends_nothing_and_writes_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    (tmp_path / "bad.csv").write_text("bmi,city,ill\n20,Bonn,no\ntall,Bonn\n")
    with pytest.raises(InputError, match="as many cells as the header"):
        release_table(tmp_path / "bad.csv", plan_for(), directory=tmp_path / "out", ledger=ledger)
    assert read_ledger(ledger).rows == ()
    assert {path.name for path in tmp_path.iterdir()} >= {"bad.csv"}
    assert not list(tmp_path.glob("*out*"))


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with pytest.raises(InputError, match="RuntimeError") as caught:
        release_table(table_of(5), plan_for(), directory=tmp_path / "out", ledger=ledger, noise=BrokenNoise())
    (row,) = read_ledger(ledger).rows
    assert row.state == "spent"
    assert not (tmp_path / "out").exists()
    assert "cannot add noise" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("in_a_race", [False, True])
def test_no_noise_is_drawn_when_the_cap_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_race: bool
) -> None:
    ledger = new_ledger(tmp_path, epsilon=0.5)
    if in_a_race:  # the budget was there when this release asked first
        monkeypatch.setattr(ledgers, "check_affordable", lambda *_, **__: None)
    with pytest.raises(BudgetError) as caught:
        release_table(table_of(5), plan_for(), directory=tmp_path / "out", ledger=ledger, noise=BrokenNoise())
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not {"steps", "read", "draw"} & set(frames), "its frame holds the exact sums"
    assert read_ledger(ledger).spent_units == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("own", "notion"),
    [
        (Neighbours.ADD_REMOVE, Neighbours.ADD_REMOVE),
        (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE),
        (Neighbours.REPLACE_ONE, Neighbours.REPLACE_ONE),
    ],
)
def test_a_release_is_charged_in_the_ledger_s_notion_of_neighbours(
    tmp_path: Path, own: Neighbours, notion: Neighbours
) -> None:
    plan = plan_for(neighbours=own, num_rows=5, length_scale="private")
    ledger = new_ledger(tmp_path, neighbours=notion)
    release_table(table_of(5), plan, ledger=ledger)
    (row,) = read_ledger(ledger).rows
    exact = [cost * UNITS_PER_COST for cost in plan.cost(notion)]
    assert sum(exact) <= row.units < sum(exact) + 1


def test_a_ledger_that_hides_the_row_count_refuses_a_release_that_tells_it(tmp_path: Path) -> None:
    plan = plan_for(neighbours=Neighbours.REPLACE_ONE, num_rows=5)
    ledger = new_ledger(tmp_path, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(InputError, match="row count"):
        release_table(table_of(5), plan, ledger=ledger)
    assert read_ledger(ledger).spent_units == 0


# Laplace noise, and ledgers of either kind


def pure_plan(**options: Any) -> Plan:
    return dp_merf(SCHEMA, Budget(1.0, 0), **({"num_features": 4} | options))


def test_a_pure_plan_meets_laplace_noise_of_its_own_scale_in_every_stage() -> None:
    drawn: list[int] = []

    class Watched(SeededNoise):
        def add_laplace_noise(self, sums: npt.NDArray[np.int64], scale: int, receipt: Receipt) -> Any:
            drawn.append(scale)
            return super().add_laplace_noise(sums, scale, receipt)

        def add_noise(self, sums: npt.NDArray[np.int64], noise_std: int, receipt: Receipt) -> Any:
            raise AssertionError("Gaussian noise has a delta")

    plan = pure_plan(length_scale="private")
    release_table(table_of(5), plan, noise=Watched(0))
    assert tuple(drawn) == plan.noise_scales


def test_seeded_laplace_noise_is_called_not_private(tmp_path: Path) -> None:
    release_table(table_of(5), pure_plan(), directory=tmp_path / "out", noise=SeededNoise(0))
    assert not verify_release(tmp_path / "out").is_private


@pytest.mark.parametrize("notion", list(Neighbours))
def test_a_pure_ledger_is_charged_in_units_of_epsilon(tmp_path: Path, notion: Neighbours) -> None:
    plan, path = pure_plan(length_scale="private"), tmp_path / "pure.db"
    ledgers.create_ledger(path, Budget(4.0, 0), neighbours=notion)
    assert read_ledger(path).cap_units == 4 * UNITS_PER_COST
    release_table(table_of(5), plan, ledger=path)
    (row,) = read_ledger(path).rows
    exact = sum(plan.cost(notion)) * UNITS_PER_COST
    assert exact <= row.units < exact + 1


def test_a_pure_ledger_is_spent_to_its_cap_and_not_past_it(tmp_path: Path) -> None:
    path = tmp_path / "pure.db"
    ledgers.create_ledger(path, Budget(2.0, 0))
    for _ in range(2):
        release_table(table_of(5), pure_plan(length_scale="private"), ledger=path)
    plan = dp_merf(SCHEMA, Budget(0.001, 0), num_features=4)
    with pytest.raises(BudgetError, match="delta 0"):
        release_table(table_of(5), plan, ledger=path)


def test_a_pure_ledger_refuses_gaussian_noise_before_it_reads_rows(tmp_path: Path) -> None:
    path = tmp_path / "pure.db"
    ledgers.create_ledger(path, Budget(10.0, 0))
    with pytest.raises(InputError, match="pure differential privacy"):
        release_table(tmp_path / "there-is-no-such-file.csv", plan_for(), ledger=path)
    assert read_ledger(path).spent_units == 0


@pytest.mark.parametrize("notion", list(Neighbours))
def test_a_gaussian_ledger_is_charged_once_for_all_stages_of_a_pure_release(tmp_path: Path, notion: Neighbours) -> None:
    """For the mu of the total epsilon, which is less than for the stages one by one."""
    plan = pure_plan(length_scale="private")
    ledger = new_ledger(tmp_path, epsilon=40.0, neighbours=notion)
    release_table(table_of(5), plan, ledger=ledger)
    (row,) = read_ledger(ledger).rows
    total = LAPLACE.epsilon(plan.cost(notion))
    assert row.units == math.ceil(mu_squared_of_epsilon(total) * UNITS_PER_COST)
    mu = 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-total)))
    assert row.units / UNITS_PER_COST == pytest.approx(mu**2, rel=1e-6)


def test_a_pure_release_too_dear_for_a_gaussian_ledger_is_sent_to_a_pure_one(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, epsilon=3.0)
    with pytest.raises(BudgetError, match="--delta 0"):
        release_table(table_of(5), pure_plan(), ledger=ledger)
    assert read_ledger(ledger).spent_units == 0
    pure = tmp_path / "pure.db"
    ledgers.create_ledger(pure, Budget(0.5, 0))
    with pytest.raises(BudgetError, match="smaller epsilon"):
        release_table(table_of(5), pure_plan(), ledger=pure)


def test_without_a_key_every_release_is_a_new_one(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    first = release_table(table_of(5), plan_for(), directory=tmp_path / "one", ledger=ledger)
    other = release_table(table_of(6), plan_for(), directory=tmp_path / "two", ledger=ledger)
    assert other.fingerprint != first.fingerprint
    assert len(read_ledger(ledger).rows) == 2


def test_asking_again_returns_the_stored_release_and_costs_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    first = release_table(table_of(5), plan_for(), directory=tmp_path / "one", ledger=ledger, key="k")
    spent = read_ledger(ledger).spent_units
    (tmp_path / "one" / "private-notes.txt").write_text("not part of a release")
    again = release_table(table_of(5), plan_for(), directory=tmp_path / "two", ledger=ledger, key="k")
    assert again.fingerprint == first.fingerprint
    assert read_ledger(ledger).spent_units == spent
    assert not (tmp_path / "two" / "private-notes.txt").exists()
    assert verify_release(tmp_path / "two").fingerprint == first.fingerprint


def test_a_stored_release_that_was_changed_is_not_handed_out_again(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    first = release_table(table_of(5), plan_for(), directory=tmp_path / "one", ledger=ledger, key="k")
    path = tmp_path / "one" / "release.json"
    document = json.loads(path.read_text())
    document["facts"]["created"] = "1999-01-01 00:00 UTC"
    path.write_text(json.dumps(document))
    again = release_table(table_of(5), plan_for(), ledger=ledger, key="k")
    assert again.fingerprint != first.fingerprint
    assert (again.vectors[0] != first.vectors[0]).all()
    assert len(read_ledger(ledger).rows) == 2


def test_a_stored_release_without_private_noise_is_not_handed_out_again(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    release_table(table_of(5), plan_for(), directory=tmp_path / "one", ledger=ledger, noise=SeededNoise(0))
    again = release_table(table_of(5), plan_for(), ledger=ledger, key="k")
    assert dict(again.facts)["is_private"] is True


def test_an_existing_directory_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    ledger = new_ledger(tmp_path)
    with pytest.raises(InputError, match="exists already"):
        release_table("no such file.csv", plan_for(), directory=tmp_path / "out", ledger=ledger)
    assert read_ledger(ledger).rows == ()


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_maps_that_noise_has_settled_are_probed_as_well(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = dp_merf(SCHEMA, Budget(1.0, delta), num_features=4, length_scale="private")
    probed = []
    monkeypatch.setattr(releasing, "check_row_independence", lambda _, embedding, __: probed.append(embedding))
    release = release_table(table_of(50), plan)
    assert release.embeddings[1] != plan.stages[1].embedding
    assert all(embedding in probed for embedding in release.embeddings)


# Errors

SECRET = "SECRET-7f3a"
DEEP = {
    "the encoder": (summing, "encode_batch"),
    "the lattice": (summing, "to_lattice"),
    "the layout": (Layout, "expand"),
    "the reader": (passing, "open_parts"),
    "the threads": (passing, "sum_parts"),
    "the sum": (releasing, "sum_table"),
    "the noise": (ExactNoise, "add_noise"),
}


@pytest.mark.parametrize(("owner", "name"), DEEP.values(), ids=DEEP)
def test_an_error_deep_in_the_private_pass_leaves_no_trace_of_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    (tmp_path / "rows.csv").write_text(f"bmi,city,ill\n20,{SECRET},no\n")
    plan = plan_for()
    if owner is not ExactNoise:
        monkeypatch.setattr(releasing, "check_row_independence", lambda *_: None)

    def fails(*arguments: Any, **options: Any) -> Any:
        cell = (tmp_path / "rows.csv").read_text()
        raise ValueError(f"could not convert '{cell}'")

    monkeypatch.setattr(owner, name, fails)
    with pytest.raises(UnderstudyError) as caught:
        release_table(tmp_path / "rows.csv", plan)
    error = caught.value
    full = traceback.TracebackException.from_exception(error, capture_locals=True)
    said = "".join([str(error), repr(error), repr(vars(error)), *full.format()])
    assert SECRET not in said
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "fails" not in [frame.name for frame in traceback.extract_tb(error.__traceback__)]
