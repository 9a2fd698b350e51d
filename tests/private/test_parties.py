from __future__ import annotations

import base64
import json
import secrets
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import UNITS_PER_COST, Budget, Neighbours
from understudy.errors import BudgetError, InputError, UnderstudyError, UsageError
from understudy.methods import make_plan
from understudy.plan.plan import Plan, plan_from_dict
from understudy.plan.request import Request, load_request
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.noise import SeededNoise
from understudy.private.parties import merge_partials, write_partial
from understudy.private.passes import Run, sum_table
from understudy.private.release import exact_sum, release_table, work_of
from understudy.private.secret_files import read_key, read_secret, write_secret
from understudy.private.spending import Receipt
from understudy.released import verify_release
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


def plan_for(method: str = "dp-merf", delta: float = 1e-5, parties: int = 1, **options: Any) -> Plan:
    wishes = {"num_features": 6} if method == "dp-merf" else {}
    plan = make_plan(SCHEMA, Budget(1.0, delta), method=method, options=wishes | options)
    return plan_from_dict(plan.to_dict() | {"parties": parties})


def answered(request: Request, tables: list[pa.Table], folder: Path, **options: Any) -> list[Path]:
    if request.plan.parties > 1 and "ledger" not in options:
        options = {"max_epsilon": 1.0} | options
    paths = []
    for number, table in enumerate(tables):
        path = folder / f"{request.round}-{number}.partial"
        write_partial(table, request, party=f"site {number}", path=path, key=KEY, **options)
        paths.append(path)
    return paths


class NoNoise(SeededNoise):
    def __init__(self) -> None:
        super().__init__(0)

    def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        return sums.copy()

    def add_laplace_noise(self, sums: Any, scale: int, receipt: Receipt) -> Any:
        return sums.copy()


# One noise, added by whoever merges


@pytest.mark.parametrize("method", ["dp-merf", "dp-anova"])
def test_merged_parties_have_the_sum_of_one_table_and_its_noise_once(tmp_path: Path, method: str) -> None:
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
        def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
            seen.append(len(read_ledger(ledger).rows))
            return super().add_noise(sums, noise_std, receipt)

    request = Request(plan_for())
    paths = answered(request, [table_of(4)], tmp_path)
    merge_partials(request, paths, keys=[KEY], ledger=ledger, noise=Watching(0))
    own = plan_for(parties=2)
    options = {"party": "a", "path": tmp_path / "own", "key": KEY}
    write_partial(table_of(4), Request(own), ledger=ledger, noise=Watching(0), **options)
    assert seen == [1, 2]


# Noise of their own


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_parties_with_noise_of_their_own_publish_what_meets_the_plan_by_itself(tmp_path: Path, delta: float) -> None:
    one, plan = (plan_for(delta=delta, num_features=400), plan_for(delta=delta, parties=4, num_features=400))
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
        write_partial(table_of(50, 1), request, party="b", path=second, key=OTHER_KEY, max_epsilon=1.0)
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
    told = {"kind", "request", "round", "party", "id", "own_noise", "is_private", "query"}
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


