from __future__ import annotations

import csv
import datetime
import gzip
import io
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import InputError, MissingExtraError, UnderstudyError, UsageError
from understudy.readers import RowStream, delimited, open_parts, open_source, source_columns
from understudy.readers.delimited import check_lines
from understudy.schema.columns import Column, Kind
from understudy.schema.encode import encode_column

SECRET = "SECRET-7f3a"
MAX_BATCH_ROWS = 65_536
PATIENTS = pa.table({"id": [7, 8, 9], "sex": ["f", None, "m"], "bmi": [21.5, 30.25, None]})
AS_TYPED = [{"bmi": 21.5, "sex": "f"}, {"bmi": 30.25, "sex": None}, {"bmi": None, "sex": "m"}]
AS_TEXT = [{"bmi": b"21.5", "sex": b"f"}, {"bmi": b"30.25", "sex": None}, {"bmi": None, "sex": b"m"}]
COLUMNS = ["bmi", "sex"]


def read(source: object, *columns: str, query: str | None = None) -> list[dict[str, Any]]:
    with open_source(source, columns=columns or COLUMNS, query=query) as stream:
        return [row for batch in stream for row in batch.to_pylist()]


def drain(source: object, *columns: str, query: str | None = None) -> tuple[int, int]:
    """How many rows there were, and the most that Arrow held while they were read."""
    before = pa.total_allocated_bytes()
    num_rows = peak = 0
    with open_source(source, columns=columns or COLUMNS, query=query) as stream:
        for batch in stream:
            num_rows += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)
    return num_rows, peak


