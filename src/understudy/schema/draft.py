"""Draft a schema from column names and declared types: no row is looked at, nothing is guessed.

Where a person must decide there is ``???``. For well-known names a comment says what others
usually declare; it is a hint, not a default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import yaml

from understudy.schema.entries import UNDECIDED
from understudy.schema.images import LABEL, is_pixel, shape_of

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
        sizes = ", ".join(f"{axis}: {size}" for axis, size in shape.to_dict().items())
        lines.append(f"image: {{{sizes}}}  # {IMAGE_NOTE}")
        entries = {column: kind for column, kind in entries.items() if not is_pixel(column)}
    lines.append("columns:" if entries else "columns: []")
    for column, arrow_type in entries.items():
        if shape is not None and column == LABEL:
            lines += _listed(_label_entry())
            continue
        hint = next((words for pattern, words in HINTS if re.search(pattern, column.lower())), None)
        first, *others = _entry(column, arrow_type)
        lines += _listed([first + (f"  # hint: {hint}" if hint else ""), *others])
    return "\n".join(lines) + "\n"


def _listed(fields: list[str]) -> list[str]:
    return [f"- {fields[0]}", *(f"  {field}" for field in fields[1:])]


def _label_entry() -> list[str]:
    """Labels of images are classes, also where a file numbers them."""
    undecided = [f"{key}: {UNDECIDED}" for key in ("categories", "nullable", "bounds_from")]
    return [f"name: {_quoted(LABEL)}", "kind: categorical", "role: label", *undecided]


def _entry(column: str, arrow_type: Any) -> list[str]:
    quoted = _quoted(column)
    if ID_NAMES.search(column.lower()):
        return [f"name: {quoted}", "kind: id"]
    kind = _kind(arrow_type)
    fields = [f"name: {quoted}", f"kind: {kind}", "role: feature"]
    if kind == "binary":
        fields.append("categories: [false, true]")
    else:
        fields.append(f"{'categories' if kind == 'categorical' else 'bounds'}: {UNDECIDED}")
    return [*fields, f"nullable: {UNDECIDED}", f"bounds_from: {UNDECIDED}"]


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
