"""How near synthetic rows come to real ones. None of it is the privacy guarantee.

The guarantee is a theorem about the release (epsilon and delta of the certificate). Distances are a
plausibility check: a generator that copies shows in them, one that leaks otherwise does not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats
from understudy.evaluation.geometry import Geometry
from understudy.evaluation.tables import CodedTable


def nearest_distances(rows: CodedTable, real: CodedTable, *, geometry: Geometry) -> Floats:
    """Distance of each row to the nearest real one."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(geometry.points(real))
    distances: Floats = search.kneighbors(geometry.points(rows))[0][:, 0]
    return distances


def copied_share(rows: CodedTable, real: CodedTable) -> float:
    """Share of the rows that equal a real one in every cell."""
    return float(np.isin(_as_keys(rows), _as_keys(real)).mean())


def _as_keys(table: CodedTable) -> npt.NDArray[np.void]:
    cells = np.where(np.isnan(table.values), np.nan, table.values + 0.0)  # one NaN, one zero
    rows = np.ascontiguousarray(cells)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
