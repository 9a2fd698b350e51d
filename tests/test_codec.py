"""Documents of frozen dataclasses: what is written, what comes back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol

import pytest

from understudy.codec import FLAT, OMIT_DEFAULT, Registry, decode, encode, kind_of


class Colour(StrEnum):
    RED = "red"


class Span(NamedTuple):
    start: int
    width: float


class Shape(Protocol):
    def area(self) -> float: ...


SHAPES: Registry[Shape] = Registry(Shape)


@SHAPES.register("square")
@dataclass(frozen=True)
class Square:
    side: float

    def __post_init__(self) -> None:
        if self.side <= 0:
            raise ValueError("a side is positive")

    def area(self) -> float:
        return self.side**2


@dataclass(frozen=True)
class Price:
    cost: Fraction
    delta: float


@dataclass(frozen=True, slots=True)
class Odd:
    value: int

    def to_dict(self) -> dict[str, Any]:
        return {"is": self.value}

    @classmethod
    def from_dict(cls, document: Any) -> Odd:
        return cls(document["is"])


@dataclass(frozen=True)
class Whole:
    name: str
    shapes: tuple[Shape, ...]
    span: Span
    corner: tuple[int, float]
    price: Price = field(metadata=FLAT)
    colour: Colour
    mode: Literal["a", "b"]
    odd: Odd
    limit: int | None
    is_on: bool
    late: int = field(default=3, metadata=OMIT_DEFAULT)
    cache: dict[str, int] = field(default_factory=dict, compare=False)


WHOLE = Whole(
    "one",
    (Square(1), Square(2.5)),
    Span(1, 0.5),
    (3, 4.0),
    Price(Fraction(1, 3), 1e-5),
    Colour.RED,
    "b",
    Odd(7),
    None,
    True,
)
DOCUMENT = {
    "name": "one",
    "shapes": [{"kind": "square", "side": 1}, {"kind": "square", "side": 2.5}],
    "span": [1, 0.5],
    "corner": [3, 4.0],
    "cost": "1/3",
    "delta": 1e-5,
    "colour": "red",
    "mode": "b",
    "odd": {"is": 7},
    "limit": None,
    "is_on": True,
}


def test_a_value_is_written_field_by_field() -> None:
    assert encode(WHOLE) == DOCUMENT
    assert kind_of(WHOLE.shapes[0]) == "square"


def test_a_value_comes_back_with_its_numbers_as_they_were_written() -> None:
    again = decode(Whole, json.loads(json.dumps(DOCUMENT)))
    assert again == WHOLE
    assert json.dumps(encode(again)) == json.dumps(DOCUMENT)


def test_a_default_that_is_left_out_is_written_once_it_differs() -> None:
    other = decode(Whole, DOCUMENT | {"late": 4})
    assert other.late == 4
    assert encode(other)["late"] == 4


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"name": 1}, "field 'name': must be text"),
        ({"limit": 1.0}, "field 'limit': must be a whole number"),
        ({"limit": True}, "field 'limit': must be a whole number"),
        ({"is_on": 1}, "field 'is_on': must be true or false"),
        ({"delta": "1"}, "field 'delta': must be a number"),
        ({"cost": "one"}, "field 'cost'"),
        ({"cost": "1/0"}, "field 'cost': must be a fraction"),
        ({"cost": "1e999999999"}, "field 'cost'"),
        ({"colour": "blue"}, "field 'colour'"),
        ({"mode": "c"}, "field 'mode': must be one of a, b"),
        ({"corner": [1]}, "field 'corner'"),
        ({"span": 5}, "field 'span': must be a list"),
        ({"shapes": [{"kind": "circle"}]}, "field 'shapes': a document of a kind that is not known"),
        ({"shapes": [{"kind": ["square"]}]}, "field 'shapes': a document of a kind that is not known"),
        ({"shapes": [[]]}, "field 'shapes': must be a table"),
        ({"shapes": [{"kind": "square", "side": -1}]}, "field 'shapes': a side is positive"),
        ({"shapes": [{"kind": "square"}]}, "Square lacks its field 'side'"),
        ({"extra": 1}, "Whole has no field 'extra'"),
        ({"cache": {}}, "Whole has no field 'cache'"),
        ({"odd": 5}, "field 'odd'"),
    ],
)
def test_what_is_not_as_annotated_is_refused_by_the_name_of_its_field(damage: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode(Whole, DOCUMENT | damage)


@pytest.mark.parametrize("name", DOCUMENT)
def test_a_missing_field_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"lacks its field '{name}'"):
        decode(Whole, {key: value for key, value in DOCUMENT.items() if key != name})
