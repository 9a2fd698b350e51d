"""Drafting and checking schemas from the command line."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

SECRET = "SECRET-7f3a"


def test_a_draft_is_printed_as_yaml_that_a_file_can_hold(run: Any, office: Any) -> None:
    found = run("schema", "draft", office.parquet)
    assert (found.code, found.err) == (0, "")
    document = yaml.safe_load(found.out)
    assert document["name"] == "rows"
    assert [entry["name"] for entry in document["columns"]] == ["nr", "bmi", "age", "sex", "seen", "ill"]
    assert document["columns"][1]["kind"] == "continuous"


def test_what_is_printed_is_what_is_written_and_what_json_holds(run: Any, office: Any) -> None:
    printed = run("schema", "draft", office.parquet).out
    output = office.path("draft.yaml")
    assert run("schema", "draft", office.parquet, "-o", output).code == 0
    found = run("schema", "draft", office.parquet, "--json").document
    assert output.read_text() == printed == found["schema"]


def test_a_draft_with_odd_names_is_printed_as_it_is(run: Any, office: Any) -> None:
    names = ["[bold]", "a: b", "[/x]", ":dog:", "x" * 200, "é"]
    pq.write_table(pa.table({name: [1] for name in names}), office.path("odd.parquet"))
    document = yaml.safe_load(run("schema", "draft", office.path("odd.parquet")).out)
    assert [entry["name"] for entry in document["columns"]] == names


def test_drafts_of_tables_that_differ_in_cells_are_the_same(run: Any, office: Any) -> None:
    printed = run("schema", "draft", office.parquet).out
    table = pq.read_table(office.parquet)
    odd = table.slice(0, 1).set_column(3, "sex", pa.array([SECRET]))
    pq.write_table(odd, office.parquet)
    assert run("schema", "draft", office.parquet).out == printed


def test_a_fresh_draft_does_not_pass_the_check(run: Any, office: Any) -> None:
    output = office.path("draft.yaml")
    run("schema", "draft", office.csv, "-o", output)
    found = run("schema", "check", output, "--json")
    assert found.code == 1
    assert "are still ???: " in found.refusal["rule"]


def test_a_draft_never_overwrites(run: Any, office: Any) -> None:
    before = office.files()
    found = run("schema", "draft", office.csv, "-o", office.schema, "--json")
    assert (found.code, found.refusal["rule"]) == (1, "exists already")
    assert office.files() == before


def test_a_draft_that_cannot_be_written_is_refused(run: Any, office: Any) -> None:
    found = run("schema", "draft", office.csv, "-o", office.path("none") / "s.yaml", "--json")
    assert (found.code, found.refusal["rule"]) == (1, "its directory does not exist or cannot be written")


@pytest.mark.parametrize("verb", [("draft",), ("check", "schema.yaml")], ids=["draft", "check"])
@pytest.mark.parametrize(
    ("name", "content"),
    [("none.csv", None), ("bad.csv", b""), ("bad.parquet", b"PAR1" + SECRET.encode()), ("bad.txt", b"a,b\n1,2\n")],
)
def test_a_bad_data_file_is_refused(
    run: Any, office: Any, verb: tuple[str, ...], name: str, content: bytes | None
) -> None:
    if content is not None:
        office.put(name, content)
    before = office.files()
    words = [office.schema if word == "schema.yaml" else word for word in verb]
    found = run("schema", *words, office.path(name), "--json")
    assert found.code == 1
    assert found.refusal["where"] == f"file '{name}'"
    assert SECRET not in found.err
    assert office.files() == before


def test_a_complete_schema_passes_with_its_columns_shown(run: Any, office: Any) -> None:
    text = run("schema", "check", office.schema).out
    assert "The schema is complete." in text
    for words in ("bmi", "10 to 80", "2 categories", "definition"):
        assert words in text
    found = run("schema", "check", office.schema, office.csv, "--json").document
    assert found["unread_keys"] == []
    assert len(found["schema"]["columns"]) == 5


def test_keys_that_nothing_reads_are_pointed_out(run: Any, office: Any) -> None:
    office.put("schema.yaml", office.schema.read_text() + "colour[red]: 1\n")
    assert "Keys that nothing reads: colour[red]" in run("schema", "check", office.schema).out
    assert run("schema", "check", office.schema, "--json").document["unread_keys"] == ["colour[red]"]


def test_a_data_file_without_a_column_of_the_schema_is_refused(run: Any, office: Any) -> None:
    data = office.put("few.csv", f"bmi,age\n1,{SECRET}\n")
    found = run("schema", "check", office.schema, data, "--json")
    assert (found.code, found.refusal["where"]) == (1, "column 'sex'")
    assert SECRET not in found.err


CELLS = """\
name: t
columns:
- {name: age, kind: integer, bounds: [0, 120]}
- {name: ward, kind: categorical, categories: [north, south], nullable: true}
- {name: seen, kind: datetime, bounds: [2015-01-01, 2025-12-31]}
- {name: ill, kind: categorical, categories: [0, 1], unknown: 1}
"""


def test_cells_that_do_not_fit_are_counted_by_column_and_never_shown(run: Any, office: Any) -> None:
    schema, data = office.path("cells.yaml"), office.path("cells.csv")
    schema.write_text(CELLS)
    data.write_text(
        "age,ward,seen,ill\n1,north,2020-01-01,0\n" + f"{SECRET},{SECRET},2020-02-30,{SECRET}\n"
        "200,,2025-12-31T10:00,1\nNA,south,1999-01-01,1\n-1,north,2020-05-05,0\n"
    )
    found = run("schema", "check", schema, data, "--cells", "--json")
    assert found.code == 1
    assert found.document["private_cells"] == {
        "age": {"blank": 1, "unreadable": 1, "outside": 2, "unlisted": 0},
        "ward": {"blank": 1, "unreadable": 0, "outside": 0, "unlisted": 1},
        "seen": {"blank": 0, "unreadable": 1, "outside": 1, "unlisted": 0},
        "ill": {"blank": 0, "unreadable": 0, "outside": 0, "unlisted": 0},
    }
    shown = run("schema", "check", schema, data, "--cells")
    assert shown.code == 1
    assert "not to be published" in shown.out
    assert SECRET not in shown.out + shown.err
    assert "private_cells" not in run("schema", "check", schema, data, "--json").document


def test_cells_that_fit_pass_and_none_are_read_without_a_file(run: Any, office: Any) -> None:
    schema, data = office.path("cells.yaml"), office.path("cells.csv")
    schema.write_text(CELLS)
    data.write_text("age,ward,seen,ill\n1,north,2020-01-01,0\n120,,2015-01-01,x\n")
    found = run("schema", "check", schema, data, "--cells")
    assert found.code == 0
    assert "Every cell fits the schema." in found.out
    assert run("schema", "check", schema, "--cells").code == 2
