"""The line rule of text files: no line of a file changes how another line is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_LINE_FEED, _RETURN, _QUOTE = b'\n\r"'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNBROKEN = "Write line breaks out of the cells, or pass a Parquet file"


class LineError(ValueError):
    """A line breaks the rule; it holds the rule and a remedy, and nothing of the line."""

    def __init__(self, rule: str, remedy: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.remedy = remedy


class _Lines:
    """Blocks of a text file, checked one after another.

    Args:
        delimiter: the character between cells.

    Guarantee:
        Where nothing is refused, every line closes the quotes it opens, quotes open at the start
        of a cell only, and every carriage return comes before a line feed. A parser that opens
        quotes at the start of a cell is then outside quotes at the start of every line. An even
        number of quotes is not enough for that: in the line x"y,"z the first one opens nothing.
    """

    def __init__(self, delimiter: str) -> None:
        self._opens_after = np.frombuffer(b'\n"' + delimiter.encode(), np.uint8)
        self._last: int | None = None
        self._inside = 0  # 1 inside quotes: the parity of the quotes since the last line feed

    def end(self) -> None:
        """Refuse a file that stops in the middle of a cell or of a line break."""
        if self._inside:
            raise _not_closed()
        if self._last == _RETURN:
            raise _bare_return()

    def check(self, block: npt.NDArray[np.uint8]) -> None:
        """Refuse a block that breaks the rule, given the blocks before it."""
        if self._last is None:
            self._last = _LINE_FEED
            if block[:3].tobytes() == BYTE_ORDER_MARK:
                block = block[3:]
        codes = np.concatenate([np.array([self._last], np.uint8), block])
        self._last = int(codes[-1])
        if np.any(codes[1:][codes[:-1] == _RETURN] != _LINE_FEED):
            raise _bare_return()
        quotes = np.flatnonzero(block == _QUOTE)
        if not self._inside and not quotes.size:
            return
        line_ends = np.flatnonzero(block == _LINE_FEED)
        # Every line before a given one must be even, so the count since the start serves.
        if np.any((np.searchsorted(quotes, line_ends) + self._inside) % 2):
            raise _not_closed()
        opening = quotes[self._inside :: 2]
        if not np.isin(codes[opening], self._opens_after).all():  # codes is one byte behind
            raise LineError(
                "a quote is opened inside a cell, and not at its start",
                "Put quotes around whole cells, with no space before them, and double those "
                "inside, or pass a Parquet file",
            )
        self._inside = (self._inside + quotes.size) % 2


def check_lines(stream: Any, delimiter: str, *, block_bytes: int) -> None:
    """Read a stream to its end for its lines to be checked.

    Raises:
        LineError: a line breaks the rule.
    """
    lines = _Lines(delimiter)
    while block := stream.read(block_bytes):
        lines.check(np.frombuffer(block, np.uint8))
    lines.end()


def _not_closed() -> LineError:
    return LineError("a quote is opened and not closed on the same line", _UNBROKEN)


def _bare_return() -> LineError:
    return LineError("a carriage return stands without a line feed", _UNBROKEN)
