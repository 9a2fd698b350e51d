"""What pairs by label can see: XOR of columns, a structural causal model with interactions, and a mixture.

    python benchmarks/high_order.py [--epsilon 1] [--seeds 0 1 2]

Tables of 20,000 made-up rows. ROC-AUC on fresh rows of boosted trees trained on real rows, on DP-ANOVA's, and on
DP-ANOVA's without pairs. `xor3` is a label that is the parity of three of six fair coins. Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from understudy import Budget, Schema, fit_release, load_schema, make_plan, release_table

ROWS, WIDTH = 20_000, 6
NAMES = [f"x{i}" for i in range(WIDTH)]
LABEL = {"name": "y", "kind": "binary", "categories": [0, 1], "role": "label"}


def parity(rng: np.random.Generator, count: int) -> pd.DataFrame:
    coins = rng.integers(0, 2, (ROWS, WIDTH))
    return pd.DataFrame(coins, columns=NAMES).assign(y=coins[:, :count].sum(axis=1) % 2)


def causal(rng: np.random.Generator) -> pd.DataFrame:
    """Of three groups each has a law of its own for x2, and of them one turns what x2 does to the label."""
    x0, group = rng.uniform(0, 1, ROWS), rng.integers(0, 3, ROWS)
    x1 = x0 + rng.normal(0, 0.3, ROWS)
    x2 = np.choose(group, [x0 * x1, -x0, x1]) + rng.normal(0, 0.2, ROWS)
    chance = 1 / (1 + np.exp(-6 * (x2 - 0.3) * np.where(group == 1, 1, -1)))
    return pd.DataFrame({"x0": x0, "x1": x1, "x2": x2, "group": group, "y": (rng.random(ROWS) < chance).astype(int)})


def mixture(rng: np.random.Generator) -> pd.DataFrame:
    """Eight clusters whose parity is the label."""
    cluster, centres = rng.integers(0, 8, ROWS), np.random.default_rng(5).normal(0, 2, (8, WIDTH))
    points = centres[cluster] + rng.normal(0, 0.7, (ROWS, WIDTH))
    return pd.DataFrame(points, columns=NAMES).assign(y=cluster % 2)


TABLES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "xor2": lambda rng: parity(rng, 2),
    "xor3": lambda rng: parity(rng, 3),
    "xor4": lambda rng: parity(rng, 4),
    "causal": causal,
    "mixture": mixture,
}


def main() -> None:
    """Print a row for every table and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(("table", "seed", "real", "dp-anova", "without pairs"))
    for name, make in TABLES.items():
        for seed in arguments.seeds:
            rng = np.random.default_rng(seed)
            train, test = make(rng), make(rng)
            rows = [train, *(drawn(train, arguments.epsilon, seed, options) for options in ({}, {"pairs": False}))]
            writer.writerow((name, seed, *(f"{score(each, test):.3f}" for each in rows)))
            sys.stdout.flush()


def drawn(train: pd.DataFrame, epsilon: float, seed: int, options: dict[str, Any]) -> pd.DataFrame:
    plan = make_plan(schema_of(train), Budget(epsilon), options=options)
    return fit_release(release_table(train, plan)).sample(ROWS, seed=seed).to_pandas()


def schema_of(train: pd.DataFrame) -> Schema:
    columns: list[dict[str, Any]] = []
    for name in train.columns.drop("y"):
        values = np.unique(train[name])
        is_number = len(values) > 3
        domain = {"bounds": [-10, 10]} if is_number else {"categories": values.tolist()}
        columns.append({"name": name, "kind": "continuous" if is_number else "categorical", **domain})
    return load_schema({"columns": [*columns, LABEL]})


def score(train: pd.DataFrame, test: pd.DataFrame) -> float:
    model = HistGradientBoostingClassifier(random_state=0)
    inputs, known = train.drop(columns="y").astype(float), train.y.astype(int)
    chances = model.fit(inputs, known).predict_proba(test.drop(columns="y").astype(float))[:, 1]
    return float(roc_auc_score(test.y, chances))


if __name__ == "__main__":
    main()
