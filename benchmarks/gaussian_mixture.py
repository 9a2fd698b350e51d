"""The 5 x 5 Gaussian mixture of the papers (DP-MERF, Fig. 1; DP-HP, Fig. 2), by the command line.

    python benchmarks/gaussian_mixture.py [--methods dp-merf dp-hp] [--epsilon 1] [--seeds 0 1 2]
                                          [--picture FILE.png]

25 Gaussians of deviation 0.2 on a grid of spacing 1, five classes of five, 90,000 rows. Prints CSV:
the mean of -log p(x, y) under the true distribution (real rows: 2.83 nats), the number of modes
that hold at least 1 % of the samples with the right class, and the time.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from command_line import COMMAND, add_options_argument
from labelled_mixture import LabelledMixture

DEVIATION, PER_MODE = 0.2, 3_600
CENTRES = np.array([(column - 2, row - 2) for row in range(5) for column in range(5)])
CLASSES = np.array([(column + 2 * row) % 5 for row in range(5) for column in range(5)])
MIXTURE = LabelledMixture(CENTRES, CLASSES, DEVIATION)
SCHEMA = """\
name: gaussian-mixture
columns:
- {name: x, kind: continuous, role: feature, bounds: [-3.5, 3.5], bounds_from: definition}
- {name: y, kind: continuous, role: feature, bounds: [-3.5, 3.5], bounds_from: definition}
- {name: class, kind: categorical, role: label, categories: [0, 1, 2, 3, 4], bounds_from: definition}
rows: 90000
"""


def draw_mixture(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    modes = np.repeat(np.arange(25), PER_MODE)
    points = CENTRES[modes] + DEVIATION * rng.standard_normal((len(modes), 2))
    return pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "class": CLASSES[modes]})


def draw_picture(tables: dict[str, pd.DataFrame], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(tables), 5), layout="constrained")
    for axis, (title, rows) in zip(figure.subplots(1, len(tables)), tables.items(), strict=True):
        some = rows.sample(6_000, random_state=0)
        axis.scatter(some["x"], some["y"], c=some["class"], s=2, cmap="tab10", vmax=9)
        nats = MIXTURE.negative_log_likelihood(*split(rows)).mean()
        axis.set(title=f"{title}: {nats:.2f} nats", xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run every seed and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["dp-merf", "dp-hp"])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--picture", type=Path)
    add_options_argument(parser)
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(["rows", "epsilon", "seed", "nll", "modes", "seconds"])
    pictures = {}
    for seed in arguments.seeds:
        real = draw_mixture(seed)
        pictures["real"] = real
        writer.writerow(["real", "", seed, *scores(real), ""])
        for method in arguments.methods:
            rows, seconds = synthesise(real, method, arguments.epsilon, seed, arguments.options)
            writer.writerow([method, arguments.epsilon, seed, *scores(rows), f"{seconds:.1f}"])
            sys.stdout.flush()
            pictures[f"{method.upper()}, epsilon {arguments.epsilon}"] = rows
    if arguments.picture:
        draw_picture(pictures, arguments.picture)


def scores(rows: pd.DataFrame) -> tuple[str, int]:
    nats = MIXTURE.negative_log_likelihood(*split(rows)).mean()
    return f"{nats:.3f}", MIXTURE.modes_found(*split(rows))


def split(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Points and their classes."""
    return rows[["x", "y"]].to_numpy(), rows["class"].to_numpy()


def synthesise(
    real: pd.DataFrame, method: str, epsilon: str, seed: int, options: list[str]
) -> tuple[pd.DataFrame, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real.to_parquet(folder / "real.parquet")
        (folder / "schema.yaml").write_text(SCHEMA)
        started = time.perf_counter()
        subprocess.run(
            [
                COMMAND,
                "synth",
                folder / "real.parquet",
                "--schema",
                folder / "schema.yaml",
                "--epsilon",
                epsilon,
                "--method",
                method,
                "--seed",
                str(seed),
                "-o",
                folder / "rows.parquet",
                "--json",
                *options,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return pd.read_parquet(folder / "rows.parquet"), time.perf_counter() - started


if __name__ == "__main__":
    main()
