"""Columns and schemas as hypothesis strategies, with the names and values that break naive code."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import strategies as st

from understudy.schema import Column, Schema
from understudy.schema.columns import BLANKS
from understudy.schema.entries import parse_column
from understudy.schema.table import parse_schema
from understudy.schema.values import category_key

NASTY = (
    "yes",
    "no",
    "on",
    "true",
    "True",
    "null",
    "~",
    "None",
    "nan",
    "1.0",
    "1e5",
    "010",
    "12:30",
    "1_000",
    "0x1f",
    ".5",
    "-",
    "+",
    "=",
    "<<",
    "?",
    "????",
    "a???b",
    "why ??? here",
    "[???]",
    " x",
    "x ",
    "a: b",
    "- a",
    "#c",
    "a #c",
    "'q'",
    '"q"',
    "it's",
    "[x]",
    "{y}",
    "a,b",
    "%",
    "@",
    "!t",
    "&a",
    "*a",
    "|",
    ">",
    "\\",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "é",
    "日本",
    "😀",
    "a\nb",
    "\n\nx",
    "x\x00",
    "x\x85y",
    "x\u2028y",
    "\ufeffx",
    "x\u00a0",
    "\x1fx",
    "\x7f",
    "[bold]b[/bold]",
    "../x",
    "a\tb",
    "x" * 300,
)


def _is_value(text: str) -> bool:
    return bool(text.strip(BLANKS)) and text != "???"


def texts() -> st.SearchStrategy[str]:
    anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    return (st.sampled_from(NASTY) | anything).filter(_is_value)


@st.composite
def categories(draw: st.DrawFn, size: int | None = None) -> list[Any]:
    numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15)
    value, most = draw(st.sampled_from([(texts(), 6), (numbers, 6), (st.booleans(), 2)]))
    sizes = {"min_size": size or 1, "max_size": size or most}
    return draw(st.lists(value, unique_by=category_key, **sizes))


@st.composite
def bounds(draw: st.DrawFn, kind: str) -> list[Any]:
    values: st.SearchStrategy[Any] = {
        "continuous": st.floats(-1e300, 1e300) | st.integers(-(10**9), 10**9),
        "integer": st.integers(-(2**51), 2**51) | st.integers(-100, 100),
        "ordinal": st.integers(0, 20),
        "datetime": st.dates(dt.date(1700, 1, 1), dt.date(2250, 1, 1))
        | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1)),
    }[kind]
    pair = draw(st.tuples(values, values))
    if kind != "datetime":
        return sorted(pair)
    return sorted(bound.isoformat() for bound in pair)


@st.composite
def entries(draw: st.DrawFn, name: str = "x") -> dict[str, Any]:
    """A valid entry of a schema's ``columns`` list."""
    kind = draw(st.sampled_from(["continuous", "integer", "ordinal", "categorical", "binary", "datetime"]))
    entry: dict[str, Any] = {"name": name, "kind": kind, "nullable": draw(st.booleans())}
    if kind in ("categorical", "binary") or (kind == "ordinal" and draw(st.booleans())):
        entry["categories"] = draw(categories(2 if kind == "binary" else None))
        if draw(st.booleans()):
            entry["unknown"] = draw(st.sampled_from(entry["categories"]))
    else:
        entry["bounds"] = draw(bounds(kind))
        if draw(st.booleans()):
            entry["scale_hint"] = "log1p"
        if kind == "datetime" and draw(st.booleans()):
            entry["resolution"] = draw(st.sampled_from(["day", "second"]))
    for key in ("bounds_from", "description"):
        if draw(st.booleans()):
            entry[key] = draw(texts())
    return entry


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(texts(), min_size=1, max_size=5, unique=True))
    listed = [draw(entries(name)) for name in names]
    listed.append({"name": "x" * 301, "kind": "id", "description": draw(texts())})
    document: dict[str, Any] = {"name": draw(texts()), "columns": listed, "notes": draw(texts())}
    if draw(st.booleans()):
        listed[0]["role"] = "label"
        document["rows"] = draw(st.integers(1, 10**12))
        document["privacy"] = {"unit": draw(texts()), "max_rows": draw(st.integers(1, 99))}
    return parse_schema(document, name="table")


@pytest.fixture(scope="session")
def any_schema() -> st.SearchStrategy[Schema]:
    return schemas()


@pytest.fixture(scope="session")
def any_column() -> st.SearchStrategy[Column]:
    return entries().map(parse_column)


@pytest.fixture(scope="session")
def any_text() -> st.SearchStrategy[str]:
    return texts()
