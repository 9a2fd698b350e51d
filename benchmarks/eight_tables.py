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
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from metrics import invalid_cells, marginal_distance, prediction_scores

from understudy import load_schema

COMMAND = Path(sys.executable).with_name("understudy")
TABLES = (
    "adult", "census", "cervical", "covtype", "creditcard", "epileptic", "isolet", "kddcup99",
)  # fmt: skip
MOST_ROWS, MOST_SETS = 50_000, 300
REAL = "real"
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
    for table in arguments.tables:
        schema_path = arguments.data / "schemas" / f"{table}.yaml"
        schema = load_schema(schema_path)
        positive = yaml.safe_load(schema_path.read_text()).get("positive")
        frame = pd.read_parquet(arguments.data / f"{table}.parquet")
        for seed in arguments.seeds:
            is_train = np.random.default_rng(seed).random(len(frame)) < 0.8
            train, test = frame[is_train], frame[~is_train]
            for method in arguments.methods:
                rows, seconds = train, 0.0
                if method != REAL:
                    rows, seconds = synthesise(
                        train, schema_path, method, arguments.epsilon, seed, arguments.options
                    )
                distances = [
                    marginal_distance(schema, train, rows, size, most_sets=MOST_SETS)
                    for size in (1, 2, 3)
                ]
                scores = prediction_scores(schema, some(rows), some(test), positive)
                writer.writerow([
                    table, method, arguments.epsilon if method != REAL else "", seed, invalid_cells(schema, rows),
                    *(f"{value:.4f}" for value in (*distances, *scores)), f"{seconds:.1f}",
                ])  # fmt: skip
                sys.stdout.flush()


def synthesise(
    train: pd.DataFrame, schema: Path, method: str, epsilon: str, seed: int, options: list[str]
) -> tuple[pd.DataFrame, float]:
    """Synthetic rows of the command line, and how long they took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_parquet(folder / "train.parquet")
        started = time.perf_counter()
        subprocess.run(
            [COMMAND, "synth", folder / "train.parquet", "--schema", schema, "--epsilon", epsilon,
             "--method", method, "--seed", str(seed), "--rows", str(len(train)),
             "-o", folder / "rows.parquet", "--json", *options],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return pd.read_parquet(folder / "rows.parquet"), time.perf_counter() - started


def some(frame: pd.DataFrame) -> pd.DataFrame:
    """At most ``MOST_ROWS`` of the rows."""
    return frame if len(frame) <= MOST_ROWS else frame.sample(MOST_ROWS, random_state=0)


if __name__ == "__main__":
    main()
