from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import Budget
from understudy.arrays import Integers
from understudy.errors import InputError
from understudy.methods import make_plan
from understudy.private import contribution_bounding
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.passes import Run, sum_table
from understudy.private.release import release_table
from understudy.private.sums import Work
from understudy.schema import load_schema
from understudy.schema.encode import encode_ids

COLUMNS = [
    {"name": "age", "kind": "integer", "bounds": [0, 9]},
    {"name": "city", "kind": "categorical", "categories": ["Bonn", "Lima"]},
]
MAX_ROWS = 2


def plan_per(unit: str = "person", max_rows: int = MAX_ROWS, **options: Any) -> Any:
    privacy = {"unit": unit, "max_rows": max_rows}
    schema = load_schema({"name": "visits", "privacy": privacy, "columns": COLUMNS})
    return make_plan(schema, Budget(1.0), method="dp-merf", options={"num_features": 6} | options)


PLAN = plan_per()
WORK = Work(PLAN.layout, PLAN.stages[0].embedding, PLAN.lattice)
Row = tuple[str | None, int, str]
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None, " "]), st.integers(0, 2), st.sampled_from(["Bonn", "Lima"])),
    max_size=14,
)


def table_of(rows: list[Row]) -> pa.Table:
    person, age, city = zip(*rows, strict=True) if rows else ((), (), ())
    kinds = {"person": pa.string(), "age": pa.int64(), "city": pa.string()}
    columns = {"person": list(person), "age": list(age), "city": list(city)}
    return pa.table(columns, schema=pa.schema(kinds))


def total_of(rows: list[Row]) -> Integers:
    return sum_table(table_of(rows), WORK, query=None, run=Run(threads=1))


@settings(max_examples=60, deadline=None)
@given(table=rows, own=st.lists(st.tuples(st.just("new"), st.integers(0, 9), st.just("Lima"))))
def test_a_person_moves_the_sum_by_that_person_s_chosen_rows_and_within_the_sensitivity(
    table: list[Row], own: list[Row]
) -> None:
    change = total_of([*table, *own]) - total_of(table)
    assert np.array_equal(change, total_of(own))
    assert change[-1] == min(len(own), MAX_ROWS)
    squared = sum(int(value) ** 2 for value in change[:-1].tolist())
    assert squared <= sum(PLAN.mechanism_sensitivities[0])


def test_rows_that_are_all_alike_reach_what_is_stated() -> None:
    change = total_of([("a", 3, "Bonn")] * 9)
    squared = sum(int(value) ** 2 for value in change[:-1].tolist())
    assert 0.99 < squared / sum(PLAN.mechanism_sensitivities[0]) <= 1


@settings(max_examples=40, deadline=None)
@example(table=[(who, age, "Bonn") for who in ("a", "b") for age in range(8)], random=Random(0))
@given(table=rows, random=st.randoms())
def test_which_rows_count_does_not_depend_on_their_order(table: list[Row], random: Any) -> None:
    shuffled = list(table)
    random.shuffle(shuffled)
    assert np.array_equal(total_of(shuffled), total_of(table))


def test_rows_without_an_id_never_count() -> None:
    nobody: list[Row] = [(None, 1, "Bonn"), ("", 2, "Lima"), ("  ", 2, "Lima")]
    assert not total_of(nobody).any()


WORDS = ["NA", "n/a", "N.A.", "NULL", "null", "None", "nan", "NaN", "-nan", "NaT", "<NA>", "#N/A", "(null)", "\\N"]
NOT_WORDS = ["0", "N", "A", "NATO", "Nina", "none1", "NA 7", "Ö", "unknown"]


@pytest.mark.parametrize("word", [*WORDS, "-", "?", " . "])
def test_people_whose_missing_ids_are_a_word_do_not_displace_each_other_s_rows(word: str) -> None:
    """Else a person's rows come and another's go: more than the noise is paid for."""
    charged = sum(PLAN.mechanism_sensitivities[0])
    table = [(word, age, city) for age in range(5) for city in ("Bonn", "Lima")]
    for start in range(0, len(table), MAX_ROWS):
        for own in ([("new", 9, "Lima")] * MAX_ROWS, [(word, 9, "Lima")] * MAX_ROWS):
            before = table[start : start + MAX_ROWS]
            change = total_of([*before, *own])[:-1] - total_of(before)[:-1]
            assert sum(int(value) ** 2 for value in change.tolist()) <= charged


