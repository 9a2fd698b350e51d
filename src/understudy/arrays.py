"""Types that every part of the package shares: arrays by what they hold, and callbacks that report progress."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]  # one integer per cell of a table
Truths = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

StepProgress = Callable[[int, int], None]  # steps done, steps in all
LossProgress = Callable[[int, int, float], None]  # steps done, steps in all, the loss
StageProgress = Callable[[str, int, int], None]  # what is being done, parts done, parts in all
ReadProgress = Callable[[float | None], None]  # the share of the rows that was read, where it is known
