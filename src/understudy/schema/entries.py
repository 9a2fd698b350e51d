"""Entries of a schema's list of columns: parsed and checked, or drafted from names and declared types.

A draft looks at no row and guesses nothing: where a person must decide there is ``???``. For well-known names a
comment says what others usually declare; it is a hint, not a default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar

import pyarrow as pa
import yaml

from understudy.codec import LARGEST_EXACT, encode
from understudy.errors import InputError, column_error
from understudy.schema.columns import BLANKS, Column, Kind, Resolution, Role
from understudy.schema.images import LABEL, is_pixel, shape_of
from understudy.schema.values import category_key, moment_of

UNDECIDED = "???"
_Choice = TypeVar("_Choice", bound=StrEnum)
COLUMN_KEYS = tuple(field.name for field in fields(Column))
MOST_BOUND = 1e300  # so that the span of two bounds is finite, too


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
        raise column_error(name, f"unknown key '{unknown_keys[0]}'", "Keys are " + ", ".join(COLUMN_KEYS))
    kind = _one_of(Kind, entry.get("kind"), name=name, key="kind")
    role = Role.ID if kind is Kind.ID else _one_of(Role, entry.get("role", "feature"), name=name, key="role")
    column = Column(name=name, kind=kind, role=role, description=str(entry.get("description", "")))
    if kind is Kind.ID:
        return column
    nullable, source = entry.get("nullable", False), str(entry.get("bounds_from", "not stated"))
    if not isinstance(nullable, bool):
        raise column_error(name, "nullable must be true or false", "Set nullable: true or nullable: false")
    column = replace(column, nullable=nullable, bounds_from=source, scale_hint=entry.get("scale_hint"))
    if column.scale_hint not in (None, "log1p"):
        raise column_error(name, "scale_hint must be log1p or absent")
    if kind in (Kind.CATEGORICAL, Kind.BINARY) or "categories" in entry:
        return _with_categories(column, entry)
    return _with_bounds(column, entry)


def _one_of(choices: type[_Choice], value: Any, *, name: str, key: str) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        listed = ", ".join(choice.value for choice in choices)
    raise column_error(name, f"{key} must be one of {listed}", f"Set {key}: in the schema")


def _with_categories(column: Column, entry: dict[str, Any]) -> Column:
    if column.kind not in (Kind.CATEGORICAL, Kind.BINARY, Kind.ORDINAL):
        raise column_error(column.name, f"a {column.kind} column has bounds, not categories", "Set bounds: [low, high]")
    listed = entry.get("categories")
    if not isinstance(listed, list) or not listed:
        raise column_error(
            column.name,
            "categories must be public, got none",
            "List them, for example categories: [no, yes], from a codebook and not from the data",
        )
    if not all(isinstance(category, str | int | float) for category in listed):
        raise column_error(column.name, "categories must be text or numbers", "Quote them in the schema")
    if not all(isinstance(c, str) or abs(c) < LARGEST_EXACT for c in listed):
        raise column_error(column.name, "categories that are numbers must lie within 2^53", "Quote them")
    if any(isinstance(c, str) and not c.strip(BLANKS) for c in listed):
        raise column_error(column.name, "a category must not be blank: a blank cell is null", "Set nullable: true")
    if len({category_key(category)[0] for category in listed}) > 1:
        raise column_error(column.name, "categories mix text and numbers", "Quote all of them")
    if len({category_key(category) for category in listed}) < len(listed):
        raise column_error(column.name, "categories must differ from one another")
    if column.kind is Kind.BINARY and len(listed) != 2:
        raise column_error(column.name, "a binary column has exactly two categories", "Use kind: categorical")
    unknown = entry.get("unknown")
    if unknown is not None and unknown not in listed:
        raise column_error(column.name, "unknown must name one of its categories")
    return replace(column, categories=tuple(listed), unknown=unknown)


def _with_bounds(column: Column, entry: dict[str, Any]) -> Column:
    bounds = entry.get("bounds")
    if isinstance(bounds, list | tuple) and len(bounds) != 2:
        raise column_error(column.name, "bounds are two numbers", "Set bounds: [low, high]")
    if not isinstance(bounds, list | tuple):
        raise column_error(
            column.name,
            "bounds must be public, got none",
            "Set bounds: [low, high] from a codebook, a law of nature or a convention, not from the data",
        )
    resolution = _resolution(column, entry, bounds)
    low, high = (_bound_in(column, bound) for bound in bounds)
    if not (abs(low) <= MOST_BOUND and abs(high) <= MOST_BOUND and low <= high):
        raise column_error(column.name, "bounds must be finite and in order", "Set bounds: [low, high]")
    if resolution is Resolution.DAY:
        low, high = (bound - bound % resolution.microseconds for bound in (low, high))
    if column.is_whole and (low != int(low) or high != int(high)):
        raise column_error(column.name, f"bounds of a {column.kind} column must be whole numbers")
    widest = max(abs(low), abs(high), high - low if column.is_whole else 0)
    if column.kind is not Kind.CONTINUOUS and widest >= LARGEST_EXACT:
        if column.kind is Kind.DATETIME:
            raise column_error(column.name, "bounds must lie between 1685 and 2255", "Narrow them")
        raise column_error(column.name, "bounds must lie within 2^53", "Narrow them or use kind: continuous")
    return replace(column, bounds=(float(low), float(high)), resolution=resolution)


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
            raise column_error(column.name, "bounds of a datetime column must be ISO dates", "Write 2000-01-31")
        return moment
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise column_error(column.name, "bounds must be numbers", "Set bounds: [low, high]")
    return bound


HINTS: tuple[tuple[str, str], ...] = (
    (r"(^|_)age(_|$)|alter", "years of age, usually bounds: [0, 120]"),
    (r"sex|gender", "usually categories: [female, male], or as the codebook has them"),
    (r"bmi", "body mass index, usually bounds: [10, 80]"),
    (r"height", "in centimetres usually bounds: [40, 250]"),
    (r"weight", "in kilograms usually bounds: [0, 400]; a survey weight needs its own bounds"),
    (r"hours_per_week|weekly_hours", "usually bounds: [0, 168]"),
    (r"(^|_)year(_|$)", "a year of the study, usually bounds: [1900, 2100] or narrower"),
    (r"(^|_)month(_|$)", "usually bounds: [1, 12]"),
    (r"weekday|day_of_week|(^|_)dow(_|$)", "usually bounds: [0, 6] or [1, 7]"),
    (r"(^|_)day(_|$)", "usually bounds: [1, 31]"),
    (r"(^|_)hour(_|$)", "usually bounds: [0, 23]"),
    (r"percent|(^|_)pct(_|$)", "usually bounds: [0, 100]"),
    (r"lat(itude)?$", "usually bounds: [-90, 90]"),
    (r"lon(gitude)?$|lng$", "usually bounds: [-180, 180]"),
    (r"heart_rate|pulse", "beats per minute, usually bounds: [0, 300]"),
    (r"systolic|sbp", "millimetres of mercury, usually bounds: [50, 300]"),
    (r"diastolic|dbp", "millimetres of mercury, usually bounds: [20, 200]"),
    (r"temp", "body temperature in Celsius, usually bounds: [30, 45]"),
    (r"glucose", "in mg/dl, usually bounds: [0, 1000]"),
    (r"income|salary|wage|amount|price|cost", "skewed: public bounds such as [0, 1000000] and scale_hint: log1p"),
    (r"zip|postal|postcode", "list the codes as categories, or use kind: id to leave it out"),
    (r"country|region|state|province", "list the official codes as categories"),
    (r"date|time|(^|_)dob(_|$)|birth", "kind: datetime with bounds: [1900-01-01, 2030-12-31] or narrower"),
)
ID_NAMES = re.compile(r"(^|_)(id|uuid|guid|ssn|mrn|nhs_number|email|phone|name|surname|iban)$")

HEADER = """\
# Draft made from column names (the first line of a text file) and types; no row was read.
# Replace every ???:
#   kind        continuous, integer, ordinal, categorical, binary, datetime or id (never read)
#   role        feature, label, split, aux or id
#   bounds      [low, high], or categories: [...]; public knowledge only, never from the data
#   bounds_from codebook, definition or convention
#   nullable    true or false
# Add rows: N only if the number of rows is public.
"""


FEWEST_IN_GROUP = 3
"""Columns with names alike that a draft suggests as a one-hot group."""

IMAGE_NOTE = "the format of all images; in a folder or a Parquet file, that of the first"


def draft_schema(columns: Iterable[tuple[str, Any]], *, name: str) -> str:
    """A YAML document with one entry per column, and one line for all pixels of images.

    Args:
        columns: names with their Arrow types, or None where the file has no types.
        name: what to call the table.
    """
    lines = [HEADER + f"name: {_quoted(name)}", "privacy: {unit: row}"]
    entries = dict(columns)
    shape = shape_of(entries)
    if shape is not None:
        sizes = ", ".join(f"{axis}: {size}" for axis, size in encode(shape).items())
        lines.append(f"image: {{{sizes}}}  # {IMAGE_NOTE}")
        entries = {column: kind for column, kind in entries.items() if not is_pixel(column)}
    for group, names in _groups(entries).items():
        listed = ", ".join(map(_quoted, names))
        lines.append(f"# onehot_groups: {{{_quoted(group)}: [{listed}]}}  # if in every row just one of these is 1")
    lines.append("columns:" if entries else "columns: []")
    for column, arrow_type in entries.items():
        if shape is not None and column == LABEL:  # classes, also where a file numbers them
            lines += _entry(column, "categorical", role="label")
            continue
        hint = next((f"  # hint: {words}" for pattern, words in HINTS if re.search(pattern, column.lower())), "")
        is_id = ID_NAMES.search(column.lower()) is not None
        lines += _entry(column, "id" if is_id else _kind(arrow_type), hint=hint)
    return "\n".join(lines) + "\n"


def _groups(entries: Iterable[str]) -> dict[str, list[str]]:
    """Columns that may be the one-hot code of one variable, by what their names begin with."""
    found: dict[str, list[str]] = {}
    for column in entries:
        stem, _, value = re.sub(r"(?<=\D)(?=\d+$)", "_", column).replace("__", "_").rpartition("_")
        if stem and value and not ID_NAMES.search(column.lower()):
            found.setdefault(stem, []).append(column)
    return {stem: names for stem, names in found.items() if len(names) >= FEWEST_IN_GROUP}


def _entry(column: str, kind: str, *, role: str = "feature", hint: str = "") -> list[str]:
    lines = [f"- name: {_quoted(column)}{hint}", f"  kind: {kind}"]
    if kind == "id":
        return lines
    domain = "categories" if kind in ("binary", "categorical") else "bounds"
    known = "[false, true]" if kind == "binary" else UNDECIDED
    undecided = [f"  {key}: {UNDECIDED}" for key in ("nullable", "bounds_from")]
    return [*lines, f"  role: {role}", f"  {domain}: {known}", *undecided]


def _kind(arrow_type: Any) -> str:
    if arrow_type is None or pa.types.is_null(arrow_type) or pa.types.is_nested(arrow_type):
        return UNDECIDED
    if pa.types.is_boolean(arrow_type):
        return "binary"
    if pa.types.is_integer(arrow_type):
        return "integer"
    if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return "continuous"
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        return "datetime"
    if pa.types.is_temporal(arrow_type):
        return UNDECIDED
    return "categorical"


def _quoted(name: str) -> str:
    return str(yaml.safe_dump(name, default_style='"', allow_unicode=True, width=10**9)).strip()