def test_words_for_null_name_nobody_in_any_kind_of_text_and_other_words_do() -> None:
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
    for cells in [pa.array([*WORDS, *NOT_WORDS]).cast(kind) for kind in kinds]:
        for column in (cells, cells.cast(pa.binary()).dictionary_encode()):
            found = encode_ids("person", column).to_pylist()
            assert found[: len(WORDS)] == [None] * len(WORDS), column.type
            assert found[len(WORDS) :] == [name.encode() for name in NOT_WORDS]
    assert encode_ids("person", pa.array([b"\xff", b"-\xff", b"na\xff"])).null_count == 0


def test_missing_ids_of_a_data_frame_name_nobody_and_7_is_one_person_however_it_is_held() -> None:
    missing = [None, float("nan"), pd.NA, pd.NaT, "NA", "", b"null"]
    seven = [7, 7.0, "7", "7.0", b"7"]
    ids = pd.Series([*missing, *seven], dtype=object)
    for person in (ids, ids[len(missing) :].astype(str), ids[: len(missing)].astype(str)):
        frame = pd.DataFrame({"person": person, "age": 3, "city": "Bonn"})
        total = sum_table(frame, WORK, query=None, run=Run(threads=1))
        assert total[-1] == (0 if len(person) == len(missing) else MAX_ROWS)


def test_bytes_of_a_fixed_width_are_ids_as_they_are() -> None:
    """A counter in four bytes may end in those of blanks, which are no blanks."""
    counters = [number.to_bytes(4, "big") for number in range(64)]
    cells = pa.array([*counters, b"NA  ", b"    "], pa.binary(4))
    assert encode_ids("person", cells).to_pylist() == [*counters, None, None]


def test_a_whole_number_is_one_id_with_and_without_its_point() -> None:
    """As a data frame writes it that had nulls beside it, and one that had none."""
    spelt = ["7", "7.0", " 7.00", "7.", "12345678901234567890.0", "07", "7.5", "1.0.0", "v7.0"]
    told = [b"7", b"7", b"7", b"7", b"12345678901234567890", b"07", b"7.5", b"1.0.0", b"v7.0"]
    assert encode_ids("person", pa.array(spelt)).to_pylist() == told


def test_ids_are_read_from_any_plain_type_and_blanks_do_not_make_two_people() -> None:
    ids = {
        "text": pa.array(["7", " 7", "7 ", None, ""]),
        "whole": pa.array([7, 7, 7, None, None]),
        "floats": pa.array([7.0, 7.0, 7.0, None, float("nan")]),
        "bytes": pa.array([b"7", b" 7", b"7\t", None, b" "]),
        "coded": pa.array(["7", "7", " 7", None, ""]).dictionary_encode(),
    }
    for name, cells in ids.items():
        assert encode_ids("person", cells).to_pylist() == [b"7"] * 3 + [None] * 2, name
    with pytest.raises(InputError, match="a nested type"):
        encode_ids("person", pa.array([["7"]]))


def test_long_decimal_ids_stay_apart_and_short_ones_are_whole_numbers() -> None:
    long = [Decimal(12345678901234567890123), Decimal(12345678901234567890124)]
    found = encode_ids("person", pa.array(long, pa.decimal128(38, 0))).to_pylist()
    assert found == [str(number).encode() for number in long]
    mixed = [Decimal("7.00"), Decimal("7.50"), Decimal("70.00"), Decimal("-0.05"), None]
    told = [b"7", b"7.5", b"70", b"-0.05", None]
    for kind in (pa.decimal128(9, 2), pa.decimal256(40, 2)):
        assert encode_ids("person", pa.array(mixed, kind)).to_pylist() == told


