"""Fuzzed files, schemas, flags, releases and Python objects: no traceback, no cell, nothing spent on failure.

    python benchmarks/fuzz.py --cases 10000 --seed 0

Every case is made from the public seed and its number alone (`--only NUMBER` runs it again), has a ledger and a folder
of its own, and a table with secret cells and an unusual number of rows. After a failure the error must be one of
Understudy's own (ValueError or TypeError too in the scikit-learn manner), or an exit code of the documented set; no
message, cause, context, local variable of our frames and no output may hold a secret cell or the number of rows; the
ledger must be as it was, and no file may be left. After a success the release must verify, and be paid for.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import decimal
import functools
import gzip
import hashlib
import io
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import scipy.sparse
import typer
import yaml

from understudy import (
    Budget,
    LocallyLinearClassifier,
    Synthesizer,
    create_ledger,
    fit_release,
    load_schema,
    make_plan,
    read_ledger,
    release_table,
    save_generator,
    verify_release,
)
from understudy.classifier.model import verify_classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.cli import main
from understudy.cli.app import app
from understudy.errors import UnderstudyError
from understudy.plan.plan import Plan
from understudy.plan.request import Request
from understudy.private.dpsgd.classifier import train_classifier
from understudy.schema.table import parse_schema

SECRET = "SECRET4711"
NUMBER = 47118264
SECRETS = re.compile(r"SECRET4711|47118264", re.IGNORECASE)
ROWS = 1373
COUNT = re.compile(rf"(?<![\w.]){ROWS}(?![\w.]\w)")
SECONDS = 30
"""A case that takes longer is a violation."""

Random = random.Random
SCHEMA: dict[str, Any] = {
    "name": "patients",
    "columns": [
        {"name": "a", "kind": "continuous", "bounds": [0, 1], "nullable": True},
        {"name": "b", "kind": "integer", "bounds": [0, 9], "nullable": True},
        {"name": "c", "kind": "categorical", "categories": ["x", "y", "z"]},
        {"name": "t", "kind": "datetime", "bounds": ["2000-01-01", "2030-12-31"], "nullable": True},
        {"name": "l", "kind": "binary", "role": "label", "categories": ["no", "yes"]},
    ],
}
IMAGES: dict[str, Any] = {
    "image": {"height": 4, "width": 4},
    "columns": [{"name": "y", "kind": "binary", "role": "label", "categories": [0, 1]}],
}
QUICK = {"method": "balog-subspace", "options": {"num_candidates": 20}}


class TooSlowError(BaseException):
    """A case that goes on for ever; no handler of ours may swallow it."""


@dataclass
class Found:
    """What a case did: its outcome, and every promise that it broke."""

    outcome: str
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class World:
    """What all cases share, made once: schemas, plans, and one of everything that files can be."""

    folder: Path

    @property
    def ledger(self) -> Path:
        return self.folder / "template.db"

    def path(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True)
class Case:
    """One case: its randomness, and its own folder with a ledger."""

    number: int
    rng: Random
    world: World
    folder: Path

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def out(self) -> Path:
        return self.folder / "out"


# Tables with secret cells.


def plain_columns(rng: Random, rows: int = ROWS) -> dict[str, list[Any]]:
    """Cells as the schema wants them, with secret ones among them."""
    moment = dt.date(2010, 1, 1)
    columns: dict[str, list[Any]] = {
        "a": [i % 100 / 100 for i in range(rows)],
        "b": [i % 10 for i in range(rows)],
        "c": ["xyz"[i % 3] for i in range(rows)],
        "t": [moment + dt.timedelta(i) for i in range(rows)],
        "l": ["no" if i % 2 else "yes" for i in range(rows)],
    }
    for name, secret in (("a", float(NUMBER)), ("b", NUMBER), ("c", SECRET)):
        if rows:
            columns[name][rng.randrange(rows)] = secret
    return columns


def as_text(columns: dict[str, list[Any]], delimiter: str, newline: str) -> str:
    lines = [delimiter.join(columns)]
    lines += [delimiter.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return newline.join(lines) + newline


# Files.


def delimited(case: Case) -> Path:
    """A text table with a few things wrong."""
    rng = case.rng
    suffix = rng.choice([".csv", ".tsv", ".csv.gz", ".txt", ""])
    delimiter = rng.choice([",", ",", "\t", ";", "|", "\0", " "])
    newline = rng.choice(["\n", "\n", "\r\n", "\r", "\n\n", "\u2028"])
    rows = rng.choice([ROWS, ROWS, ROWS, 0, 1])
    if suffix == ".tsv" and rng.random() < 0.7:
        delimiter = "\t"
    text = as_text(plain_columns(rng, rows), delimiter, newline)
    lines = text.split(newline)
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(lines))
        lines[at] = rng.choice(
            [
                lines[at] + delimiter + SECRET,
                f'"{lines[at]}',
                lines[at].replace(delimiter, '""', 1),
                SECRET,
                "",
                f'"{SECRET}{newline}{SECRET}"' + delimiter * 4,
                lines[at] + "\0",
                delimiter * 9,
                SECRET * rng.choice([1, 20_000, 200_000]),
                lines[at].upper(),
                "\ufeff" + lines[at],
                lines[at].replace("x", "ä\udc80"),
                "a,a,b,c,t,l",
                "\x1b[2J" + SECRET,
            ]
        )
    content = newline.join(lines).encode(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]), "replace")
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content) + 1)]
    if suffix.endswith(".gz"):
        content = gzip.compress(content, 1, mtime=0)
        if rng.random() < 0.5:
            content = content[: rng.randrange(len(content) + 1)]
    return put(case, "rows" + suffix, content)


def arrow_types(rng: Random) -> dict[str, Any]:
    """Types that a column may have, each with cells that it can hold."""
    words = [SECRET, "x", "y", None, "no"]
    moments = [dt.datetime(2010, 1, 1), None, dt.datetime(1900, 1, 1)]
    zone = rng.choice(["UTC", "Europe/Berlin", "+05:30", "No/Where"])
    return {
        "decimal": pa.array([decimal.Decimal(NUMBER), None, decimal.Decimal("0.5")], pa.decimal128(38, 4)),
        "wide decimal": pa.array([decimal.Decimal(NUMBER), None], pa.decimal256(76, 10)),
        "duration": pa.array([NUMBER, None, 1], pa.duration("us")),
        "interval": pa.array([(1, 2, NUMBER), None], pa.month_day_nano_interval()),
        "nested": pa.array([[SECRET], None, []], pa.list_(pa.string())),
        "struct": pa.array([{"x": SECRET, "y": NUMBER}, None]),
        "map": pa.array([[(SECRET, 1)], None], pa.map_(pa.string(), pa.int64())),
        "dictionary": pa.array(words).dictionary_encode(),
        "numbers by code": pa.array([NUMBER, 1, None]).dictionary_encode(),
        "half": pa.array(np.array([0.5, np.nan, 1.0], dtype=np.float16)),
        "binary": pa.array([SECRET.encode(), b"\xff\x00", None]),
        "fixed binary": pa.array([b"SECRET4711", None], pa.binary(10)),
        "large text": pa.array(words, pa.large_string()),
        "view": pa.array(words, pa.string_view()),
        "binary view": pa.array([SECRET.encode(), None], pa.binary_view()),
        "nothing": pa.nulls(3),
        "zoned": pa.array(moments, pa.timestamp("us", tz=zone)),
        "nanoseconds": pa.array([NUMBER, None, 2**62], pa.timestamp("ns")),
        "seconds": pa.array([NUMBER, -(2**62)], pa.timestamp("s")),
        "date64": pa.array([0, None, 86_400_000], pa.date64()),
        "time": pa.array([1, None], pa.time64("ns")),
        "truth": pa.array([True, None, False]),
        "unsigned": pa.array([2**64 - 1, NUMBER, 1], pa.uint64()),
        "small": pa.array([1, None, -7], pa.int8()),
        "floats": pa.array([float(NUMBER), np.nan, np.inf, None, 5e-324]),
        "run ends": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([SECRET, "x"])),
        "fixed list": pa.array([[1, NUMBER], None], pa.list_(pa.int64(), 2)),
        "union": pa.UnionArray.from_sparse(
            pa.array([0, 1], pa.int8()), [pa.array([1, NUMBER]), pa.array(["x", SECRET])]
        ),
    }


def odd_table(case: Case) -> pa.Table:
    """A plain table with one or two columns of odd types."""
    rng = case.rng
    rows = rng.choice([ROWS, ROWS, 0, 1])
    table = pa.table(plain_columns(rng, rows))
    kinds = arrow_types(rng)
    for _ in range(rng.choice([0, 1, 1, 2])):
        cells = kinds[rng.choice(sorted(kinds))]
        picked = pa.array([i % len(cells) for i in range(rows)], pa.int64())
        at = rng.randrange(table.num_columns)
        try:
            table = table.set_column(at, table.column_names[at], cells.take(picked))
        except pa.ArrowException:  # not every type can be taken from
            continue
    if rng.random() < 0.1:
        table = table.rename_columns(["a", "a", "b", "c", "l"])
    if rng.random() < 0.1:
        table = table.remove_column(rng.randrange(table.num_columns))
    return table


def columnar(case: Case) -> Path:
    """A Parquet or Arrow file with odd types, perhaps damaged."""
    rng, table = case.rng, odd_table(case)
    suffix = rng.choice([".parquet", ".parquet", ".arrow", ".feather", ".ipc", ".csv"])
    path = case.folder / f"rows{suffix}"
    try:
        if suffix in (".parquet", ".csv"):
            pq.write_table(table, path, compression=rng.choice(["none", "snappy"]))
        elif suffix == ".feather":
            pa.feather.write_feather(table, path)
        else:
            is_file = rng.random() < 0.5
            make = pa.ipc.new_file if is_file else pa.ipc.new_stream
            with make(str(path), table.schema) as writer:
                writer.write_table(table)
    except (pa.ArrowException, ValueError):  # not every type fits every format
        path.write_bytes(SECRET.encode())
    return damaged(case, path)


def damaged(case: Case, path: Path, chance: float = 0.4) -> Path:
    """The same file, cut short or with some bytes changed."""
    rng, content = case.rng, bytearray(path.read_bytes())
    if rng.random() > chance or not content:
        return path
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    for _ in range(rng.choice([0, 1, 3, 30])):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)
    return path


def image_set(case: Case) -> Path:
    """An image set in an .npz file, a folder or a Parquet column, with a few things wrong."""
    from PIL import Image

    rng = case.rng
    pixels = np.arange(ROWS * 16, dtype=np.uint8).reshape(ROWS, 4, 4)
    labels: Any = [i % 2 for i in range(ROWS)]
    kind = rng.choice(["npz", "npz", "folder", "parquet"])
    if kind == "npz":
        shape = rng.choice([(-1, 4, 4), (-1, 16), (-1, 2, 8), (-1, 4, 4, 1), (-1,)])
        arrays: dict[str, Any] = {"x": pixels.reshape(shape), "y": np.array(labels)}
        if rng.random() < 0.3:
            arrays["x"] = arrays["x"].astype(
                rng.choice(["float32", "float16", "int64", "bool", "complex64", "object", "U9"])
            )
        if rng.random() < 0.3:
            arrays["y"] = np.array([SECRET, *labels[1:]], dtype=rng.choice([object, "U20", "S20"]))
        if rng.random() < 0.3:
            arrays.pop(rng.choice(sorted(arrays)))
        if rng.random() < 0.2:
            arrays[rng.choice([SECRET[:3], "images ", "X"])] = np.array([NUMBER])
        path = case.folder / "set.npz"
        np.savez(path, **arrays)
        return damaged(case, path)
    contents = []
    for each in range(6):
        buffer = io.BytesIO()
        size = (4, 4) if rng.random() < 0.8 else (rng.choice([1, 5, 3000]), 2)
        mode = rng.choice(["L", "L", "RGB", "1", "P", "LA"])
        Image.new(mode, size, each).save(buffer, format="PNG")
        content = bytearray(buffer.getvalue())
        if rng.random() < 0.2:
            content[rng.randrange(len(content))] ^= 255
        if rng.random() < 0.1:
            content = bytearray(SECRET.encode())
        contents.append(bytes(content))
    if kind == "parquet":
        path = case.folder / "set.parquet"
        cells: Any = [content if rng.random() < 0.9 else None for content in contents]
        if rng.random() < 0.5:
            cells = [{"bytes": cell, "path": SECRET} for cell in cells]
        pq.write_table(pa.table({"image": cells, "y": [0, 1, 0, 1, 0, 1]}), path)
        return damaged(case, path, 0.2)
    folder = case.folder / "set"
    for each, content in enumerate(contents):
        inner = folder / str(each % 2) if rng.random() < 0.9 else folder
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"{each}.{rng.choice(['png', 'png', 'jpg', 'txt'])}").write_bytes(content)
    return folder


SELECTS = (
    "SELECT * FROM data",
    "SELECT * FROM data",
    "SELECT a, b, c, t, l FROM data WHERE a < 0.5",
    "SELECT CAST(c AS INTEGER) AS b, a, c, t, l FROM data",
    "SELECT",
    "",
    "DROP TABLE data",
    "SELECT * FROM nowhere",
    "SELECT * FROM data; SELECT 1",
    "SELECT a/0, * FROM data",
    "SELECT 1 AS a",
    "SELECT error(c) AS a, b, c, t, l FROM data",
    "SELECT count(*) AS b, max(c) AS c FROM data",
    f"SELECT '{'x' * 10_000}' AS c",
    "PRAGMA table_info(data)",
    "ATTACH 'other.db'",
    "SELECT * FROM data LIMIT -1",
    "SELECT CAST(c AS DATE) AS t, a, b, c, l FROM data",
    "COPY data TO 'stolen.csv'",
    "\0",
    "select\u2028*",
    "SELECT a, b, c, t, l FROM data UNION ALL SELECT a, b, c, t, l FROM data",
)


def database(case: Case) -> Path:
    """An SQLite or DuckDB file, perhaps damaged."""
    import duckdb

    rng = case.rng
    columns = plain_columns(rng, rng.choice([ROWS, 0, 20]))
    path = case.folder / rng.choice(["rows.db", "rows.sqlite", "rows.duckdb"])
    if rng.random() < 0.7:
        with contextlib.closing(sqlite3.connect(path)) as opened, opened:
            opened.execute("CREATE TABLE data (a, b, c, t, l)")
            rows = [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
            if rows and rng.random() < 0.3:
                rows[0][rng.randrange(5)] = rng.choice([b"\xff" + SECRET.encode(), None])  # type: ignore[call-overload]
            opened.executemany("INSERT INTO data VALUES (?, ?, ?, ?, ?)", rows)
    else:
        table = pa.table(columns)
        with duckdb.connect(str(path)) as made:
            made.register("shown", table)
            made.execute("CREATE TABLE data AS SELECT * FROM shown")
    return damaged(case, path, 0.25)


# Schemas.

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    0.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    5e-324,
    10**30,
    -(2**63),
    "",
    "x",
    "no",
    "continuous",
    "categorical",
    "integer",
    "binary",
    "datetime",
    "label",
    "\0",
    "ä\u202e",
    "x" * 5000,
    "2020-01-01",
    "9999-12-31",
    "0000-00-00",
    [],
    [0],
    [1, 0],
    [0, 1],
    [0, 0],
    ["x", "x"],
    [None],
    [[0, 1]],
    {},
    {"a": 1},
    {"kind": "integer"},
    dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 1),
    b"x",
    "1" * 400,
    "a",
    "b",
    "c",
    "t",
    "l",
    [float("nan"), 1],
    ["2030-01-01", "2000-01-01"],
    [0, 10**18],
    list(range(300)),
    1 + 0j,
    {1, 2},
    ("a", "b"),
    0.1 + 0.2,
)
KEYS = (
    "name",
    "kind",
    "bounds",
    "categories",
    "nullable",
    "role",
    "bounds_from",
    "unknown",
    "bins",
    "rules",
    "columns",
    "rows",
    "image",
    "privacy",
    "unit",
    "max_rows",
    "step",
    "missing",
    "label",
    "scale",
    "x",
)
RULES: tuple[Any, ...] = (
    {"rule": "a <= b"},
    "a <= b",
    {"kind": "order", "columns": ["a", "b"]},
    {"if": "c = x", "then": "l = yes"},
    {"less": ["a", "b"]},
    {"equal": ["c", "l"]},
    {"when": {"c": "x"}, "then": {"l": "no"}},
    {"unique": ["a"]},
    {"when": {"c": "x"}, "then": {"c": "y"}},
    {"order": ["b", "a"]},
    {"order": ["a", "a"]},
    {"forbid": {"c": "x"}},
    7,
)


def mutated(rng: Random, document: Any, odd: tuple[Any, ...] = ODD, keys: tuple[str, ...] = KEYS) -> Any:
    """The same document with one place changed, added or left out."""
    holders: list[Any] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict | list):
            holders.append(node)
            for each in node.values() if isinstance(node, dict) else node:
                walk(each)

    copied = json.loads(json.dumps(document, default=str)) if keys is not KEYS else _copy(document)
    walk(copied)
    node = rng.choice(holders)
    if isinstance(node, dict):
        key = rng.choice([*node, rng.choice(keys)] if rng.random() < 0.3 or not node else [*node])
        if rng.random() < 0.2:
            node.pop(key, None)
        else:
            node[key] = _nudged(rng, node.get(key), odd)
    elif node and rng.random() < 0.8:
        at = rng.randrange(len(node))
        choice = rng.random()
        if choice < 0.15:
            del node[at]
        elif choice < 0.3:
            node.append(_copy(node[at]))
        else:
            node[at] = _nudged(rng, node[at], odd)
    else:
        node.append(rng.choice(odd))
    return copied


def _nudged(rng: Random, value: Any, odd: tuple[Any, ...]) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and rng.random() < 0.6:
        return rng.choice([value + 1, value - 1, -value, value * 2, value / 3, int(value / 2), value + 10**9])
    return rng.choice(odd)


def _copy(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copy(each) for key, each in node.items()}
    return [_copy(each) for each in node] if isinstance(node, list) else node


def odd_schema(case: Case) -> Any:
    rng = case.rng
    document: Any = _copy(SCHEMA if rng.random() < 0.9 else IMAGES)
    if rng.random() < 0.2:
        document["rules"] = [rng.choice(RULES) for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.15:
        document["privacy"] = {"unit": rng.choice(["a", "c", "nobody", 3]), "max_rows": rng.choice([1, 2, 0, 10**12])}
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        document = mutated(rng, document)
    return document


def yaml_of(rng: Random, document: Any) -> bytes:
    """The document as YAML, perhaps with text that is none."""
    try:
        text = yaml.safe_dump(document, allow_unicode=rng.random() < 0.5)
    except yaml.YAMLError:
        text = repr(document)
    if rng.random() < 0.3:
        at = rng.randrange(len(text) + 1)
        odd = [
            "&a ",
            "*a",
            "\t",
            "[" * 5000,
            "}",
            ": ",
            "!!python/name:os.system ",
            "\0",
            "'",
            '"',
            "? ",
            "<<: *a\n",
            "%",
        ]
        text = text[:at] + rng.choice(odd) + text[at:]
    return text.encode(rng.choice(["utf-8", "utf-8", "utf-16", "utf-8-sig"]), "surrogatepass")


# Python objects.


def _raising(*_: Any, **__: Any) -> Any:
    raise RuntimeError(f"could not convert {SECRET} {NUMBER}")


def _hostile(base: type, *names: str) -> type:
    return type(f"Hostile{base.__name__.title()}", (base,), dict.fromkeys(names, _raising))


SPEAKING = ("__str__", "__repr__", "__eq__", "__hash__", "__format__", "__bool__")
HostileText = _hostile(str, *SPEAKING, "encode", "__len__", "__iter__", "__getitem__", "strip")
HostileInt = _hostile(int, *SPEAKING, "__int__", "__index__", "__float__", "__lt__", "__add__")
HostileFloat = _hostile(float, *SPEAKING, "__float__", "is_integer", "__lt__", "hex")
HostileObject = _hostile(object, *SPEAKING, "__getattr__", "__array__", "__int__", "__float__")
HostileList = _hostile(list, "__iter__", "__repr__")
HostileSized = _hostile(list, "__len__", "__repr__")
HostileDict = _hostile(dict, "items", "keys", "__repr__")
HostileStream = _hostile(object, "__arrow_c_stream__", "__repr__")
HostileFrame = _hostile(object, "__dataframe__", "__array__", "__len__", "__getitem__", "__iter__")


class Lying:
    """It says that it is text."""

    __class__ = property(lambda self: str)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return SECRET


def recursive() -> list[Any]:
    found: list[Any] = [SECRET]
    found.append(found)
    return found


def odd_cells() -> list[Any]:
    return [
        SECRET,
        NUMBER,
        float(NUMBER),
        None,
        float("nan"),
        float("inf"),
        10**5000,
        -(2**63),
        2**64,
        True,
        b"\xff" + SECRET.encode(),
        "\udc80",
        "",
        "NA",
        decimal.Decimal("sNaN"),
        decimal.Decimal("NaN"),
        decimal.Decimal(NUMBER),
        decimal.Decimal("1e999999"),
        pd.NaT,
        pd.NA,
        pd.Timestamp("2020-01-01", tz="UTC"),
        np.datetime64("NaT"),
        np.timedelta64(1, "D"),
        np.float16(0.5),
        np.longdouble(NUMBER),
        dt.timedelta(1),
        dt.date.max,
        dt.datetime(1, 1, 1),
        dt.time(1),
        1j,
        [SECRET],
        {"x": SECRET},
        {SECRET},
        (NUMBER,),
        object(),
        recursive(),
        np.array([NUMBER]),
        np.array(SECRET),
        HostileText("x"),
        HostileInt(3),
        HostileFloat(0.5),
        HostileObject(),
        Lying(),
        Exception(SECRET),
        lambda: SECRET,
        memoryview(SECRET.encode()),
        bytearray(b"x"),
        type,
        ...,
        np.void(b"SECRET"),
        pa.scalar(SECRET),
        pa.scalar(NUMBER),
        pl.Series([SECRET]),
        range(3),
        Path(SECRET),
        re.compile("x"),
    ]


def interrupted(rows: list[Any]) -> Iterator[Any]:
    yield from rows[: len(rows) // 2]
    _raising()


def odd_data(case: Case) -> Any:
    """A table as Python may hold it."""
    rng = case.rng
    rows = rng.choice([ROWS, ROWS, 0, 1])
    columns = plain_columns(rng, rows)
    cells = odd_cells()
    for _ in range(rng.choice([0, 1, 3])):
        if rows:
            columns[rng.choice("abctl")][rng.randrange(rows)] = rng.choice(cells)
    if rng.random() < 0.1:
        columns.pop(rng.choice("abctl"))
    if rng.random() < 0.1:
        columns[rng.choice("abctl")] = [0]
    keys = list(columns)
    records = [dict(zip(keys, row, strict=False)) for row in zip(*columns.values(), strict=False)]
    names: Any = rng.choice(
        [keys, keys, keys[::-1], [1, 2, 3, 4, 5][: len(keys)], ["a"] * len(keys), [SECRET[:2], *keys[1:]]]
    )
    objects = {key: _objects(value) for key, value in columns.items()}
    makers: list[Callable[[], Any]] = [
        lambda: columns,
        lambda: records,
        lambda: iter(records),
        lambda: (r for r in records),
        lambda: tuple(records),
        lambda: dict(objects),
        lambda: pd.DataFrame(objects),
        lambda: pd.DataFrame(columns),
        lambda: pd.DataFrame(columns).set_axis(names, axis=1),
        lambda: pd.DataFrame(columns).convert_dtypes(),
        lambda: pd.DataFrame(columns).astype({"c": "category", "b": "Int8"}),
        lambda: pd.DataFrame(objects).set_index("c"),
        lambda: pd.DataFrame(columns).astype("string"),
        lambda: pd.DataFrame(columns).astype("category"),
        lambda: pl.DataFrame(columns, strict=False),
        lambda: pl.DataFrame(columns).lazy(),
        lambda: pl.DataFrame({k: pl.Series(k, v, dtype=pl.Object) for k, v in columns.items()}),
        lambda: pl.DataFrame(columns).with_columns(pl.col("c").cast(pl.Categorical), pl.col("b").cast(pl.Int128)),
        lambda: odd_table(case),
        lambda: odd_table(case).to_batches(),
        lambda: odd_table(case).to_reader(),
        lambda: pa.table(columns).to_batches()[0],
        lambda: pa.table(columns)["c"],
        lambda: odd_table(case).to_pandas(),
        lambda: pl.from_arrow(odd_table(case)),
        lambda: np.rec.fromarrays([objects["a"], objects["b"]], names="a,b"),
        lambda: np.array([(1.0, 2, SECRET)], dtype=[("a", "f8"), ("b", "i4"), ("c", "U10")]),
        lambda: np.ma.masked_array(np.ones((rows, 5)), mask=True),
        lambda: np.full((rows, 5), SECRET),
        lambda: scipy.sparse.csr_matrix(np.ones((rows, 5))),
        lambda: {**columns, 3: [1]},
        lambda: {**columns, "c": SECRET},
        lambda: {**columns, "c": iter(columns["c"])},
        lambda: {**columns, "c": None},
        lambda: {**columns, "a": np.ones((rows, 2))},
        lambda: {**columns, "c": pd.Categorical(["x"] * rows)},
        lambda: {**columns, "b": np.ma.masked_array(range(rows))},
        lambda: HostileDict(columns),
        lambda: HostileList(records),
        lambda: HostileSized(records),
        lambda: HostileStream(),
        lambda: HostileFrame(),
        lambda: HostileObject(),
        lambda: Lying(),
        lambda: [*records, rng.choice(cells)],
        lambda: [*records, HostileDict(records[0])],
        lambda: interrupted(records),
        lambda: recursive(),
        lambda: [records],
        lambda: rng.choice(cells),
        lambda: SECRET,
        lambda: SECRET.encode(),
        lambda: NUMBER,
        lambda: None,
        dict,
        list,
        lambda: [{}],
        lambda: types.SimpleNamespace(**columns),
        lambda: zip(*columns.values(), strict=False),
        lambda: pd.Series(columns["c"]),
        lambda: pd.DataFrame(),
        lambda: pl.DataFrame(),
        lambda: pa.table({}),
        lambda: as_text(columns, ",", "\n"),
        lambda: io.StringIO(as_text(columns, ",", "\n")),
        lambda: set(columns["c"]),
        lambda: pd.DataFrame(columns, index=pd.MultiIndex.from_product([[SECRET], range(rows)])),
        lambda: pd.DataFrame(columns).assign(b=pd.arrays.SparseArray([1] * rows)),
        lambda: pd.DataFrame(columns).assign(t=pd.interval_range(0, rows, rows)),
        lambda: {"a": {"b": columns}},
    ]
    return _made(rng, makers)


def _objects(cells: list[Any]) -> Any:
    found = np.empty(len(cells), dtype=object)
    for at, cell in enumerate(cells):
        found[at] = cell
    return found


def _made(rng: Random, makers: list[Callable[[], Any]]) -> Any:
    """What one of the makers makes; libraries refuse to make some of them."""
    for _ in range(20):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return rng.choice(makers)()
        except (TooSlowError, KeyboardInterrupt):
            raise
        except BaseException:  # polars panics, which is no Exception
            continue
    return SECRET


def odd_features(case: Case) -> tuple[Any, Any]:
    """Features and labels as Python may hold them."""
    rng, cells = case.rng, odd_cells()
    rows = rng.choice([ROWS, ROWS, 0, 1])
    features: list[Any] = [[i % 7 / 7, i % 3, NUMBER] for i in range(rows)]
    labels: list[Any] = [i % 2 for i in range(rows)]
    for _ in range(rng.choice([0, 1, 3])):
        if rows:
            features[rng.randrange(rows)] = rng.choice(
                [[rng.choice(cells), 1, 2], rng.choice(cells), [1], [1, 2, 3, 4]]
            )
        if rows:
            labels[rng.randrange(rows)] = rng.choice(cells)
    plain = np.array([[i % 7 / 7, i % 3, NUMBER] for i in range(rows)], dtype=float).reshape(rows, 3)
    of_rows: list[Callable[[], Any]] = [
        lambda: features,
        lambda: features,
        lambda: tuple(features),
        lambda: iter(features),
        lambda: (r for r in features),
        lambda: plain,
        lambda: plain.astype(object),
        lambda: plain.astype(np.float16),
        lambda: plain.astype(np.longdouble),
        lambda: plain.astype("U20"),
        lambda: plain + 1j,
        lambda: plain.astype("M8[s]"),
        lambda: plain[:5].T,
        lambda: plain[:, :, None],
        lambda: plain[:, 0],
        lambda: np.array(NUMBER),
        lambda: np.ma.masked_array(plain, plain > 1),
        lambda: scipy.sparse.csr_matrix(plain),
        lambda: scipy.sparse.coo_array(plain),
        lambda: pd.DataFrame(plain),
        lambda: pd.DataFrame(plain, columns=["a", "a", 3]),
        lambda: pd.DataFrame(features, dtype=object),
        lambda: pd.DataFrame(plain).convert_dtypes(),
        lambda: pl.DataFrame(plain),
        lambda: pl.DataFrame(features, strict=False, orient="row"),
        lambda: pa.table(pd.DataFrame(plain, columns=list("abc"))),
        lambda: odd_table(case),
        lambda: odd_table(case).to_pandas(),
        lambda: pd.DataFrame(odd_data(case)),
        lambda: HostileList(features),
        lambda: HostileSized(features),
        lambda: HostileFrame(),
        lambda: HostileStream(),
        lambda: HostileObject(),
        lambda: Lying(),
        lambda: rng.choice(cells),
        lambda: interrupted(features),
        lambda: recursive(),
        lambda: {"a": features},
        lambda: [recursive()] * rows,
        lambda: SECRET,
        lambda: [SECRET] * rows,
        lambda: None,
        lambda: plain.astype([("a", float)]),
        lambda: plain.view(np.matrix),
        lambda: memoryview(plain),
        lambda: [[]] * rows,
        lambda: [HostileList([1, 2, 3])] * rows,
        lambda: [{"a": 1, "b": 2, "c": 3}] * rows,
        lambda: [np.array([1, 2, 3])] * rows,
    ]
    of_labels: list[Callable[[], Any]] = [
        lambda: labels,
        lambda: labels,
        lambda: labels,
        lambda: tuple(labels),
        lambda: iter(labels),
        lambda: np.array([i % 2 for i in range(rows)]),
        lambda: _objects(labels),
        lambda: pd.Series(labels, dtype=object),
        lambda: pl.Series([i % 2 for i in range(rows)]),
        lambda: labels[1:],
        lambda: pd.Categorical(["0", "1"] * (rows // 2)),
        lambda: np.ones((rows, 1)),
        lambda: np.ones((rows, 2)),
        lambda: None,
        lambda: [SECRET] * rows,
        lambda: np.array([f"{SECRET}"] * rows),
        lambda: pa.array([i % 2 for i in range(rows)]),
        lambda: HostileList(labels),
        lambda: HostileSized(labels),
        lambda: HostileFrame(),
        lambda: HostileObject(),
        lambda: rng.choice(cells),
        lambda: interrupted(labels),
        lambda: dict.fromkeys(range(rows), 1),
        lambda: pd.DataFrame({"y": [0] * rows, "z": 1}),
        lambda: np.ma.masked_array([i % 2 for i in range(rows)], mask=True),
        lambda: SECRET,
        lambda: NUMBER,
        lambda: [labels],
        lambda: scipy.sparse.csr_matrix(np.ones((rows, 1))),
        lambda: pd.array([i % 2 for i in range(rows)], dtype="Int8"),
    ]
    return _made(rng, of_rows), _made(rng, of_labels)


# Running a case, and looking at how it ended.


def put(case: Case, name: str, content: bytes) -> Path:
    path = case.folder / name
    path.write_bytes(content)
    return path


def files_in(folder: Path) -> set[str]:
    found = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return {name for name in found if not name.startswith("ledger.db")}


def spent(ledger: Path) -> tuple[int, int]:
    state = read_ledger(ledger)
    return state.spent_units, len(state.rows)


def leaks(error: BaseException, given: tuple[object, ...] = ()) -> list[str]:
    """Where an error, what it came from, or the frames of ours that it keeps hold a secret."""
    found: list[str] = []
    queue: list[BaseException | None] = [error]
    seen: set[int] = set()
    while queue:
        each = queue.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        found += told("error", f"{each.args!r}" if _is_plain(each.args) else str(type(each)))
        queue += [each.__cause__, each.__context__]
        for frame, _ in traceback.walk_tb(each.__traceback__):
            module = frame.f_globals.get("__name__", "")
            if not module.startswith("understudy"):
                continue
            for name, value in frame.f_locals.items():
                if not any(value is one for one in given):
                    found += told(f"local '{name}' of {module}:{frame.f_lineno}", _shown(value))
    return found


def _is_plain(values: Any) -> bool:
    return all(type(each) in (str, bytes, int, float, type(None), tuple) for each in values)


def _shown(value: Any) -> str:
    """What a debugger would show of a local, if showing it is safe."""
    if type(value) in (str, bytes, int, float):
        return repr(value)
    if isinstance(value, pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray):
        return str(value.to_pylist()) if len(value) < 10**5 else ""
    if type(value) is np.ndarray and value.size < 10**5:
        return str(value.tolist()) if value.dtype.kind != "O" else ""
    if isinstance(value, BaseException):
        return repr(value.args) if _is_plain(value.args) else ""
    return ""


def told(where: str, text: str, *, counts: bool = True) -> list[str]:
    """Secrets in a text."""
    found = [f"{where} holds a secret cell"] if SECRETS.search(text) else []
    return found + ([f"{where} holds the number of rows"] if counts and COUNT.search(text) else [])


def of_library(
    case: Case, act: Callable[[], Any], *, allowed: tuple[type[Exception], ...] = (), given: tuple[object, ...] = ()
) -> Found:
    """Run a call of the library and look at how it ended; what it gives is checked by ``act`` itself."""
    before, files = spent(case.ledger), files_in(case.folder)
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            act()
    except (UnderstudyError, *allowed) as error:
        kind = type(error).__name__
        found = Found(f"refused ({kind})" if isinstance(error, UnderstudyError) else f"public mistake ({kind})")
        found.violations += leaks(error, given)
    except (TooSlowError, KeyboardInterrupt):
        raise
    except BaseException as error:
        found = Found("VIOLATION")
        place = traceback.extract_tb(error.__traceback__)[-1]
        found.violations.append(f"{type(error).__name__} at {place.filename}:{place.lineno} left the library")
        found.violations += leaks(error, given)
    else:
        found = Found("succeeded")
        if spent(case.ledger) <= before:
            found.violations.append("a release was not paid for")
        return found
    found.violations += told("output", out.getvalue() + err.getvalue())
    return after_failure(case, found, before, files)


def after_failure(case: Case, found: Found, before: tuple[int, int], files: set[str]) -> Found:
    if spent(case.ledger) != before:
        found.violations.append("the ledger was charged and nothing was given")
    left = files_in(case.folder) - files
    if left:
        found.violations.append(f"files were left: {sorted(left)[:3]}")
    return found


def of_program(case: Case, arguments: list[str], *, may_show_cells: bool = False) -> Found:
    """Run the program in this process and look at how it ended."""
    before, files = spent(case.ledger), files_in(case.folder)
    code, out, err = run_program(case, arguments)
    if code == 0:
        found = Found("succeeded")
        if not may_show_cells:
            found.violations += told("output", out + err, counts=False)
        check_made(case, arguments, found, before)
        return found
    found = Found(f"exit code {code}")
    found.violations += told("output", out + err)
    if code not in (1, 2, 3):
        found.violations.append("an exit code that is not documented")
    if "internal error" in err or "Traceback" in err:
        found.violations.append(err.strip().splitlines()[-1][:300])
    if not err.startswith(("refused: ", "{")) and "Usage:" not in out + err:
        found.violations.append(f"not refused in one line: {err[:200]!r}")
    return after_failure(case, found, before, files)


def run_program(case: Case, arguments: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    kept, here = sys.argv, Path.cwd()
    sys.argv = ["understudy", *arguments]
    os.chdir(case.folder)
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = kept
        os.chdir(here)
    return code, out.getvalue(), err.getvalue()


def check_made(case: Case, arguments: list[str], found: Found, before: tuple[int, int]) -> None:
    """What a verb made must verify, and be paid for if a ledger was named."""
    try:
        if (case.out / "release.json").exists():
            verify_release(case.out)
        if (case.out / "classifier.json").exists():
            verify_classifier(case.out)
    except Exception as error:
        found.violations.append(f"{type(error).__name__} where what was made is verified: {error}")
    makes = arguments[:1] in (["release"], ["classify"], ["synth"], ["append"])
    if makes and str(case.ledger) in arguments and "--help" not in arguments and spent(case.ledger) <= before:
        found.violations.append("a release was not paid for")


# Kinds of cases.


def case_of_file(case: Case, make: Callable[[Case], Path] | None = None) -> Found:
    rng = case.rng
    make = make or rng.choice([delimited, delimited, columnar])
    path = make(case)
    if rng.random() < 0.05:
        path = path.with_name(rng.choice(["missing.csv", "*.csv", "ä\u202e.csv", "x" * 300, "rows\0.csv"]))
    schema, options = case.world.path("schema.yaml"), ["-m", "balog-subspace", "--candidates", "20"]
    if make is image_set:
        schema, options = case.world.path("images.yaml"), ["-m", "dp-spectrum"]
    query = [] if make is not database and rng.random() < 0.9 else ["--query", rng.choice(SELECTS)]
    ledger = ["--ledger", str(case.ledger)]
    chance = rng.random()
    if chance < 0.6:
        plan = plan_for(case.world, "images" if make is image_set else rng.choice(["quick", "quick", "anova"]))
        asked = query[1] if query else None

        def release() -> None:
            release_table(path, plan, directory=case.out, ledger=case.ledger, query=asked)
            verify_release(case.out)

        return of_library(case, release)
    if chance < 0.75:
        verb = ["release", str(path), "-s", str(schema), "-e", "1", *options, *ledger]
    elif chance < 0.85:
        verb = ["classify", str(path), "-s", str(schema), "-e", "1", "--steps", "2", *ledger]
    elif chance < 0.92:
        verb = ["schema", "check", str(schema), str(path)]
        return of_program(case, [*verb, *query])
    else:
        return of_program(case, ["schema", "draft", str(path), *query, "-o", str(case.out)])
    return of_program(case, [*verb, *query, "-o", str(case.out)])


def case_of_images(case: Case) -> Found:
    return case_of_file(case, image_set)


def case_of_database(case: Case) -> Found:
    return case_of_file(case, database)


def case_of_schema(case: Case) -> Found:
    rng, document = case.rng, odd_schema(case)
    chance = rng.random()
    if chance < 0.5:
        data = plain_columns(rng)

        def release() -> None:
            plan = make_plan(parse_schema(document, name="fuzzed"), Budget(1.0), **QUICK)
            release_table(data, plan, directory=case.out, ledger=case.ledger)
            verify_release(case.out)

        if chance < 0.1:
            return of_library(
                case,
                lambda: Synthesizer(document, epsilon=1, ledger=case.ledger, **QUICK).fit(data),
                allowed=(TypeError, ValueError),
                given=(data,),
            )
        return of_library(case, release, given=(data,))
    path = put(case, "odd.yaml", yaml_of(rng, document))
    rows = str(case.world.path("rows.csv"))
    verb = rng.choice(
        [
            ["schema", "check", str(path)],
            ["schema", "check", str(path), rows],
            ["plan", "-s", str(path), "-e", "1", "-m", rng.choice(["auto", "dp-merf", "balog-subspace"])],
            [
                "release",
                rows,
                "-s",
                str(path),
                "-e",
                "1",
                "--no-pairs",
                "--ledger",
                str(case.ledger),
                "-o",
                str(case.out),
            ],
            [
                "classify",
                rows,
                "-s",
                str(path),
                "-e",
                "1",
                "--steps",
                "1",
                "--ledger",
                str(case.ledger),
                "-o",
                str(case.out),
            ],
        ]
    )
    return of_program(case, verb)


def case_of_objects(case: Case) -> Found:
    rng, data = case.rng, odd_data(case)
    if type(data) in (str, type(Path())) and str(data) == SECRET:
        data = "missing.csv"  # text is the name of a file, and names are public
    plan = plan_for(case.world, rng.choice(["quick", "quick", "quick", "anova", "merf"]))
    query = rng.choice(SELECTS) if rng.random() < 0.05 else None

    def release() -> None:
        release_table(data, plan, directory=case.out, ledger=case.ledger, query=query)
        verify_release(case.out)

    def fit() -> None:
        made = Synthesizer(case.world.path("schema.yaml"), epsilon=1, ledger=case.ledger, release_dir=case.out, **QUICK)
        made.fit(data, query=query)
        verify_release(case.out)

    return of_library(case, fit if rng.random() < 0.2 else release, given=(data,))


def case_of_classifier(case: Case) -> Found:
    rng = case.rng
    features, labels = odd_features(case)
    settings: dict[str, Any] = {
        "bounds": (0, 10),
        "classes": [0, 1],
        "num_rows": 1000,
        "options": {"steps": 2, "look": 0.0},
    }
    if rng.random() < 0.2:
        odd = [
            *ODD,
            [[0, 1]] * 3,
            [(0, 1), (0, 1), (1, 0)],
            HostileText("x"),
            HostileObject(),
            [HostileText("x"), 1],
            {"steps": 0},
        ]
        name = rng.choice(["bounds", "classes", "epsilon", "delta", "num_rows", "options", "seed", "key"])
        settings[name] = rng.choice(odd)

    def fit() -> None:
        LocallyLinearClassifier(ledger=case.ledger, **settings).fit(features, labels)

    return of_library(case, fit, allowed=(ValueError, TypeError), given=(features, labels))


QUERIES = (
    "count",
    "count by l",
    "mean(a) by c",
    "sum(b) where a < 0.5",
    "median(a)",
    "quantile(a, 0.3)",
    "histogram(a)",
    "share by l",
    "var(b)",
    "std(a)",
    "count by a, b, c, t, l",
    "count where",
    "mean()",
    "mean(t)",
    "mean(c)",
    "count by nothing",
    "",
    "\0",
    "(" * 3000,
    "quantile(a, 7)",
    "quantile(a, nan)",
    "count where a = 1e999",
    "count where t < 9999-99-99",
    "count where c in ('x')",
    "count where not (c = x)",
    "sum(a * b)",
    "sum(a / 0)",
    "mean(exp(a))",
    "mean(a ** 1000)",
    "count where a < b",
    "1" * 5000,
    "count where b >= " + "9" * 500,
    "mean(log(a - 5))",
    "mean(sqrt(-a))",
    "histogram(a, 100000000000)",
    "count by ä\u202e",
)


def case_of_release(case: Case) -> Found:
    """A release, generator, classifier or request whose files somebody has altered."""
    rng, world = case.rng, case.world
    name = rng.choice(["release", "release", "weighted", "merf", "generator", "weights", "classifier", "request"])
    if name == "request":
        document = json.loads(world.path("request.json").read_bytes())
        for _ in range(rng.choice([1, 1, 2])):
            document = mutated(rng, document, PLAIN_ODD, ("x",))
        path = put(case, "request.json", json.dumps(document).encode())
        rest = ["--party", "a", "--key-file", str(world.path("key")), "--ledger", str(case.ledger), "-o", str(case.out)]
        return of_program(case, ["partial", str(world.path("rows.csv")), "-r", str(path), *rest])
    folder = Path(shutil.copytree(world.path(name), case.folder / name))
    alter(rng, folder)
    given, out = str(folder), str(case.out)
    other = str(world.path(name))
    verbs = {
        "generator": [
            ["sample", given, "-o", f"{out}.csv", "-n", "10"],
            ["sample", given, "-o", f"{out}.csv", "-n", "5", "--balance", "equal"],
            ["query", str(world.path("release")), "mean(a) where a < b", "-g", given],
            ["report", str(world.path("release")), "-o", f"{out}.html", "-g", given],
            ["sample", given, "-o", f"{out}.csv", "-n", "3", "--given", "c=x"],
        ],
        "weights": [
            ["export", given, "-o", f"{out}.parquet"],
            ["sample", given, "-o", f"{out}.csv", "-n", "10"],
            ["query", str(world.path("weighted")), "mean(a)", "-g", given],
        ],
        "classifier": [
            ["predict", given, str(world.path("public.csv")), "-o", f"{out}.csv"],
            ["verify", given],
            ["explain", given, "-o", f"{out}.html"],
            ["explain", given, "-o", f"{out}.html", "--rows", str(world.path("public.csv"))],
        ],
    }.get(name) or [
        ["verify", given],
        ["query", given, rng.choice(QUERIES)],
        ["query", given, rng.choice(QUERIES[:10])],
        ["query", given],
        ["compare", given, other],
        ["compare", other, given],
        ["compare", given, str(world.path("public.csv"))],
        ["report", given, "-o", f"{out}.html"],
        ["report", given, "-o", f"{out}.html"],
        ["append", given, str(world.path("public.csv")), "-o", out, "--ledger", str(case.ledger)],
        ["query", given, "mean(a)", "--population", "--level", "0.5"],
        ["query", given, "mean(a)", "-g", str(world.path("generator"))],
        ["fit", given, "-o", out],
    ]
    return of_program(case, rng.choice(verbs))


PLAIN_ODD = tuple(
    each
    for each in ODD
    if type(each) in (type(None), bool, int, str, list, dict) or (type(each) is float and abs(each) < 1e300)
)


def alter(rng: Random, folder: Path) -> None:
    """Change a number or word of a description, or numbers beside it, so that hashes still agree."""
    (document,) = (path for path in folder.glob("*.json") if path.name != "certificate.json")
    if rng.random() < 0.85:
        content = json.loads(document.read_bytes())
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            target = content.get("plan", content) if rng.random() < 0.8 else content
            changed = mutated(rng, target, PLAIN_ODD, ("x", "kind", "rule", "steps"))
            content = content | {"plan": changed} if target is content.get("plan") else changed
        document.write_text(json.dumps(content, default=str))
        return
    (tensors,) = folder.glob("*.safetensors")
    content = bytearray(tensors.read_bytes())
    start = 0 if rng.random() < 0.3 else len(content) // 2
    for _ in range(rng.choice([1, 8, 64])):
        content[rng.randrange(start, len(content))] = rng.choice([0, 255, 128, rng.randrange(256)])
    digest = hashlib.sha256(tensors.read_bytes()).hexdigest()
    tensors.write_bytes(content)
    text = document.read_text().replace(digest, hashlib.sha256(content).hexdigest())
    document.write_text(text)


NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "5e-324",
    "1e-9",
    "100000000000",
    "1" + "0" * 30,
    "1" + "0" * 400,
    "0x10",
    "1_000",
    "٣",
    "",
    " 1",
    "1e3",
    "true",
    "½",
    "-0",
    "99999999999999999999",
)
WORDS = (
    "",
    "x",
    "auto",
    "none",
    "private",
    "equal",
    "kept",
    "a",
    "c=x",
    "a=0..1",
    "l=yes|no",
    "yes=1|no=3",
    "a=",
    "=",
    "..",
    "ä\u202e\x1b[2J",
    "x" * 3000,
    "\udc80",
    "[bold]",
    "--",
    "-",
    "*",
    "~",
    "%s%n",
    "SELECT * FROM data",
    "3,3",
    "1",
    "conv1",
    "threads",
    "row",
    "mnist",
    "network",
)
NEVER = {"engine": {"spark", "ray"}}
RARE = {"demo", "evaluate", "encoder train", "encoder private"}
"""Verbs that take seconds when they succeed: chosen seldom."""


@functools.cache
def commands() -> dict[str, Any]:
    """Every verb with its parameters."""
    found: dict[str, Any] = {}

    def walk(command: Any, names: tuple[str, ...]) -> None:
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                walk(inner, (*names, name))
        else:
            found[" ".join(names)] = command.params

    walk(typer.main.get_command(app), ())
    return found


def usual(case: Case, verb: str, name: str) -> list[str]:
    """What a person would give for a parameter."""
    at, rng = case.world.path, case.rng
    images = verb.startswith(("encoder", "grid"))
    rows = [str(at("images.npz"))] if images else [str(at("rows.csv")), str(at("rows.parquet"))]
    release = [str(at("release")), str(at("weighted")), str(at("merf"))]
    output = str(case.out)
    pages = {
        "report": ".html",
        "explain": ".html",
        "compare": ".html",
        "evaluate": ".html",
        "export": ".parquet",
        "grid": ".png",
    }
    ends = pages.get(verb, ".csv" if verb in ("sample", "synth", "predict") else "")
    known: dict[str, list[str]] = {
        "data": rows,
        "rows": rows if verb in ("explain", "predict") else ["1000"],
        "file": [str(case.ledger)] if verb.startswith("ledger") else rows,
        "files": rows,
        "schema": [str(at("images.yaml" if images else "schema.yaml"))],
        "output": [output + ends],
        "release": release,
        "other": [*release, str(at("public.csv"))],
        "generator": [str(at("generator")), str(at("weights"))],
        "classifier": [str(at("classifier"))],
        "request": [str(at("request.json"))],
        "party": ["a"],
        "key_file": [str(at("key"))],
        "ledger": [str(case.ledger)],
        "epsilon": ["1", "0.5"],
        "delta": ["1e-5", "0"],
        "steps": ["1", "2"],
        "synthetic": [str(at("public.csv"))],
        "reference": [str(at("public.csv"))],
        "queries": list(QUERIES),
        "method": ["dp-anova", "balog-subspace", "dp-merf", "balog-features", "dp-hp", "dp-spectrum"],
        "directory": [str(at("classifier")), str(at("release"))],
        "query": list(SELECTS),
        "test": [str(at("public.csv"))],
        "plot": [output + ".png"],
        "release_dir": [output + "-kept"],
        "checkpoint": [output + "-sums"],
        "candidates": ["20"],
        "features": ["50"],
        "given": list(WORDS),
        "key": ["k"],
        "neighbours": ["add-remove", "replace-one"],
        "labels": ["none", "counts"],
        "length_scale": ["0.5"],
        "threads": ["1"],
        "engine": ["auto", "threads"],
        "num_rows": ["10"],
        "components": ["3"],
        "descent_steps": ["1"],
    }
    return known.get(name, [rng.choice(WORDS + NUMBERS)])


def flags(case: Case) -> list[str]:
    """A verb with what it needs, and some of its other options with any values."""
    rng = case.rng
    known = commands()
    verbs = sorted(set(known) - RARE)
    verb = rng.choice(verbs) if rng.random() < 0.93 else rng.choice(sorted(RARE))
    arguments = verb.split()
    is_rare = verb in RARE
    for each in known[verb]:
        is_needed = each.required or each.name in ("output", "ledger") or (each.name == "steps" and rng.random() < 0.9)
        if rng.random() < (0.03 if is_needed else 0.85):
            continue
        kind = each.type_descriptor.annotation
        if kind is bool:
            arguments.append(rng.choice(each.opts))
            continue
        is_number = kind in (int, float) or "int" in str(kind)
        odd = rng.choice(NUMBERS if is_number else WORDS)
        path = rng.choice(
            ["missing", "/dev/null", "/", "", "out/out", "x" * 300, "ä\u202e", "a\0b", str(case.world.path("release"))]
        )
        values = [rng.choice(usual(case, verb, each.name))]
        chance = 0.12 if is_needed else 0.6
        if rng.random() < chance:
            values = [odd if is_number or rng.random() < 0.5 else path]
        if each.name == "descent_steps" or (each.name == "encoder" and rng.random() < 0.9):
            continue
        if each.param_type_name == "argument":
            arguments += values
        else:
            arguments += (
                [rng.choice(each.opts), *values] if rng.random() < 0.5 else [f"{max(each.opts, key=len)}={values[0]}"]
            )
    if is_rare:  # something must be wrong with them, or they would run for long
        arguments += rng.choice(
            [["--epsilon=nan"], ["--seed=-1"], ["--seed=" + "9" * 40], ["--nonsense"], ["--output=/"], ["--clip=nan"]]
        )
    if rng.random() < 0.05:
        arguments.insert(rng.randrange(len(arguments) + 1), rng.choice(["--json", "--help", "--nonsense", *WORDS]))
    return [each.replace("\0", "\u2400") if rng.random() < 0.5 else each for each in arguments]


def case_of_flags(case: Case) -> Found:
    arguments = flags(case)
    cells = "--cells" in arguments or "evaluate" in arguments
    return of_program(case, arguments, may_show_cells=cells)


def case_of_command_line(case: Case) -> Found:
    """The same in a process of its own."""
    arguments = [each for each in flags(case) if "\0" not in each and each.isascii()]
    before, files = spent(case.ledger), files_in(case.folder)
    run = subprocess.run(
        [sys.executable, "-c", "from understudy.cli import main; main()", *arguments],
        capture_output=True,
        cwd=case.folder,
        timeout=SECONDS * 4,
        check=False,
    )
    out, err = run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace")
    if run.returncode == 0:
        found = Found("succeeded")
        check_made(case, arguments, found, before)
        return found
    found = Found(f"exit code {run.returncode}", told("output", out + err))
    if run.returncode not in (1, 2, 3) or "internal error" in err or "Traceback" in err:
        found.violations.append(err[-300:])
    return after_failure(case, found, before, files)


KINDS: dict[str, tuple[Callable[[Case], Found], int]] = {
    "text and columnar files": (case_of_file, 20),
    "image sets": (case_of_images, 5),
    "databases": (case_of_database, 6),
    "schemas": (case_of_schema, 17),
    "flags": (case_of_flags, 20),
    "altered releases": (case_of_release, 12),
    "tables in Python": (case_of_objects, 11),
    "X and y in Python": (case_of_classifier, 9),
}
"""What is fuzzed, and how often."""


# The world, and the loop.

_PLANS: dict[tuple[Path, str], Plan] = {}


def plan_for(world: World, name: str) -> Plan:
    key = (world.folder, name)
    if key not in _PLANS:
        schema = load_schema(world.path("images.yaml" if name == "images" else "schema.yaml"))
        settings: dict[str, Any] = {
            "quick": QUICK,
            "anova": {"method": "dp-anova", "options": {"pairs": False, "steps": 2}},
            "merf": {"method": "dp-merf", "options": {"num_features": 60, "training": {"steps": 2}}},
            "images": {"method": "dp-spectrum"},
        }[name]
        if name == "merf":
            from understudy.fits.network import Training as Steps

            settings["options"]["training"] = Steps(steps=2)
        _PLANS[key] = make_plan(schema, Budget(1.0), **settings)
    return _PLANS[key]


def make_world(folder: Path) -> World:
    """One of everything: public rows, private rows, releases, generators, a classifier and a request."""
    world, rng = World(folder), random.Random(0)
    world.path("schema.yaml").write_text(yaml.safe_dump(SCHEMA))
    world.path("images.yaml").write_text(yaml.safe_dump(IMAGES))
    world.path("key").write_text("ab" * 32)
    world.path("key").chmod(0o600)
    private = plain_columns(rng)
    world.path("rows.csv").write_text(as_text(private, ",", "\n"))
    pq.write_table(pa.table(private), world.path("rows.parquet"))
    public = {
        name: [cell if str(cell) not in (SECRET, str(NUMBER), f"{NUMBER}.0") else None for cell in cells]
        for name, cells in private.items()
    }
    pq.write_table(pa.table({name: cells[:200] for name, cells in public.items()}), world.path("public.parquet"))
    world.path("public.csv").write_text(as_text({name: cells[5:200] for name, cells in public.items()}, ",", "\n"))
    np.savez(world.path("images.npz"), x=np.arange(320, dtype=np.uint8).reshape(20, 4, 4), y=np.arange(20) % 2)
    create_ledger(world.ledger, Budget(100.0, 1e-5), reserve=0.1)
    for name, plan, generator in (
        ("release", "anova", "generator"),
        ("weighted", "quick", "weights"),
        ("merf", "merf", ""),
    ):
        made = release_table(private, plan_for(world, plan), directory=world.path(name))
        if generator:
            save_generator(fit_release(made), world.path(generator), release=made.fingerprint)
    training = Training(steps=2, look=0.0, inputs="table")
    descent = ClassifierPlan(load_schema(world.path("schema.yaml")), Budget(1.0), training, 1000)
    train_classifier(pa.table(private), descent, directory=world.path("classifier"))
    Request(plan_for(world, "quick")).save(world.path("request.json"))
    return world


def run_case(world: World, seed: int, number: int, kind: str | None = None) -> tuple[str, Found]:
    """One case from its seed and number; the same ones make the same case."""
    rng = random.Random(f"{seed}/{number}")
    picked = rng.choices(list(KINDS), weights=[weight for _, weight in KINDS.values()])[0]
    act = case_of_command_line if kind is not None else KINDS[picked][0]
    folder = Path(tempfile.mkdtemp(dir=world.folder))
    shutil.copy(world.ledger, folder / "ledger.db")

    started = time.monotonic()

    def too_slow(*_: Any) -> None:
        raise TooSlowError

    signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, SECONDS if kind is None else 5 * SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = act(Case(number, rng, world, folder))
    except TooSlowError as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = Found("VIOLATION", [f"took longer than {SECONDS} s, at {place.filename}:{place.lineno}"])
    except Exception as error:  # of the fuzzer itself, or of its look at the ledger
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = Found("VIOLATION", [f"{error!r} at {place.filename}:{place.lineno}"])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        shutil.rmtree(folder, ignore_errors=True)
    if kind is None and time.monotonic() - started > SECONDS and not found.violations:
        found.violations.append(f"took longer than {SECONDS} s")
    if found.violations:
        found.outcome = "VIOLATION"
    return kind or picked, found


@contextlib.contextmanager
def made_world() -> Iterator[World]:
    """A world in a folder that is gone afterwards; the tree of commands is built once, not at every call."""
    once = mock.patch("typer.main.get_command", functools.cache(typer.main.get_command))
    with once, tempfile.TemporaryDirectory(prefix="understudy-fuzz-") as folder:
        yield make_world(Path(folder).resolve())


def run_cases(
    numbers: list[int], seed: int, *, real: int = 0, speak: bool = False
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Outcomes by kind, and every violation with what reproduces it."""
    outcomes: Counter[tuple[str, str]] = Counter()
    violations: list[str] = []
    with made_world() as world:
        jobs = itertools.chain(((n, None) for n in numbers), ((n, "command line, own process") for n in range(real)))
        for done, (number, kind) in enumerate(jobs, 1):
            name, found = run_case(world, seed, number, kind)
            outcomes[name, found.outcome] += 1
            for words in found.violations:
                violations.append(f"--seed {seed} --only {number} ({name}): {words}")
                if speak:
                    print(violations[-1], flush=True)
            if speak and done % 1000 == 0:
                print(f"... {done} cases, {time.process_time():.0f} CPU s", flush=True)
    return outcomes, violations


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, action="append", help="run this case again")
    parser.add_argument("--real", type=int, default=0, help="so many more through the real command line")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, 12 * 2**30))
    numbers = given.only or list(range(given.first, given.first + given.cases))
    outcomes, violations = run_cases(numbers, given.seed, real=given.real, speak=True)
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{kind:<28} {outcome:<36} {count:>6}")
    print(f"{sum(outcomes.values())} cases, {len(violations)} violations, {time.process_time():.0f} CPU s")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    run()
