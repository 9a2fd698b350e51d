"""Files of rows as data frames, as evaluation takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from understudy.schema import Column, Schema


def read_frame(path: Path, schema: Schema) -> Any:
    """The schema's columns of a file, as a pandas data frame; refusals never quote a cell."""
    import pyarrow as pa

    from understudy.private.readers import open_source

    names = [column.name for column in schema.used]
    with open_source(str(path), columns=names) as stream:
        batches = list(stream)
    if not batches:
        raise InputError(f"'{path}'", "has no rows", "Check the file")
    rows = pa.Table.from_batches(batches)
    typed = {column.name: _typed(column, rows[column.name]) for column in schema.used}
    try:
        return pa.table(typed).to_pandas()
    except ModuleNotFoundError:
        raise MissingExtraError("pandas", "evaluation") from None


def _typed(column: Column, cells: Any) -> Any:
    """Raw text as text, or as numbers where the schema has numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from understudy.schema.encode import parse_numbers

    if not (pa.types.is_binary(cells.type) or pa.types.is_large_binary(cells.type)):
        return cells
    try:
        text = pc.utf8_trim_whitespace(cells.cast(pa.string()))
        if column.is_choice or column.resolution is not None:
            return pc.if_else(pc.equal(text, ""), None, text)
        # As in a release: what is no number is missing, and refuses nothing.
        chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
        return pa.chunked_array([pa.array(parse_numbers(chunk), from_pandas=True) for chunk in chunks], pa.float64())
    except pa.ArrowException:
        pass
    wanted = "UTF-8 text" if column.is_choice else f"{column.kind} cells"
    raise InputError(f"column '{column.name}'", f"must hold {wanted}", "Mend the column, or the schema's kind")
