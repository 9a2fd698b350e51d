"""Methods side by side on the eight tables of the papers, through the real command line.

    python benchmarks/eight_tables.py DATA_DIR [--methods dp-merf dp-hp] [--tables adult ...]
                                      [--epsilon 1] [--seeds 0 1 2]

DATA_DIR holds NAME.parquet and schemas/NAME.yaml. A seed draws an 80/20 split; the method sees
the 80 %, distances are taken to them, and classifiers trained on synthetic rows are tested on the
20 %. Prints CSV. Columns `score` and `second` are ROC-AUC and average precision with two classes,
weighted and macro F1 with more (mean of logistic regression, random forest and boosted trees, on
at most 50,000 rows).
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import pandas as pd
from classifiers import prediction_scores
from command_line import REAL, load_table, synthesise

from understudy.evaluation.marginals import marginal_distance
from understudy.evaluation.tables import code_table, invalid_cells

TABLES = (
    "adult", "census", "cervical", "covtype", "creditcard", "epileptic", "isolet", "kddcup99",
)  # fmt: skip
MOST_ROWS, MOST_SETS = 50_000, 300
HEADER = (
    "table", "method", "epsilon", "seed", "invalid", "tv1", "tv2", "tv3", "score", "second", "seconds",
)  # fmt: skip


def main() -> None:
    """Run every table, method and seed and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--methods", nargs="+", default=[REAL, "dp-merf", "dp-hp"])
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--options", nargs=argparse.REMAINDER, default=[], help="passed on to synth"
    )
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for name in arguments.tables:
        table = load_table(arguments.data, name)
        for seed in arguments.seeds:
            train, test = table.split(seed)
            for method in arguments.methods:
                found = synthesise(
                    train, table.schema_path, method=method, epsilon=arguments.epsilon,
                    seed=seed, options=arguments.options,
                )  # fmt: skip
                sides = [code_table(table.schema, frame) for frame in (train, found.rows)]
                distances = [
                    marginal_distance(*sides, size=size, most_sets=MOST_SETS) for size in (1, 2, 3)
                ]
                scores = prediction_scores(table.schema, some(found.rows), some(test))
                writer.writerow([
                    name, method, arguments.epsilon if method != REAL else "", seed,
                    invalid_cells(table.schema, found.rows),
                    *(f"{value:.4f}" for value in (*distances, *scores)), f"{found.wall_seconds:.1f}",
                ])  # fmt: skip
                sys.stdout.flush()


def some(frame: pd.DataFrame) -> pd.DataFrame:
    """At most ``MOST_ROWS`` of the rows."""
    return frame if len(frame) <= MOST_ROWS else frame.sample(MOST_ROWS, random_state=0)


if __name__ == "__main__":
    main()
