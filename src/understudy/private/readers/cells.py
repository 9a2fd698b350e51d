"""Cells without a declared type, written as raw text one at a time."""

from __future__ import annotations

import datetime
import decimal

import numpy as np

_EXACT_BELOW = 2.0**53  # whole floats from here on stand for several integers


def raw_text(cell: object) -> bytes | None:
    """The text of one cell, as a CSV file would hold it; None stays None.

    The result depends on this cell alone. Inferring one type for a whole column would let a
    neighbouring row change how this one is read. Floats keep every bit (shortest round trip);
    whole ones lose their point, as they do in the encoder when the column has a float type.

    Raises:
        TypeError: the cell is a container or another object without a plain text form. The
            message holds the kind of the cell only.
    """
    if isinstance(cell, np.number | np.bool_):
        cell = cell.item()
    if cell is None or isinstance(cell, bytes):
        return cell
    if isinstance(cell, float):
        whole = cell.is_integer() and abs(cell) < _EXACT_BELOW
        return (int.__repr__(int(cell)) if whole else float.__repr__(cell)).encode()
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogatepass")
    if isinstance(cell, int | decimal.Decimal | datetime.date | datetime.time | np.datetime64):
        return str(cell).encode()
    raise TypeError(type(cell).__name__)
