"""Public tables as their sources give them, turned into what the schemas expect.

A conversion takes the source's columns by position where it has no names for them: the schemas list
columns in the sources' order. Nothing is imputed, scaled or thinned out.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from understudy import Schema
from understudy.evaluation.tables import invalid_cells
from understudy.schema.columns import Column, Kind

ATTACKS = {
    "normal": ("normal",),
    "dos": ("back", "land", "neptune", "pod", "smurf", "teardrop"),
    "probe": ("ipsweep", "nmap", "portsweep", "satan"),
    "r2l": ("ftp_write", "guess_passwd", "imap", "multihop", "phf", "spy", "warezclient", "warezmaster"),
    "u2r": ("buffer_overflow", "loadmodule", "perl", "rootkit"),
}
CENSUS_WEIGHT = 24  # the position of the survey weight, which its codebook asks to leave out


def to_adult(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The lines of both files and, last, `train` or `test`; test labels end with a full stop."""
    frame = _by_position(raw, schema)
    return frame.assign(income=frame["income"].str.rstrip("."))


def to_census(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The lines of census-income.data."""
    frame = _by_position(raw.drop(columns=raw.columns[CENSUS_WEIGHT]), schema)
    return frame.assign(income=frame["income"].map({"- 50000.": "<=50K", "50000+.": ">50K"}))


def to_cervical(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The lines of risk_factors_cervical_cancer.csv."""
    return _by_position(raw, schema)


def to_covtype(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """scikit-learn's frame."""
    return _by_position(raw, schema)


def to_creditcard(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """OpenML's or Kaggle's frame; the latter has a column `Time` more."""
    frame = raw[[column.name for column in schema.columns]]
    return frame.assign(Class=_unquoted(frame["Class"]))


def to_epileptic(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The lines of the CSV file: a name, 178 numbers, and a class of which 1 is a seizure."""
    frame = raw.iloc[:, 1:179].set_axis([f"x{i}" for i in range(1, 179)], axis=1).copy()
    classes = raw.iloc[:, 179].astype(int)
    return frame.assign(y_original=classes, seizure=(classes == 1).astype(int))


def to_isolet(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """OpenML's frame, whose classes 1 to 26 are letters."""
    frame = raw.iloc[:, :617].set_axis([f"f{i}" for i in range(1, 618)], axis=1).copy()
    letters = _unquoted(raw.iloc[:, 617]).astype(int).map(lambda place: chr(64 + place))
    return frame.assign(letter=letters, vowel=letters.isin(list("AEIOU")).astype(int))


def to_kddcup99(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """scikit-learn's frame, whose words are bytes and whose attacks end with a full stop."""
    names = [column.name for column in schema.columns[:-1]]
    frame = raw.set_axis(names, axis=1)
    for name in ("protocol_type", "service", "flag", "attack"):
        frame[name] = frame[name].map(lambda word: word.decode().rstrip("."))
    groups = {attack: group for group, attacks in ATTACKS.items() for attack in attacks}
    return frame.assign(attack_group=frame["attack"].map(groups))


CONVERSIONS: dict[str, Callable[[pd.DataFrame, Schema], pd.DataFrame]] = {
    "adult": to_adult,
    "census": to_census,
    "cervical": to_cervical,
    "covtype": to_covtype,
    "creditcard": to_creditcard,
    "epileptic": to_epileptic,
    "isolet": to_isolet,
    "kddcup99": to_kddcup99,
}


def convert(name: str, raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The table with the types of its schema; refused if a cell does not fit it."""
    given = CONVERSIONS[name](raw, schema).reset_index(drop=True)
    frame = pd.DataFrame(
        {column.name: _typed(column, given[column.name]) for column in schema.columns if column.name in given}
    )
    wrong = invalid_cells(schema, frame)
    if wrong:
        raise ValueError(f"{name}: {wrong} cells do not fit the schema")
    return frame


def _typed(column: Column, cells: pd.Series) -> pd.Series:
    if column.is_choice and isinstance(column.categories[0], str):
        return cells.astype("string").str.strip().astype("category")
    if column.kind is Kind.CONTINUOUS:
        return pd.to_numeric(cells).astype("Float32")
    return pd.to_numeric(cells).astype("Int32")


def _by_position(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    return raw.set_axis([column.name for column in schema.columns], axis=1)


def _unquoted(cells: pd.Series) -> pd.Series:
    return cells.astype(str).str.strip("'\" ")
