"""Card fraud, 0.17 % of all rows, at epsilon 1: classifiers, and where frauds lie.

    python benchmarks/rare_label.py [--data DIR] [--methods real dp-anova] [--epsilon 1] [--seeds 0 1 2]
                                    [--models xgboost "decision tree" ...]

A seed draws an 80/20 split and the noise is drawn anew; classifiers see all synthetic rows and are tested on the
untouched 20 %. `xgboost, step 1` is XGBoost with `max_delta_step=1`, which its own documentation advises for rare
classes: at its defaults the first tree's Newton step overshoots by forty logits, on real rows too, and what follows
is chance. Prints CSV: the ROC-AUC of every classifier, their mean, and `far`, the share of frauds with V14 below -3.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np
import pandas as pd
from classifiers import examples_of, twelve_scores
from command_line import REAL, add_data_argument, load_table
from sklearn.metrics import roc_auc_score
from unstated_rows import made_from

from understudy import Schema
from understudy.evaluation.models import Protocol, models_for
from understudy.evaluation.prediction import task_of

TABLE, COLUMN, FAR = "creditcard", "V14", -3.0
STEADY = "xgboost, step 1"


def main() -> None:
    """Print a row for every method, seed and classifier."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--methods", nargs="+", default=[REAL, "dp-anova"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", default=[], help="of the twelve; all by default")
    arguments = parser.parse_args()
    table, writer = load_table(arguments.data, TABLE), csv.writer(sys.stdout)
    writer.writerow(("method", "seed", "what", "value"))
    for method in arguments.methods:
        for seed in arguments.seeds:
            train, test = table.split(seed)
            rows, _ = made_from(train, table.schema, method=method, epsilon=arguments.epsilon, seed=seed)
            for what, value in measured(table.schema, rows, test, tuple(arguments.models)).items():
                writer.writerow((method, seed, what, f"{value:.4f}"))
                sys.stdout.flush()


def measured(schema: Schema, rows: pd.DataFrame, test: pd.DataFrame, models: tuple[str, ...]) -> dict[str, float]:
    """Where frauds lie, and the ROC-AUC of every classifier."""
    frauds = rows[rows[schema.label.name].astype(int) == 1]
    found = {"far": float((frauds[COLUMN] < FAR).sum() / max(1, len(frauds)))}
    scores = {name: values[0] for name, values in twelve_scores(schema, rows, test, models=models).items()}
    return (
        found
        | scores
        | {f"mean of {len(scores)}": float(np.mean(list(scores.values()))), STEADY: steady(schema, rows, test)}
    )


def steady(schema: Schema, rows: pd.DataFrame, test: pd.DataFrame) -> float:
    """XGBoost with a limit on its steps."""
    model = models_for(task_of(schema.label), Protocol.PROBABILITIES).by_name["xgboost"].set_params(max_delta_step=1)
    seen, unseen = examples_of(schema, rows), examples_of(schema, test)
    model.fit(seen.inputs, seen.target)
    return float(roc_auc_score(unseen.target, model.predict_proba(unseen.inputs)[:, 1]))


if __name__ == "__main__":
    main()
