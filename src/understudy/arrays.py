"""What every part of the package shares: types of arrays and of progress callbacks, and torch, loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import MissingExtraError

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


def load_torch() -> Any:
    """Import torch, or say how to get it; call it before a budget is spent on what needs it."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "network") from None
    return torch


@contextmanager
def one_thread() -> Iterator[Any]:
    """Torch on one thread, for reproducibility: sums in another order would give other numbers."""
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(threads)