def refusal(source: object, *columns: str, query: str | None = None, kind: type[UnderstudyError] = InputError) -> str:
    """The message of a refusal in which no cell, and no error that holds one, is to be found."""
    with pytest.raises(kind) as caught:
        drain(source, *columns, query=query)
    error: BaseException | None = caught.value
    printed = "".join(traceback.format_exception(caught.value))
    assert SECRET not in printed
    assert SECRET not in repr(error)
    while error is not None:
        assert isinstance(error, UnderstudyError)
        assert SECRET not in str(error)
        assert error.__cause__ is None
        error = error.__context__
    return str(caught.value)


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def new_sqlite(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def new_duckdb(path: Path, script: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(script)
    return path


class Capsule:
    """Any producer of an Arrow stream, known by its protocol alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def write_csv(path: Path) -> Path:
    return put(path, b"id,sex,bmi\n7,f,21.5\n8,,30.25\n9,m,\n")


def write_tsv(path: Path) -> Path:
    return put(path, b"id\tsex\tbmi\n7\tf\t21.5\n8\t\t30.25\n9\tm\t\n")


def write_parquet(path: Path) -> Path:
    pq.write_table(PATIENTS, path)
    return path


def write_parquet_directory(path: Path) -> Path:
    (path / "year=2020").mkdir(parents=True)
    pq.write_table(PATIENTS[:2], path / "part-0.parquet")
    pq.write_table(PATIENTS[2:], path / "year=2020" / "part-1.parquet")
    (path / "_SUCCESS").touch()
    put(path / ".part-0.parquet.crc", b"crc")
    put(path / "_temporary.parquet", b"half-written")
    return path


def write_arrow_file(path: Path) -> Path:
    with pa.ipc.new_file(path, PATIENTS.schema) as writer:
        writer.write_table(PATIENTS)
    return path


def write_arrow_stream(path: Path) -> Path:
    with pa.ipc.new_stream(path, PATIENTS.schema) as writer:
        writer.write_table(PATIENTS)
    return path


def write_feather(path: Path) -> Path:
    pyarrow.feather.write_feather(PATIENTS, path, compression="zstd")
    return path


def write_csv_directory(path: Path) -> Path:
    path.mkdir(parents=True)
    put(path / "1.csv", b"id,sex,bmi\n7,f,21.5\n")
    put(path / "2.csv", b"id,sex,bmi\n8,,30.25\n9,m,\n")
    return path


TEXT_FILES = [
    (write_csv_directory, "texts"),
    (write_csv, "t.csv"),
    (write_csv, "t.CSV"),
    (write_csv, "t.csv.gz"),
    (write_tsv, "t.tsv"),
    (write_tsv, "t.tsv.gz"),
]
TYPED_FILES = [
    (write_parquet, "t.parquet"),
    (write_parquet_directory, "parts"),
    (write_arrow_file, "t.arrow"),
    (write_arrow_stream, "t.ipc"),
    (write_feather, "t.feather"),
]
FRAMES = [
    PATIENTS,
    PATIENTS.combine_chunks().to_batches()[0],
    ds.dataset(PATIENTS),
    PATIENTS.to_pandas().astype({"sex": "string"}),
    pl.DataFrame(PATIENTS.to_pydict()),
]


# --- what each kind of source gives ---


@pytest.mark.parametrize(("write", "name"), TEXT_FILES)
def test_a_text_file_gives_its_columns_by_name_as_bytes(
    tmp_path: Path, write: Callable[[Path], Path], name: str
) -> None:
    assert read(write(tmp_path / name)) == AS_TEXT


@pytest.mark.parametrize(("write", "name"), TYPED_FILES)
def test_a_typed_file_gives_its_columns_by_name_in_their_own_types(
    tmp_path: Path, write: Callable[[Path], Path], name: str
) -> None:
    assert read(write(tmp_path / name)) == AS_TYPED


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_frame_gives_its_columns_by_name_in_their_own_types(frame: object) -> None:
    assert read(frame) == AS_TYPED


def test_streams_of_any_producer_are_read() -> None:
    assert read(PATIENTS.to_reader()) == AS_TYPED
    assert read(ds.dataset(PATIENTS).scanner()) == AS_TYPED
    assert read(Capsule(PATIENTS)) == AS_TYPED


@pytest.mark.parametrize(("write", "name"), [*TEXT_FILES, *TYPED_FILES])
def test_a_file_can_be_queried_as_the_table_called_data(
    tmp_path: Path, write: Callable[[Path], Path], name: str
) -> None:
    path = write(tmp_path / name)
    query = "SELECT a.id, upper(a.sex) AS sex FROM data a JOIN data b USING (id) WHERE a.sex = 'm'"
    assert read(path, "sex", query=query) == [{"sex": "M"}]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_frame_can_be_queried_as_the_table_called_data(frame: object) -> None:
    assert read(frame, "twice", query="SELECT 2 * bmi AS twice FROM data WHERE id = 8") == [{"twice": 60.5}]


def test_a_duckdb_file_is_read_through_a_query_and_never_written(tmp_path: Path) -> None:
    path = new_duckdb(tmp_path / "t.db", "CREATE TABLE t AS SELECT 1 AS id, 2.5::DOUBLE AS bmi")
    before = path.read_bytes()
    assert read(path, "bmi", query="SELECT * FROM t;") == [{"bmi": 2.5}]
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.db"]


@pytest.mark.parametrize("name", ["t.sqlite", "t.sqlite3", "t.db", "t.duckdb"])
def test_an_sqlite_file_is_known_by_its_first_bytes_and_gives_text(tmp_path: Path, name: str) -> None:
    script = "CREATE TABLE t (id, bmi REAL, sex); INSERT INTO t VALUES (7, 21.5, 'f')"
    path = new_sqlite(tmp_path / name, script)
    assert read(path, query="SELECT * FROM t; ") == [{"bmi": b"21.5", "sex": b"f"}]
    assert read(path, query="WITH x AS (SELECT * FROM t) SELECT * FROM x -- all") == [{"bmi": b"21.5", "sex": b"f"}]


def test_cells_that_sqlite_sorts_never_lie_in_a_file(tmp_path: Path) -> None:
    """The files are unlinked as they are made, and seen among this process's open ones."""
    path = new_sqlite(tmp_path / "t.sqlite", "CREATE TABLE data (x TEXT)")
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = ((f"{number * 7919 % 100_003:060d}",) for number in range(100_003))
        connection.executemany("INSERT INTO data VALUES (?)", rows)
    with open_source(path, columns=["x"], query="SELECT x FROM data ORDER BY x") as stream:
        next(stream)
        links = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [link for link in links if "etilqs" in link.name]


def test_an_sqlite_cell_is_read_the_same_whatever_the_other_rows_hold(tmp_path: Path) -> None:
    """SQLite types cells, not columns: a type inferred per column would mix rows."""
    script = (
        "CREATE TABLE t (x); INSERT INTO t VALUES (1), (0.1), (9223372036854775807), "
        "(NULL), ('two'), (''), (x'ff00'), (CAST(x'ff' AS TEXT)), (1e999)"
    )
    path = new_sqlite(tmp_path / "t.sqlite", script)
    cells = [row["x"] for row in read(path, "x", query="SELECT x FROM t")]
    assert cells == [b"1", b"0.1", b"9223372036854775807", None, b"two", b"", b"\xff\x00", b"\xff", b"inf"]
    first = read(path, "x", query="SELECT x FROM t LIMIT 1")
    assert first == [{"x": b"1"}]


def test_pandas_objects_become_text_one_cell_at_a_time() -> None:
    cells = [
        "é",
        3,
        0.1,
        np.float32(0.5),
        np.int8(4),
        True,
        np.True_,
        None,
        np.nan,
        pd.NA,
        pd.NaT,
        b"\xff",
        datetime.date(2020, 1, 2),
        Decimal("1.50"),
        np.datetime64("2020-01-02"),
    ]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    assert [row["x"] for row in read(frame, "x")] == [
        "é".encode(),
        b"3",
        b"0.1",
        b"0.5",
        b"4",
        b"true",
        b"true",
        None,
        None,
        None,
        None,
        b"\xff",
        b"2020-01-02",
        b"1.5",
        b"2020-01-02",
    ]


def test_floats_give_the_same_code_from_an_object_column_as_from_a_float_column() -> None:
    numbers = [1.0, -0.0, -3.0, 2.5, 0.1, 1e16, 2.0**53, 2.0**53 - 1, np.inf, np.nan]
    frame = pd.DataFrame({"typed": numbers, "object": pd.Series(numbers, dtype=object)})
    cells = read(frame, "typed", "object")
    assert [row["object"] for row in cells[:5]] == [b"1", b"0", b"-3", b"2.5", b"0.1"]
    names = ["1", "0", "-3", "2.5", "0.1", "1e+16", "9007199254740991", "inf"]
    column = Column(name="x", kind=Kind.CATEGORICAL, categories=tuple(names))
    typed, raw = (
        encode_column(column, pa.array([row[name] for row in cells], kind))
        for name, kind in (("typed", pa.float64()), ("object", pa.binary()))
    )
    np.testing.assert_array_equal(typed, raw)
    assert set(typed) >= set(range(len(names)))


def test_pandas_columns_may_have_names_that_are_not_text() -> None:
    frame = pd.DataFrame({0: [1, 2], 1: pd.array([3, None], dtype="Int64")})
    assert read(frame, "1", "0") == [{"1": 3, "0": 1}, {"1": None, "0": 2}]


def test_dictionary_columns_pass_through(tmp_path: Path) -> None:
    coded = pa.table({"c": pa.array(["u", "v", None, "u"]).dictionary_encode()})
    pq.write_table(coded, tmp_path / "t.parquet")
    frames = [coded, tmp_path / "t.parquet", coded.to_pandas(), pl.from_arrow(coded)]
    for source in frames:
        with open_source(source, columns=["c"]) as stream:
            (batch,) = stream
        assert pa.types.is_dictionary(batch.schema.field("c").type)
        assert batch.column("c").to_pylist() == ["u", "v", None, "u"]


def test_polars_text_comes_in_a_type_that_every_consumer_knows() -> None:
    frame = pl.DataFrame({"s": ["x", "y"], "b": [b"x", b"y"]})
    assert source_columns(frame) == [("s", pa.large_string()), ("b", pa.large_binary())]


# --- the rules of text files ---


def test_csv_quotes_delimiters_and_bytes_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b'a,b\r\n"x,""y""",\xff\xfe\r\n"", z \r\n"""","p"q')
    assert read(path, "a", "b") == [
        {"a": b'x,"y"', "b": b"\xff\xfe"},
        {"a": None, "b": b" z "},
        {"a": b'"', "b": b"pq"},
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_quoted_cells_and_line_ends_are_read_alike_with_and_without_a_query(
    tmp_path: Path, name: str, line_end: bytes
) -> None:
    lines = [b'\xef\xbb\xbf"a",b', b'"x,""y"",z",1', b'2,""', b'"",""""']
    content = line_end.join([*lines, b""])
    if ".tsv" in name:
        content = content.replace(b",", b"\t")
    cell = 'x\t"y"\tz' if ".tsv" in name else 'x,"y",z'
    path = put(tmp_path / name, content)
    rows = [{"a": cell, "b": "1"}, {"a": "2", "b": None}, {"a": None, "b": '"'}]
    assert read(path, "a", "b", query="FROM data") == rows
    assert [{key: value and value.decode() for key, value in row.items()} for row in read(path, "a", "b")] == rows


GOOD_ROW = b'"7, ""x""",y\n'
OPEN = "a quote is opened and not closed on the same line"
INNER = "a quote is opened inside a cell, and not at its start"
BARE = "a carriage return stands without a line feed"
BROKEN_LINES = [
    (b'3,"y\n', OPEN),
    (b'"3,y\n', OPEN),
    (b'3"\r\n,y\n', OPEN),
    (b'3,y"\n', OPEN),
    (b'3,"y"""\n' + GOOD_ROW * 9 + b'4,"y""\n', OPEN),
    (b'3,"y\n' + GOOD_ROW * 200 + b'4,z"\n', OPEN),
    (b'"3\n4",y\n', OPEN),
    (b'x"y,"z\n', INNER),
    (b'x, "z"\n', INNER),
    ('¿"x,"z\n'.encode(), INNER),
    (b"3,y\r4,z\n", BARE),
    (b"3,y\r\r\n", BARE),
]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz"])
@pytest.mark.parametrize(("broken", "rule"), BROKEN_LINES)
def test_a_line_that_would_change_how_others_are_read_is_refused_wherever_it_is(
    tmp_path: Path, name: str, broken: bytes, rule: str
) -> None:
    secret = f"{SECRET},1\n".encode()
    for before, after in ((0, 500), (250, 250), (500, 0)):
        content = b"sex,bmi\n" + GOOD_ROW * before + secret + broken + GOOD_ROW * after
        path = put(tmp_path / name, content.replace(b",", b"\t") if ".tsv" in name else content)
        assert rule in refusal(path)
        assert rule in refusal(path, query="SELECT * FROM data")
        assert "Parquet" in refusal(path)


@pytest.mark.parametrize("query", [None, "SELECT * FROM data"])
def test_a_quote_or_a_carriage_return_left_at_the_end_of_a_file_is_refused(tmp_path: Path, query: str | None) -> None:
    rows = f"sex,bmi\n{SECRET},1\n".encode()
    assert OPEN in refusal(put(tmp_path / "q.csv", rows + b'2,"3'), query=query)
    assert OPEN in refusal(put(tmp_path / "l.csv", rows + b'2,"3\n'), query=query)
    assert BARE in refusal(put(tmp_path / "r.csv", rows + b"2,3\r"), query=query)


@pytest.mark.parametrize("query", [None, "SELECT * FROM data"])
def test_a_header_is_under_the_same_line_rule(tmp_path: Path, query: str | None) -> None:
    for header, rule in (
        (b'sex,bmi,"open\n', OPEN),
        (b'sex,bmi,"two\nlines"\n', OPEN),
        (b'sex,bmi, "name"\n', INNER),
        (b"sex,bmi,name\r", BARE),
    ):
        path = put(tmp_path / "t.csv", header + f"1,2,{SECRET}\n".encode())
        assert rule in refusal(path, query=query)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("block_bytes", range(16, 40))
def test_the_line_rule_holds_across_the_edges_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block_bytes: int
) -> None:
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", block_bytes)
    rows = b'"7,""x",y\r\n3,""\r\n'
    good = put(tmp_path / name, b"sex,bmi\r\n" + rows * 20)
    expected = [{"sex": '7,"x', "bmi": "y"}, {"sex": "3", "bmi": None}] * 20
    assert read(good, "sex", "bmi", query="FROM data") == expected
    assert [row["sex"] for row in read(good)] == [b'7,"x', b"3"] * 20
    for broken, rule in ((b'3,"y\n', OPEN), (b'x"y,"z\n', INNER), (b"3,\ry\n", BARE)):
        path = put(tmp_path / name, b"sex,bmi\n" + rows * 9 + broken + rows * 9)
        assert rule in refusal(path)
        assert rule in refusal(path, query="FROM data")


@settings(deadline=None, max_examples=300)
@given(lines=st.lists(st.text('a,"\r¿ ', max_size=9), min_size=1, max_size=6), block_bytes=st.integers(1, 9))
def test_lines_that_pass_the_rule_are_read_alone_as_they_are_together(lines: list[str], block_bytes: int) -> None:
    """The csv module opens quotes where pyarrow does, so it stands for the parser here."""
    content = "".join(line + "\n" for line in lines)
    try:
        check_lines(io.BytesIO(content.encode()), ",", where="file", block_bytes=block_bytes)
    except InputError:
        return
    together = list(csv.reader(io.StringIO(content, newline="")))
    assert together == [next(csv.reader([line])) for line in lines]


def test_leaving_a_text_file_early_lets_go_of_it(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"sex,bmi\n" + b"1,23456\n" * 2_000_000)
    with open_source(path, columns=COLUMNS) as stream:
        next(stream)
    assert next(stream, None) is None


def test_csv_numbers_that_look_odd_are_not_touched(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a\n007\nNA\nnull\n1e3\n")
    assert [row["a"] for row in read(path, "a")] == [b"007", b"NA", b"null", b"1e3"]


def test_csv_header_loses_its_byte_order_mark_and_outer_spaces(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", '\ufeff"größe" , b\n1,2\n'.encode())
    assert source_columns(path) == [("größe", None), ("b", None)]
    assert read(path, "b", "größe") == [{"b": b"2", "größe": b"1"}]
    assert read(path, "größe", query="SELECT * FROM data") == [{"größe": "1"}]


def test_csv_blank_lines_are_skipped_unless_they_are_cells(tmp_path: Path) -> None:
    assert len(read(put(tmp_path / "two.csv", b"a,b\n1,2\n\n3,4\n\n"), "a")) == 2
    assert read(put(tmp_path / "one.csv", b"a\n1\n\n3\n"), "a") == [{"a": b"1"}, {"a": None}, {"a": b"3"}]


def test_gzip_files_of_several_members_are_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert [row["b"] for row in read(path, "b")] == [b"2", b"4"]


def test_wildcards_and_quotes_in_file_names_are_only_names(tmp_path: Path) -> None:
    for name in ("[ab]*'.csv", "a'?#%20.csv"):
        assert len(read(write_csv(tmp_path / name), query="SELECT * FROM data")) == 3
    write_parquet(tmp_path / "a.parquet")
    assert len(read(write_parquet(tmp_path / "*.parquet"), query="SELECT * FROM data")) == 3
    path = new_sqlite(tmp_path / "a ?#%20.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert read(path, "a", query="SELECT a FROM t") == [{"a": b"1"}]


def test_a_query_over_text_sees_text_so_that_no_type_is_detected_from_rows(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n007,\n8,2020-01-01\n")
    query = "SELECT a, a::INT AS n, b FROM data"
    assert source_columns(path, query=query) == [("a", pa.string()), ("n", pa.int32()), ("b", pa.string())]
    assert read(path, "a", "n", "b", query=query)[0] == {"a": "007", "n": 7, "b": None}


# --- tables without rows ---


def test_a_table_without_rows_is_no_error_and_gives_no_batch(tmp_path: Path) -> None:
    none = PATIENTS.slice(0, 0)
    pq.write_table(none, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(none, tmp_path / "t.arrow")
    database = new_sqlite(tmp_path / "t.sqlite", "CREATE TABLE t (bmi, sex)")
    sources: list[object] = [
        put(tmp_path / "line.csv", b"sex,bmi\n"),
        put(tmp_path / "no_line_end.csv", b"sex,bmi"),
        put(tmp_path / "t.csv.gz", b"sex,bmi"),
        tmp_path / "t.parquet",
        tmp_path / "t.arrow",
        none,
        none.to_reader(),
        none.to_pandas(),
        pl.DataFrame(none.to_pydict()),
    ]
    for source in sources:
        assert list(open_source(source, columns=COLUMNS)) == []
    assert read(tmp_path / "line.csv", query="SELECT * FROM data") == []
    assert read(tmp_path / "no_line_end.csv", query="SELECT * FROM data") == []
    assert read(database, query="SELECT * FROM t") == []


# --- streaming ---


def test_batches_hold_exactly_the_columns_asked_for_and_at_most_65536_rows(tmp_path: Path) -> None:
    num_rows = 2 * MAX_BATCH_ROWS + 5
    table = pa.table({name: np.arange(num_rows) for name in "abc"})
    pq.write_table(table, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=num_rows)
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ((i, i, i) for i in range(num_rows)))
        connection.commit()
    sources: list[tuple[object, str | None]] = [
        (tmp_path / "t.parquet", None),
        (tmp_path / "t.csv", None),
        (tmp_path / "t.arrow", None),
        (tmp_path / "t.db", "SELECT * FROM t"),
        (tmp_path / "t.csv", "SELECT * FROM data"),
        (table, None),
        (table.to_reader(), None),
        (table.to_pandas(), None),
        (pl.DataFrame(table), None),
        (Capsule(table), None),
        (table, "SELECT * FROM data"),
    ]
    for source, query in sources:
        with open_source(source, columns=["c", "a"], query=query) as stream:
            batches = list(stream)
        assert all(batch.schema.names == ["c", "a"] for batch in batches)
        assert max(batch.num_rows for batch in batches) <= MAX_BATCH_ROWS
        assert sum(batch.num_rows for batch in batches) == num_rows
        assert int(batches[-1].column("a")[-1].as_py()) == num_rows - 1


def test_a_reader_is_pulled_one_batch_at_a_time_and_never_ahead() -> None:
    pulled: list[int] = []

    def produce() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            pulled.append(number)
            yield pa.record_batch({"a": [number]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), produce())
    assert source_columns(reader) == [("a", pa.int64())]
    stream = open_source(reader, columns=["a"])
    assert pulled == []
    next(stream)
    assert pulled == [0]
    assert len(list(stream)) == 2
    assert pulled == [0, 1, 2]


def test_a_stream_is_read_once_and_says_so() -> None:
    stream = open_source(PATIENTS, columns=COLUMNS)
    assert isinstance(stream, RowStream)
    assert stream.columns == ("bmi", "sex")
    list(stream)
    with pytest.raises(UsageError, match="one pass"):
        list(stream)
    assert next(stream, None) is None


def test_leaving_the_stream_early_lets_go_of_the_file(tmp_path: Path) -> None:
    path = new_duckdb(tmp_path / "t.duckdb", "CREATE TABLE t AS SELECT range AS a FROM range(99999)")
    with open_source(path, columns=["a"], query="SELECT * FROM t") as stream:
        next(stream)
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP TABLE t")


def test_memory_for_a_csv_file_is_bounded_by_its_blocks(tmp_path: Path) -> None:
    row = b"7,abcdefghijklmnop,abcdefghijklmnop\n"
    path = put(tmp_path / "t.csv", b"id,sex,bmi\n" + row * 5_000_000)
    num_rows, peak = drain(path)
    assert num_rows == 5_000_000
    # 32 blocks of 2 MB read ahead, and two in work.
    assert peak < 80e6 < path.stat().st_size / 2


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_memory_for_a_typed_file_does_not_grow_with_its_rows(tmp_path: Path, name: str) -> None:
    few, many = (peak_memory(tmp_path / name, num_rows) for num_rows in (500_000, 2_000_000))
    assert many < 1.1 * few
    assert many < 2_000_000 * 16 / 5


def peak_memory(path: Path, num_rows: int) -> int:
    """Arrow's peak while two of three columns are read; the Parquet file has one row group."""
    numbers = pa.array(np.random.default_rng(0).integers(10**9, 10**10, num_rows))
    table = pa.table({"id": numbers, "a": numbers, "b": numbers})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=num_rows, use_dictionary=False)
    else:
        pyarrow.feather.write_feather(table, path, compression="lz4")
    del table, numbers
    seen, peak = drain(path, "a", "b")
    assert seen == num_rows
    return peak


# --- columns not asked for ---


def test_a_parquet_column_not_asked_for_is_never_read(tmp_path: Path) -> None:
    """Its pages are overwritten, so that reading them would fail."""
    path = write_parquet(tmp_path / "t.parquet")
    column = pq.read_metadata(path).row_group(0).column(0)
    assert column.path_in_schema == "id"
    content = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    assert read(path) == AS_TYPED
    assert "damaged" in refusal(path, "id")


def test_a_query_does_not_compute_columns_not_asked_for(tmp_path: Path) -> None:
    csv = put(tmp_path / "t.csv", b"id,a\nx,1\n")
    assert read(csv, "a", query="SELECT id::INT AS id, a FROM data") == [{"a": "1"}]
    database = new_sqlite(tmp_path / "t.db", "CREATE TABLE t (id, a); INSERT INTO t VALUES ('{', 1)")
    query = "SELECT json_extract(id, '$') AS id, a FROM t"
    assert read(database, "a", query=query) == [{"a": b"1"}]
    assert "withheld" in refusal(database, "id", query=query)


def test_frames_do_not_convert_columns_not_asked_for() -> None:
    opaque = [object(), object()]
    assert read(pd.DataFrame({"id": opaque, "a": [1, 2]}), "a") == [{"a": 1}, {"a": 2}]
    frame = pl.DataFrame({"id": pl.Series(opaque, dtype=pl.Object), "a": [1, 2]})
    assert source_columns(frame) == [("id", None), ("a", pa.int64())]
    assert read(frame, "a") == read(frame, "a", query="FROM data") == [{"a": 1}, {"a": 2}]


# --- names, types and sources that are only looked at ---


def test_source_columns_gives_names_and_declared_types_and_reads_no_row(tmp_path: Path) -> None:
    typed = [("id", pa.int64()), ("sex", pa.string()), ("bmi", pa.float64())]
    for write, name in TYPED_FILES:
        assert source_columns(write(tmp_path / name)) == typed
    assert source_columns(write_csv(tmp_path / "t.csv")) == [("id", None), ("sex", None), ("bmi", None)]
    assert source_columns(PATIENTS) == typed
    frame = pd.DataFrame({"o": pd.Series([1, "x"], dtype=object), "n": [1.5, None]})
    assert source_columns(frame) == [("o", None), ("n", pa.float64())]
    failing = new_duckdb(tmp_path / "t.duckdb", f"CREATE TABLE t AS SELECT '{SECRET}' AS a")
    assert source_columns(failing, query="SELECT a::INT AS a FROM t") == [("a", pa.int32())]
    lite = new_sqlite(tmp_path / "t.sqlite", f"CREATE TABLE t (a INT); INSERT INTO t VALUES ('{SECRET}')")
    assert source_columns(lite, query="SELECT a, json(a) AS j FROM t") == [("a", None), ("j", None)]


# --- refusals; each file holds a secret that no refusal may repeat ---


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "none.csv")


def test_an_empty_path_is_refused() -> None:
    assert "the path is empty" in refusal("")


def test_text_passed_for_a_path_is_refused_without_being_repeated() -> None:
    assert "no such file" in refusal(f"a,b\n1,{SECRET}\n")
    assert "cannot be opened" in refusal(SECRET * 1000)
    assert "cannot be opened" in refusal(f"\0{SECRET}")


def test_a_directory_without_tables_and_images_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "notes.txt", SECRET.encode())
    assert "directory without Parquet files" in refusal(tmp_path)


def test_files_of_two_kinds_are_no_table(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv")
    write_parquet(tmp_path / "b.parquet")
    assert "not all of one kind" in refusal(tmp_path)
    assert "not all of one kind" in refusal(tmp_path / "*")


def test_text_files_that_differ_in_their_header_are_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv")
    put(tmp_path / "b.csv", f"id,sex,weight\n1,{SECRET},2\n".encode())
    assert "differ in their header lines" in refusal(tmp_path)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_is_found_several_times_is_read_once(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "years" / "months"
    folder.mkdir(parents=True)
    file, table = folder / f"rows.{kind}", pa.table({"a": ["1", "2", "3"]})
    pa.csv.write_csv(table, file) if kind == "csv" else pq.write_table(table, file)
    (tmp_path / f"latest.{kind}").symlink_to(file)
    (tmp_path / f"same.{kind}").hardlink_to(file)
    for source in (tmp_path, tmp_path / "**" / "**" / f"*.{kind}"):
        parts = open_parts(source, columns=["a"])
        assert sum(batch.num_rows for part in parts for batch in part) == 3
        with open_source(source, columns=["a"]) as stream:
            assert sum(batch.num_rows for batch in stream) == 3
    with open_source(tmp_path, columns=["n"], query="SELECT count(*) AS n FROM data") as stream:
        assert next(stream)["n"].to_pylist() == [3]


def test_a_pattern_that_fits_no_file_is_refused(tmp_path: Path) -> None:
    assert "it names no file" in refusal(tmp_path / "*.csv")


def test_a_pattern_is_a_table_of_the_files_that_fit_it(tmp_path: Path) -> None:
    for name in ("2023-a.parquet", "2024-a.parquet", "2024-b.parquet"):
        write_parquet(tmp_path / name)
    with open_source(tmp_path / "2024-*.parquet", columns=["id"]) as batches:
        assert sum(batch.num_rows for batch in batches) == 2 * PATIENTS.num_rows


def test_parts_hold_every_row_once(tmp_path: Path) -> None:
    whole = write_csv_directory(tmp_path / "text"), write_parquet_directory(tmp_path / "parts")
    for source in (*whole, PATIENTS):
        parts = open_parts(source, columns=["id"])
        cells = [cell for part in parts for batch in part for cell in batch["id"].to_pylist()]
        assert sorted(map(int, cells)) == PATIENTS["id"].to_pylist()
        assert len(parts) == (1 if source is PATIENTS else 2)


@pytest.mark.parametrize("log", ["_delta_log/0.json", ".hoodie/x", "metadata/v1.metadata.json"])
def test_a_table_that_keeps_deleted_rows_in_old_files_is_refused(tmp_path: Path, log: str) -> None:
    folder = write_parquet_directory(tmp_path / "parts")
    (folder / log).parent.mkdir()
    put(folder / log, SECRET.encode())
    assert "no longer has" in refusal(folder)


def test_parquet_files_that_differ_in_a_column_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [SECRET]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1.5], "b": [SECRET]}), tmp_path / "2.parquet")
    assert "its files differ in column 'a'" in refusal(tmp_path, "a")


