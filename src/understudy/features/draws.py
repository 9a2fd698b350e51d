"""Public randomness: the same numbers from a seed in every version of every library."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def uniforms(seed: int, count: int) -> npt.NDArray[np.float64]:
    """Uniform numbers in (0, 1)."""
    return next(uniform_stream(seed, count))


def uniform_stream(seed: int, count: int) -> Iterator[npt.NDArray[np.float64]]:
    """Ever new runs of uniform numbers in (0, 1).

    Raw bits of PCG64 are the same in every NumPy release.
    """
    source = np.random.PCG64(seed)
    while True:
        bits = source.random_raw(count)
        yield ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
