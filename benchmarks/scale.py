"""Cost of the private pass over many rows, beside what it is made of.

    python benchmarks/scale.py fourier [--rows 100000 1000000 10000000]
    python benchmarks/scale.py pairs [--rows 1000000 10000000]

``fourier``: 30 numbers, 2,000 Fourier features, one thread, for each number of rows, with DP-MERF's default kernel
(``mixture``: many frequencies touch few columns) and with one length scale (``gaussian``: all touch all). CPU
microseconds per row of the whole pass (Parquet to sums) and of a plain one (pyarrow reads the file, NumPy makes float32
features and adds them up); and in memory, of our kernel, of plain NumPy, and of what a limit is made of, a float32
product by BLAS and compiled cosines and sines, measured apart in the same run; peak memory.
``pairs``: a made-up table of Adult's shape through the default method, all stages and noise, beside DuckDB that reads
the same Parquet file once and counts all pairs of columns (numbers in 20 bins), one thread each.
CPU seconds, each in a process of its own; numba is used if it is installed. Prints CSV; compare within one run.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.features import Fourier, Scales
from understudy.features.exact import COSINE_SERIES, ONE, QUARTER, SINE_SERIES, cosines_and_sines

C0, C1, C2, C3, C4 = COSINE_SERIES  # numba wants them as numbers
S0, S1, S2, S3, S4 = SINE_SERIES
NUM_NUMBERS, NUM_FEATURES, GROUP_ROWS = 30, 2000, 100_000
NUMBERS = {"age": 90, "weight": 1_500_000, "years": 16, "gain": 99_999, "loss": 4_356, "hours": 99}
CHOICES = {"work": 9, "education": 16, "marital": 7, "job": 15, "relation": 6, "race": 5, "sex": 2, "country": 42}

COMMON = """
import resource, sys, time
def done(start):
    print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
