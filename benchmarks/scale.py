"""Cost of the private pass over many rows, beside what it is made of.

    python benchmarks/scale.py fourier [--rows 100000 1000000 10000000]
    python benchmarks/scale.py pairs [--rows 1000000 10000000]

``fourier``: 30 numbers, 2,000 Fourier features of DP-MERF's default kernel, one thread, for each number of rows: CPU
microseconds per row of the whole pass (Parquet to sums), of the kernel alone, of plain NumPy in float32, and of
what a limit is made of, a float32 product by BLAS and compiled cosines and sines, measured apart in the same run; peak
memory.
``pairs``: a made-up table of Adult's shape through the default method, all stages and noise, beside DuckDB that reads
the same Parquet file once and counts all pairs of columns (numbers in 20 bins), one thread each.
CPU seconds, each in a process of its own; numba is used if it is installed. Prints CSV; compare within one run.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUM_NUMBERS, NUM_FEATURES, GROUP_ROWS = 30, 2000, 100_000
NUMBERS = {"age": 90, "weight": 1_500_000, "years": 16, "gain": 99_999, "loss": 4_356, "hours": 99}
CHOICES = {
    "work": 9, "education": 16, "marital": 7, "job": 15, "relation": 6, "race": 5, "sex": 2,
    "country": 42,
}  # fmt: skip

COMMON = """
import resource, sys, time
def done(start):
    print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
FOURIER = (
    COMMON
    + """
from understudy import Budget, load_schema, make_plan
from understudy.private.engines.passes import Run, sum_table
from understudy.private.release import work_of
columns = [{"name": f"x{i}", "kind": "continuous", "bounds": [0, 1]} for i in range(%d)]
plan = make_plan(load_schema({"columns": columns}), Budget(1.0), method="dp-merf", options={"num_features": %d})
work = work_of(plan, ())
import pyarrow as pa
work.partial(pa.record_batch({f"x{i}": [0.5] for i in range(%d)}))  # compiled before the clock starts
start = time.process_time()
sum_table(sys.argv[1], work, query=None, run=Run(threads=1))
done(start)
"""
)
ANOVA = (
    COMMON
    + """
from understudy import Budget, load_schema, make_plan, release_table
from understudy.private.engines.passes import Run
plan = make_plan(load_schema(sys.argv[2]), Budget(1.0))
start = time.process_time()
release_table(sys.argv[1], plan, run=Run(threads=1))
done(start)
"""
)
DUCKDB = (
    COMMON
    + """
import json, duckdb
columns, pairs = json.loads(sys.argv[2])
connection = duckdb.connect(config={"threads": 1})
connection.execute("SET enable_progress_bar = false")
start = time.process_time()
connection.execute(f"CREATE TABLE t AS SELECT {', '.join(columns)} FROM read_parquet('{sys.argv[1]}')")
for a, b in pairs:
    connection.execute(f"SELECT {a}, {b}, count(*) FROM t GROUP BY ALL").fetchall()
done(start)
"""
)
PARTS = """
import sys, time
import numpy as np
sys.path.insert(0, %r)
from scale import parts_of_a_row
print(*parts_of_a_row())
"""


