"""Tables whose row count nobody states: distances, classifiers, and what users compute first.

    python benchmarks/unstated_rows.py [--data DIR] [--tables tv16 storms ...] [--epsilons 1 0.3 0.1] [--seeds 0 1 2]
                                       [--method dp-anova | aim | mst | ...]

A seed draws an 80/20 split of at most --most-rows rows; the method sees the 80 %. `tv1` to `tv3` are distances to
them on 20 bins over at most 150 sets of columns, `told` a boosted tree's chance to tell 8,000 rows of both apart.
`logistic` and `boosting` are ROC-AUC (two classes) or weighted F1 on the 20 %, trained on at most 20,000 synthetic
rows. Means over the numbers of a table: `mean` is the error of the mean in standard deviations, `sd` the absolute
logarithm of the ratio of standard deviations, `q999` the relative error of the 99.9 % quantile. The method `real`
hands out its training rows.
Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from classifiers import examples_of
from command_line import REAL, add_data_argument, load_table, some
from package_tables import UNSEEN
from peers import PEERS, run_peer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from understudy import Budget, Schema, fit_release, make_plan, release_table
from understudy.evaluation.columns import marginal_distance
from understudy.evaluation.prediction import task_of
from understudy.evaluation.tables import code_table
from understudy.evaluation.two_sample import two_sample_auc

SCORES = ("tv1", "tv2", "tv3", "told", "logistic", "boosting", "mean", "sd", "q999", "cpu_seconds")
MOST_SETS = 150


def main() -> None:
    """Print a row for every table, seed and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(UNSEEN))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.3, 0.1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--method", default="dp-anova")
    parser.add_argument("--most-rows", type=int, default=60_000)
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(("table", "method", "epsilon", "seed", *SCORES))
    for name, seed in product(arguments.tables, arguments.seeds):
        table = load_table(arguments.data, name)
        frame = table.frame.sample(min(len(table.frame), arguments.most_rows), random_state=1).reset_index(drop=True)
        train, test = replace(table, frame=frame).split(seed)
        schema = replace(table.schema, rows=None)
        for epsilon in arguments.epsilons:
            rows, seconds = made_from(train, schema, method=arguments.method, epsilon=epsilon, seed=seed)
            values = [*measured(schema, train, test, rows), seconds]
            writer.writerow([name, arguments.method, epsilon, seed, *(f"{value:.4f}" for value in values)])
            sys.stdout.flush()


def made_from(
    train: pd.DataFrame, schema: Schema, *, method: str, epsilon: float, seed: int
) -> tuple[pd.DataFrame, float]:
    """As many rows as ``train`` has, and the CPU seconds that they took."""
    if method in PEERS:
        made = run_peer(train, schema, peer=method, epsilon=str(epsilon), seed=seed)
        return made.rows, made.cpu_seconds
    started, rows = time.process_time(), train
    if method != REAL:
        plan = make_plan(schema, Budget(epsilon, 1e-5), method=method, options={"seed": seed})
        rows = fit_release(release_table(train, plan)).sample(len(train), seed=seed).to_pandas()
    return rows, time.process_time() - started


def measured(schema: Schema, train: pd.DataFrame, test: pd.DataFrame, rows: pd.DataFrame) -> list[float]:
    """The scores of one run, in the order of ``SCORES``."""
    real, other = (code_table(schema, frame) for frame in (train, rows))
    few = [code_table(schema, some(frame, 8_000)) for frame in (train, rows)]
    return [
        *(marginal_distance(real, other, size=size, most_sets=MOST_SETS) for size in (1, 2, 3)),
        two_sample_auc(*few, binned=True),
        *two_scores(schema, rows, test),
        *moments(schema, train, rows),
    ]


def two_scores(schema: Schema, rows: pd.DataFrame, test: pd.DataFrame) -> list[float]:
    """Logistic regression and boosted trees, trained on synthetic rows and tested on real ones."""
    seen, unseen = examples_of(schema, some(rows, 20_000)), examples_of(schema, some(test, 10_000))
    if len(np.unique(seen.target)) < 2:
        return [0.5, 0.5]
    found = []
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        HistGradientBoostingClassifier(max_iter=60, random_state=0, early_stopping=False),
    ):
        model.fit(seen.inputs, seen.target)
        if task_of(schema.label) == "binary":
            found.append(roc_auc_score(unseen.target, model.predict_proba(unseen.inputs)[:, 1]))
        else:
            found.append(f1_score(unseen.target, model.predict(unseen.inputs), average="weighted"))
    return found


def moments(schema: Schema, train: pd.DataFrame, rows: pd.DataFrame) -> list[float]:
    """Errors of means, standard deviations and 99.9 % quantiles, averaged over numbers."""
    found = []
    for column in schema.used:
        if column.is_choice:
            continue
        real, made = (pd.to_numeric(f[column.name], errors="coerce").dropna().astype(float) for f in (train, rows))
        if min(len(real), len(made)) < 10 or real.std() == 0:
            continue
        far, made_far = real.quantile(0.999), made.quantile(0.999)
        ratio = (made.std() + 1e-12) / real.std()
        errors = (made.mean() - real.mean()) / real.std(), np.log(ratio), (made_far - far) / max(abs(far), real.std())
        found.append(np.abs(errors))
    return np.mean(found, axis=0).tolist() if found else [0.0] * 3


if __name__ == "__main__":
    main()
