"""Marginals of synthetic inputs: tables 1, 5 and 8 of 001, and the table of App. M.2 of 000.

    python benchmarks/paper_marginals.py [--table 001.1] [--data DIR] [--datasets adult census]
                                         [--methods dp-hp] [--epsilons 0.3] [--seeds 0 1 2]

All rows, without their label. Mean total variation distance over sets of alpha columns (all sets, or
`--most-sets` of them, drawn once): 20 equal bins over the public bounds for numbers, every category,
binary ones included, and null by itself. Prints CSV: our distance, then the printed one and its
caveat. Settings that a table varies (gamma in 5, columns in a product in 8) are passed on to synth; where
it refuses them, as products of five one-hot columns, the line says so. PrivBayes runs where its library is
installed (peers.py) and `--methods privbayes` asks for it; otherwise it is printed as a citation.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml
from command_line import Synthesis, add_data_argument, add_options_argument, schema_of, synthesise
from paper_numbers import Published, read_table, table_names
from peers import PEERS, installed, run_peer

from understudy import load_schema
from understudy.errors import UsageError
from understudy.evaluation.columns import marginal_distance
from understudy.evaluation.tables import code_table

OURS = ("dp-merf", "dp-hp", "dp-anova")
SIZES = {"tv2": 2, "tv3": 3, "tv4": 4}
REFUSED = "refused"
HEADER = (
    "paper",
    "table",
    "dataset",
    "method",
    "epsilon",
    "settings",
    "seed",
    "metric",
    "ours",
    "cpu_seconds",
    "published",
    "caveat",
)
Run = tuple[str, str, str, str]  # data set, method, epsilon, settings


def main() -> None:
    """Run what the table ran and print our distances beside the printed ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--table", default="001.1", choices=table_names(metrics=tuple(SIZES)))
    parser.add_argument("--datasets", nargs="+", help="default: all of the table")
    parser.add_argument("--methods", nargs="+", choices=(*OURS, *installed()), default=OURS)
    parser.add_argument("--epsilons", nargs="+", help="default: all of the table")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--most-sets", type=int, default=1001)
    add_options_argument(parser)
    arguments = parser.parse_args()
    printed = [
        each
        for each in read_table(arguments.table, datasets=arguments.datasets)
        if arguments.epsilons is None or each.epsilon in arguments.epsilons
    ]
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    writer.writerows(citations(each for each in printed if each.method not in (*OURS, *arguments.methods)))
    for each in planned(printed, arguments.methods):
        for seed in arguments.seeds:
            writer.writerows(measured(each, printed, seed, arguments))
            sys.stdout.flush()


def citations(printed: Iterable[Published]) -> list[list[object]]:
    """What is not run here."""
    return [
        [
            each.paper,
            each.table,
            each.dataset,
            each.method,
            each.epsilon,
            each.settings,
            "",
            each.metric,
            "",
            "",
            each.value,
            each.caveat,
        ]
        for each in printed
    ]


def planned(printed: list[Published], methods: list[str]) -> list[Run]:
    """One run for each method, epsilon and settings of a data set; settings are a method's own."""
    found = {}
    for each in printed:
        for method in methods if not each.settings else [each.method]:
            if method in methods:
                found[each.dataset, method, each.epsilon, each.settings] = None
    return list(found)


def measured(run: Run, printed: list[Published], seed: int, arguments: argparse.Namespace) -> list[list[object]]:
    """Every distance that the table prints for this data set."""
    dataset, method, epsilon, settings = run
    document = inputs_only(arguments.data, dataset)
    schema = load_schema(document)
    real = pd.read_parquet(arguments.data / f"{dataset}.parquet")
    options = [*settings.split(), *arguments.options]
    metrics = list(dict.fromkeys(each.metric for each in printed if each.dataset == dataset))
    try:
        if method in PEERS:
            made = run_peer(real, schema, peer=method, epsilon=epsilon, seed=seed)
        else:
            made = synthesise_inputs(real, document, method=method, epsilon=epsilon, seed=seed, options=options)
        sides = [code_table(schema, frame) for frame in (real, made.rows)]
        seconds = f"{made.cpu_seconds:.0f}"
        found = [
            f"{marginal_distance(*sides, size=SIZES[metric], most_sets=arguments.most_sets):.4f}" for metric in metrics
        ]
    except subprocess.CalledProcessError as error:
        if error.returncode != UsageError.exit_code:
            raise
        found, seconds = [REFUSED] * len(metrics), ""
    numbers = {each.key: each for each in printed}
    lines = []
    for metric, ours in zip(metrics, found, strict=True):
        theirs = numbers.get((dataset, method, "", epsilon, settings, metric))
        beside = (theirs.value, theirs.caveat) if theirs else ("", "not in the table")
        lines.append(
            [*arguments.table.split(".", 1), dataset, method, epsilon, settings, seed, metric, ours, seconds, *beside]
        )
    return lines


def inputs_only(data: Path, dataset: str) -> dict[str, object]:
    """The schema's features."""
    document = yaml.safe_load(schema_of(data, dataset).read_text())
    columns = [each for each in document["columns"] if each["role"] == "feature"]
    return {"name": dataset, "rows": document["rows"], "columns": columns}


def synthesise_inputs(
    real: pd.DataFrame, document: dict[str, object], *, method: str, epsilon: str, seed: int, options: list[str]
) -> Synthesis:
    """Synthetic rows of a schema that is not a file yet."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "inputs.yaml"
        path.write_text(yaml.safe_dump(document))
        return synthesise(real, path, method=method, epsilon=epsilon, seed=seed, options=options)


if __name__ == "__main__":
    main()
