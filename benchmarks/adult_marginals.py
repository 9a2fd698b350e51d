"""DP-HP on Adult's inputs: 3-way and 4-way marginals (Table 1 of the DP-HP paper).

    python benchmarks/adult_marginals.py DATA_DIR [--epsilons 0.3 0.1] [--seeds 0 1 2]
                                         [--options ...]

DATA_DIR holds adult.parquet and schemas/adult.yaml. The 14 inputs of all 48,842 rows, without the
label. Mean total variation distance over all sets of alpha columns: alpha columns each, 20 equal
bins over the public bounds for numbers, every category, binary ones included, and null by itself.
(The published code uses one column more and a single bin for binary columns, so its own figures,
printed beside, are not of quite the same thing.) Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import yaml

from understudy import load_schema
from understudy.evaluation.marginals import marginal_distance
from understudy.evaluation.tables import code_table

COMMAND = Path(sys.executable).with_name("understudy")
PAPER = {"0.3": (0.332, 0.418), "0.1": (0.377, 0.467)}


def main() -> None:
    """Run every epsilon and seed and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--method", default="dp-hp")
    parser.add_argument("--epsilons", nargs="+", default=["0.3", "0.1"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--options", nargs=argparse.REMAINDER, default=[], help="passed on to synth"
    )
    arguments = parser.parse_args()
    document = yaml.safe_load((arguments.data / "schemas" / "adult.yaml").read_text())
    document["columns"] = [c for c in document["columns"] if c["role"] == "feature"]
    document = {key: document[key] for key in ("name", "rows", "columns") if key in document}
    schema = load_schema(document)
    real = pd.read_parquet(arguments.data / "adult.parquet")
    writer = csv.writer(sys.stdout)
    writer.writerow(["method", "epsilon", "seed", "3-way", "paper", "4-way", "paper", "seconds"])
    for epsilon in arguments.epsilons:
        for seed in arguments.seeds:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "inputs.yaml").write_text(yaml.safe_dump(document))
                started = time.perf_counter()
                subprocess.run(
                    [COMMAND, "synth", arguments.data / "adult.parquet", "--schema", folder / "inputs.yaml",
                     "--epsilon", epsilon, "--method", arguments.method, "--seed", str(seed),
                     "-o", folder / "rows.parquet", "--json", *arguments.options],
                    check=True, stdout=subprocess.DEVNULL,
                )  # fmt: skip
                seconds = time.perf_counter() - started
                rows = pd.read_parquet(folder / "rows.parquet")
            sides = [code_table(schema, frame) for frame in (real, rows)]
            found = [marginal_distance(*sides, size=size) for size in (3, 4)]
            paper = PAPER.get(epsilon, ("", ""))
            writer.writerow([
                arguments.method, epsilon, seed, f"{found[0]:.4f}", paper[0], f"{found[1]:.4f}", paper[1],
                f"{seconds:.1f}",
            ])  # fmt: skip
            sys.stdout.flush()


if __name__ == "__main__":
    main()
