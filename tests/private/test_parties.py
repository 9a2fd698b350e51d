from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting import UNITS_PER_COST, Budget, Neighbours
from understudy.errors import BudgetError, InputError, UsageError
from understudy.methods import make_plan
from understudy.plan import Plan, plan_from_dict
from understudy.private import parties
from understudy.private.engines.passes import Run, sum_table
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.noise import SeededNoise
from understudy.private.parties import merge_partials, write_partial
from understudy.private.release import release_table, work_of
from understudy.private.requests import Request, load_request
from understudy.private.secret_files import read_key, read_secret, write_secret
from understudy.published import verify_release
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
KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))


def table_of(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "bmi": rng.uniform(10, 80, count),
            "city": rng.choice(["Bonn", "Lima"], count).tolist(),
            "ill": rng.choice(["no", "yes"], count).tolist(),
        },
        schema=pa.schema({"bmi": pa.float64(), "city": pa.string(), "ill": pa.string()}),
    )


def plan_for(
    method: str = "dp-merf", delta: float = 1e-5, parties: int = 1, **options: Any
) -> Plan:
    wishes = {"num_features": 6} if method == "dp-merf" else {}
    plan = make_plan(SCHEMA, Budget(1.0, delta), method=method, options=wishes | options)
    return plan_from_dict(plan.to_dict() | {"parties": parties})


def answered(request: Request, tables: list[pa.Table], folder: Path, **options: Any) -> list[Path]:
    paths = []
    for number, table in enumerate(tables):
        path = folder / f"{request.round}-{number}.partial"
        write_partial(table, request, party=f"site {number}", path=path, key=KEY, **options)
        paths.append(path)
    return paths


class NoNoise(SeededNoise):
    def __init__(self) -> None:
        super().__init__(0)

    def add_noise(self, sums: Any, noise_std: int) -> Any:
        return sums.copy()


# One noise, added by whoever merges


@pytest.mark.parametrize("method", ["dp-merf", "dp-anova"])
def test_merged_parties_have_the_sum_of_one_table_and_its_noise_once(
    tmp_path: Path, method: str
) -> None:
    plan, tables = plan_for(method), [table_of(n, n) for n in (50, 0, 31)]
    request = Request(plan)
    rounds = 0
    while isinstance(request, Request):
        paths = answered(request, tables, tmp_path)
        request.save(tmp_path / f"{rounds}.json")
        request = merge_partials(  # type: ignore[assignment]
            load_request(tmp_path / f"{rounds}.json"), paths, keys=[OTHER_KEY, KEY], noise=NoNoise()
        )
        rounds += 1
    assert rounds == len(plan.stages)
    whole = release_table(pa.concat_tables(tables), plan, noise=NoNoise())
    for one, other in zip(request.vectors, whole.vectors, strict=True):
        assert np.array_equal(one, other)


def test_a_merged_release_is_whole_and_tells_of_its_parties(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(2.0))
    request = Request(plan_for())
    paths = answered(request, [table_of(40), table_of(60, 1)], tmp_path)
    assert read_ledger(ledger).rows == ()
    merge_partials(request, paths, keys=[KEY], directory=tmp_path / "out", ledger=ledger)
    assert verify_release(tmp_path / "out").is_private
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())
    (words,) = [a["statement"] for a in stated["assumptions"] if a["name"] == "one party, one unit"]
    assert "rows of 2 parties" in words
    (row,) = read_ledger(ledger).rows
    assert (row.state, stated["composition"]["ledger"]["row"]) == ("published", 1)


def test_two_merges_of_the_same_sums_differ_in_every_number(tmp_path: Path) -> None:
    request = Request(plan_for())
    paths = answered(request, [table_of(40)], tmp_path)
    one, other = (merge_partials(request, paths, keys=[KEY]).vectors[0] for _ in range(2))
    assert (one != other).all()


