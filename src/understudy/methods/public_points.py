"""Rows of a public table as points."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from understudy.errors import InputError, UsageError
from understudy.features.drawing import MOST_POINTS
from understudy.features.points import Points, points_of_codes
from understudy.schema import Layout, Schema
from understudy.schema.encode import encode_batch


def given_points(schema: Schema, table: object) -> Points:
    """Rows of a public table (Arrow, pandas, or a mapping of columns) as points."""
    rows = public_table(table)
    missing = [column.name for column in schema.used if column.name not in rows.column_names]
    if missing:
        raise InputError("public points", f"have no column '{missing[0]}'", "Give every column of the schema")
    if not 1 <= rows.num_rows <= MOST_POINTS:
        raise InputError(
            "public points",
            f"must be between 1 and {MOST_POINTS} rows, and are {rows.num_rows}",
            "Take a random part of them",
        )
    names = [column.name for column in schema.used]
    batch = rows.select(names).combine_chunks().to_batches()[0]
    return points_of_codes(Layout(schema), encode_batch(schema, batch))


def public_table(table: object) -> pa.Table:
    """A public table in any of the usual forms."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        return pa.table(dict(table))
    try:
        return pa.Table.from_pandas(table, preserve_index=False)
    except (AttributeError, TypeError, pa.ArrowException):
        pass
    raise UsageError(
        "public rows",
        "must be an Arrow table, a pandas data frame or a mapping of columns",
        "Read the file first; the command line does it for a FILE",
    )
