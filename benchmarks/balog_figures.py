"""Figures 1 and 2 of Balog, Tolstikhin & Schölkopf (ICML 2018), beside the published values.

    python benchmarks/balog_figures.py [--output FILE.csv] [--dimensions 2 5] [--seeds 0]
                                       [--curves public-subset random-points algorithm-2]
                                       [--points 10 100] [--picture FILE.png] [--only-picture]

100,000 rows of a mixture, delta 1e-6, one row replaced by another, the paper's kernel (balog_setting.py).
Every line is the RKHS distance between a released weighted database and the mean embedding of all
private rows, computed exactly on all of them; the published value beside it (of one run); that of the
algorithm as printed on the same points (up to 1,000); and the CPU seconds of plan, release and fit.

M is the number of points that may get weight. Random points are the M best of 2 M that are drawn, by
a look that is paid for. Seed 0 has the published points, others draw their own; noise has no seed.
Lines that a file holds already are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from balog_setting import DELTA, NUM_ROWS, WIDE, Setting

from understudy import Budget, fit_release, make_plan, release_table
from understudy.generators import WeightedDatabase
from understudy.released import Release

CURVES = ("public-subset", "random-points", "algorithm-2")
EPSILONS = (0.01, 0.1, 1.0)
MOST_SPANNING = 512
PUBLISHED = Path(__file__).with_name("balog_published.csv")
FIELDS = [
    "curve",
    "dimension",
    "points",
    "epsilon",
    "seed",
    "distance",
    "published",
    "as_printed",
    "rank",
    "rows",
    "cpu_seconds",
]


def published() -> dict[tuple[str, int, int, float], float]:
    """Distances of the published curves (the authors' result files, every fourth M)."""
    with PUBLISHED.open() as file:
        return {
            (r["curve"], int(r["dimension"]), int(r["points"]), float(r["epsilon"])): float(r["distance"])
            for r in csv.DictReader(file)
        }


def options_of(setting: Setting, curve: str, count: int, seed: int) -> dict[str, Any]:
    """What a curve asks of the method."""
    shared = {"neighbours": "replace-one", "num_rows": NUM_ROWS, "length_scale": setting.length_scale, "seed": seed}
    if curve == "public-subset":
        return shared | {"public_points": setting.frame(setting.public_subset(count, seed))}
    if curve == "random-points":
        pool = setting.frame(setting.random_points(2 * count, seed))
        return shared | {"public_points": pool, "num_points": min(count, MOST_SPANNING)}
    wide = {"means": dict.fromkeys(setting.names, 0.0), "deviations": dict.fromkeys(setting.names, WIDE)}
    return shared | wide | {"draw": "gaussian", "num_points": count}


def measure(setting: Setting, curve: str, counts: list[int], epsilon: float, seed: int) -> Iterator[dict[str, Any]]:
    """One line per number of points. Algorithm 2 makes one release for all of them."""
    method = "balog-features" if curve == "algorithm-2" else "balog-subspace"
    made: Release | None = None
    release_time = 0.0
    for count in counts:
        start = time.process_time()
        options = options_of(setting, curve, count, seed)
        plan = make_plan(setting.schema, Budget(epsilon, DELTA), method=method, options=options)
        if made is None or curve != "algorithm-2":
            made = release_table(setting.frame(setting.rows), plan)
            release_time = time.process_time() - start
            start = time.process_time()
        generator = fit_release(replace(made, plan=plan))
        taken = release_time + time.process_time() - start
        if not isinstance(generator, WeightedDatabase):
            raise TypeError("not a weighted database")
        rows = generator.weighted_rows()
        points = np.stack([rows[name].to_numpy() for name in setting.names], axis=1)
        printed = ""
        if curve != "algorithm-2" and count <= 1000:
            source = setting.public_subset if curve == "public-subset" else setting.random_points
            printed = f"{setting.as_printed(source(count, seed), epsilon):.7g}"
        yield {
            "points": count,
            "distance": f"{setting.distance(points, generator.weights):.7g}",
            "as_printed": printed,
            "rank": made.blocks[-1].map.dim,
            "rows": len(points),
            "cpu_seconds": f"{taken:.2f}",
        }


def done_already(path: Path) -> set[tuple[str, ...]]:
    """Lines that a file holds."""
    if not path.exists():
        return set()
    with path.open() as file:
        return {tuple(row[name] for name in FIELDS[:5]) for row in csv.DictReader(file)}


def draw_picture(lines: list[dict[str, str]], path: Path) -> None:
    """Published curves as lines, ours as dots: M across, distance up."""
    from matplotlib.figure import Figure

    theirs = published()
    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True)
    for axis_row, dimension in zip(axes, (2, 5), strict=True):
        for axis, curve in zip(axis_row, CURVES, strict=True):
            for epsilon, colour in zip(EPSILONS, ("tab:red", "tab:orange", "tab:blue"), strict=True):
                curve_of = sorted(
                    (m, y) for (c, d, m, e), y in theirs.items() if (c, d, e) == (curve, dimension, epsilon)
                )
                axis.loglog(*zip(*curve_of, strict=True), "--", color=colour, alpha=0.5)
                own = [
                    (int(r["points"]), float(r["distance"]))
                    for r in lines
                    if (r["curve"], int(r["dimension"]), float(r["epsilon"])) == (curve, dimension, epsilon)
                ]
                if own:
                    axis.loglog(*zip(*own, strict=True), "o", ms=3.5, color=colour, label=f"epsilon {epsilon:g}")
            axis.set_title(f"{curve.replace('-', ' ')}, {dimension} dimensions", fontsize=10)
            axis.grid(alpha=0.2)
        axis_row[0].set_ylabel("RKHS distance to all private rows")
    for axis in axes[1]:
        axis.set_xlabel("points that may get weight (M)")
    axes[0, 0].legend(title="dots: ours, every seed\ndashed: as published", fontsize=8, title_fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure what is missing, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("balog.csv"))
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--curves", nargs="+", default=list(CURVES), choices=CURVES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--points", type=int, nargs="+", help="default: every M that was published")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--only-picture", action="store_true")
    wishes = parser.parse_args()
    theirs, done = published(), done_already(wishes.output)
    for dimension in () if wishes.only_picture else wishes.dimensions:
        setting = Setting(dimension)
        for curve in wishes.curves:
            known = sorted({m for c, d, m, _ in theirs if (c, d) == (curve, dimension)})
            for seed in wishes.seeds:
                for epsilon in EPSILONS:
                    key = {"curve": curve, "dimension": dimension, "epsilon": epsilon, "seed": seed}
                    counts = [
                        m
                        for m in wishes.points or known
                        if tuple(str((key | {"points": m})[name]) for name in FIELDS[:5]) not in done
                    ]
                    for line in measure(setting, curve, counts, epsilon, seed):
                        line |= key | {"published": theirs.get((curve, dimension, line["points"], epsilon), "")}
                        append(wishes.output, line)
    if wishes.picture:
        with wishes.output.open() as file:
            draw_picture(list(csv.DictReader(file)), wishes.picture)


def append(path: Path, line: dict[str, Any]) -> None:
    """Write one line, and the heading before the first."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerow(line)
    print(",".join(str(line[name]) for name in FIELDS), flush=True)


if __name__ == "__main__":
    main()
