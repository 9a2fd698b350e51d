"""Sanitised exceptions: one that leaves private work carries no cell, no message of a library and no frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from understudy.errors import InputError, UnderstudyError

_Result = TypeVar("_Result")


def sealed(step: Callable[[], _Result]) -> _Result:
    """Run a step that touches private rows.

    Guarantee:
        A refusal of ours passes with its own words, which name columns and rules only. Any
        other exception is replaced by one that names its type only, because messages of
        libraries quote cells. Neither keeps a traceback, a cause or a context. Warnings of libraries,
        which one row may call forth, are not shown (proofs/encoder.md).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return step()
    except UnderstudyError as refusal:
        clean: UnderstudyError = refusal
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as surprise:  # a panic of a library in Rust is no Exception
        clean = InputError(
            "the private table",
            f"could not be processed ({type(surprise).__name__})",
            "Check the file with other tools; details are withheld because they may quote its cells",
        )
    clean.__cause__ = clean.__context__ = None
    raise clean.with_traceback(None)
