"""How a table fits its schema, for whoever may see its rows. No release: nothing here has noise."""

from __future__ import annotations

from understudy.private.sealed import sealed
from understudy.readers import open_source
from understudy.schema import Schema
from understudy.schema.encode import Misfits, count_misfits


def misfits_of(data: object, schema: Schema, *, query: str | None = None) -> dict[str, Misfits]:
    """For every used column, how many cells are no value of it. PRIVATE: exact counts of rows."""
    return sealed(lambda: _counted(data, schema, query))


def _counted(data: object, schema: Schema, query: str | None) -> dict[str, Misfits]:
    found = {column.name: Misfits() for column in schema.used}
    with open_source(data, columns=list(found), query=query) as batches:
        for batch in batches:
            for column in schema.used:
                found[column.name] += count_misfits(column, batch.column(column.name))
    return found
