"""Synthetic rows in files: whole or not at all, and readable again under the same schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.cli.files import INTERNAL, PAGES, check_output, write_page, write_rows
from understudy.errors import InputError, UsageError
from understudy.readers import open_source
from understudy.schema.encode import decode_table, encode_batch
from understudy.schema.table import parse_schema

SCHEMA = parse_schema(
    {
        "columns": [
            {"name": "x, y", "kind": "continuous", "bounds": [-1, 1], "nullable": True},
            {"name": "n", "kind": "integer", "bounds": [-5, 5], "nullable": True},
            {
                "name": 'w "q"',
                "kind": "categorical",
                "categories": ["a,b", 'say "x"', 'two, "parts"', " x", "é", "1", "NA", "null", "#", "'"],
                "nullable": True,
            },
            {"name": "b", "kind": "binary", "categories": [False, True], "nullable": True},
            {"name": "d", "kind": "datetime", "bounds": ["2000-01-01", "2030-01-01"], "nullable": True},
            {"name": "t", "kind": "datetime", "bounds": ["2000-01-01T00:00:00", "2000-01-02T00:00:00"]},
        ]
    },
    name="t",
)


@pytest.fixture
def codes() -> Any:
    rng = np.random.default_rng(0)
    largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in SCHEMA.used]
    return rng.integers(-1, np.array(largest) + 1, (200, len(largest)))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "ROWS.CSV"])
def test_rows_that_were_written_are_read_back_to_the_same_codes(tmp_path: Path, codes: Any, name: str) -> None:
    path = tmp_path / name
    write_rows(decode_table(SCHEMA, codes), path)
    with open_source(path, columns=[column.name for column in SCHEMA.used]) as batches:
        again = np.concatenate([encode_batch(SCHEMA, batch) for batch in batches])
    assert np.array_equal(again, codes)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_parquet_keeps_every_type(tmp_path: Path, codes: Any) -> None:
    rows = decode_table(SCHEMA, codes)
    write_rows(rows, tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").equals(rows)


def test_a_failure_while_writing_leaves_nothing_behind(
    tmp_path: Path, codes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full_disk)
    with pytest.raises(InputError, match=r"cannot be written\. Check space and permissions"):
        write_rows(decode_table(SCHEMA, codes), tmp_path / "rows.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.touch()
    with pytest.raises(InputError, match=r"exists already\. Choose another name, or remove it"):
        check_output(path)


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.csv.gz", "csv"])
def test_an_output_of_another_type_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"must end in \.csv or \.parquet"):
        check_output(tmp_path / name)


def test_an_output_in_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its directory does not exist or cannot be written"):
        check_output(tmp_path / "none" / "rows.csv")


def test_an_empty_table_is_written_with_its_header(tmp_path: Path) -> None:
    write_rows(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text() == '"a"\n'


def test_a_name_as_long_as_a_name_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".html")
    check_output(path, kinds=PAGES)
    write_page("page", path, mode=INTERNAL)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_cannot_be_a_name_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be the name of a file"):
        check_output(tmp_path / ("x" * 300 + ".html"), kinds=PAGES)


def test_a_folder_that_is_gone_by_the_time_of_writing_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_page("page", tmp_path / "gone" / "page.html", mode=INTERNAL)