def test_nothing_is_drawn_if_the_ledger_is_short(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(0.5))
    request = Request(plan_for())
    paths = answered(request, [table_of(40)], tmp_path)
    with pytest.raises(BudgetError):
        merge_partials(request, paths, keys=[KEY], directory=tmp_path / "out", ledger=ledger)
    assert not (tmp_path / "out").exists()


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(2.0))
    seen = []

    class Watching(SeededNoise):
        def add_noise(self, sums: Any, noise_std: int) -> Any:
            seen.append(len(read_ledger(ledger).rows))
            return super().add_noise(sums, noise_std)

    request = Request(plan_for())
    paths = answered(request, [table_of(4)], tmp_path)
    merge_partials(request, paths, keys=[KEY], ledger=ledger, noise=Watching(0))
    own = plan_for(parties=2)
    options = {"party": "a", "path": tmp_path / "own", "key": KEY}
    write_partial(table_of(4), Request(own), ledger=ledger, noise=Watching(0), **options)
    assert seen == [1, 2]


# Noise of their own


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_parties_with_noise_of_their_own_publish_what_meets_the_plan_by_itself(
    tmp_path: Path, delta: float
) -> None:
    one, plan = (
        plan_for(delta=delta, num_features=400),
        plan_for(delta=delta, parties=4, num_features=400),
    )
    assert plan.noise_scales == one.noise_scales
    assert plan.cost() == one.cost()
    assert plan.noise_stds[0] == pytest.approx(2 * one.noise_stds[0])
    tables = [table_of(30, n) for n in range(4)]
    request, work = Request(plan), work_of(plan, ())
    paths = answered(request, tables, tmp_path)
    found: list[Any] = []
    for path, table in zip(paths, tables, strict=True):
        _, content = read_secret(path, [KEY])
        exact = sum_table(table, work, query=None, run=Run())[:-1]
        found.append((np.frombuffer(content, "<i8") - exact) / one.noise_stds[0])
    release = merge_partials(request, paths, keys=[KEY], directory=tmp_path / "out")
    total = sum_table(pa.concat_tables(tables), work, query=None, run=Run())[:-1]
    found.append((release.vectors[0] - total) / release.plan.noise_stds[0])  # type: ignore[union-attr]
    for drawn in found:  # eight deviations of the mean square: kurtosis is at most 6
        assert abs((drawn**2).mean() - 1) < 8 * np.sqrt(5 / len(drawn))
    assert verify_release(tmp_path / "out").noise_std[0] == plan.noise_stds[0] / plan.lattice
    assert "towards the merger" in (tmp_path / "out" / "certificate.html").read_text()


def test_each_party_pays_for_each_round(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(1.01))
    plan = plan_for("dp-anova", parties=2)
    request: Any = Request(plan)
    while isinstance(request, Request):
        first = tmp_path / f"a{request.round}"
        write_partial(table_of(50), request, party="a", path=first, key=KEY, ledger=ledger)
        second = tmp_path / f"b{request.round}"
        write_partial(table_of(50, 1), request, party="b", path=second, key=OTHER_KEY)
        request = merge_partials(request, [first, second], keys=[KEY, OTHER_KEY])
    state = read_ledger(ledger)
    assert len(state.rows) == len(plan.stages) > 1
    assert 0.99 < state.epsilon_of(state.spent_units) <= 1.0


def test_replace_one_is_not_for_parties_with_noise_of_their_own() -> None:
    with pytest.raises(InputError, match="description"):
        plan_for(parties=2, neighbours=Neighbours.REPLACE_ONE, num_rows=9)


def test_noise_for_tests_in_any_round_makes_a_release_not_private(tmp_path: Path) -> None:
    request: Any = Request(plan_for("dp-anova"))
    while isinstance(request, Request):
        paths = answered(request, [table_of(50)], tmp_path)
        request.save(tmp_path / f"{request.round}.json")
        noise = NoNoise() if request.round == 0 else None
        loaded = load_request(tmp_path / f"{request.round}.json")
        request = merge_partials(loaded, paths, keys=[KEY], noise=noise)
    assert dict(request.facts)["is_private"] is False


def test_a_plan_of_several_parties_is_released_by_none_alone() -> None:
    with pytest.raises(UsageError, match="several parties"):
        release_table(table_of(5), plan_for(parties=2))


# Refusals


def test_a_file_of_another_plan_or_round_is_refused(tmp_path: Path) -> None:
    request, other = Request(plan_for("dp-anova")), Request(plan_for("dp-anova", seed=1))
    (path,) = answered(other, [table_of(9)], tmp_path)
    with pytest.raises(InputError, match="another request"):
        merge_partials(request, [path], keys=[KEY])
    (tmp_path / "two").mkdir()
    paths = answered(request, [table_of(9)], tmp_path / "two")
    following = merge_partials(request, paths, keys=[KEY])
    with pytest.raises(InputError, match="another request"):
        merge_partials(following, paths, keys=[KEY])  # type: ignore[arg-type]


