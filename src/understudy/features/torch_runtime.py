"""Torch, imported when it is needed and used on one thread: the one door by which it comes in below the fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from understudy.errors import MissingExtraError


def load_torch() -> Any:
    """Import torch, or say how to get it; call it before a budget is spent on what needs it."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "network") from None
    return torch


@contextmanager
def one_thread() -> Iterator[Any]:
    """Torch on one thread: sums in another order would give other numbers."""
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(threads)
