"""Pictures of the reports: the demo's, and those on Adult at epsilon 1, by headless Chromium.

    python benchmarks/report_pictures.py OUTPUT_DIR [--data DIR] [--methods dp-anova dp-merf]

An 80/20 split by seed 0: a release from the first part, rows from the release, models tested on the
second. Both tables are public, so that their internal reports may be shown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from command_line import add_data_argument, schema_of

RUN = (sys.executable, "-c", "from understudy.cli import main; main()")
WIDTH, SHORT, LONG = 1280, 1430, 1900
CHROMIUM = (
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def main() -> None:
    """Make every method's rows, report and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("output", type=Path)
    parser.add_argument("--methods", nargs="+", default=["dp-anova", "dp-merf"])
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run("demo", "-o", folder / "demo")
        photograph(folder / "demo" / "report.html", arguments.output / "report-demo.png", SHORT)
        split(arguments.data / "adult.parquet", folder)
        for method in arguments.methods:
            page = report(folder, schema_of(arguments.data, "adult"), method)
            photograph(page, arguments.output / f"report-adult-{method}.png", LONG)
        public = folder / "public.html"
        run("report", folder / f"{arguments.methods[0]}-release", "-o", public)
        photograph(public, arguments.output / "report-public.png", LONG)


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
    run("synth", real, "-s", schema, "-e", 1, "-m", method, "-o", rows, "--release-dir", release)
    run("evaluate", rows, "-r", real, "--test", test, "--release", release, "-o", page)
    return page


def run(*words: object) -> None:
    """The program, as people call it."""
    subprocess.run([*RUN, *map(str, words)], check=True)


def photograph(page: Path, picture: Path, height: int) -> None:
    """The page from its top, so many pixels down."""
    with tempfile.TemporaryDirectory() as profile:
        places = (f"--user-data-dir={profile}", f"--screenshot={picture.resolve()}", page.as_uri())
        size = f"--window-size={WIDTH},{height}"
        subprocess.run([*CHROMIUM, size, *places], check=True, stderr=subprocess.DEVNULL)
    print(f"{picture}: {picture.stat().st_size:,} bytes of {page.stat().st_size:,} of HTML")


if __name__ == "__main__":
    main()
