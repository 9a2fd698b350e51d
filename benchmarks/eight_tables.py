"""Methods side by side on the eight tables of the papers, through the real command line.

    python benchmarks/eight_tables.py [--data DIR] [--methods dp-anova dp-hp] [--tables adult ...]
                                      [--epsilons 1 0.2] [--seeds 0 1 2]

A seed draws an 80/20 split; the method sees the 80 %, distances are taken to them, and classifiers
trained on synthetic rows are tested on the 20 %. Prints CSV. Columns `score` and `second` are ROC-AUC
and average precision with two classes, weighted and macro F1 with more (mean of logistic regression,
random forest and boosted trees, on at most --most-rows rows; the first of the two for each as well).
`auc_binned` and `auc_raw` are boosted trees' chances to tell synthetic rows from real ones, which
means nothing for the method `real`, whose rows they have seen. The method `independent` releases
single columns by DP-ANOVA and nothing else.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import product

import numpy as np
import pandas as pd
from classifiers import three_scores
from command_line import REAL, add_data_argument, add_options_argument, load_table, some, synthesise

from understudy import Schema
from understudy.evaluation.columns import marginal_distance
from understudy.evaluation.tables import code_table, invalid_cells
from understudy.evaluation.two_sample import two_sample_auc

TABLES = ("adult", "census", "cervical", "covtype", "creditcard", "epileptic", "isolet", "kddcup99")
MOST_SETS = 300
HEADER = (
    "table",
    "method",
    "epsilon",
    "seed",
    "invalid",
    "tv1",
    "tv2",
    "tv3",
    "tv4",
    "auc_binned",
    "auc_raw",
    "score",
    "second",
    "logistic",
    "forest",
    "boosting",
    "cpu_seconds",
    "seconds",
)
ALIASES = {"independent": ("dp-anova", ["--labels", "none", "--no-pairs"])}


def main() -> None:
    """Run every table, method and seed and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--methods", nargs="+", default=[REAL, "independent", "dp-merf", "dp-hp", "dp-anova"])
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--epsilons", nargs="+", default=["1", "0.2"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--most-rows", type=int, default=50_000, help="for classifiers")
    add_options_argument(parser)
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for name, seed in product(arguments.tables, arguments.seeds):
        table = load_table(arguments.data, name)
        train, test = table.split(seed)
        for method in arguments.methods:
            for epsilon in arguments.epsilons if method != REAL else [""]:
                used, options = ALIASES.get(method, (method, []))
                found = synthesise(
                    train,
                    table.schema_path,
                    method=used,
                    epsilon=epsilon,
                    seed=seed,
                    options=[*options, *arguments.options],
                )
                values = measured(table.schema, train, test, found.rows, arguments.most_rows)
                writer.writerow(
                    [
                        name,
                        method,
                        epsilon,
                        seed,
                        invalid_cells(table.schema, found.rows),
                        *(f"{value:.4f}" for value in values),
                        f"{found.cpu_seconds:.1f}",
                        f"{found.wall_seconds:.1f}",
                    ]
                )
                sys.stdout.flush()


def measured(
    schema: Schema, train: pd.DataFrame, test: pd.DataFrame, rows: pd.DataFrame, most_rows: int
) -> list[float]:
    """Distances, chances to be told apart, and scores of classifiers."""
    real, other = (code_table(schema, frame) for frame in (train, rows))
    distances = [marginal_distance(real, other, size=size, most_sets=MOST_SETS) for size in (1, 2, 3, 4)]
    sides = [code_table(schema, some(frame, most_rows)) for frame in (train, rows)]
    told_apart = [two_sample_auc(*sides, binned=kind) for kind in (True, False)]
    scores = three_scores(schema, some(rows, most_rows), some(test, most_rows))
    means = np.mean(list(scores.values()), axis=0).tolist()
    return [*distances, *told_apart, *means, *(first for first, _ in scores.values())]


if __name__ == "__main__":
    main()
