"""Pictures of the internal report on Adult at epsilon 1, by the program and headless Chromium.

    python benchmarks/report_pictures.py DATA_DIR OUTPUT_DIR [--methods dp-anova dp-merf]

DATA_DIR holds adult.parquet and schemas/adult.yaml. An 80/20 split by seed 0: a release from the first
part, rows from the release, models tested on the second. Adult is public, so its report may be shown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

RUN = (sys.executable, "-c", "from understudy.cli import main; main()")
WIDTH, HEIGHT = 1280, 1500
CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


def main() -> None:
    """Make every method's rows, report and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--methods", nargs="+", default=["dp-anova", "dp-merf"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        split(arguments.data / "adult.parquet", folder)
        for method in arguments.methods:
            page = report(folder, arguments.data / "schemas" / "adult.yaml", method)
            picture = arguments.output / f"report-adult-{method}.png"
            photograph(page, picture.resolve(), folder / f"browser-{method}")
            print(f"{picture}: {picture.stat().st_size:,} bytes of {page.stat().st_size:,} of HTML")


def split(path: Path, folder: Path) -> None:
    """Four fifths of the rows to learn from, one fifth to test on."""
    rows = pq.read_table(path)
    order = np.random.default_rng(0).permutation(rows.num_rows)
    edge = int(0.8 * rows.num_rows)
    pq.write_table(rows.take(order[:edge]), folder / "train.parquet")
    pq.write_table(rows.take(order[edge:]), folder / "test.parquet")


def report(folder: Path, schema: Path, method: str) -> Path:
    """Rows at epsilon 1, and the report on them."""
    rows, release, page = (folder / f"{method}{end}" for end in (".parquet", "-release", ".html"))
    real, test = folder / "train.parquet", folder / "test.parquet"
    synth = ["synth", real, "-s", schema, "-e", "1", "-m", method, "-o", rows]
    judged = ["evaluate", rows, "-r", real, "--test", test, "--release", release, "-o", page]
    for words in ([*synth, "--release-dir", release], judged):
        subprocess.run([*RUN, *map(str, words)], check=True)
    return page


def photograph(page: Path, picture: Path, profile: Path) -> None:
    """What a person sees first."""
    size = f"--window-size={WIDTH},{HEIGHT}"
    places = (f"--user-data-dir={profile}", f"--screenshot={picture}", page.as_uri())
    subprocess.run([*CHROMIUM, size, *places], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
