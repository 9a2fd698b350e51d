"""A draft is made of names and declared types; cells never reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.readers import source_columns
from understudy.schema.entries import draft_schema
from understudy.schema.images import ImageShape
from understudy.schema.table import parse_yaml


def draft(*columns: tuple[str, Any]) -> str:
    return draft_schema(columns, name="t")


def entry(name: str, kind: Any) -> dict[str, Any]:
    (found,) = yaml.safe_load(draft((name, kind)))["columns"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("arrow_type", "kind"),
    [
        (pa.int8(), "integer"),
        (pa.uint64(), "integer"),
        (pa.float16(), "continuous"),
        (pa.float64(), "continuous"),
        (pa.decimal128(9, 2), "continuous"),
        (pa.bool_(), "binary"),
        (pa.string(), "categorical"),
        (pa.large_string(), "categorical"),
        (pa.string_view(), "categorical"),
        (pa.binary(), "categorical"),
        (pa.dictionary(pa.int8(), pa.string()), "categorical"),
        (pa.date32(), "datetime"),
        (pa.timestamp("ns", tz="UTC"), "datetime"),
        (pa.time32("s"), "???"),
        (pa.duration("s"), "???"),
        (pa.null(), "???"),
        (pa.list_(pa.int64()), "???"),
        (pa.struct([("a", pa.int64())]), "???"),
        (None, "???"),
    ],
    ids=str,
)
def test_the_kind_follows_from_the_declared_type(arrow_type: Any, kind: str) -> None:
    assert entry("x", arrow_type)["kind"] == kind


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), None], ids=str)
def test_bounds_nullability_and_source_are_left_to_a_person(kind: Any) -> None:
    found = entry("x", kind)
    assert (found["bounds"], found["nullable"], found["bounds_from"]) == ("???", "???", "???")


def test_categories_are_left_to_a_person_unless_the_type_is_truth() -> None:
    assert entry("x", pa.string())["categories"] == "???"
    assert entry("x", pa.bool_())["categories"] == [False, True]


@pytest.mark.parametrize("name", ["id", "patient_id", "ssn", "Email", "uuid", "first_name"])
def test_a_name_that_identifies_people_is_drafted_as_id(name: str) -> None:
    assert entry(name, pa.string()) == {"name": name, "kind": "id"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("age", "bounds: [0, 120]"),
        ("age_at_visit", "bounds: [0, 120]"),
        ("Sex", "categories: [female, male]"),
        ("bmi", "bounds: [10, 80]"),
        ("hours_per_week", "bounds: [0, 168]"),
        ("birth_year", "bounds: [1900, 2100]"),
        ("latitude", "bounds: [-90, 90]"),
        ("total_income", "scale_hint: log1p"),
        ("visit_date", "kind: datetime"),
        ("zip", "kind: id to leave it out"),
    ],
)
def test_a_well_known_name_gets_a_hint_in_a_comment(name: str, hint: str) -> None:
    text = draft((name, pa.string()))
    (line,) = [line for line in text.splitlines() if line.startswith("- ")]
    assert "  # hint: " in line
    assert hint in line


def test_a_hint_is_no_default() -> None:
    assert entry("age", pa.int64())["bounds"] == "???"


@pytest.mark.parametrize("name", ["page", "colour", "x1"])
def test_another_name_gets_no_hint(name: str) -> None:
    assert "hint" not in draft((name, pa.int64()))


def test_a_draft_is_refused_until_a_person_has_decided() -> None:
    for kind in (pa.int64(), pa.string(), pa.bool_(), None):
        with pytest.raises(InputError, match=r"are still \?\?\?: \w+ of 'x', .*A person must decide"):
            parse_yaml(draft(("x", kind)), name="t")


def test_a_draft_whose_marks_are_replaced_is_a_schema() -> None:
    text = draft(("age", pa.int64()), ("patient_id", pa.string()))
    text = text.replace("bounds: ???", "bounds: [0, 120]").replace("nullable: ???", "nullable: false")
    schema = parse_yaml(text.replace("bounds_from: ???", "bounds_from: codebook"), name="t")
    assert [column.name for column in schema.used] == ["age"]
    assert schema.privacy.unit == "row"


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_any_name_is_drafted_as_yaml_that_holds_it(any_text: st.SearchStrategy[str], data: st.DataObject) -> None:
    names = data.draw(st.lists(any_text, min_size=1, max_size=4, unique=True))
    table = data.draw(any_text)
    document = yaml.safe_load(draft_schema([(name, None) for name in names], name=table))
    assert [entry["name"] for entry in document["columns"]] == names
    assert document["name"] == table


def test_csv_types_are_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2.5,2020-01-01\n2,3.5,2020-01-02\n")
    for found in yaml.safe_load(draft_schema(source_columns(path), name="t"))["columns"]:
        assert found["kind"] == "???"
        assert found["bounds"] == "???"


def test_drafts_of_files_that_differ_in_cells_are_the_same_bytes(tmp_path: Path) -> None:
    one = {"age": [1, 2, None], "who": ["a", "b", None], "ok": [True, None, False]}
    other = {"age": [99], "who": ["SECRET-7f3a"], "ok": [True]}
    schema = pa.schema([("age", pa.int64()), ("who", pa.string()), ("ok", pa.bool_())])
    drafts = []
    for name, cells in (("one", one), ("other", other), ("none", {key: [] for key in one})):
        table = pa.table(cells, schema=schema)
        pq.write_table(table, tmp_path / f"{name}.parquet")
        with pa.ipc.new_file(str(tmp_path / f"{name}.arrow"), schema) as file:
            file.write_table(table)
        for suffix in ("parquet", "arrow"):
            columns = source_columns(tmp_path / f"{name}.{suffix}")
            drafts.append(draft_schema(columns, name="t"))
    assert len(set(drafts)) == 1


def test_drafts_of_csv_files_that_differ_in_cells_are_the_same_bytes(tmp_path: Path) -> None:
    contents = ("a,b\n1,x\n", "a,b\nSECRET-7f3a,\n,,,ragged,row\n", "a,b\n", "a,b\n\xff\xfe,1\n")
    drafts = set()
    for content in contents:
        path = tmp_path / "t.csv"
        path.write_text(content, encoding="latin-1")
        drafts.add(draft_schema(source_columns(path), name="t"))
    assert len(drafts) == 1


def test_pixels_become_one_line_and_their_label_a_person_decides() -> None:
    pixels = [(name, pa.uint8()) for name in ImageShape(2, 3).names]
    text = draft(*pixels, ("age", pa.int64()), ("label", pa.int64()))
    document = yaml.safe_load(text)
    assert document["image"] == {"height": 2, "width": 3, "channels": 1}
    age, label = document["columns"]
    assert age["kind"] == "integer"
    assert label == {
        "name": "label",
        "kind": "categorical",
        "role": "label",
        "categories": "???",
        "nullable": "???",
        "bounds_from": "???",
    }
    with pytest.raises(InputError, match="still"):
        parse_yaml(text, name="t")


def test_a_draft_of_images_alone_is_complete() -> None:
    text = draft(*((name, None) for name in ImageShape(2, 3, 3).names))
    assert parse_yaml(text, name="t").image == ImageShape(2, 3, 3)


def test_a_label_of_a_table_without_images_is_a_column_like_others() -> None:
    assert entry("label", pa.int64())["kind"] == "integer"