FOURIER = (
    COMMON
    + """
from understudy import Budget, load_schema, make_plan
from understudy.private.passes import Run, sum_table
from understudy.private.release import work_of
import pyarrow as pa
columns = [{"name": f"x{i}", "kind": "continuous", "bounds": [0, 1]} for i in range(%(numbers)d)]
options = {"num_features": %(features)d} | ({"length_scale": 0.5} if sys.argv[2] == "gaussian" else {})
plan = make_plan(load_schema({"columns": columns}), Budget(1.0), method="dp-merf", options=options)
work = work_of(plan, ())
work.partial(pa.record_batch({f"x{i}": [0.5] for i in range(%(numbers)d)}))  # compiled before the clock starts
start = time.process_time()
sum_table(sys.argv[1], work, query=None, run=Run(threads=1))
done(start)
"""
) % {"numbers": NUM_NUMBERS, "features": NUM_FEATURES}
PLAIN = (
    COMMON
    + """
import numpy as np, pyarrow.parquet as pq
sys.path.insert(0, sys.argv[3])
from scale import fourier_map
angular = (2 * np.pi * fourier_map(sys.argv[2]).frequencies).astype(np.float32)
total = np.zeros((2, angular.shape[1]))
start = time.process_time()
for batch in pq.ParquetFile(sys.argv[1]).iter_batches(batch_size=2**15, use_threads=False):
    cells = np.stack([batch.column(i).to_numpy() for i in range(batch.num_columns)], axis=1)
    for first in range(0, len(cells), 512):
        angles = cells[first : first + 512] @ angular
        total[0] += np.cos(angles).sum(axis=0)
        total[1] += np.sin(angles).sum(axis=0)
done(start)
"""
)
ANOVA = (
    COMMON
    + """
from understudy import Budget, load_schema, make_plan, release_table
from understudy.private.passes import Run
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
import sys
sys.path.insert(0, sys.argv[2])
from scale import parts_of_a_row
print(*parts_of_a_row(sys.argv[1]))
"""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def fourier_map(kernel: str) -> Fourier:
    every = (Scales(1, 0.004, 0.5), Scales(2, 0.02, 0.7), Scales(NUM_NUMBERS, 0.08, 2.7))
    parts = every if kernel == "mixture" else (Scales(NUM_NUMBERS, 0.5, 0.5),)
    return Fourier(tuple(range(NUM_NUMBERS)), (1.0,) * NUM_NUMBERS, parts, NUM_FEATURES, 0)


def parts_of_a_row(kernel: str, num_rows: int = 4096) -> list[float]:
    """CPU microseconds per row: our kernel, plain NumPy, its product alone, cosines and sines alone."""
    from understudy.private import kernels
    from understudy.private.sums import has_kernel

    rng, map_ = np.random.default_rng(0), fourier_map(kernel)
    cells = np.rint(rng.random((num_rows, NUM_NUMBERS)) * 2**16) / 2**16
    positions = np.ascontiguousarray(kernels.centred(cells.T))
    slots = np.zeros(num_rows, dtype=np.int64)
    single, angular = cells.astype(np.float32), (2 * np.pi * map_.frequencies).astype(np.float32)
    phases = rng.integers(-(2**31), 2**31, (512, NUM_FEATURES // 2)).astype(np.int32)
    target = 2**24 - NUM_FEATURES
    waves_alone = compiled_waves() if has_kernel() else cosines_and_sines

    def plain() -> None:
        for start in range(0, num_rows, 512):
            angles = single[start : start + 512] @ angular
            np.cos(angles).sum(axis=0), np.sin(angles).sum(axis=0)

    def ours() -> None:
        if has_kernel():
            amplitude = map_.amplitude(target)
            kernels.fourier_sums(map_, positions, slots, 1, amplitude=amplitude, radius=2**24)
            return
        for start in range(0, num_rows, 32):
            map_.whole(cells[start : start + 32], target).sum(axis=0)

    def product() -> None:
        for start in range(0, num_rows, 512):
            single[start : start + 512] @ angular

    def waves() -> None:
        for _ in range(0, num_rows, 512):
            waves_alone(phases)

    found = []
    for step in (ours, plain, product, waves):
        step()
        best = float("inf")
        for _ in range(9):
            start = time.process_time()
            step()
            best = min(best, time.process_time() - start)
        found.append(best / num_rows * 1e6)
    return found


def compiled_waves() -> Callable[[npt.NDArray[np.int32]], object]:
    """Cosines and sines of phases in memory, added up, and nothing else."""
    from numba import njit

    def waves(phases):  # type: ignore[no-untyped-def]
        cosines = np.zeros(phases.shape[1], np.float32)
        sines = np.zeros(phases.shape[1], np.float32)
        for row in range(phases.shape[0]):
            own = phases[row]
            for k in range(len(own)):
                double = np.int32(own[k] << ONE)
                z = np.float32(double) * QUARTER
                y = z * z
                cosine = C0 + y * (C1 + y * (C2 + y * (C3 + y * C4)))
                sine = z * (S0 + y * (S1 + y * (S2 + y * (S3 + y * S4))))
                odd = np.int32(own[k] ^ double) < 0
                cosines[k] += -cosine if odd else cosine
                sines[k] += -sine if odd else sine
        return cosines, sines

    compiled: Callable[[npt.NDArray[np.int32]], object] = njit(waves)
    return compiled


def write_numbers(num_rows: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, pa.schema({f"x{i}": pa.float32() for i in range(NUM_NUMBERS)})) as out:
        for start in range(0, num_rows, GROUP_ROWS):
            size = min(GROUP_ROWS, num_rows - start)
            cells = {f"x{i}": rng.random(size, dtype=np.float32) for i in range(NUM_NUMBERS)}
            out.write_table(pa.table(cells))


def write_adult_like(num_rows: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, num_rows, GROUP_ROWS):
        size = min(GROUP_ROWS, num_rows - start)
        columns = {name: (rng.random(size) ** 3 * most).astype(np.int64) for name, most in NUMBERS.items()}
        texts = {
            name: np.array([f"value {n}" for n in range(count)])[(rng.random(size) ** 2 * count).astype(int)]
            for name, count in CHOICES.items()
        }
        table = pa.table(columns | texts | {"income": rng.integers(0, 2, size)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def adult_like_schema() -> str:
    lines = [f"- {{name: {name}, kind: integer, bounds: [0, {most}]}}" for name, most in NUMBERS.items()]
    for name, count in CHOICES.items():
        values = ", ".join(f"value {n}" for n in range(count))
        lines.append(f"- {{name: {name}, kind: categorical, categories: [{values}]}}")
    lines.append("- {name: income, kind: binary, categories: [0, 1], role: label}")
    return "columns:\n" + "\n".join(lines) + "\n"


def child(script: str, *arguments: str) -> tuple[float, ...]:
    command = [sys.executable, "-c", script, *arguments]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD).stdout
    return tuple(float(word) for word in printed.split())


def measure_fourier(sizes: list[int], folder: Path, writer: Any) -> None:
    writer.writerow(
        [
            "rows",
            "kernel",
            "pass_us",
            "plain_pass_us",
            "peak_mb",
            "ours_us",
            "numpy_us",
            "product_us",
            "waves_us",
            "plain_pass_over_pass",
            "numpy_over_ours",
            "limit_over_ours",
        ]
    )
    here = str(Path(__file__).parent)
    for num_rows in sizes:
        path = folder / "numbers.parquet"
        write_numbers(num_rows, path)
        for kernel in ("mixture", "gaussian"):
            seconds, peak = child(FOURIER, str(path), kernel)
            plain_seconds, _ = child(PLAIN, str(path), kernel, here)
            ours, plain, product, waves = child(PARTS, kernel, here)
            passes = [seconds / num_rows * 1e6, plain_seconds / num_rows * 1e6]
            ratios = [plain_seconds / seconds, plain / ours, (product + waves) / ours]
            line = [*passes, peak, ours, plain, product, waves, *ratios]
            writer.writerow([num_rows, kernel, *(f"{value:.2f}" for value in line)])
            sys.stdout.flush()


def measure_pairs(sizes: list[int], folder: Path, writer: Any) -> None:
    import json

    header = ["rows", "default_method_s", "peak_mb", "duckdb_s", "duckdb_peak_mb", "ratio"]
    writer.writerow(header)
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
        writer.writerow([num_rows, *(f"{value:.2f}" for value in line)])
        sys.stdout.flush()


def main() -> None:
    """Print a row for every number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["fourier", "pairs"])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    wishes = parser.parse_args()
    measure = measure_fourier if wishes.what == "fourier" else measure_pairs
    with tempfile.TemporaryDirectory() as folder:
        measure(wishes.rows, Path(folder), csv.writer(sys.stdout))


if __name__ == "__main__":
    main()