def many_rows(count: int = 4000) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "person": [f"p{number}" for number in rng.zipf(1.5, count) % 400],
            "age": rng.integers(0, 10, count),
            "city": rng.choice(["Bonn", "Lima"], count).tolist(),
        }
    )


def test_people_whose_rows_lie_in_several_files_and_passes_count_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = many_rows()
    wanted = sum_table(table, WORK, query=None, run=Run())
    _, sizes = np.unique(table["person"].to_pylist(), return_counts=True)
    assert wanted[-1] == np.minimum(sizes, MAX_ROWS).sum()
    shuffled = table.take(np.random.default_rng(2).permutation(table.num_rows))
    for number in range(4):
        pq.write_table(shuffled.slice(1000 * number, 1000), tmp_path / f"{number}.parquet")
    passes = []
    monkeypatch.setattr(contribution_bounding, "HELD_CELLS", 1500)
    monkeypatch.setattr(contribution_bounding, "MOST_PASSES", 64)
    whole = contribution_bounding.chosen_codes
    monkeypatch.setattr(contribution_bounding, "chosen_codes", lambda *held: passes.append(1) or whole(*held))
    for threads in (1, 3):
        found = sum_table(tmp_path, WORK, query=None, run=Run(threads=threads))
        assert np.array_equal(found, wanted)
    assert len(passes) > 8


def test_one_person_with_more_rows_than_are_held_at_a_time_is_still_one_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contribution_bounding, "HELD_CELLS", 10)
    monkeypatch.setattr(contribution_bounding, "MOST_PASSES", 8)
    assert total_of([("a", n % 10, "Bonn") for n in range(100)])[-1] == MAX_ROWS


def test_of_many_equal_rows_as_large_a_part_is_kept_as_of_others() -> None:
    count, own = 4000, 10
    people = np.repeat(np.arange(count), own)
    codes = np.stack([people, np.tile([0] * 9 + [1], count)], axis=1)  # the others differ by person
    kept = codes[contribution_bounding.choose(people, codes, 3)]
    # Three of ten rows are kept, so that a row is with probability 0.3; six deviations.
    assert abs(kept[:, 1].sum() - 0.3 * count) < 6 * np.sqrt(count * 0.3 * 0.7)


def test_rows_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contribution_bounding, "hashes_of", lambda codes: np.zeros(len(codes), dtype=np.uint64))
    rng = np.random.default_rng(3)
    people, codes = rng.integers(0, 5, 200), rng.integers(0, 3, (200, 2))
    chosen = [kept_codes(people[order], codes[order]) for order in permutations(rng, 200)]
    assert all(each == chosen[0] for each in chosen)


def permutations(rng: np.random.Generator, size: int) -> list[Integers]:
    return [rng.permutation(size) for _ in range(5)]


def kept_codes(people: Integers, codes: Integers) -> list[tuple[int, ...]]:
    kept = contribution_bounding.choose(people, codes, 4)
    return sorted((int(p), *map(int, c)) for p, c in zip(people[kept], codes[kept], strict=True))


def test_a_stream_is_refused_because_people_are_gathered_from_all_of_it() -> None:
    with pytest.raises(InputError, match="a stream can be read once"):
        release_table(many_rows().to_reader(), PLAN)


def test_the_certificate_and_the_ledger_name_whose_privacy_it_is(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(4.0))
    release_table(many_rows(300), PLAN, directory=tmp_path / "out", ledger=ledger)
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert stated["guarantee"]["unit"] == "person"
    assert stated["guarantee"]["rows_of_a_unit_that_count"] == MAX_ROWS
    assert "All rows of any one 'person'" in stated["guarantee"]["neighbours_in_words"]
    assert stated["assumptions"][0]["name"] == "one id, one unit"
    assert "no two of them share one" in stated["assumptions"][0]["statement"]
    (row,) = read_ledger(ledger).rows
    assert (row.description, row.unit) == ("dp-merf on visits", "person")
    release_table(many_rows(300), plan_per(max_rows=3), ledger=ledger)
    with pytest.raises(InputError, match="holds releases per person, and a cost per row"):
        release_table(many_rows(300), plan_per("row", 1), ledger=ledger)
