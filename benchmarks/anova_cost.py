"""CPU seconds and peak memory of the default method as the table grows.

    python benchmarks/anova_cost.py [--rows 10000 100000 1000000 10000000] [--columns 10 30 100 300 600]
                                    [--picture F]

Made-up tables: numbers of mixed spread that hang together, a category per three numbers, a label.
Rows grow at 10 columns, columns at 20,000 rows. Every run is a process of its own. Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

FEW_COLUMNS, FEW_ROWS, PART = 10, 20_000, 100_000
CHILD = """
import json, resource, sys, time
from understudy import Budget, load_schema, make_plan, release_table
from understudy.methods import fit_release
schema, num_rows = load_schema(json.loads(sys.argv[2])), int(sys.argv[3])
plan = make_plan(schema, Budget(1.0), options={"num_rows": num_rows})
marks = [time.process_time()]
release = release_table(sys.argv[1], plan)
marks.append(time.process_time())
generator = fit_release(release)
marks.append(time.process_time())
generator.sample(min(num_rows, 100_000))
marks.append(time.process_time())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(*(later - sooner for sooner, later in zip(marks, marks[1:])), peak)
"""


def columns_of(count: int) -> list[dict[str, object]]:
    """Every fourth column is a category, the last one the label."""
    found: list[dict[str, object]] = [
        {"name": f"x{i}", "kind": "categorical", "categories": list("abcdef")}
        if i % 4 == 3
        else {"name": f"x{i}", "kind": "continuous", "bounds": [-20, 20]}
        for i in range(count)
    ]
    found.append({"name": "label", "kind": "binary", "role": "label", "categories": [0, 1]})
    return found


def write_table(num_rows: int, num_columns: int, path: Path) -> None:
    """Rows in parts, so that the benchmark itself stays small."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, num_rows, PART):
        count = min(PART, num_rows - start)
        shared = rng.standard_normal(count)
        columns: dict[str, object] = {}
        for i in range(num_columns):
            values = (shared + rng.standard_normal(count)) * (1 + i % 3)
            codes = np.clip(values.astype(int) + 3, 0, 5)
            columns[f"x{i}"] = np.array(list("abcdef"))[codes] if i % 4 == 3 else values
        columns["label"] = (shared + rng.standard_normal(count) > 1).astype(int)
        table = pa.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measure(num_rows: int, num_columns: int) -> list[float]:
    """Seconds of release, fit and 100,000 rows, and peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(num_rows, num_columns, path)
        schema = json.dumps({"columns": columns_of(num_columns)})
        child = [sys.executable, "-c", CHILD, str(path), schema, str(num_rows)]
        printed = subprocess.run(child, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in printed.split()]


def main() -> None:
    """Print a row for every size, and draw them if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--columns", type=int, nargs="*", default=[10, 30, 100, 300, 600])
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(["rows", "columns", "release_s", "fit_s", "sample_s", "peak_mb"])
    sizes = [(rows, FEW_COLUMNS) for rows in arguments.rows]
    sizes += [(FEW_ROWS, columns) for columns in arguments.columns]
    found = []
    for size in sizes:
        found.append((*size, *measure(*size)))
        writer.writerow([*size, *(f"{value:.1f}" for value in found[-1][2:])])
        sys.stdout.flush()
    if arguments.picture:
        draw(found[: len(arguments.rows)], found[len(arguments.rows) :], arguments.picture)


def draw(by_rows: list[tuple[float, ...]], by_columns: list[tuple[float, ...]], path: Path) -> None:
    """Seconds and memory against rows and against columns, on logarithmic scales."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, part, place, name in ((axes[0], by_rows, 0, "rows"), (axes[1], by_columns, 1, "columns")):
        sizes = [row[place] for row in part]
        for column, label in ((2, "release, CPU s"), (3, "fit, CPU s")):
            axis.loglog(sizes, [max(row[column], 0.01) for row in part], marker="o", label=label)
        axis.loglog(sizes, [row[5] / 100 for row in part], marker="s", ls=":", label="peak memory, 100 MB")
        axis.set_xlabel(name)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
