"""One entry of a schema's list of columns, checked and given its types."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeVar

from understudy.errors import InputError
from understudy.schema.columns import BLANKS, Category, Column, Kind, Resolution, Role
from understudy.schema.values import LARGEST_EXACT, TRUTHS, moment_of

UNDECIDED = "???"
_Choice = TypeVar("_Choice", bound=StrEnum)
COLUMN_KEYS = (
    "name",
    "kind",
    "role",
    "bounds",
    "categories",
    "nullable",
    "bounds_from",
    "scale_hint",
    "unknown",
    "resolution",
    "description",
)


def _refuse(name: str, rule: str, remedy: str = "") -> InputError:
    return InputError(f"column '{name}'", rule, remedy)


def undecided_keys(entry: Any) -> list[str]:
    """What a person still has to decide in one entry of a draft."""
    if not isinstance(entry, dict):
        return []
    return [
        f"{key} of '{entry.get('name')}'"
        for key, value in entry.items()
        if value == UNDECIDED or (isinstance(value, list) and UNDECIDED in value)
    ]


def parse_column(entry: Any) -> Column:
    """Read one entry of a schema's ``columns`` list, or refuse it by name."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise InputError("schema", "every entry of 'columns' needs a name", "Add name: ...")
    name = entry["name"]
    unknown_keys = sorted(str(key) for key in entry if key not in COLUMN_KEYS)
    if unknown_keys:
        raise _refuse(name, f"unknown key '{unknown_keys[0]}'", "Keys are " + ", ".join(COLUMN_KEYS))
    kind = _one_of(Kind, entry.get("kind"), name=name, key="kind")
    role = Role.ID if kind is Kind.ID else _one_of(Role, entry.get("role", "feature"), name=name, key="role")
    description = str(entry.get("description", ""))
    if kind is Kind.ID:
        return Column(name=name, kind=kind, role=role, description=description)
    nullable = entry.get("nullable", False)
    if not isinstance(nullable, bool):
        raise _refuse(name, "nullable must be true or false", "Set nullable: true or nullable: false")
    column = Column(
        name=name,
        kind=kind,
        role=role,
        nullable=nullable,
        bounds_from=str(entry.get("bounds_from", "not stated")),
        scale_hint=entry.get("scale_hint"),
        description=description,
    )
    if column.scale_hint not in (None, "log1p"):
        raise _refuse(name, "scale_hint must be log1p or absent")
    if kind in (Kind.CATEGORICAL, Kind.BINARY) or "categories" in entry:
        return _with_categories(column, entry)
    return _with_bounds(column, entry)


def _one_of(choices: type[_Choice], value: Any, *, name: str, key: str) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        listed = ", ".join(choice.value for choice in choices)
    raise _refuse(name, f"{key} must be one of {listed}", f"Set {key}: in the schema")


def category_key(category: Category) -> tuple[str, Category]:
    """Two categories with the same key cannot be told apart in a file."""
    if isinstance(category, bool):
        return ("bool", category)
    if isinstance(category, int | float):
        return ("number", float(category))
    name = category.strip(BLANKS)
    return ("text", name.lower() if name.lower() in TRUTHS else name)


def _with_categories(column: Column, entry: dict[str, Any]) -> Column:
    if column.kind not in (Kind.CATEGORICAL, Kind.BINARY, Kind.ORDINAL):
        raise _refuse(column.name, f"a {column.kind} column has bounds, not categories", "Set bounds: [low, high]")
    listed = entry.get("categories")
    if not isinstance(listed, list) or not listed:
        raise _refuse(
            column.name,
            "categories must be public, got none",
            "List them, for example categories: [no, yes], from a codebook and not from the data",
        )
    if not all(isinstance(category, str | int | float) for category in listed):
        raise _refuse(column.name, "categories must be text or numbers", "Quote them in the schema")
    if not all(isinstance(c, str) or abs(c) < LARGEST_EXACT for c in listed):
        raise _refuse(column.name, "categories that are numbers must lie within 2^53", "Quote them")
    if any(isinstance(c, str) and not c.strip(BLANKS) for c in listed):
        raise _refuse(column.name, "a category must not be blank: a blank cell is null", "Set nullable: true")
    if len({category_key(category)[0] for category in listed}) > 1:
        raise _refuse(column.name, "categories mix text and numbers", "Quote all of them")
    if len({category_key(category) for category in listed}) < len(listed):
        raise _refuse(column.name, "categories must differ from one another")
    if column.kind is Kind.BINARY and len(listed) != 2:
        raise _refuse(column.name, "a binary column has exactly two categories", "Use kind: categorical")
    unknown = entry.get("unknown")
    if unknown is not None and unknown not in listed:
        raise _refuse(column.name, "unknown must name one of its categories")
    return replace(column, categories=tuple(listed), unknown=unknown)


def _with_bounds(column: Column, entry: dict[str, Any]) -> Column:
    bounds = entry.get("bounds")
    if isinstance(bounds, list | tuple) and len(bounds) != 2:
        raise _refuse(column.name, "bounds are two numbers", "Set bounds: [low, high]")
    if not isinstance(bounds, list | tuple):
        raise _refuse(
            column.name,
            "bounds must be public, got none",
            "Set bounds: [low, high] from a codebook, a law of nature or a convention, not from the data",
        )
    resolution = _resolution(column, entry, bounds)
    low, high = (_bound_in(column, bound) for bound in bounds)
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low) and low <= high):
        raise _refuse(column.name, "bounds must be finite and in order", "Set bounds: [low, high]")
    if resolution is Resolution.DAY:
        low, high = (bound - bound % resolution.microseconds for bound in (low, high))
    if column.is_whole and (low != int(low) or high != int(high)):
        raise _refuse(column.name, f"bounds of a {column.kind} column must be whole numbers")
    widest = max(abs(low), abs(high), high - low if column.is_whole else 0)
    if column.kind is not Kind.CONTINUOUS and widest >= LARGEST_EXACT:
        if column.kind is Kind.DATETIME:
            raise _refuse(column.name, "bounds must lie between 1685 and 2255", "Narrow them")
        raise _refuse(column.name, "bounds must lie within 2^53", "Narrow them or use kind: continuous")
    return replace(column, bounds=(low, high), resolution=resolution)


def _resolution(column: Column, entry: dict[str, Any], bounds: Any) -> Resolution | None:
    if column.kind is not Kind.DATETIME:
        return None
    if "resolution" in entry:
        return _one_of(Resolution, entry["resolution"], name=column.name, key="resolution")
    whole_days = all(len(str(bound)) <= len("2000-01-01") for bound in bounds)
    return Resolution.DAY if whole_days else Resolution.SECOND


def _bound_in(column: Column, bound: Any) -> float:
    if column.kind is Kind.DATETIME:
        moment = moment_of(bound)
        if moment is None:
            raise _refuse(column.name, "bounds of a datetime column must be ISO dates", "Write 2000-01-31")
        return float(moment)
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise _refuse(column.name, "bounds must be numbers", "Set bounds: [low, high]")
    if abs(bound) > 1e300:
        raise _refuse(column.name, "bounds must be finite and in order", "Set bounds: [low, high]")
    return float(bound)