@pytest.mark.parametrize("name", ["t.xlsx", "t.parquet.gz", "t", "t.gz"])
def test_an_unknown_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    assert "kind is not known" in refusal(put(tmp_path / name, SECRET.encode()))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.db"])
def test_a_file_of_zero_bytes_is_refused(tmp_path: Path, name: str) -> None:
    assert "empty (zero bytes)" in refusal(put(tmp_path / name, b""), query="SELECT 1")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "t.csv", SECRET.encode())

    def forbidden(*arguments: object) -> None:
        raise PermissionError(13, SECRET)

    monkeypatch.setattr(Path, "open", forbidden)
    assert "may not read it" in refusal(path)


def test_an_unsupported_type_of_source_is_refused() -> None:
    assert "source of type 'list': it is not a path and not a table" in refusal([SECRET])


def test_columns_must_be_different_and_at_least_one() -> None:
    with pytest.raises(UsageError, match="different names"):
        open_source(PATIENTS, columns=["sex", "sex"])
    with pytest.raises(UsageError, match="at least one"):
        open_source(PATIENTS, columns=[])


def test_a_missing_column_is_named_beside_the_columns_there_are(tmp_path: Path) -> None:
    csv = put(tmp_path / "t.csv", f"sex,BMI\n{SECRET},1\n".encode())
    message = refusal(csv)
    assert "no column 'bmi'; its columns are 'sex', 'BMI'" in message
    assert "no column 'age'; its columns are 'id', 'sex', 'bmi'" in refusal(PATIENTS, "age", "sex")
    assert "no column 'bmi'" in refusal(csv, query="SELECT sex FROM data")
    lite = new_sqlite(tmp_path / "t.db", f"CREATE TABLE t (sex); INSERT INTO t VALUES ('{SECRET}')")
    assert "no column 'bmi'; its columns are 'sex'" in refusal(lite, query="SELECT sex FROM t")


