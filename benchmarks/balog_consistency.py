"""Weighted databases converge (Balog et al. 2018, Theorems 2 and 7, Props. 5, 6 and 8): how fast.

    python benchmarks/balog_consistency.py [--seeds 1 2 3] [--picture FILE.png]

The mixture of App. B in two dimensions, epsilon 1, delta 1e-6, one row replaced by another. Distances are
to the embedding of the *distribution* that rows are drawn from, which has a closed form. Prints CSV
(what varies, its value, the mean distance over seeds), and the slope of log distance with its bound:

  rows, public subset    a tenth of the rows is public               at most -1/2 (Prop. 6)
  rows, random points    N / 20 points from a wide Gaussian          at most -1/3 (Prop. 5, D = 2)
  rows, algorithm 2      4,000 features, 256 rows                    at most -1/3 (Prop. 8)
  epsilon, plain noise   1,000 public rows, weights as they come     -1 (Theorem 2's privacy error)
  points, no noise       projection error, which has no noise in it  falls to zero (Lemma 10)
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from balog_setting import DELTA, WIDE, Setting

from understudy import Budget, fit_release, make_plan, release_table
from understudy.generators import WeightedDatabase
from understudy.methods.balog import balog_kernel
from understudy.methods.common import given_points
from understudy.rules.pivots import pivot_points, spanned_by
from understudy.schema import Layout

ROWS = (1_000, 3_162, 10_000, 31_623, 100_000)
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
POINTS = (3, 10, 30, 100, 300)
BOUNDS = {
    "rows, public subset": -1 / 2,
    "rows, random points": -1 / 3,
    "rows, algorithm 2": -1 / 3,
    "epsilon, plain noise": -1.0,
    "points, no noise": None,
}


def fitted(setting: Setting, method: str, epsilon: float, **options: Any) -> tuple[Any, Any]:
    """Points and weights of one release."""
    shared = {
        "neighbours": "replace-one",
        "num_rows": setting.num_rows,
        "seed": setting.seed,
        "length_scale": setting.length_scale,
    }
    plan = make_plan(setting.schema, Budget(epsilon, DELTA), method=method, options=shared | options)
    database = fit_release(release_table(setting.frame(setting.rows), plan))
    if not isinstance(database, WeightedDatabase):
        raise TypeError("not a weighted database")
    rows = database.weighted_rows()
    return np.stack([rows[name].to_numpy() for name in setting.names], axis=1), database.weights


def by_rows(what: str, num_rows: int, seed: int) -> float:
    """Distance to the law, as rows grow."""
    setting = Setting(2, num_rows, seed)
    if what == "rows, public subset":
        public = setting.frame(setting.public_subset(num_rows // 10, seed))
        return setting.distance_to_law(*fitted(setting, "balog-subspace", 1.0, public_points=public))
    if what == "rows, random points":
        points = setting.frame(setting.random_points(num_rows // 20, seed))
        return setting.distance_to_law(*fitted(setting, "balog-subspace", 1.0, public_points=points))
    wide = {"means": dict.fromkeys(setting.names, 0.0), "deviations": dict.fromkeys(setting.names, WIDE)}
    return setting.distance_to_law(*fitted(setting, "balog-features", 1.0, draw="gaussian", **wide))


def by_epsilon(epsilon: float, seed: int) -> float:
    """Distance to all rows of the noisy weights as they come."""
    setting = Setting(2, 10_000, seed)
    public = setting.frame(setting.public_subset(1000, seed))
    found = fitted(setting, "balog-subspace", epsilon, public_points=public, weights="plain")
    return setting.distance(*found)


def by_points(count: int, seed: int) -> float:
    """What projection onto the span of public rows leaves of the mean of all rows."""
    setting = Setting(2, 10_000, seed)
    layout = Layout(setting.schema)
    kernel = balog_kernel(layout, length_scale=setting.length_scale)
    points = given_points(setting.schema, setting.frame(setting.public_subset(count, seed)))
    places, _ = pivot_points(kernel, points, np.ones(count), most=count)
    map_ = spanned_by(kernel, points.take(places))
    cells = given_points(setting.schema, setting.frame(setting.rows)).cells
    inside = map_.precise(cells).mean(axis=0) / map_.shortening
    return math.sqrt(max(setting.mean_kernel - float(inside @ inside), 0.0))


def slope_of(values: dict[float, float]) -> float:
    """Of log distance by log value, where there is a distance."""
    seen = {value: distance for value, distance in values.items() if distance > 0}
    return float(np.polyfit(np.log(list(seen)), np.log(list(seen.values())), 1)[0])


def draw_picture(found: dict[str, dict[float, float]], slopes: dict[str, float], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4), layout="constrained")
    axes = dict(zip(("rows", "epsilon", "points"), figure.subplots(1, 3), strict=True))
    for what, values in found.items():
        axis, label = axes[what.split(",")[0]], what.split(", ")[1]
        seen = {value: distance for value, distance in values.items() if distance > 0}
        axis.loglog(list(seen), list(seen.values()), "o-", label=f"{label}: slope {slopes[what]:.2f}")
    names = ("rows (N), to the law", "epsilon, to the rows", "public points (M), to the rows")
    for axis, name in zip(axes.values(), names, strict=True):
        axis.set(xlabel=name)
        axis.legend(fontsize=8)
        axis.grid(alpha=0.2)
    axes["rows"].set_ylabel("RKHS distance")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print every mean and slope."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--picture", type=Path)
    wishes = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(["what", "value", "distance"])
    found: dict[str, dict[float, float]] = {}
    for what in BOUNDS:
        kind = what.split(",")[0]
        found[what] = {}
        for value in {"rows": ROWS, "epsilon": EPSILONS, "points": POINTS}[kind]:
            each = [
                by_rows(what, int(value), seed)
                if kind == "rows"
                else by_epsilon(value, seed)
                if kind == "epsilon"
                else by_points(int(value), seed)
                for seed in wishes.seeds
            ]
            found[what][value] = float(np.mean(each))
            writer.writerow([what, value, f"{found[what][value]:.5g}"])
            sys.stdout.flush()
    slopes = {what: slope_of(values) for what, values in found.items()}
    for what, slope in slopes.items():
        writer.writerow([what, "slope", f"{slope:.3f}"])
    if wishes.picture:
        draw_picture(found, slopes, wishes.picture)


if __name__ == "__main__":
    main()
