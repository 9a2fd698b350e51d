"""Frozen dataclasses as canonical documents: what plans, releases and generators are written as, and read from.

``encode`` turns a value into dicts, lists, numbers and words; sorted JSON of that is the canonical form whose SHA-256
is a fingerprint. ``decode`` builds the value again by the annotations of its class, and refuses what they do not
allow; what the annotations cannot say is checked in ``__post_init__``. Fields that are not compared, caches and arrays
that have a file of their own, are no part of a document. A class whose document has another form has a method
``to_dict`` or a class method ``from_dict``.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")
C = TypeVar("C")

KIND = "kind"
"""The key of a document that names the class, if a field may hold several."""

OMIT_DEFAULT = {"omit_default": True}
"""Metadata of a field that is written only if it differs from its default: files from before it lack it."""

LARGEST_EXACT = 2**53
"""Whole numbers up to it are the same as floats."""

FLAT = {"flat": True}
"""Metadata of a field whose own fields stand among those of its owner."""

_PLAIN = frozenset({str, int, float, bool, types.NoneType})
_REGISTRIES: dict[Any, Registry[Any]] = {}
_KINDS: dict[type, str] = {}


class Registry(dict[str, type], Generic[T]):
    """The classes that a field annotated with ``base`` may hold, by the names that documents give them."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        _REGISTRIES[base] = self

    def register(self, kind: str) -> Callable[[type[C]], type[C]]:
        """Decorate a class: documents call it ``kind``."""

        def add(cls: type[C]) -> type[C]:
            self[kind], _KINDS[cls] = cls, kind
            return cls

        return add

    def decode(self, document: Any) -> T:
        """A value of the class that a document names."""
        kind = _table(document).get(KIND)
        if not isinstance(kind, str) or kind not in self:
            raise ValueError("a document of a kind that is not known")
        found: T = decode(self[kind], {key: value for key, value in document.items() if key != KIND})
        return found


def kind_of(value: object) -> str:
    """What documents call the class of a value."""
    return _KINDS[type(value)]


def encode(value: Any) -> dict[str, Any]:
    """The canonical document of a frozen dataclass."""
    found: dict[str, Any] = {KIND: _KINDS[type(value)]} if type(value) in _KINDS else {}
    for field in _written(type(value)):
        own = getattr(value, field.name)
        if field.metadata == FLAT:
            found |= encode(own)
        elif field.metadata != OMIT_DEFAULT or own != field.default:
            found[field.name] = _plain(own)
    return found


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return str(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return encode(value) if is_dataclass(value) and not isinstance(value, type) else value


def decode(wanted: type[T], document: Any, **apart: Any) -> T:
    """The value that ``encode`` described; ``apart`` are fields that are no part of its document.

    Raises:
        ValueError: a field is missing, unknown, or not what its annotation says; the words name it.
    """
    found: T = _decoder(typing.cast(Any, wanted))(document, **apart)
    return found


@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """What reads a value with this annotation."""
    if hint in _REGISTRIES:
        return _REGISTRIES[hint].decode
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional(arguments)
    if origin is tuple:
        return _sequence(arguments)
    if origin is typing.Literal:
        return lambda value: _one_of(arguments, value)
    if hasattr(hint, "from_dict"):
        own: Callable[[Any], Any] = hint.from_dict
        return own
    if is_dataclass(hint):
        return _fields_decoder(hint)
    if issubclass(hint, tuple):  # a named tuple
        read = _sequence(tuple(typing.get_type_hints(hint).values()))
        return lambda value: hint(*read(value))
    read_plain: Callable[[Any], Any] = hint
    return read_plain


def _fields_decoder(cls: Any) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(cls)
    written = [(field, hints[field.name], _decoder(hints[field.name])) for field in _written(cls)]
    known = keys_of(cls)

    def read(document: Any, **apart: Any) -> Any:
        unknown = _table(document).keys() - known
        if unknown:
            raise ValueError(f"{cls.__name__} has no field '{min(unknown)}'")
        values = {}
        for field, hint, read_field in written:
            if field.metadata == FLAT:
                own = keys_of(hint)
                values[field.name] = read_field({key: value for key, value in document.items() if key in own})
            elif field.name in document:
                try:
                    values[field.name] = read_field(document[field.name])
                except (TypeError, ValueError) as error:
                    raise ValueError(f"{cls.__name__}, field '{field.name}': {error}") from None
            elif field.metadata != OMIT_DEFAULT:
                raise ValueError(f"{cls.__name__} lacks its field '{field.name}'")
        return cls(**apart, **values)

    return read


def _written(cls: Any) -> list[Field[Any]]:
    return [field for field in fields(cls) if field.compare]


@cache
def keys_of(cls: Any) -> frozenset[str]:
    """The fields that a document of a class may have."""
    hints = typing.get_type_hints(cls)
    found: set[str] = set()
    for field in _written(cls):
        found |= keys_of(hints[field.name]) if field.metadata == FLAT else {field.name}
    return frozenset(found)


def _table(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ValueError("must be a table of named fields")
    return document


def _optional(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    read = _decoder(next(each for each in arguments if each is not types.NoneType))
    return lambda value: None if value is None else read(value)


def _sequence(arguments: tuple[Any, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if arguments[-1] is ...:
        read_each = _decoder(arguments[0])
        return lambda values: tuple(map(read_each, _list(values)))
    decoders = [_decoder(each) for each in arguments]
    return lambda values: tuple(read(value) for read, value in zip(decoders, _list(values), strict=True))


def _list(values: Any) -> Any:
    if not isinstance(values, list | tuple):
        raise ValueError("must be a list")
    return values


def _one_of(choices: tuple[Any, ...], value: Any) -> Any:
    if value not in choices:
        raise ValueError("must be one of " + ", ".join(map(str, choices)))
    return value


def _only(kind: type, words: str) -> Callable[[Any], Any]:
    """What reads values of one type; true and false are no numbers."""

    def read(value: Any) -> Any:
        if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
            return value
        raise ValueError(f"must be {words}")

    return read


def _number(value: Any) -> float:
    """A number, kept as it is written (1 is not 1.0 in a fingerprint) unless only floats hold it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if abs(value) <= LARGEST_EXACT else float(value)
    raise ValueError("must be a number")


def _fraction(value: Any) -> Fraction:
    """Digits, perhaps over digits: ``Fraction`` itself would also work out 1e999999999."""
    over, _, under = _SCALARS[str](value).partition("/")
    if int(under or 1) < 1:
        raise ValueError("must be a fraction")
    return Fraction(int(over), int(under or 1))


_SCALARS: dict[Any, Callable[[Any], Any]] = {
    int: _only(int, "a whole number"),
    float: _number,
    bool: _only(bool, "true or false"),
    str: _only(str, "text"),
    Fraction: _fraction,
    Any: lambda value: value,
}
