"""One-hot groups: measured as one choice, read and written as the columns that they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Budget, Schema, ask, fit_release, load_schema, make_plan, release_table, verify_release
from understudy.errors import InputError, UsageError
from understudy.released.assumptions import shared_assumptions
from understudy.schema.columns import NULL, UNLISTED
from understudy.schema.encode import batch_misfits, decode_table, encode_batch
from understudy.schema.entries import draft_schema
from understudy.schema.table import PrivacyUnit

FLAG = {"kind": "binary", "categories": [0, 1], "bounds_from": "codebook"}
DOCUMENT: dict[str, Any] = {
    "name": "forest",
    "onehot_groups": {"soil": ["soil_1", "soil_2", "soil_3"], "zone": ["zone_a", "zone_b", None]},
    "columns": [
        {"name": "soil_1", **FLAG},
        {"name": "height", "kind": "integer", "bounds": [0, 9]},
        {"name": "soil_2", **FLAG},
        {"name": "zone_a", **FLAG, "categories": [False, True]},
        {"name": "zone_b", **FLAG, "categories": [1, 0]},
        {"name": "soil_3", **FLAG},
    ],
}
FLAGS: list[dict[str, Any]] = DOCUMENT["columns"]
SCHEMA = load_schema(DOCUMENT)
NAMES = ["soil_1", "soil_2", "soil_3"]


def codes_of(rows: dict[str, list[Any]], *, unlisted: int = NULL) -> list[list[int]]:
    cells = {"height": [0], "zone_a": ["0"], "zone_b": ["0"]} | rows
    batch = pa.record_batch({name: pa.array(map(str, values)) for name, values in cells.items()})
    return encode_batch(SCHEMA, batch, unlisted=unlisted).tolist()


def rows_of(soils: np.ndarray, zones: np.ndarray) -> pa.Table:
    flags: dict[str, Any] = {name: (soils == place).astype(int) for place, name in enumerate(NAMES)}
    flags |= {"zone_a": zones == 0, "zone_b": (zones == 1).astype(int)}
    return pa.table(flags | {"height": (soils * 3 + zones) % 10})


def refusal(**changes: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_schema(DOCUMENT | changes)
    return str(caught.value)


def test_a_group_is_one_choice_where_its_first_column_was():
    assert [column.name for column in SCHEMA.used] == ["soil", "height", "zone"]
    assert SCHEMA.file_names == ["soil_1", "height", "soil_2", "zone_a", "zone_b", "soil_3"]
    assert SCHEMA.used[0].categories == ("soil_1", "soil_2", "soil_3")
    assert [column.nullable for column in SCHEMA.used] == [False, False, True]


def test_the_column_that_is_set_is_the_code():
    assert codes_of({"soil_1": [0], "soil_2": [1], "soil_3": [0]}) == [[1, 0, NULL]]
    assert codes_of({"soil_1": [0], "soil_2": [0], "soil_3": [1], "zone_b": [1]}) == [[2, 0, 1]]
    assert codes_of({"soil_1": [1], "soil_2": [0], "soil_3": [0], "zone_a": ["true"]}) == [[0, 0, 0]]


def test_several_set_or_none_is_no_value_of_the_group():
    assert codes_of({"soil_1": [1], "soil_2": [1], "soil_3": [0]}, unlisted=UNLISTED) == [[UNLISTED, 0, NULL]]
    assert codes_of({"soil_1": [0], "soil_2": [0], "soil_3": [0]}, unlisted=UNLISTED) == [[NULL, 0, NULL]]
    assert codes_of({"soil_1": ["?"], "soil_2": [0], "soil_3": [0]}, unlisted=UNLISTED) == [[UNLISTED, 0, NULL]]
    assert codes_of({"soil_1": ["?"], "soil_2": [1], "soil_3": [""]}, unlisted=UNLISTED) == [[1, 0, NULL]]


@given(st.lists(st.tuples(*[st.sampled_from(["0", "1", "", "x", "1.0"])] * 3), min_size=2, max_size=6))
def test_a_rows_code_depends_on_its_own_cells(rows: list[tuple[str, str, str]]):
    together = codes_of(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)) | _plain(len(rows)))
    alone = [codes_of(dict(zip(NAMES, ([cell] for cell in row), strict=True)))[0] for row in rows]
    assert together == alone


def _plain(size: int) -> dict[str, list[Any]]:
    return {"height": [0] * size, "zone_a": ["0"] * size, "zone_b": ["0"] * size}


def test_rows_come_back_as_they_were():
    rng = np.random.default_rng(0)
    rows = rows_of(rng.integers(0, 3, 200), rng.integers(0, 3, 200)).select(SCHEMA.file_names)
    back = decode_table(SCHEMA, encode_batch(SCHEMA, rows.to_batches()[0]))
    assert back.column_names == rows.column_names
    assert back.to_pydict() == rows.to_pydict()


@pytest.mark.parametrize("method", ["dp-anova", "dp-merf", "dp-hp"])
def test_no_row_has_two_of_a_group_set(method: str):
    rng = np.random.default_rng(1)
    rows = rows_of(rng.integers(0, 3, 600), rng.integers(0, 3, 600))
    fast = {"dp-anova": {"steps": 20}, "dp-merf": {"steps": 20, "num_features": 200}, "dp-hp": {"steps": 20}}[method]
    made = fit_release(release_table(rows, make_plan(SCHEMA, Budget(1.0, 1e-5), method=method, options=fast)))
    flags = made.sample(500, seed=0).to_pandas()
    assert (flags[NAMES].sum(axis=1) == 1).all()
    assert set(flags[["zone_a", "zone_b"]].astype(int).sum(axis=1)) == {0, 1}


def test_a_group_can_be_asked_for_and_its_columns_say_how():
    rng = np.random.default_rng(2)
    rows = rows_of(rng.choice(3, 4000, p=[0.7, 0.2, 0.1]), rng.integers(0, 3, 4000))
    release = release_table(rows, make_plan(SCHEMA, Budget(3.0, 1e-5), options={"steps": 20}))
    answer = ask(release, "count where soil = 'soil_1'")
    assert abs(answer.rows[0].estimate - 2800) < 200
    with pytest.raises(UsageError, match="one of the columns of 'soil'"):
        ask(release, "count where soil_1 = 1")
    made = fit_release(release)
    assert set(made.sample(50, given={"soil": "soil_2"}, seed=0).to_pandas().soil_2) == {1}
    with pytest.raises(UsageError, match="one of the columns of 'soil'"):
        made.sample(50, given={"soil_2": 1}, seed=0)


def test_rules_speak_of_groups():
    rules = [{"forbid": {"soil": "soil_3", "height": {"from": 5}}}]
    schema = load_schema(DOCUMENT | {"rules": rules})
    assert schema.rules[0].columns == ("soil", "height")
    assert "soil_3 is not a column" in refusal(rules=[{"forbid": {"soil_3": 1}}])


def test_a_schema_with_groups_is_written_and_read_back():
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert SCHEMA.to_dict()["onehot_groups"]["zone"] == ["zone_a", "zone_b", None]
    assert load_schema(DOCUMENT | {"onehot_groups": {}}).fingerprint != SCHEMA.fingerprint
    assert replace(SCHEMA, onehot_groups=()).fingerprint == load_schema(DOCUMENT | {"onehot_groups": {}}).fingerprint


def test_yaml_keeps_groups(tmp_path):
    path = tmp_path / "forest.yaml"
    path.write_text(SCHEMA.to_yaml())
    assert load_schema(path) == SCHEMA


def test_a_release_verifies_in_whatever_order_groups_are_declared(tmp_path):
    """A stored plan has its keys sorted, and was taken for another one than the schema beside it."""
    groups = dict(reversed(DOCUMENT["onehot_groups"].items()))
    assert list(groups) != sorted(groups) or list(DOCUMENT["onehot_groups"]) != sorted(DOCUMENT["onehot_groups"])
    for declared in (groups, DOCUMENT["onehot_groups"]):
        schema, rng = load_schema(DOCUMENT | {"onehot_groups": declared}), np.random.default_rng(0)
        rows = rows_of(rng.integers(0, 3, 200), rng.integers(0, 3, 200))
        release_table(rows, make_plan(schema, Budget(1.0)), directory=tmp_path / next(iter(declared)))
        assert verify_release(tmp_path / next(iter(declared))).epsilon <= 1.0


def test_a_group_hides_no_source_of_its_columns():
    columns = [column | ({"bounds_from": "rounded"} if column["name"] == "soil_2" else {}) for column in FLAGS]
    schema = load_schema(DOCUMENT | {"columns": columns})
    assert schema.used[0].bounds_from == "not stated"
    names = [name for name, _ in shared_assumptions(schema, {})]
    assert "bounds from data" in names


def test_a_column_of_a_group_is_no_unit_of_privacy():
    schema = replace(SCHEMA, privacy=PrivacyUnit(unit="soil_2", max_rows=2))
    with pytest.raises(InputError, match="names whom the guarantee is for"):
        make_plan(schema, Budget(1.0))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"soil": ["soil_1", "soil_9"]}, "'soil_9', which is not a column"),
        ({"soil": ["soil_1", "height"]}, "categories 0 and 1"),
        ({"soil": ["soil_1"]}, "fewer than two"),
        ({"height": ["soil_1", "soil_2"]}, "name of a column"),
        ({"soil": ["soil_1", "soil_2"], "zone": ["soil_2", "zone_a"]}, "two one-hot groups"),
        ({"soil": ["soil_1", "soil_1"]}, "different columns"),
        ({"soil": "soil_1"}, "list of different columns"),
        ({"soil": ["soil_1", "soil_2", None, None]}, "different columns"),
        ({"soil": [["soil_1"], "soil_2"]}, "which is not a column"),
        (["soil_1"], "list of columns for each name"),
    ],
)
def test_what_is_no_group_is_refused(groups: Any, words: str):
    assert words in refusal(onehot_groups=groups)


def test_a_label_is_in_no_group():
    columns = [column | ({"role": "label"} if column["name"] == "soil_1" else {}) for column in DOCUMENT["columns"]]
    assert "must be features" in refusal(columns=columns)


def test_rows_that_fit_no_group_are_counted_on_request():
    batch = pa.record_batch({"soil_1": [1, 0, 0], "soil_2": [1, 0, 1], "soil_3": [0, 0, 0]} | _plain(3))
    found = batch_misfits(SCHEMA, batch)
    assert (found["soil"].unlisted, found["soil"].blank) == (1, 1)
    assert (found["zone"].unlisted, found["zone"].blank) == (0, 3)


def test_a_draft_suggests_groups_by_names_alone():
    text = draft_schema([(name, None) for name in ("age", "Soil_Type1", "Soil_Type2", "Soil_Type3", "b_id")], name="t")
    assert '# onehot_groups: {"Soil_Type": ["Soil_Type1", "Soil_Type2", "Soil_Type3"]}' in text
    assert "onehot_groups" not in draft_schema([("x_1", None), ("x_2", None)], name="t")
