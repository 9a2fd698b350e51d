"""Peak memory and time of a release as the table grows, by format.

    python benchmarks/release_memory.py [--rows 100000 1000000 4000000]

Each release runs in a process of its own on made-up tables of ten numbers and a label. Prints CSV;
compare rows within one run.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

NUM_COLUMNS = 10
CHILD = """
import resource, sys, time
from understudy import Budget, load_schema, make_plan, release_table
columns = [{"name": f"x{i}", "kind": "continuous", "bounds": [-5, 5]} for i in range(%d)]
columns.append({"name": "label", "kind": "binary", "role": "label", "categories": [0, 1]})
schema = load_schema({"columns": columns})
plan = make_plan(schema, Budget(1.0), method="dp-merf", options={"num_features": 500})
started = time.perf_counter()
release_table(sys.argv[1], plan)
seconds = time.perf_counter() - started
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds)
"""


def write_table(num_rows: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.standard_normal(num_rows, dtype=np.float32) for i in range(NUM_COLUMNS)}
    table = pa.table(columns | {"label": rng.integers(0, 2, num_rows)})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def main() -> None:
    """Print a row for every size and format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 4_000_000])
    writer = csv.writer(sys.stdout)
    writer.writerow(["format", "rows", "file_mb", "peak_mb", "seconds", "rows_per_second"])
    for suffix in (".parquet", ".csv"):
        for num_rows in parser.parse_args().rows:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"table{suffix}"
                write_table(num_rows, path)
                child = [sys.executable, "-c", CHILD % NUM_COLUMNS, str(path)]
                printed = subprocess.run(child, check=True, capture_output=True, text=True).stdout
                peak, seconds = (float(word) for word in printed.split())
                size = path.stat().st_size / 2**20
                rate = num_rows / seconds
            writer.writerow([suffix[1:], num_rows, f"{size:.0f}", f"{peak:.0f}", f"{seconds:.1f}", f"{rate:.0f}"])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
