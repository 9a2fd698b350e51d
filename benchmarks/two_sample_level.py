"""Whether `understudy compare` keeps its level, and what it finds: repeated releases of fresh samples.

    python benchmarks/two_sample_level.py [--methods dp-anova dp-merf dp-hp] [--against sample release rows copies]
                                          [--epsilons 1] [--shifts 0] [--repeats 1000] [--seed 0]
    python benchmarks/two_sample_level.py --picture FILE.png --csv RESULTS.csv

Rows have a number (a skewed age), a number that depends on it and may be null, a category, and a label that
depends on the age. Every repeat draws new rows, makes new releases with real noise, and tests at 5 %. Against:

- `sample`: public rows;
- `release`: a second release, with rows of a small generator fitted to the first for what chance does;
- `rows`: public rows, asked whether they are the very rows of the release;
- `copies`: public rows of which as many are replaced by copies of one row as the test says it would notice
  in four of five comparisons.

A shift moves the other side's ages by so many deviations. Prints CSV: the share of repeats that claim a
difference, its standard error, and what the test itself says can be found.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy import Budget, fit_release, load_schema, make_plan, release_table
from understudy.fits.anova import AnovaTraining
from understudy.fits.mixture import MixtureTraining
from understudy.fits.network import Training
from understudy.two_sample.compare import Comparison, Question, compare_releases, compare_with_rows

SCHEMA = load_schema(
    {
        "name": "simulated",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 63]},
            {"name": "dose", "kind": "continuous", "bounds": [0, 10], "nullable": True},
            {"name": "ward", "kind": "categorical", "categories": ["north", "south", "west"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
DEVIATION = 10.0
NUM_ROWS, LEVEL, NUM_DRAWS, GENERATED = 1000, 0.05, 400, 1000
SMALL: dict[str, dict[str, Any]] = {
    "dp-anova": {"training": AnovaTraining(num_components=32, steps=40)},
    "dp-merf": {"num_features": 40, "training": Training(hidden=(24,), steps=120, batch=100)},
    "dp-hp": {"order": 10, "product_order": 3, "training": MixtureTraining(num_components=32, steps=60)},
}
FIELDS = (
    "method",
    "against",
    "epsilon",
    "rows",
    "shift",
    "repeats",
    "seed",
    "rejected",
    "standard_error",
    "rejected_columns",
    "mean_p",
    "detectable",
    "detectable_share",
    "mean_effect",
)


def draw_rows(count: int, rng: np.random.Generator, *, shift: float = 0.0) -> pa.Table:
    """Fresh rows of one population; ages moved by so many deviations of theirs."""
    age = np.clip(12 + rng.gamma(2.0, DEVIATION / math.sqrt(2), count) + DEVIATION * shift, 0, 63)
    dose = np.clip(rng.normal(3 + age / 20, 1.2), 0, 10)
    ill = rng.random(count) < 1 / (1 + np.exp(-(age - 32) / 8))
    return pa.table(
        {
            "age": np.rint(age).astype(int),
            "dose": pa.array(dose, mask=rng.random(count) < 0.1),
            "ward": rng.choice(["north", "south", "west"], count, p=[0.6, 0.3, 0.1]),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def compare_once(plan: Any, against: str, shift: float, rng: np.random.Generator) -> Comparison:
    """New rows, new releases, one test."""
    rows = draw_rows(NUM_ROWS, rng)
    first, settings = release_table(rows, plan), {"level": LEVEL, "num_draws": NUM_DRAWS}
    seed = int(rng.integers(2**32))
    if against == "rows":
        other = rows if shift == 0 else draw_rows(NUM_ROWS, rng, shift=shift)
        return compare_with_rows(first, other, question=Question.SAME_ROWS, seed=seed, **settings)
    other = draw_rows(NUM_ROWS, rng, shift=shift)
    if against in ("sample", "copies"):
        found = compare_with_rows(first, other, seed=seed, **settings)
        if against == "sample":
            return found
        share = round((found.detectable_share or 0.0) * NUM_ROWS)
        places = np.append(np.arange(NUM_ROWS - share), np.repeat(rng.integers(NUM_ROWS), share))
        return compare_with_rows(first, other.take(places), seed=seed, **settings)
    second = release_table(other, plan)
    generated = fit_release(first).sample(GENERATED, seed=seed)
    return compare_releases(first, second, rows=generated, seed=seed, **settings)


def measure(method: str, against: str, epsilon: str, shift: float, repeats: int, seed: int) -> list[Any]:
    """One line of the results."""
    options = {"num_rows": NUM_ROWS, **SMALL[method]}
    plan = make_plan(SCHEMA, Budget(float(epsilon)), method=method, options=options)
    found = [compare_once(plan, against, shift, np.random.default_rng([seed, i])) for i in range(repeats)]
    rejected = float(np.mean([each.differs for each in found]))
    by_column = np.mean([min(d.adjusted for d in each.columns) <= LEVEL for each in found])
    shares = [each.detectable_share for each in found if each.detectable_share is not None]
    return [
        method,
        against,
        epsilon,
        NUM_ROWS,
        shift,
        repeats,
        seed,
        f"{rejected:.4f}",
        f"{math.sqrt(max(rejected * (1 - rejected), 1e-12) / repeats):.4f}",
        f"{by_column:.4f}",
        f"{np.mean([each.p_value for each in found]):.4f}",
        f"{np.mean([each.detectable for each in found]):.5f}",
        f"{np.mean(shares or [math.nan]):.5f}",
        f"{np.mean([each.effect for each in found]):.5f}",
    ]


def pool(results: Path) -> dict[tuple[str, str, str, float], tuple[float, int]]:
    """Share of rejections and repeats of every setting (method, against, epsilon, shift), all seeds."""
    found: dict[tuple[str, str, str, float], tuple[float, int]] = {}
    with results.open() as file:
        for line in csv.DictReader(file):
            key = (line["method"], line["against"], line["epsilon"], float(line["shift"]))
            share, repeats = found.get(key, (0.0, 0))
            total = repeats + int(line["repeats"])
            rejected = share * repeats + float(line["rejected"]) * int(line["repeats"])
            found[key] = (rejected / total, total)
    return found


def draw_picture(results: Path, picture: Path) -> None:
    """Levels with their standard errors, and power against shifts."""
    from matplotlib.figure import Figure

    pooled = pool(results)
    null = {key: value for key, value in pooled.items() if key[3] == 0 and value[1] >= 1000}
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    places = np.arange(len(null))[::-1]
    shares = np.array([share for share, _ in null.values()])
    counts = np.array([repeats for _, repeats in null.values()])
    errors = 1.96 * np.sqrt(shares * (1 - shares) / counts)
    left.axvspan(0.035, 0.065, color="#e6ecef")
    left.axvline(LEVEL, color="#7a8794", linewidth=1)
    left.errorbar(shares, places, xerr=errors, fmt="o", color="#0b6e4f", capsize=3)
    names = [f"{method} and a {against}, ε {epsilon}" for method, against, epsilon, _ in null]
    left.set_yticks(places, names, fontsize=9)
    left.set(xlim=(0, 0.1), xlabel="share of repeats that claim a difference", title="nothing differs (level 5 %)")
    colours = {"0.3": "#c77d1e", "1": "#0b6e4f", "3": "#274c9b"}
    curves: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for (*setting, shift), (share, _) in pooled.items():
        curves.setdefault(tuple(setting), []).append((shift, share))
    dots: dict[str, Any] = {"marker": "o", "markersize": 3}
    styles = {"dp-anova": "-", "dp-merf": "--", "dp-hp": ":"}
    for (method, against, epsilon), points in curves.items():
        if len(points) > 2 and against == "sample":
            x, y = zip(*sorted(points), strict=True)
            right.plot(x, y, styles[method], color=colours.get(epsilon, "#555"), label=f"{method}, ε {epsilon}", **dots)
    right.axhline(LEVEL, color="#7a8794", linewidth=1)
    right.set(
        xlabel="shift of one column, in its deviations",
        title="ages are shifted (release against public rows)",
        ylim=(0, 1.02),
    )
    right.set_ylabel("share of repeats that find it")
    right.legend(fontsize=8, frameon=False)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=110)


def main() -> None:
    """Print a line for every setting, or draw the picture of earlier lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(SMALL), choices=list(SMALL))
    parser.add_argument(
        "--against", nargs="+", default=["sample", "release"], choices=["sample", "release", "rows", "copies"]
    )
    parser.add_argument("--epsilons", nargs="+", default=["1"])
    parser.add_argument("--shifts", type=float, nargs="+", default=[0.0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, help="earlier results, for --picture")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    if arguments.picture is not None:
        if arguments.csv is None:
            parser.error("--picture needs --csv")
        draw_picture(arguments.csv, arguments.picture)
        return
    writer = csv.writer(sys.stdout)
    writer.writerow(FIELDS)
    for method in arguments.methods:
        for against in arguments.against:
            for epsilon in arguments.epsilons:
                for shift in arguments.shifts:
                    writer.writerow(measure(method, against, epsilon, shift, arguments.repeats, arguments.seed))
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
