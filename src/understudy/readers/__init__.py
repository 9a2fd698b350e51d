"""Readers: any table as one stream of Arrow batches, in memory that does not grow with its rows.

Cells keep their raw form (a CSV cell is bytes, an Arrow cell keeps its type), so that what a cell
becomes never depends on the other rows. Refusals name files and columns, never a cell.
"""

from understudy.readers.frames import Examples, count_features, feature_names
from understudy.readers.sources import is_one_pass, open_parts, open_source, source_columns
from understudy.readers.stream import RowStream

__all__ = [
    "Examples",
    "RowStream",
    "count_features",
    "feature_names",
    "is_one_pass",
    "open_parts",
    "open_source",
    "source_columns",
]