def test_the_same_file_or_party_twice_is_refused(tmp_path: Path) -> None:
    request = Request(plan_for())
    (path,) = answered(request, [table_of(9)], tmp_path)
    (tmp_path / "copy").write_bytes(path.read_bytes())
    again = tmp_path / "again"
    write_partial(table_of(9), request, party="site 0", path=again, key=KEY)
    for second in (path, tmp_path / "copy", again):
        with pytest.raises(InputError, match="same party"):
            merge_partials(request, [path, second], keys=[KEY])


def test_too_few_parties_with_noise_of_their_own_are_refused(tmp_path: Path) -> None:
    request = Request(plan_for(parties=3))
    paths = answered(request, [table_of(9), table_of(9)], tmp_path)
    with pytest.raises(InputError, match="for 3 parties"):
        merge_partials(request, paths, keys=[KEY])


def test_a_ledger_in_the_wrong_place_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(2.0))
    with pytest.raises(UsageError, match="when the parties' sums are merged"):
        answered(Request(plan_for()), [table_of(9)], tmp_path, ledger=ledger)
    request = Request(plan_for(parties=2))
    paths = answered(request, [table_of(9), table_of(9)], tmp_path)
    with pytest.raises(UsageError, match="charged its own"):
        merge_partials(request, paths, keys=[KEY], ledger=ledger)


def test_a_public_row_count_is_that_of_all_parties(tmp_path: Path) -> None:
    request = Request(plan_for(neighbours=Neighbours.REPLACE_ONE, num_rows=20))
    paths = answered(request, [table_of(9), table_of(11)], tmp_path)
    assert merge_partials(request, paths, keys=[KEY]).vectors
    with pytest.raises(InputError, match="row count"):
        merge_partials(request, paths[:1], keys=[KEY])


def test_an_error_of_a_library_leaves_no_cell(tmp_path: Path) -> None:
    table = pa.table({"bmi": [["SECRET"]], "city": ["Bonn"], "ill": ["no"]})
    with pytest.raises(InputError) as caught:
        answered(Request(plan_for()), [table], tmp_path)
    assert "SECRET" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# Files


def test_a_file_tells_nothing_but_its_header(tmp_path: Path) -> None:
    request = Request(plan_for())
    (path,) = answered(request, [table_of(37)], tmp_path)
    whole = path.read_bytes()
    total = sum_table(table_of(37), work_of(request.plan, ()), query=None, run=Run())
    assert total[:4].tobytes() not in whole
    header, content = read_secret(path, [KEY])
    assert np.array_equal(np.frombuffer(content, "<i8"), total)
    told = {"kind", "request", "round", "party", "id", "own_noise", "is_private"}
    assert set(header) == told
    assert path.stat().st_mode & 0o077 == 0


def test_a_changed_file_and_a_wrong_key_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_secret(path, {"party": "a"}, b"content", key=KEY)
    whole = path.read_bytes()
    with pytest.raises(InputError, match="no key given opens it"):
        read_secret(path, [OTHER_KEY])
    for place in (25, len(whole) - 1):  # in the header, and in the content
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError):
            read_secret(path, [KEY])
    path.write_bytes(whole[:10])
    with pytest.raises(InputError, match="not a secret file"):
        read_secret(path, [KEY])


