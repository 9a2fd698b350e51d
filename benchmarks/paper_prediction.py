"""Train on synthetic, test on real: tables 2 and 5 to 8 of 002, tables 2 and 7 of 001.

    python benchmarks/paper_prediction.py --table 002.2 [--data DIR] [--datasets adult cervical]
                                          [--methods real dp-merf] [--seeds 0 1 2 3 4]

A seed draws an 80/20 split; the method sees the 80 %, twelve classifiers learn from its rows (at most
`--most-rows`) and are tested on as many of the 20 %, whose class shares are never changed. Prints CSV:
our score by the papers' protocol (their settings, hard predictions) and by probabilities, then the
printed one and its caveat. Scores are means over the seeds, or the best where the table prints
the best. F1 is weighted, and the same by both protocols but for the settings. DP-GAN runs where its
library is installed (peers.py); what is not run is printed as a citation.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass

import numpy as np
from classifiers import twelve_scores
from command_line import REAL, Table, add_data_argument, add_options_argument, load_table, some, synthesise
from paper_numbers import MEAN, Published, read_table, table_names
from peers import PEERS, installed, run_peer

from understudy.evaluation.models import Protocol

EPSILON = "1"
OURS = (REAL, "dp-merf", "dp-hp", "dp-anova")
METRICS = {2: ("roc", "prc"), 3: ("f1",)}  # by the number of scores that a classifier gets
HEADER = (
    "paper",
    "table",
    "dataset",
    "method",
    "model",
    "epsilon",
    "metric",
    "papers_protocol",
    "probabilities",
    "seeds",
    "cpu_seconds",
    "published",
    "caveat",
)
Scores = dict[tuple[str, str], np.ndarray]  # (papers' protocol, probabilities) by model and metric


@dataclass(frozen=True)
class Runs:
    """What a method reached on a data set, over all seeds."""

    scores: Scores
    cpu_seconds: float

    def cells(self, model: str, metric: str) -> list[str]:
        """Both scores of a model, or of all on average."""
        if model == MEAN:
            found = np.mean([each for key, each in self.scores.items() if key[1] == metric], axis=0)
        else:
            found = self.scores[model, metric]
        return [f"{score:.3f}" for score in found]


def main() -> None:
    """Run every data set, method and seed, and print our numbers beside the printed ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--table", required=True, choices=table_names(metrics=("roc", "f1")))
    parser.add_argument("--datasets", nargs="+", help="default: all of the table")
    parser.add_argument("--methods", nargs="+", choices=(*OURS, *installed()), default=OURS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--most-rows", type=int, default=50_000)
    parser.add_argument("--jobs", type=int, default=2, help="processes of the classifiers")
    add_options_argument(parser)
    arguments = parser.parse_args()
    printed = read_table(arguments.table, datasets=arguments.datasets)
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for dataset in dict.fromkeys(each.dataset for each in printed):
        rows = [each for each in printed if each.dataset == dataset]
        runs = {method: run(method, dataset, rows, arguments) for method in arguments.methods}
        writer.writerows(beside(rows, runs, seeds=arguments.seeds))
        sys.stdout.flush()


def run(method: str, dataset: str, rows: list[Published], arguments: argparse.Namespace) -> Runs:
    """All seeds of a method, put together as the table does."""
    table = load_table(arguments.data, dataset)
    found, seconds = [], []
    for seed in arguments.seeds:
        train, test = table.split(seed)
        if method in PEERS:
            made = run_peer(train, table.schema, peer=method, epsilon=EPSILON, seed=seed)
        else:
            made = synthesise(
                train, table.schema_path, method=method, epsilon=EPSILON, seed=seed, options=arguments.options
            )
        seconds.append(made.cpu_seconds)
        sides = [some(frame, arguments.most_rows) for frame in (made.rows, test)]
        found.append(both_protocols(table, *sides, num_jobs=arguments.jobs))
        print(f"{dataset}, {method}, seed {seed}: {seconds[-1]:.0f} CPU seconds", file=sys.stderr)
    together = np.max if any("best" in each.caveats for each in rows) else np.mean
    return Runs({key: together([each[key] for each in found], axis=0) for key in found[0]}, float(np.mean(seconds)))


def both_protocols(table: Table, rows, test, *, num_jobs: int) -> Scores:
    """Scores of every classifier by the papers' protocol and by probabilities."""
    hard, soft = (
        twelve_scores(table.schema, rows, test, protocol=protocol, num_jobs=num_jobs)
        for protocol in (Protocol.PAPERS, Protocol.PROBABILITIES)
    )
    return {
        (model, metric): np.array([hard[model][place], soft[model][place]])
        for model in hard
        for place, metric in enumerate(METRICS[len(hard[model])])
    }


def beside(rows: list[Published], runs: dict[str, Runs], *, seeds: list[int]) -> list[list[object]]:
    """Printed numbers with ours where there are any, then methods that the table does not have."""
    ran = " ".join(map(str, seeds))
    lines = []
    for each in rows:
        ours: list[str] = ["", "", "", ""]
        if each.method in runs and each.epsilon in ("", EPSILON):
            of = runs[each.method]
            ours = [*of.cells(each.model, each.metric), ran, f"{of.cpu_seconds:.0f}"]
        lines.append(
            [
                each.paper,
                each.table,
                each.dataset,
                each.method,
                each.model,
                each.epsilon,
                each.metric,
                *ours,
                each.value,
                each.caveat,
            ]
        )
    first, asked = rows[0], dict.fromkeys((each.model, each.metric) for each in rows)
    for method in runs.keys() - {each.method for each in rows}:
        of, epsilon = runs[method], "" if method == REAL else EPSILON
        lines += [
            [
                first.paper,
                first.table,
                first.dataset,
                method,
                model,
                epsilon,
                metric,
                *of.cells(model, metric),
                ran,
                f"{of.cpu_seconds:.0f}",
                "",
                "not in the paper",
            ]
            for model, metric in asked
        ]
    return lines


if __name__ == "__main__":
    main()