def parts_of_a_row(num_rows: int = 4096) -> list[float]:
    """CPU microseconds per row: kernel, plain NumPy, its product alone, cosines and sines alone."""
    import time

    from understudy.features import Fourier, Scales
    from understudy.features.turns import cosines_and_sines
    from understudy.private import kernels

    rng = np.random.default_rng(0)
    numbers = tuple(range(NUM_NUMBERS))
    every = (Scales(1, 0.004, 0.5), Scales(2, 0.02, 0.7), Scales(NUM_NUMBERS, 0.08, 2.7))
    map_ = Fourier(numbers, (1.0,) * NUM_NUMBERS, every, NUM_FEATURES, 0)
    cells = np.rint(rng.random((num_rows, NUM_NUMBERS)) * 2**16) / 2**16
    slots = np.zeros(num_rows, dtype=np.int64)
    single, angular = cells.astype(np.float32), (2 * np.pi * map_.frequencies).astype(np.float32)
    phases = rng.integers(-(2**31), 2**31, (512, NUM_FEATURES // 2)).astype(np.int32)

    def plain() -> None:
        for start in range(0, num_rows, 512):
            angles = single[start : start + 512] @ angular
            np.cos(angles).sum(axis=0), np.sin(angles).sum(axis=0)

    def kernel() -> None:
        if kernels.has_kernel():
            scale = map_.whole_scale(2**24)
            kernels.fourier_sums(map_, cells, slots, 1, scale=scale, radius=2**25)
            return
        for start in range(0, num_rows, 512):
            map_.whole(cells[start : start + 512], 2**24).sum(axis=0)

    def product() -> None:
        for start in range(0, num_rows, 512):
            single[start : start + 512] @ angular

    def waves() -> None:
        for _ in range(0, num_rows, 512):
            if kernels.has_kernel():
                _compiled_waves()(phases)
            else:
                cosines_and_sines(phases)

    found = []
    for step in (kernel, plain, product, waves):
        step()
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            step()
            best = min(best, time.process_time() - start)
        found.append(best / num_rows * 1e6)
    return found


def _compiled_waves() -> object:
    """Cosines and sines alone, as fast as they compile."""
    global _WAVES
    if _WAVES is None:
        from numba import njit

        from understudy.features import turns as t

        a, b, c, d, e = t.C0, t.C2, t.C4, t.C6, t.C8
        f, g, h, i, j = t.S1, t.S3, t.S5, t.S7, t.S9
        half, turn = t.HALF_QUARTER, t.TURN

        def waves(phases):  # type: ignore[no-untyped-def]
            out = np.zeros(phases.shape[1], np.float32)
            for row in range(phases.shape[0]):
                own = phases[row]
                for k in range(len(own)):
                    quarter = np.int32(own[k] + half) >> np.int32(30)
                    x = np.float32(np.int32(own[k] - np.int32(quarter << np.int32(30)))) * turn
                    y = x * x
                    cosine = a + y * (b + y * (c + y * (d + y * e)))
                    sine = x * (f + y * (g + y * (h + y * (i + y * j))))
                    out[k] += cosine if (quarter & np.int32(1)) != 0 else sine
                    out[k] += sine if (quarter & np.int32(2)) != 0 else cosine
            return out

        _WAVES = njit(waves)
    return _WAVES


_WAVES: object = None


def write_numbers(num_rows: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(
        path, pa.schema({f"x{i}": pa.float32() for i in range(NUM_NUMBERS)})
    ) as out:
        for start in range(0, num_rows, GROUP_ROWS):
            size = min(GROUP_ROWS, num_rows - start)
            cells = {f"x{i}": rng.random(size, dtype=np.float32) for i in range(NUM_NUMBERS)}
            out.write_table(pa.table(cells))


def write_adult_like(num_rows: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, num_rows, GROUP_ROWS):
        size = min(GROUP_ROWS, num_rows - start)
        columns = {
            name: (rng.random(size) ** 3 * most).astype(np.int64) for name, most in NUMBERS.items()
        }
        texts = {
            name: np.array([f"value {n}" for n in range(count)])[
                (rng.random(size) ** 2 * count).astype(int)
            ]
            for name, count in CHOICES.items()
        }
        table = pa.table(columns | texts | {"income": rng.integers(0, 2, size)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def adult_like_schema() -> str:
    lines = [
        f"- {{name: {name}, kind: integer, bounds: [0, {most}]}}" for name, most in NUMBERS.items()
    ]
    for name, count in CHOICES.items():
        values = ", ".join(f"value {n}" for n in range(count))
        lines.append(f"- {{name: {name}, kind: categorical, categories: [{values}]}}")
    lines.append("- {name: income, kind: binary, categories: [0, 1], role: label}")
    return "columns:\n" + "\n".join(lines) + "\n"


def child(script: str, *arguments: str) -> tuple[float, ...]:
    command = [sys.executable, "-c", script, *arguments]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return tuple(float(word) for word in printed.split())


def measure_fourier(sizes: list[int], folder: Path, writer: object) -> None:
    writer.writerow(  # type: ignore[attr-defined]
        ["rows", "pass_us", "peak_mb", "kernel_us", "numpy_us", "product_us", "waves_us",
         "numpy_over_kernel", "limit_over_kernel"]
    )  # fmt: skip
    for num_rows in sizes:
        path = folder / "numbers.parquet"
        write_numbers(num_rows, path)
        seconds, peak = child(FOURIER % (NUM_NUMBERS, NUM_FEATURES, NUM_NUMBERS), str(path))
        kernel, plain, product, waves = child(PARTS % str(Path(__file__).parent))
        line = [seconds / num_rows * 1e6, peak, kernel, plain, product, waves]
        ratios = [plain / kernel, (product + waves) / kernel]
        writer.writerow([num_rows, *(f"{value:.2f}" for value in (*line, *ratios))])  # type: ignore[attr-defined]
        sys.stdout.flush()


def measure_pairs(sizes: list[int], folder: Path, writer: object) -> None:
    import json

    header = ["rows", "default_method_s", "peak_mb", "duckdb_s", "duckdb_peak_mb", "ratio"]
    writer.writerow(header)  # type: ignore[attr-defined]
    (folder / "schema.yaml").write_text(adult_like_schema())
    binned = [f"least(19, {name} * 20 // {most}) AS {name}" for name, most in NUMBERS.items()]
    names = [*NUMBERS, *CHOICES, "income"]
    job = json.dumps([[*binned, *CHOICES, "income"], list(combinations(names, 2))])
    for num_rows in sizes:
        path = folder / "rows.parquet"
        write_adult_like(num_rows, path)
        ours, peak = child(ANOVA, str(path), str(folder / "schema.yaml"))
        theirs, other_peak = child(DUCKDB, str(path), job)
        line = [ours, peak, theirs, other_peak, ours / theirs]
        writer.writerow([num_rows, *(f"{value:.2f}" for value in line)])  # type: ignore[attr-defined]
        sys.stdout.flush()


def main() -> None:
    """Print a row for every number of rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["fourier", "pairs"])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    wishes = parser.parse_args()
    measure = measure_fourier if wishes.what == "fourier" else measure_pairs
    with tempfile.TemporaryDirectory() as folder:
        measure(wishes.rows, Path(folder), csv.writer(sys.stdout))


if __name__ == "__main__":
    main()