def test_long_lists_of_columns_are_cut_short() -> None:
    wide = pa.table({f"c{number}": [0] for number in range(100)})
    assert "'c39' and 60 more" in refusal(wide, "c0", "none")


def test_a_file_without_a_header_never_has_its_first_row_listed_as_names(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"{SECRET},21.5\n{SECRET},30\n".encode())
    assert "names none of the columns asked for ('bmi', 'sex')" in refusal(path)
    twice = put(tmp_path / "u.csv", f"{SECRET},{SECRET}\n1,2\n".encode())
    assert "columns 1 and 2 have the same name" in refusal(twice)


def test_a_header_that_is_not_a_line_of_names_is_refused(tmp_path: Path) -> None:
    secret = SECRET.encode()
    for number, content in enumerate(
        [
            b"\nsex,bmi\n" + secret,
            b"sex,bmi,\xff\n1,2," + secret,
            "sex,bmi\n1,".encode("utf-16") + secret,
            b"," + secret[:0] + b"\n1," + secret,
            b"sex,bmi," + b"x," * (1 << 20) + b"\n" + secret,
        ]
    ):
        path = put(tmp_path / f"{number}.csv", content)
        assert "first line must hold the column names" in refusal(path)


def test_names_that_are_equal_once_trimmed_are_refused_by_position(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"sex,bmi, sex\n1,2,{SECRET}\n".encode())
    assert "columns 1 and 3 have the same name" in refusal(path)
    twice = pa.table([[SECRET], [SECRET]], names=["bmi", "bmi"])
    assert "columns 1 and 2 have the same name" in refusal(twice)
    assert "same name" in refusal(PATIENTS, query=f"SELECT bmi, '{SECRET}' AS bmi FROM data")


