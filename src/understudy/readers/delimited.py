"""CSV and TSV files as raw text: every cell is bytes, and an empty cell is null.

Lines are checked before they are parsed: no line of a file may change how another one is read, as a quoted line break
would, so that one person's row is one line.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from understudy.errors import InputError, UnderstudyError
from understudy.readers.stream import Batches, Field, explain_damage

_LINE_FEED = ord("\n")
_RETURN = ord("\r")
_QUOTE = ord('"')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_CLOSED = "a quote is opened and not closed on the same line"
_BARE_RETURN = "a carriage return stands without a line feed"
_UNBROKEN = "Write line breaks out of the cells, or pass a Parquet file"


def check_lines(stream: Any, delimiter: str, *, where: str, block_bytes: int) -> None:
    """Read a text stream to its end, block by block, for its lines to be checked.

    Raises:
        InputError: a line breaks the rule; nothing of the line is told.

    Guarantee:
        Where nothing is refused, every line closes the quotes it opens, quotes open at the start
        of a cell only, and every carriage return comes before a line feed. A parser that opens
        quotes at the start of a cell is then outside quotes at the start of every line. An even
        number of quotes is not enough for that: in the line x"y,"z the first one opens nothing (proofs/cells.md).
    """
    opens_after = np.frombuffer(b'\n"' + delimiter.encode(), np.uint8)
    mark, last = BYTE_ORDER_MARK, b"\n"
    inside = 0  # 1 inside quotes: the parity of the quotes since the last line feed
    while content := stream.read(block_bytes):
        codes = np.frombuffer(last + content.removeprefix(mark), np.uint8)
        block, mark, last = codes[1:], b"", codes[-1:].tobytes()
        if np.any(block[codes[:-1] == _RETURN] != _LINE_FEED):
            raise InputError(where, _BARE_RETURN, _UNBROKEN)
        quotes = np.flatnonzero(block == _QUOTE)
        if not inside and not quotes.size:
            continue
        line_ends = np.flatnonzero(block == _LINE_FEED)
        # Every line before a given one must be even, so the count since the start serves.
        if np.any((np.searchsorted(quotes, line_ends) + inside) % 2):
            raise InputError(where, _NOT_CLOSED, _UNBROKEN)
        opening = quotes[inside::2]
        if not np.isin(codes[opening], opens_after).all():  # codes is one byte behind
            raise InputError(
                where,
                "a quote is opened inside a cell, and not at its start",
                "Put quotes around whole cells, with no space before them, and double those "
                "inside, or pass a Parquet file",
            )
        inside = (inside + quotes.size) % 2
    if inside:
        raise InputError(where, _NOT_CLOSED, _UNBROKEN)
    if last == b"\r":
        raise InputError(where, _BARE_RETURN, _UNBROKEN)


# pyarrow reads up to 32 blocks ahead of a slow consumer, and a row must fit in a block.
_BLOCK_BYTES = 2 << 20
_HEADER_BYTES = 1 << 20
_EMPTY_IS_NULL: dict[str, Any] = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": True}
_RAGGED = re.compile(r"CSV parse error: (Row #\d+: )?Expected \d+ columns")


@dataclass(frozen=True)
class DelimitedFiles:
    """Text tables with one header line, gzipped or not, one after another.

    A cell may be in quotes, which are doubled inside it; no cell holds a line break. Blank lines
    are skipped, except in a file of one column, where a blank line is an empty cell.

    Guarantee:
        One physical line is one row, or none: how a line is read depends on that line alone, and
        a line that would draw in another one is refused (proofs/cells.md).
    """

    where: str
    paths: tuple[Path, ...]
    delimiter: str

    def fields(self) -> list[Field]:
        """The names that all the headers share, in one order; text has no declared types."""
        first, *others = [self._header(path)[0] for path in self.paths]
        if any(other != first for other in others):
            raise InputError(self.where, "its files differ in their header lines", "Write them with one header")
        return [(name, None) for name in first]

    def batches(self, columns: list[str]) -> Batches:
        for path in self.paths:
            names, has_more = self._header(path)
            if has_more:
                self._check(path)
                with _stream(path) as stream, self._reader(stream, names, columns) as reader:
                    yield from reader

    def attach(self, connection: Any) -> None:
        """Show the files to DuckDB as one view of text columns.

        Not by DuckDB's own reader: it drops some ragged rows without a word (seen in 1.1 to 2.0).
        The lines are checked in a pass of their own, because a dataset opens the file itself.
        """
        for number, path in enumerate(self.paths):
            connection.register(f"data_{number}", self._dataset(path))
        parts = [f"SELECT * FROM data_{number}" for number in range(len(self.paths))]  # noqa: S608
        connection.execute("CREATE TEMP VIEW data AS " + " UNION ALL ".join(parts))

    def explain(self, error: Exception) -> UnderstudyError:
        """Which rule was broken, told by how the message opens and never by its text."""
        message = str(error)
        if message.startswith("straddling"):
            return InputError(
                self.where, f"a row is longer than {_BLOCK_BYTES >> 20} MB", "Shorten its cells, or pass a Parquet file"
            )
        if _RAGGED.match(message):
            return InputError(
                self.where,
                "every row must have as many cells as the header",
                "Put cells that hold the delimiter or a quote in quotes",
            )
        return explain_damage(self.where, error, "a delimited text file")

    def _check(self, path: Path) -> None:
        """Read a file once for its lines alone.

        A stream that checks as pyarrow reads would call Python from pyarrow's threads, and such
        calls were seen to wait for ever beside a DuckDB query.
        """
        with _stream(path) as stream:
            check_lines(stream, self.delimiter, where=self.where, block_bytes=_BLOCK_BYTES)

    def _header(self, path: Path) -> tuple[list[str], bool]:
        """The names, and whether anything follows them."""
        with _stream(path) as stream:
            head = stream.read(_HEADER_BYTES)
        first_line = head[: head.find(b"\n") + 1] or head
        check_lines(io.BytesIO(first_line), self.delimiter, where=self.where, block_bytes=_HEADER_BYTES)
        # Latin-1 keeps every byte, so cells below the header cannot make this fail.
        text = io.StringIO(head.removeprefix(BYTE_ORDER_MARK).decode("latin-1"), newline="")
        cells = next(csv.reader(text, delimiter=self.delimiter), [])
        try:
            names = [cell.encode("latin-1").decode("utf-8").strip() for cell in cells]
        except UnicodeDecodeError:
            names = []
        has_more = bool(text.read(1))
        cut_short = len(head) == _HEADER_BYTES and not has_more
        if not any(names) or cut_short or not all(name.isprintable() for name in names):
            raise InputError(self.where, "its first line must hold the column names, in UTF-8", "Add a header line")
        return names, has_more

    def _reader(self, stream: Any, names: list[str], columns: list[str]) -> Any:
        return pyarrow.csv.open_csv(
            stream,
            read_options=_reading(names),
            parse_options=self._parsing(names),
            convert_options=pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types={column: pa.binary() for column in columns},
                include_columns=columns,
                **_EMPTY_IS_NULL,
            ),
        )

    def _dataset(self, path: Path) -> Any:
        names, has_more = self._header(path)
        schema = pa.schema([(column, pa.string()) for column in names])
        if not has_more:
            return schema.empty_table()
        self._check(path)
        layout = ds.CsvFileFormat(
            parse_options=self._parsing(names),
            default_fragment_scan_options=ds.CsvFragmentScanOptions(
                convert_options=pyarrow.csv.ConvertOptions(**_EMPTY_IS_NULL), read_options=_reading(names)
            ),
        )
        return ds.dataset(str(path), schema=schema, format=layout)

    def _parsing(self, names: list[str]) -> Any:
        return pyarrow.csv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=False, ignore_empty_lines=len(names) > 1
        )


def _stream(path: Path) -> Any:
    return pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None)


def _reading(names: list[str]) -> Any:
    # Threads would read further ahead and be hardly faster.
    return pyarrow.csv.ReadOptions(
        use_threads=False, block_size=_BLOCK_BYTES, column_names=names, skip_rows_after_names=1
    )
