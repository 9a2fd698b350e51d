"""Options of methods, read from their signatures.

A method is a function from schema and budget to a plan. An argument annotated with an ``Option`` can be set on the
command line. The signature is the only place where an option is written: the command line, ``understudy methods
show`` and the reference of commands are made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from understudy.errors import UsageError
from understudy.schema import Schema


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of rows that are public already.

    ``columns`` are those that are read of it; ``remedy`` tells what to do if the file is the private table itself.
    """

    columns: Callable[[Schema], Sequence[str]]
    remedy: str


@dataclass(frozen=True, slots=True)
class Option:
    """How an argument of a method is set on the command line.

    ``flag`` is its name there if it is not the argument's own; ``takes`` its type if it is not the annotated one, and
    ``read`` then turns what was given into the argument. ``default`` is stated there if it is not None.
    """

    help: str
    flag: str = ""
    takes: Any = None
    read: Callable[[Any], Any] | None = None
    file: PublicFile | None = None
    least: int | None = None
    most: int | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class MethodOption:
    """An option with what its argument's name, type and default say."""

    argument: str
    option: Option
    takes: Any
    flag: str
    default: Any
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name on the command line, as a name in Python."""
        return self.flag.split("/")[0].removeprefix("--").replace("-", "_")


def options_of(method: Callable[..., Any]) -> dict[str, MethodOption]:
    """The options of a method by their names on the command line, in the order of its signature."""
    hints = get_type_hints(method, include_extras=True)
    found = {}
    for argument, parameter in signature(method).parameters.items():
        annotated = [each for each in getattr(hints[argument], "__metadata__", ()) if isinstance(each, Option)]
        for option in annotated:
            made = _method_option(argument, hints[argument].__origin__, parameter.default, option)
            found[made.name] = made
    return found


def _method_option(argument: str, annotation: Any, default: Any, option: Option) -> MethodOption:
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    values = tuple(value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind))
    takes = option.takes or (Path if option.file else str if values else kinds[0])
    flag = option.flag or "--" + argument.replace("_", "-")
    shown: Any = option.default
    if takes is bool and default is False:
        shown = False
    elif takes is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    return MethodOption(argument, option, takes, flag, shown, values)


def names_in(text: str) -> tuple[str, ...]:
    """Names parted by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def numbers_by_column(name: str, words: Sequence[str]) -> dict[str, float]:
    """Words such as ``age=40`` as numbers by column."""
    found = {}
    for word in words:
        column, _, value = word.rpartition("=")
        try:
            found[column] = float(value)
        except ValueError:
            column = ""
        if not column:
            raise UsageError(name, "must be COLUMN=VALUE, with a number") from None
    return found


def scale_in(text: str) -> float | str:
    """A length scale, or the word ``private``."""
    try:
        return text if text == "private" else float(text)
    except ValueError:
        raise UsageError("length scale", "must be a number or 'private'") from None