@pytest.mark.parametrize("row", [SECRET, f"1,{SECRET},3"])
@pytest.mark.parametrize(("name", "good_rows"), [("0.csv", 0), ("1.csv.gz", 1), ("2.csv", 2000000)])
def test_ragged_rows_are_refused_wherever_they_are(tmp_path: Path, row: str, name: str, good_rows: int) -> None:
    content = b"sex,bmi\n" + b"1,23456\n" * good_rows + row.encode() + b"\n"
    path = put(tmp_path / name, content)
    assert "as many cells as the header" in refusal(path)
    assert "too few or too many cells" in refusal(path, query="SELECT * FROM data")


def test_a_row_longer_than_a_block_is_refused(tmp_path: Path) -> None:
    cell = b'"' + SECRET.encode() * (1 << 19) + b'"'
    path = put(tmp_path / "t.csv", b"sex,bmi\n1,2\n1," + cell + b"\n1,2\n")
    assert "longer than 2 MB" in refusal(path)


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv.gz")
    path.write_bytes(path.read_bytes()[:-12])
    assert "damaged" in refusal(path)
    path.write_bytes(f"sex,bmi\n1,{SECRET}\n".encode())
    assert "damaged" in refusal(path)


def secret_table() -> pa.Table:
    return pa.table({"sex": [SECRET] * 2000, "bmi": np.random.default_rng(0).random(2000)})


