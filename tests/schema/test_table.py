"""A whole schema: reading it as people write it, writing it so that nothing changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.schema import Kind, PrivacyUnit, Role, Schema, load_schema
from understudy.schema.table import parse_schema, parse_yaml

SHARED_FORM = """\
# Public schema of a survey. Comments are free.
file: survey.parquet
rows: 4321
label: income
positive: '>50K'
task: binary
split_column: split
onehot_groups: {region: [region_1, region_2]}
label_names: {0: no, 1: yes}
notes: 'age is capped at 90: see the codebook'
columns:
- {name: age, kind: integer, role: feature, bounds: [17, 90], nullable: false, bounds_from: codebook}
- {name: education, kind: ordinal, role: feature, bounds: [1, 16], nullable: false, bounds_from: codebook}
- {name: workclass, kind: categorical, role: feature, categories: [Private, Self-emp-inc, '?'], nullable: true, \
bounds_from: codebook}
- {name: gain, kind: continuous, role: feature, bounds: [0.0, 99999.0], nullable: false, bounds_from: convention, \
scale_hint: log1p}
- {name: region_1, kind: binary, role: feature, categories: [0, 1], nullable: false, bounds_from: codebook}
- {name: region_2, kind: binary, role: feature, categories: [0, 1], nullable: false, bounds_from: codebook}
- {name: smoker, kind: binary, role: feature, categories: [no, yes], nullable: false, bounds_from: codebook}
- {name: seen, kind: datetime, role: feature, bounds: [2000-01-01, 2030-12-31], nullable: true, bounds_from: definition}
- {name: group, kind: categorical, role: aux, categories: [a, b], nullable: false, bounds_from: codebook}
- {name: split, kind: categorical, role: split, categories: [train, test], nullable: false, bounds_from: definition}
- {name: patient, kind: id}
- {name: income, kind: binary, role: label, categories: [<=50K, '>50K'], nullable: false, bounds_from: codebook}
"""
AGE = {"name": "age", "kind": "integer", "bounds": [0, 120]}


def one_column(entry: str) -> Any:
    return parse_yaml("columns:\n- " + entry, name="t").columns[0]


def refusal(document: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_schema(document, name="survey")
    return caught.value


# Reading.


def test_the_shared_form_is_read_as_it_is() -> None:
    schema = parse_yaml(SHARED_FORM, name="survey")
    assert (schema.name, schema.rows, schema.unread) == ("survey", 4321, ())
    assert [column.name for column in schema.used] == [
        "age",
        "education",
        "workclass",
        "gain",
        "region",
        "smoker",
        "seen",
        "income",
    ]
    assert schema.label is not None
    assert schema.label.categories == ("<=50K", ">50K")
    kinds = {column.name: column.kind for column in schema.columns}
    assert (kinds["seen"], kinds["patient"], kinds["education"]) == (Kind.DATETIME, Kind.ID, Kind.ORDINAL)
    assert schema.privacy == PrivacyUnit("row", 1)


def test_the_shared_form_comes_back_from_its_own_yaml() -> None:
    schema = parse_yaml(SHARED_FORM, name="survey")
    assert parse_yaml(schema.to_yaml(), name="other") == schema


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[no, yes]", ("no", "yes")),
        ("[off, on]", ("off", "on")),
        ("[n, y]", ("n", "y")),
        ("[false, true]", (False, True)),
        ("['false', 'true']", ("false", "true")),
        ("[0, 1]", (0, 1)),
        ("['0', '1']", ("0", "1")),
        ("[<, =, '>']", ("<", "=", ">")),
        ("[01234, 09876]", ("01234", "09876")),
        ("[12:30, 13:30]", ("12:30", "13:30")),
        ("[1_000, 2_000]", ("1_000", "2_000")),
        ("[0x10, 0x11]", ("0x10", "0x11")),
        ("[2020-01-01, 2020-01-02]", ("2020-01-01", "2020-01-02")),
        ("[a???, b]", None),
        ("['a???', b]", ("a???", "b")),
        ("[-1, +2, 0]", (-1, 2, 0)),
        ("[0.5, 1e3, .25]", (0.5, 1000.0, 0.25)),
    ],
)
def test_categories_are_the_words_that_a_person_wrote(written: str, read: tuple[Any, ...] | None) -> None:
    entry = f"{{name: x, kind: categorical, categories: {written}}}"
    if read is None:
        with pytest.raises(InputError, match="is not valid YAML near line 2"):
            one_column(entry)
        return
    found = one_column(entry).categories
    assert found == read
    assert [type(category) for category in found] == [type(category) for category in read]


def test_bounds_may_be_written_with_an_exponent() -> None:
    assert one_column("{name: x, kind: continuous, bounds: [0, 1e6]}").bounds == (0.0, 1e6)


@pytest.mark.parametrize(
    "entry",
    [
        "{name: x, kind: integer, bounds: ???}",
        "{name: x, kind: integer, bounds: [0, ???]}",
        "{name: x, kind: integer, bounds: [???,???]}",
        "{name: x, kind: integer, bounds: '???'}",
        "name: x\n  kind: integer\n  bounds: ???  # hint",
    ],
)
def test_three_question_marks_are_undecided_with_or_without_quotes(entry: str) -> None:
    with pytest.raises(InputError, match=r"still \?\?\?: bounds of 'x'"):
        one_column(entry)


def test_question_marks_inside_words_are_left_alone() -> None:
    found = one_column("{name: 'really ??? yes', kind: integer, bounds: [0, 1], description: 'a ??? b'}")
    assert (found.name, found.description) == ("really ??? yes", "a ??? b")


def test_a_file_gives_its_stem_as_name_unless_it_has_one(tmp_path: Path) -> None:
    path = tmp_path / "patients.yaml"
    path.write_text("columns: [{name: age, kind: integer, bounds: [0, 120]}]")
    assert load_schema(path).name == "patients"
    path.write_text("name: hospital\ncolumns: [{name: age, kind: integer, bounds: [0, 120]}]")
    assert load_schema(str(path)).name == "hospital"


def test_a_schema_or_a_dictionary_in_memory_is_taken_as_it_is() -> None:
    schema = load_schema({"columns": [AGE]})
    assert isinstance(schema, Schema)
    assert load_schema(schema) is schema


def test_keys_that_nothing_reads_are_kept_for_a_warning() -> None:
    assert parse_schema({"columns": [AGE], "colour": 1}, name="t").unread == ("colour",)


def test_a_label_is_the_column_with_that_role() -> None:
    label = {"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"}
    schema = parse_schema({"columns": [AGE, label], "label": "ill"}, name="t")
    assert schema.label is schema.columns[1]
    assert schema.label.role is Role.LABEL
    assert parse_schema({"columns": [AGE]}, name="t").label is None


# Writing.


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_schema_comes_back_from_its_yaml_whatever_it_holds(
    any_schema: st.SearchStrategy[Schema], data: st.DataObject
) -> None:
    schema = data.draw(any_schema)
    text = schema.to_yaml()
    again = parse_yaml(text, name="other")
    assert again == schema
    assert again.fingerprint == schema.fingerprint
    assert again.to_yaml() == text
    kinds = [[type(value) for value in column.categories] for column in schema.columns]
    assert kinds == [[type(value) for value in column.categories] for column in again.columns]
    text.encode()


@given(data=st.data())
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_a_schema_comes_back_from_json_as_release_files_keep_it(
    any_schema: st.SearchStrategy[Schema], data: st.DataObject
) -> None:
    schema = data.draw(any_schema)
    assert parse_schema(json.loads(json.dumps(schema.to_dict())), name="other") == schema


@given(data=st.data())
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_any_yaml_reader_finds_the_same_words(any_schema: st.SearchStrategy[Schema], data: st.DataObject) -> None:
    schema = data.draw(any_schema)
    found = yaml.safe_load(schema.to_yaml())
    for column, entry in zip(schema.columns, found["columns"], strict=True):
        assert entry["name"] == column.name
        assert entry.get("categories", []) == list(column.categories)


def test_the_fingerprint_changes_with_any_public_fact() -> None:
    schema = parse_schema({"columns": [AGE]}, name="t")
    wider = parse_schema({"columns": [AGE | {"bounds": [0, 121]}]}, name="t")
    counted = parse_schema({"columns": [AGE], "rows": 7}, name="t")
    assert len({schema.fingerprint, wider.fingerprint, counted.fingerprint}) == 3


# Refusing.


@pytest.mark.parametrize("document", [None, [], "text", {}, {"columns": None}, {"columns": {"a": 1}}])
def test_a_document_without_columns_is_refused(document: Any) -> None:
    error = refusal(document)
    assert (error.where, error.rule) == ("schema 'survey'", "needs a list called 'columns'")
    assert "understudy schema draft" in error.remedy


def test_a_missing_schema_file_is_refused_and_a_draft_is_offered(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file\. Draft one: understudy schema draft DATA"):
        load_schema(tmp_path / "none.yaml")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"name: \x80"])
def test_a_schema_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as UTF-8 text"):
        load_schema(path)


def test_a_directory_for_a_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        load_schema(tmp_path)


@pytest.mark.parametrize(
    "text", ["columns: [", "columns:\n- {name: x", "a: b: c", "columns: !!python/object:os.system []", "x: \x07"]
)
def test_text_that_is_no_yaml_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="schema 's': is not valid YAML"):
        parse_yaml(text, name="s")


def test_a_number_that_python_will_not_read_is_refused() -> None:
    with pytest.raises(InputError, match="is not valid YAML"):
        parse_yaml("rows: " + "9" * 5000, name="s")


def test_text_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match="is not valid YAML"):
        parse_yaml(r'columns: [{name: "\ud800", kind: id}]', name="s")


def test_a_column_that_is_listed_twice_is_refused() -> None:
    error = refusal({"columns": [AGE, AGE]})
    assert (error.where, error.rule) == ("column 'age'", "is listed twice")
    assert error.remedy == "Remove one of the two"


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "many"])
def test_rows_must_be_a_whole_number_above_zero(rows: Any) -> None:
    error = refusal({"columns": [AGE], "rows": rows})
    assert error.rule == "rows must be a whole number above zero"
    assert error.remedy == "Remove it if the count is private"


def test_a_schema_with_nothing_to_read_is_refused() -> None:
    error = refusal({"columns": [{"name": "nr", "kind": "id"}, AGE | {"role": "aux"}]})
    assert error.rule == "has no column with role feature or label"


def test_two_labels_are_refused() -> None:
    other = AGE | {"name": "year", "role": "label"}
    error = refusal({"columns": [AGE | {"role": "label"}, other]})
    assert error.rule == "has more than one column with role label"


def test_a_label_that_is_no_column_is_refused() -> None:
    error = refusal({"columns": [AGE], "label": "ill"})
    assert error.rule == "label names 'ill', which is not a column"


def test_a_label_with_another_role_is_refused() -> None:
    error = refusal({"columns": [AGE], "label": "age"})
    assert (error.where, error.remedy) == ("column 'age'", "Set role: label")


@pytest.mark.parametrize("privacy", [None, "row", [], {"unit": "row", "people": 3}])
def test_a_privacy_entry_of_another_shape_is_refused(privacy: Any) -> None:
    error = refusal({"columns": [AGE], "privacy": privacy})
    assert error.rule == "privacy must hold unit and max_rows only"
    assert error.remedy == "Set privacy: {unit: row}"


@pytest.mark.parametrize(
    "privacy", [{"unit": 3}, {"max_rows": 0}, {"max_rows": True}, {"max_rows": "two"}, {"unit": None}]
)
def test_a_bad_privacy_unit_is_refused(privacy: Any) -> None:
    error = refusal({"columns": [AGE], "privacy": privacy})
    assert error.rule == "privacy needs a unit and a whole max_rows"