def test_keys_come_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(KEY.hex() + "\n")
    assert read_key(tmp_path / "key") == KEY
    monkeypatch.setenv("UNDERSTUDY_KEY", OTHER_KEY.hex())
    assert read_key(None) == OTHER_KEY
    (tmp_path / "short").write_text("abcd")
    for bad, words in ((tmp_path / "short", "64 hexadecimal digits"), (tmp_path / "missing", "not there")):
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
    huge, refusal = np.array([2**62], dtype=np.int64), InputError("partial sums", "are too large")
    with pytest.raises(InputError, match="too large"):
        exact_sum([huge, huge], refusal)
    assert exact_sum([huge, -huge // 2, huge // 4], refusal).tolist() == [2**62 - 2**61 + 2**60]


# Sums that are merged more than once


def test_every_merge_of_every_round_is_paid_for(tmp_path: Path) -> None:
    ledger, plan = tmp_path / "ledger.db", plan_for("dp-anova")
    create_ledger(ledger, Budget(3.0))
    first = Request(plan)
    second = merge_partials(first, answered(first, [table_of(30)], tmp_path), keys=[KEY], ledger=ledger)
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
    assert [(row.key, row.state) for row in state.rows] == [("census", "published")] * len(plan.stages)
    spent = Fraction(state.spent_units, UNITS_PER_COST)
    assert 0 <= spent - sum(plan.cost()) <= Fraction(len(plan.stages), UNITS_PER_COST)


def test_a_ledger_that_is_too_small_for_later_rounds_is_refused_in_the_first(tmp_path: Path) -> None:
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
    assert second.answered_by == {"site 0": None, "site 1": None, "site 2": None}
    paths = answered(second, tables, tmp_path)
    with pytest.raises(InputError, match="'site 2' is not in all rounds"):
        merge_partials(second, paths[:2], keys=[KEY])
    assert merge_partials(second, paths, keys=[KEY]) is not None


# What is asked of a party with noise of its own


def refused(request: Request, folder: Path, **options: Any) -> None:
    """A party that must not even read its rows."""

    class Unread:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise AssertionError("rows were read")

    write_partial(Unread(), request, party="a", path=folder / "a", key=KEY, **options)


def test_a_party_says_how_much_its_own_noise_may_let_out(tmp_path: Path) -> None:
    request, ledger = Request(plan_for("dp-anova", parties=2)), tmp_path / "ledger.db"
    with pytest.raises(UsageError, match=r"epsilon 1.* in all rounds.*Add --max-epsilon"):
        refused(request, tmp_path)
    for limit in (0.99, 0.0, -1.0, float("nan")):
        with pytest.raises(BudgetError, match="asks for epsilon"):
            refused(request, tmp_path, max_epsilon=limit)
    create_ledger(ledger, Budget(0.01))  # less than the first round alone
    with pytest.raises(BudgetError):
        refused(request, tmp_path, ledger=ledger)
    create_ledger(tmp_path / "large.db", Budget(5.0))
    with pytest.raises(BudgetError, match="asks for epsilon"):
        refused(request, tmp_path, ledger=tmp_path / "large.db", max_epsilon=0.5)
    assert not (tmp_path / "a").exists()
    assert read_ledger(tmp_path / "large.db").rows == ()
    write_partial(table_of(9), request, party="a", path=tmp_path / "a", key=KEY, max_epsilon=1.0)


def test_a_large_delta_does_not_hide_a_large_epsilon(tmp_path: Path) -> None:
    request = Request(plan_for(parties=2, delta=0.1))
    assert request.plan.epsilon() <= 1
    with pytest.raises(BudgetError, match=r"asks for epsilon [2-9].* at delta 1e-05"):
        refused(request, tmp_path, max_epsilon=1.0)


def test_a_request_for_an_exact_sum_is_refused_by_a_party_that_limits_its_own_noise(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="asks for the exact sum"):
        refused(Request(plan_for()), tmp_path, max_epsilon=1.0)


def test_a_round_costs_its_part_of_what_all_rounds_cost() -> None:
    plan = plan_for("dp-anova", parties=2)
    one = Request(plan).epsilon_of_round
    assert 0 < one < plan.epsilon() <= 1
    assert one == plan.mechanism.epsilon(plan.stage_costs()[0], plan.budget.delta)


def doctored(value: Any, random: Random) -> Any:
    """A number, or what stands in its place, as a hostile hand might change it."""
    numbers = [0, -1, 1e-9, 0.5, 3, 2**62, float("inf"), float("nan"), None, "1", True]
    return random.choice([*numbers, value * 100, -value, value / 100])


def sum_of(rows: pa.Table, request: Request, folder: Path) -> list[int]:
    """What leaves a party but for its noise."""
    path = folder / secrets.token_hex(4)
    options = {"party": "a", "path": path, "key": KEY, "max_epsilon": float("inf")}
    write_partial(rows, request, noise=NoNoise(), **options)
    return np.frombuffer(read_secret(path, [KEY])[1], "<i8").tolist()


def leaves(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where numbers stand in a document."""
    if isinstance(document, dict | list):
        pairs = document.items() if isinstance(document, dict) else enumerate(document)
        return [leaf for key, value in pairs for leaf in leaves(value, (*path, key))]
    return [path] if isinstance(document, int | float) else []


@pytest.mark.parametrize("method", ["dp-merf", "dp-anova"])
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_a_doctored_request_is_refused_or_costs_what_is_told(tmp_path: Path, method: str, delta: float) -> None:
    """Noise is not in a request: it follows from the epsilon, which is told, and from what rows can move."""
    Request(plan_for(method, delta=delta, parties=2)).save(tmp_path / "request.json")
    text, random = (tmp_path / "request.json").read_text(), Random(0)
    places = [place for place in leaves(json.loads(text)["plan"]) if place[0] != "settings"]
    accepted = 0
    for number in range(300):  # most are refused as they are read
        document = json.loads(text)
        *way, last = random.choice(places)
        inner = document["plan"]
        for key in way:
            inner = inner[key]
        inner[last] = doctored(inner[last], random)
        with suppress(Exception):  # else it is refused in any case
            document["fingerprint"] = Request(plan_from_dict(document["plan"])).fingerprint
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
        try:
            request = load_request(tmp_path / f"{number}.json")
            exact = [sum_of(table_of(1, seed), request, tmp_path) for seed in range(3)]
        except UnderstudyError:
            continue
        accepted += 1
        plan = request.plan
        for own in exact:
            length = sum(map(abs, own)) if plan.budget.is_pure else sum(v * v for v in own)
            cost = plan.mechanism.cost(length, plan.noise_scales[0])
            realised = plan.mechanism.epsilon([cost], plan.budget.delta)
            assert realised <= request.epsilon_of_round <= plan.epsilon() <= plan.budget.epsilon
    assert accepted > 3


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**62])
def test_hostile_numbers_of_earlier_rounds_do_not_make_a_row_move_more(tmp_path: Path, size: int) -> None:
    plan, rng = plan_for("dp-anova", parties=2), np.random.default_rng(size)
    request = Request(plan)
    for stage in range(1, len(plan.stages)):
        dim = work_of(plan, request.vectors).embedding.dim
        vector = rng.integers(-size, size + 1, dim) * plan.lattice // max(1, size // 2**20)
        request = request.after(vector, None, is_private=True, answered_by={})
        for seed in range(4):
            own = sum_of(table_of(1, seed), request, tmp_path)
            assert 0 < sum(v * v for v in own) <= sum(plan.mechanism_sensitivities[stage])


def test_the_epsilon_that_a_request_states_is_that_of_the_noise_that_is_drawn(tmp_path: Path) -> None:
    plan = plan_for(parties=2, num_features=200)
    described = plan.to_dict()
    Request(plan).save(tmp_path / "honest.json")
    document = json.loads((tmp_path / "honest.json").read_text())
    for name, more in {"noise_std": 1, "noise_scales": [1], "stages": described["stages"]}.items():
        document["plan"][name] = more
    document["plan"]["epsilon"] = 100.0  # what a hostile merger would like
    document["fingerprint"] = Request(plan_from_dict(document["plan"])).fingerprint
    (tmp_path / "hostile.json").write_text(json.dumps(document))
    hostile = load_request(tmp_path / "hostile.json")
    with pytest.raises(BudgetError, match="asks for epsilon 100"):
        refused(hostile, tmp_path, max_epsilon=1.0)
    document["plan"]["epsilon"] = 1.0
    document["fingerprint"] = Request(plan).fingerprint
    (tmp_path / "modest.json").write_text(json.dumps(document))
    modest = load_request(tmp_path / "modest.json")
    assert modest.plan.noise_scales == plan.noise_scales
    options = {"party": "a", "path": tmp_path / "a", "key": KEY, "max_epsilon": 1.0}
    write_partial(table_of(40), modest, **options)
    _, content = read_secret(tmp_path / "a", [KEY])
    exact = sum_table(table_of(40), work_of(plan, ()), query=None, run=Run())[:-1]
    drawn = (np.frombuffer(content, "<i8") - exact) / plan.noise_scales[0]
    assert abs((drawn**2).mean() - 1) < 8 * np.sqrt(2 / len(drawn))


@pytest.mark.parametrize("vectors", [[b"\0" * 8], [b"\0" * 8 * 10**6], [b"\0" * 7]])
def test_vectors_of_another_length_are_refused(tmp_path: Path, vectors: list[bytes]) -> None:
    Request(plan_for("dp-anova", parties=2)).save(tmp_path / "request.json")
    document = json.loads((tmp_path / "request.json").read_text())
    document["vectors"] = [base64.b64encode(vector).decode() for vector in vectors]
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="is damaged"):
        load_request(tmp_path / "other.json")


# Queries


ALL, ADULTS = "SELECT * FROM data", "SELECT * FROM data WHERE bmi > 20"


def merged_with(queries: list[str | None], folder: Path, method: str = "dp-anova", parties: int = 1) -> Any:
    """A release of parties with these queries, in all rounds."""
    request: Any = Request(plan_for(method, parties=parties))
    own = {"max_epsilon": 1.0} if parties > 1 else {}
    while isinstance(request, Request):
        paths = []
        for number, query in enumerate(queries):
            path = folder / f"{request.round}-{number}"
            options = {"party": f"site {number}", "path": path, "key": KEY} | own
            write_partial(table_of(20, number), request, query=query, **options)
            paths.append(path)
        last = request.round == len(request.plan.stages) - 1
        request = merge_partials(request, paths, keys=[KEY], directory=folder / "out" if last else None)
        if isinstance(request, Request):
            request.save(folder / f"{request.round}.json")
            request = load_request(folder / f"{request.round}.json")
    return request


@pytest.mark.parametrize(
    ("queries", "parties", "told"),
    [
        ([None, None], 1, None),
        ([None, ALL], 1, ALL),
        ([ADULTS, ADULTS], 2, ADULTS),
        ([ALL, None, ADULTS], 3, [ALL, ADULTS]),
    ],
)
def test_queries_of_parties_are_in_the_certificate_and_among_its_assumptions(
    tmp_path: Path, queries: list[str | None], parties: int, told: Any
) -> None:
    release = merged_with(queries, tmp_path, parties=parties)
    assert dict(release.facts)["query"] == told
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert stated["public"]["query"] == told
    assumed = verify_release(tmp_path / "out").assumptions
    assert ("row by row query" in assumed) is (told is not None)
    page = (tmp_path / "out" / "certificate.html").read_text()
    for query in told if isinstance(told, list) else [told] if told else []:
        assert f"<code>{query.replace('>', '&gt;')}</code>" in page


def test_a_party_has_the_same_query_in_every_round(tmp_path: Path) -> None:
    """Else stages of one release would be of different rows."""
    request = Request(plan_for("dp-anova"))
    second: Any = merge_partials(request, answered(request, [table_of(20)], tmp_path, query=ALL), keys=[KEY])
    with pytest.raises(InputError, match="another query"):
        answered(second, [table_of(20)], tmp_path)
    (unaware,) = answered(replace(second, answered_by={}), [table_of(20)], tmp_path, query=ADULTS)
    with pytest.raises(InputError, match="another query"):
        merge_partials(second, [unaware], keys=[KEY])


def test_a_query_in_the_header_cannot_be_taken_out_and_must_be_there(tmp_path: Path) -> None:
    request = Request(plan_for())
    (path,) = answered(request, [table_of(9)], tmp_path, query=ALL)
    whole = path.read_bytes()
    assert whole.count(ALL.encode()) == 1
    path.write_bytes(whole.replace(ALL.encode(), ALL.lower().encode()))
    with pytest.raises(InputError, match="it was changed"):
        merge_partials(request, [path], keys=[KEY])
    path.write_bytes(whole)
    header, content = read_secret(path, [KEY])
    earlier = {name: value for name, value in header.items() if name != "query"}
    write_secret(tmp_path / "earlier", earlier, content, key=KEY)
    with pytest.raises(InputError, match="does not say by which query"):
        merge_partials(request, [tmp_path / "earlier"], keys=[KEY])