def test_truncated_and_corrupt_parquet_is_refused_on_opening_and_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(secret_table(), path, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    assert SECRET.encode() in whole
    for content in (whole[: len(whole) // 2], SECRET.encode(), whole[:-20] + whole[-8:]):
        put(path, content)
        assert "damaged, or not a Parquet file" in refusal(path)
        assert "damaged, or not a Parquet file" in refusal(path, query="SELECT * FROM data")
    start = pq.read_metadata(pa.BufferReader(whole)).row_group(0).column(1).data_page_offset
    put(path, whole[:start] + b"\xff" * 200 + whole[start + 200 :])
    stream = open_source(path, columns=COLUMNS)
    assert isinstance(stream, RowStream)
    assert "damaged, or not a Parquet file" in refusal(path)
    assert refusal(path, query="SELECT * FROM data")


def test_truncated_and_corrupt_arrow_files_are_refused(tmp_path: Path) -> None:
    for kind in (pa.ipc.new_file, pa.ipc.new_stream):
        path = tmp_path / f"{kind.__name__}.arrow"
        with kind(path, secret_table().schema) as writer:
            writer.write_table(secret_table(), max_chunksize=100)
        whole = path.read_bytes()
        assert SECRET.encode() in whole
        put(path, whole[: len(whole) // 2])
        assert "damaged, or not an Arrow IPC file" in refusal(path)
        assert "damaged, or not an Arrow IPC file" in refusal(path, query="SELECT * FROM data")
    assert "damaged" in refusal(put(tmp_path / "t.arrow", SECRET.encode() * 10))
    assert "old Feather format" in refusal(put(tmp_path / "t.feather", b"FEA1" + SECRET.encode()))


def test_arrow_indices_that_point_outside_their_dictionary_are_refused(tmp_path: Path) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 99]), pa.array([SECRET]), safe=False)
    table = pa.table({"sex": coded})
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    assert "damaged" in refusal(tmp_path / "t.arrow", "sex")


def test_a_database_without_a_query_is_refused(tmp_path: Path) -> None:
    for path in (
        new_duckdb(tmp_path / "t.duckdb", f"CREATE TABLE t AS SELECT '{SECRET}' AS sex"),
        new_sqlite(tmp_path / "t.sqlite", f"CREATE TABLE t AS SELECT '{SECRET}' AS sex"),
    ):
        assert "a database needs a query" in refusal(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "t.db", SECRET.encode() * 10)
    assert "neither a DuckDB nor an SQLite database" in refusal(path, query="SELECT 1")


def test_damaged_databases_are_refused(tmp_path: Path) -> None:
    lite = put(tmp_path / "t.sqlite", b"SQLite format 3\0" + SECRET.encode() * 99)
    assert "in use or damaged" in refusal(lite, query="SELECT * FROM t")
    duck = put(tmp_path / "t.duckdb", b"\0" * 8 + b"DUCK" + SECRET.encode() * 9999)
    assert "t.duckdb" in refusal(duck, query="SELECT * FROM t")


BAD_QUERIES = [
    ("SELECT sex FORM t", "t"),
    ("SELECT sexx FROM t", "sexx"),
    ("SELECT sex FROM tt", "tt"),
    ("SELECT nope(sex) FROM t", "nope"),
]


@pytest.mark.parametrize(("query", "culprit"), BAD_QUERIES)
@pytest.mark.parametrize("new_database", [new_duckdb, new_sqlite])
def test_a_query_that_does_not_fit_is_refused_with_the_word_that_is_wrong(
    tmp_path: Path, new_database: Callable[[Path, str], Path], query: str, culprit: str
) -> None:
    path = new_database(tmp_path / "t.db", f"CREATE TABLE t AS SELECT '{SECRET}' AS sex")
    assert f"(see '{culprit}')" in refusal(path, "sex", query=query)


@pytest.mark.parametrize("new_database", [new_duckdb, new_sqlite])
@pytest.mark.parametrize(
    "query",
    [
        "",
        "INSERT INTO t VALUES ('x')",
        "SELECT * FROM t; SELECT * FROM t",
        "ATTACH 'other.db' AS other",
        "COPY t TO 'stolen.csv'",
        "INSTALL httpfs",
        "PRAGMA journal_mode = 'wal'",
        "PIVOT t ON sex",
    ],
)
def test_only_one_select_statement_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_database: Callable[[Path, str], Path], query: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = new_database(tmp_path / "t.db", f"CREATE TABLE t AS SELECT '{SECRET}' AS sex")
    assert "must be one SELECT statement" in refusal(path, "sex", query=query)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.db"]


def test_errors_of_duckdb_while_rows_are_read_are_withheld(tmp_path: Path) -> None:
    path = new_duckdb(
        tmp_path / "t.duckdb",
        f"CREATE TABLE t AS SELECT range::VARCHAR AS a FROM range(300000);INSERT INTO t VALUES ('{SECRET}')",
    )
    for expression in ("a::INT", "error(a)", "a::DATE", "json_extract(a, '$.b')"):
        message = refusal(path, "a", query=f"SELECT {expression} AS a FROM t")
        assert "withheld" in message
    frame = pd.DataFrame({"a": [SECRET]})
    assert "withheld" in refusal(frame, "a", query="SELECT a::INT AS a FROM data")


def test_nothing_is_fetched_from_the_network_for_a_query() -> None:
    query = "SELECT * FROM 'https://example.invalid/x.parquet'"
    assert "other files cannot be opened" in refusal(PATIENTS, query=query)
    assert "does not fit the tables" in refusal(PATIENTS, query="FROM sqlite_scan('x', 'y')")


def test_a_query_cannot_see_the_variables_of_this_program() -> None:
    hidden = PATIENTS
    assert hidden is not None
    assert "(see 'hidden')" in refusal(PATIENTS, query="SELECT * FROM hidden")


def test_a_query_that_needs_too_much_memory_is_refused_and_spills_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    from understudy.readers import sql

    monkeypatch.setitem(sql._SETTINGS, "memory_limit", "20MB")
    query = "SELECT range AS a, random() AS b FROM range(20000000) ORDER BY b"
    assert "never spilled to disk" in refusal(PATIENTS, "a", query=query)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("write", "name"), [*TEXT_FILES, *TYPED_FILES, (None, "frame")])
def test_a_query_over_any_source_opens_no_other_file(
    tmp_path: Path, write: Callable[[Path], Path] | None, name: str
) -> None:
    csv = put(tmp_path / "other.csv", f"sex,bmi\n{SECRET},1\n".encode())
    parquet = write_parquet(tmp_path / "other.parquet")
    database = new_duckdb(tmp_path / "other.duckdb", f"CREATE TABLE t AS SELECT '{SECRET}' AS sex")
    source: object = write(tmp_path / name) if write else PATIENTS
    for tables in (source, database):
        for reading in (
            f"'{csv}'",
            f"'{parquet}'",
            f"read_csv('{csv}')",
            f"read_csv_auto(['{csv}'])",
            f"sniff_csv('{csv}')",
            f"read_text('{csv}')",
            f"read_blob('{csv}')",
            f"read_json('{csv}')",
            f"read_parquet('{parquet}')",
            f"parquet_metadata('{parquet}')",
            f"glob('{tmp_path}/*')",
            f"read_csv('{tmp_path}/none.csv')",
        ):
            message = refusal(tables, "sex", query=f"SELECT count(*) AS sex FROM {reading}")
            assert "a query sees the source only; other files cannot be opened" in message
            assert str(tmp_path) not in message


def test_a_query_over_parquet_files_that_differ_in_a_column_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [SECRET]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    assert "its files differ in column 'b'" in refusal(tmp_path, "a", query="FROM data")


def test_two_streams_of_one_duckdb_file_may_be_open_at_once(tmp_path: Path) -> None:
    path = new_duckdb(tmp_path / "t.duckdb", "CREATE TABLE t AS SELECT 1 AS a, 2 AS b")
    with open_source(path, columns=["a"], query="FROM t") as first:
        assert next(first).to_pylist() == [{"a": 1}]
        assert read(path, "b", query="FROM t") == [{"b": 2}]


def test_a_duckdb_file_that_this_process_writes_to_is_refused(tmp_path: Path) -> None:
    path = new_duckdb(tmp_path / "t.duckdb", f"CREATE TABLE t AS SELECT '{SECRET}' AS sex")
    with duckdb.connect(str(path)):
        assert "Close the other connection" in refusal(path, "sex", query="SELECT * FROM t")


def test_a_query_needs_the_sql_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    message = refusal(PATIENTS, query="SELECT * FROM data", kind=MissingExtraError)
    assert "its extra 'sql'" in message


def test_an_sqlite_file_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    path = new_sqlite(tmp_path / "t.db", "CREATE TABLE t AS SELECT 1 AS a")
    assert read(path, "a", query="SELECT * FROM t") == [{"a": b"1"}]


def test_a_stream_cannot_be_queried_because_a_query_may_read_twice() -> None:
    for stream in (PATIENTS.to_reader(), ds.dataset(PATIENTS).scanner(), Capsule(PATIENTS)):
        assert "may read its table twice" in refusal(stream, query="SELECT * FROM data")


def test_cells_without_a_text_form_are_null_with_and_without_a_query() -> None:
    frame = pd.DataFrame({"a": pd.Series([[SECRET], "x", {"b": SECRET}], dtype=object)})
    assert read(frame, "a") == [{"a": None}, {"a": b"x"}, {"a": None}]
    assert read(frame, "a", query="SELECT * FROM data") == [{"a": None}, {"a": "x"}, {"a": None}]


def test_polars_objects_become_text_one_cell_at_a_time() -> None:
    """Polars itself exports their addresses."""
    frame = pl.DataFrame({"a": pl.Series(["x", 1.0, [SECRET]], dtype=pl.Object), "b": [1, 2, 3]})
    assert dict(source_columns(frame))["a"] is None
    assert read(frame, "a", "b") == [{"a": b"x", "b": 1}, {"a": b"1", "b": 2}, {"a": None, "b": 3}]
    assert read(frame, "a", query="SELECT a FROM data") == [{"a": "x"}, {"a": "1"}, {"a": None}]


def test_bytes_that_are_no_text_change_their_own_cell_alone_in_a_query() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", b"\xff", "\udc80"], dtype=object)})
    found = [row["a"] for row in read(frame, "a", query="SELECT * FROM data")]
    assert found[0] == "x"
    assert "x" not in found[1:]


def test_categories_of_pandas_that_are_objects_become_text_one_by_one() -> None:
    """One row may turn a list of whole numbers into one of numbers and words, which Arrow refuses."""
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, None, 1.5, "x", (SECRET,)])})
    found = [None if row["a"] is None else row["a"] for row in read(frame, "a")]
    assert found == [b"1", b"2", None, b"1.5", b"x", None]