def test_two_files_of_the_same_content_differ(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_secret(tmp_path / name, {}, b"content", key=KEY)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


def test_keys_come_from_a_file_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text(KEY.hex() + "\n")
    assert read_key(tmp_path / "key") == KEY
    monkeypatch.setenv("UNDERSTUDY_KEY", OTHER_KEY.hex())
    assert read_key(None) == OTHER_KEY
    (tmp_path / "short").write_text("abcd")
    for bad, words in (
        (tmp_path / "short", "64 hexadecimal digits"),
        (tmp_path / "missing", "not there"),
    ):
        with pytest.raises(UsageError, match=words):
            read_key(bad)


def test_a_damaged_request_is_refused(tmp_path: Path) -> None:
    Request(plan_for()).save(tmp_path / "request.json")
    text = (tmp_path / "request.json").read_text()
    (tmp_path / "other.json").write_text(text.replace('"fingerprint": "', '"fingerprint": "0'))
    with pytest.raises(InputError, match="is damaged"):
        load_request(tmp_path / "other.json")
    with pytest.raises(InputError, match="exists already"):
        Request(plan_for()).save(tmp_path / "request.json")


def test_vectors_that_integers_do_not_hold_are_not_added() -> None:
    huge = parties.Answer("file", {}, np.array([2**62], dtype=np.int64))
    with pytest.raises(InputError, match="too large"):
        parties._added([huge, huge])


# Sums that are merged more than once


def test_every_merge_of_every_round_is_paid_for(tmp_path: Path) -> None:
    ledger, plan = tmp_path / "ledger.db", plan_for("dp-anova")
    create_ledger(ledger, Budget(3.0))
    first = Request(plan)
    second = merge_partials(
        first, answered(first, [table_of(30)], tmp_path), keys=[KEY], ledger=ledger
    )
    assert isinstance(second, Request)
    paths = answered(second, [table_of(30)], tmp_path)
    # The mean of many noises over the same sums would have less noise than any was paid for.
    spent = [read_ledger(ledger).spent_units]
    for _ in range(3):
        merge_partials(second, paths, keys=[KEY], ledger=ledger)
        spent.append(read_ledger(ledger).spent_units)
    (cost,) = {after - before for before, after in pairwise(spent)}
    assert Fraction(cost, UNITS_PER_COST) >= sum(plan.stage_costs()[1])


def test_all_rounds_together_cost_what_the_plan_does(tmp_path: Path) -> None:
    ledger, plan = tmp_path / "ledger.db", plan_for("dp-anova")
    create_ledger(ledger, Budget(1.01))
    request = Request(plan)
    while isinstance(request, Request):
        paths = answered(request, [table_of(30)], tmp_path)
        request = merge_partials(  # type: ignore[assignment]
            request, paths, keys=[KEY], ledger=ledger, key="census"
        )
    state = read_ledger(ledger)
    assert [(row.key, row.state) for row in state.rows] == [("census", "published")] * len(
        plan.stages
    )
    spent = Fraction(state.spent_units, UNITS_PER_COST)
    assert 0 <= spent - sum(plan.cost()) <= Fraction(len(plan.stages), UNITS_PER_COST)


def test_a_ledger_that_is_too_small_for_later_rounds_is_refused_in_the_first(
    tmp_path: Path,
) -> None:
    ledger, request = tmp_path / "ledger.db", Request(plan_for("dp-anova"))
    create_ledger(ledger, Budget(0.9))
    paths = answered(request, [table_of(30)], tmp_path)
    with pytest.raises(BudgetError):
        merge_partials(request, paths, keys=[KEY], ledger=ledger)
    assert read_ledger(ledger).rows == ()


@pytest.mark.parametrize("paid_first", [True, False])
def test_a_ledger_is_given_in_every_round_or_in_none(tmp_path: Path, paid_first: bool) -> None:
    ledger, request = tmp_path / "ledger.db", Request(plan_for("dp-anova"))
    create_ledger(ledger, Budget(3.0))
    paths = answered(request, [table_of(30)], tmp_path)
    following = merge_partials(request, paths, keys=[KEY], ledger=ledger if paid_first else None)
    assert isinstance(following, Request)
    paths = answered(following, [table_of(30)], tmp_path)
    with pytest.raises(UsageError, match="every round"):
        merge_partials(following, paths, keys=[KEY], ledger=None if paid_first else ledger)


def test_a_party_that_is_missing_from_a_later_round_is_missed(tmp_path: Path) -> None:
    """Otherwise the stages of one release would be of different rows."""
    request = Request(plan_for("dp-anova"))
    tables = [table_of(20, n) for n in range(3)]
    second = merge_partials(request, answered(request, tables, tmp_path), keys=[KEY])
    assert isinstance(second, Request)
    second.save(tmp_path / "second.json")
    second = load_request(tmp_path / "second.json")
    assert second.answered_by == ("site 0", "site 1", "site 2")
    paths = answered(second, tables, tmp_path)
    with pytest.raises(InputError, match="'site 2' is not in all rounds"):
        merge_partials(second, paths[:2], keys=[KEY])
    assert merge_partials(second, paths, keys=[KEY]) is not None
