from __future__ import annotations

import traceback
import warnings
from typing import NoReturn

import pytest

from understudy.errors import BudgetError, InputError
from understudy.private.sealed import sealed
from understudy.readers.stream import shielded

SECRET = "SECRET-7f3a"


def everything_said_by(error: BaseException) -> str:
    """Message, arguments, notes and a traceback with the variables of every frame."""
    full = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join([str(error), repr(error), repr(vars(error)), *full.format()])


def library_fails() -> NoReturn:
    cell = SECRET
    try:
        raise KeyError(cell)
    except KeyError:
        raise ValueError(f"cannot parse '{cell}'")  # noqa: B904 (its context quotes a cell too)


def refusal_after_a_failure() -> NoReturn:
    cell = SECRET
    try:
        raise KeyError(cell)
    except KeyError as error:
        raise BudgetError("ledger", "no budget") from error


def test_an_exception_of_a_library_leaves_with_its_type_alone() -> None:
    with pytest.raises(InputError, match="ValueError") as caught:
        sealed(library_fails)
    assert SECRET not in everything_said_by(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_refusal_leaves_with_its_words_and_without_its_frames() -> None:
    with pytest.raises(BudgetError, match="no budget") as caught:
        sealed(refusal_after_a_failure)
    assert SECRET not in everything_said_by(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "refusal_after_a_failure" not in names


class PanicException(BaseException):  # as libraries in Rust have it
    pass


@pytest.mark.parametrize("kind", [PanicException, SystemExit])
def test_a_panic_of_a_library_leaves_with_its_type_alone(kind: type[BaseException]) -> None:
    def step() -> NoReturn:
        raise kind("cell SECRET4711")

    for shield in (sealed, lambda act: shielded(act, lambda e: InputError("x", str(e)))):
        with pytest.raises(InputError) as refused:
            shield(step)
        assert "SECRET" not in str(refused.value)
        assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_an_interrupt_is_not_taken_for_a_refusal() -> None:
    def step() -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sealed(step)
    with pytest.raises(KeyboardInterrupt):
        shielded(step, lambda e: InputError("x", "y"))


def test_what_went_well_comes_back_as_it_is() -> None:
    assert sealed(lambda: 7) == 7


def test_a_warning_that_a_row_calls_forth_is_not_shown() -> None:
    def step() -> int:
        warnings.warn(f"odd cell {SECRET}", UserWarning, stacklevel=1)
        return 7

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert sealed(step) == 7
        warnings.warn("after", UserWarning, stacklevel=1)
    assert [str(each.message) for each in shown] == ["after"]