def test_dictionaries_of_columns_and_lists_of_dictionaries_are_tables() -> None:
    rows = [{"n": 1, "w": "a", "z": SECRET}, {"n": None, "w": 2.0}, {"w": b"c", "n": "x"}]
    columns = {"n": np.array([1, 2]), "w": ["a", None], "t": pa.array([1.5, 2.5])}
    assert read(rows, "w", "n") == [{"w": b"a", "n": b"1"}, {"w": b"2", "n": None}, {"w": b"c", "n": b"x"}]
    assert read(columns, "w", "n") == [{"w": b"a", "n": 1}, {"w": None, "n": 2}]
    assert source_columns(columns) == [("n", pa.int64()), ("w", None), ("t", pa.float64())]
    assert read(columns, "t", query="SELECT t FROM data WHERE w = 'a'") == [{"t": 1.5}]
    assert "by columns" in refusal(rows, query="SELECT w FROM data")
    assert read([], "w") == read({"w": []}, "w") == []


def test_python_tables_that_are_none_are_refused_without_a_cell_or_a_count() -> None:
    ragged = {"a": [SECRET, SECRET], "b": [SECRET]}
    with pytest.raises(InputError, match="columns differ in length") as caught:
        read(ragged, "a", "b")
    assert not any(digit in str(caught.value) for digit in "123")
    assert "every row must be a dictionary that has 'b'" in refusal([{"a": SECRET}], "a", "b")
    assert "every row must be a dictionary" in refusal([{"a": SECRET}, SECRET], "a")
    assert "not a path and not a table" in refusal([[SECRET]], "a")
    assert "not a path and not a table" in refusal((row for row in [{"a": SECRET}]), "a")
    assert "cannot be turned into Arrow columns" in refusal({"a": SECRET}, "a")


def test_a_producer_that_fails_is_refused_without_its_message() -> None:
    def produce() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise ValueError(SECRET)

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), produce())
    assert "its producer failed" in refusal(reader, "a")


def test_an_arrow_stream_that_is_no_table_is_refused() -> None:
    assert "cannot be turned into Arrow columns" in refusal(pl.Series("a", [SECRET]), "a")


def test_a_refusal_has_neither_cause_nor_context_on_opening_nor_while_reading(tmp_path: Path) -> None:
    ragged = put(tmp_path / "ragged.csv", f"sex,bmi\n1,{SECRET},3\n".encode())
    damaged = put(tmp_path / "damaged.parquet", b"PAR1" + SECRET.encode())
    for path in (ragged, damaged):
        with pytest.raises(InputError) as caught:
            drain(path)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
