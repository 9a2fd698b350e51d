"""Rows that contradict themselves, and values that should repeat: what eyes find and distances hide.

    python benchmarks/contradictions.py [--data DIR] [--tables nycflights adult ...] [--epsilons 1 0.3] [--seeds 0 1 2]

A seed draws an 80/20 split of at most 60,000 rows; nobody states the row count. `rule` is a relation that holds in the
real rows but for the share `real`; `made` is the share of synthetic rows in which it does not. Or it is `values`: of
the values that more than 3 % of a number's rows have, three a number at most, how many come back, exactly and with
their share within a point (`made` of `real`). Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from command_line import add_data_argument, load_table
from unstated_rows import made_from

from understudy import Schema

MOST_ROWS = 60_000
Broken = Callable[[pd.DataFrame, pd.DataFrame], pd.Series]
"""Which rows break a rule, given the real rows and these."""


def no_function(determined: str, by: str) -> Broken:
    """Rows whose value is none that real rows with the same other value have."""

    def broken(real: pd.DataFrame, rows: pd.DataFrame) -> pd.Series:
        known = set(zip(words(real[by]), words(real[determined]), strict=True))
        seen = {value for value, _ in known}
        pairs = zip(words(rows[by]), words(rows[determined]), strict=True)
        return pd.Series([pair[0] in seen and pair not in known for pair in pairs])

    return broken


def words(values: pd.Series) -> list[str]:
    """Values as text, the same whether a column of whole numbers with blanks was read as floats."""
    numbers = pd.to_numeric(values, errors="coerce")
    same = numbers.notna().equals(values.notna())
    return [f"{number:g}" for number in numbers.to_numpy(float, na_value=np.nan)] if same else [*map(str, values)]


RULES: dict[str, dict[str, Broken]] = {
    "nycflights": {"the hour is that of departure": lambda _, rows: rows.dep_time // 100 != rows.hour},
    "adult": {
        "education goes with its years": no_function("education", "education_num"),
        "husbands are male": lambda _, rows: (rows.relationship == "Husband") & (rows.sex == "Female"),
    },
    "gssvocab": {
        "the age group is that of the age": no_function("ageGroup", "age"),
        "the group of schooling is that of its years": no_function("educGroup", "educ"),
    },
    "labsup": {"more than two children are more": no_function("morekids", "kids")},
    "storms": {"the category is that of the wind": no_function("category", "wind")},
    "tv16": {},
}


def main() -> None:
    """Print a row for every table, budget, seed and rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--method", default="dp-anova")
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(("table", "epsilon", "seed", "rule", "real", "made"))
    for name, seed in product(arguments.tables, arguments.seeds):
        table = load_table(arguments.data, name)
        frame = table.frame.sample(min(len(table.frame), MOST_ROWS), random_state=1).reset_index(drop=True)
        train, _ = replace(table, frame=frame).split(seed)
        schema = replace(table.schema, rows=None)
        for epsilon in arguments.epsilons:
            rows, _ = made_from(train, schema, method=arguments.method, epsilon=epsilon, seed=seed)
            for rule, broken in RULES[name].items():
                shares = (f"{broken(train, each).mean():.5f}" for each in (train, rows))
                writer.writerow([name, epsilon, seed, rule, *shares])
            found = list(values_that_return(schema, train, rows))
            writer.writerow([name, epsilon, seed, "values", len(found), sum(found)])
            sys.stdout.flush()


def values_that_return(schema: Schema, train: pd.DataFrame, rows: pd.DataFrame) -> Iterator[bool]:
    """For each frequent value of a number, whether it has its share of the synthetic rows too."""
    for column in schema.used:
        if column.is_choice:
            continue
        real, made = (pd.to_numeric(frame[column.name], errors="coerce").dropna() for frame in (train, rows))
        low, high = column.low_high
        for value, share in real.value_counts(normalize=True).head(3).items():
            if share > 0.03:
                yield bool(abs((np.abs(made - value) <= 1e-9 * (high - low)).mean() - share) <= 0.01)


if __name__ == "__main__":
    main()
