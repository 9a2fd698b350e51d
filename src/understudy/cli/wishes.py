"""Conditions and class shares as words on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.generators.conditioning import Balance
    from understudy.schema import Column, Schema

NULL_WORD = "null"


def read_given(schema: Schema, words: list[str]) -> dict[str, Any]:
    """Conditions such as ``age=30..40`` and ``sex=Female|Male``, as ``sample`` takes them."""
    given: dict[str, Any] = {}
    for each in words:
        name, value = _parted(each, [column.name for column in schema.used], where="given")
        if name in given:
            raise UsageError(f"given '{name}'", "was given twice", "Put | between values")
        column = next((column for column in schema.used if column.name == name), None)
        given[name] = value if column is None else _values(column, value)
    return given


def read_balance(schema: Schema, words: str | None) -> Balance | None:
    """A balance such as ``equal`` or ``yes=1|no=3``, as ``sample`` takes it."""
    if words is None or "=" not in words:
        return words
    classes = [str(category) for category in schema.label.categories] if schema.label else []
    shares: dict[Any, float] = {}
    for each in words.split("|"):
        name, share = _parted(each, classes, where="balance")
        try:
            shares[None if name == NULL_WORD and name not in classes else name] = float(share)
        except ValueError:
            raise UsageError("balance", f"'{share}' is no share", "Write yes=1|no=3") from None
    return shares


def _parted(words: str, known: list[str], *, where: str) -> tuple[str, str]:
    """Name and value around an equals sign; known names may hold such signs themselves."""
    longest = max((name for name in known if words.startswith(f"{name}=")), key=len, default=None)
    name, sign, value = words.partition("=")
    if not sign:
        raise UsageError(f"{where} '{words}'", "needs an equals sign", "Such as age=30..40")
    return (name, value) if longest is None else (longest, words[len(longest) + 1 :])


def _values(column: Column, words: str) -> list[Any]:
    if words in [str(category) for category in column.categories]:
        return [words]
    return [_value(column, each) for each in words.split("|")]


def _value(column: Column, words: str) -> Any:
    if words == NULL_WORD and words not in column.categories:
        return None
    if column.is_choice or ".." not in words:
        return words
    low, _, high = words.partition("..")
    return (low or None, high or None)
