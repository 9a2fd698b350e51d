"""What each part of DP-ANOVA is worth: Adult with the part left out or set otherwise.

    python benchmarks/anova_ablation.py [--data DIR] [--epsilons 1 0.1] [--seeds 0 1 2] [--variants ...]

A seed draws an 80/20 split. `tv1` to `tv4` are distances to the 80 % on 20 bins (300 sets of three
and four columns), `roc` and `prc` means of three classifiers tested on the 20 %. Noise has no seed,
so that variants differ by chance too: by about 0.002 in `roc` and 0.0005 in `tv2` at epsilon 1, and
by three times as much at 0.1. Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
from classifiers import three_scores
from command_line import add_data_argument, load_table

from understudy.accounting.mechanisms import Budget
from understudy.evaluation.columns import marginal_distance
from understudy.evaluation.tables import code_table
from understudy.fits import shrinkage, ties
from understudy.fits.anova import AnovaTraining
from understudy.methods import fit_release, make_plan
from understudy.private.release import release_table
from understudy.rules import adaptive_bins, pair_selection
from understudy.rules.adaptive_bins import COLUMNS, Pieces, total_rows
from understudy.rules.measurement import Measurement

HEADER = ("variant", "epsilon", "seed", "tv1", "tv2", "tv3", "tv4", "roc", "prc", "cpu_seconds")
MOST_SETS = 300


@dataclass(frozen=True)
class Variant:
    """Options of the plan, settings of training, and parts of the program that are replaced."""

    options: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    replaced: tuple[tuple[Any, str, Any], ...] = ()

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """The program with its parts replaced."""
        with ExitStack() as stack:
            for owner, name, value in self.replaced:
                stack.enter_context(patch.object(owner, name, value))
            yield


def equal_pieces(first: Measurement, column: int) -> Pieces:
    """As if nothing were known of a column: equal bars with equal numbers of rows."""
    cells = first.map(COLUMNS).factors[column]
    bars = min(cells.num_known, 20)
    starts = np.arange(bars) * cells.num_known // bars
    lows = tuple(cells.first_codes[starts].tolist())
    even = np.full(bars, total_rows(first) / bars)
    return Pieces(lows, even, np.zeros(bars, dtype=bool))


def placed_blindly(learned: Callable[[Measurement, int], Pieces]) -> Callable[[Measurement, int], Pieces]:
    """Cells of numbers without a look at histograms; categories as they are."""

    def pieces(first: Measurement, column: int) -> Pieces:
        is_number = first.map(COLUMNS).factors[column].is_ordered
        return (equal_pieces if is_number else learned)(first, column)

    return pieces


VARIANTS = {
    "as it is": Variant(),
    "cells not placed by stage one": Variant(
        replaced=((adaptive_bins, "_pieces", placed_blindly(adaptive_bins._pieces)),)
    ),
    "values not counted one by one": Variant({"values": False}),
    "coarse cells (20 a column)": Variant(replaced=((adaptive_bins, "MOST_CELLS", 20),)),
    "coarse pairs (4 cells)": Variant(replaced=((pair_selection, "RESOLUTIONS", (3, 4)),)),
    "nothing by label": Variant({"labels": "none"}),
    "no pairs": Variant({"pairs": False}),
    "all pairs, none chosen": Variant(replaced=((pair_selection, "NOISE_PER_CELL", 0.0),)),
    "all pairs in 12 cells": Variant(replaced=((pair_selection, "RESOLUTIONS", (12,)),)),
    "no ties": Variant(replaced=((ties, "LEAST_TIED", 2.0),)),
    "noise not shrunk": Variant(replaced=((shrinkage, "shrunk", lambda table, noise: table),)),
    "no caution": Variant(training={"caution": 0.0}),
    "caution 3": Variant(training={"caution": 3.0}),
    "250 components": Variant(training={"num_components": 250}),
    "2000 components": Variant(training={"num_components": 2000}),
    "600 steps": Variant(training={"steps": 600}),
}


def main() -> None:
    """Run every variant and print a row for each split."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    arguments = parser.parse_args()
    table = load_table(arguments.data, "adult")
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for epsilon, seed, name in product(arguments.epsilons, arguments.seeds, arguments.variants):
        train, test = table.split(seed)
        variant, started = VARIANTS[name], time.process_time()
        training = AnovaTraining(seed=seed, **variant.training)
        with variant.in_force():
            plan = make_plan(
                table.schema,
                Budget(epsilon, 1e-5),
                method="dp-anova",
                options={"num_rows": len(train), "training": training, **variant.options},
            )
            rows = fit_release(release_table(train, plan)).sample(len(train), seed=seed)
        seconds = time.process_time() - started
        found = rows.to_pandas()
        sides = [code_table(table.schema, frame) for frame in (train, found)]
        distances = [marginal_distance(*sides, size=size, most_sets=MOST_SETS) for size in (1, 2, 3, 4)]
        scores = np.mean(list(three_scores(table.schema, found, test).values()), axis=0)
        writer.writerow([name, epsilon, seed, *(f"{value:.4f}" for value in (*distances, *scores)), f"{seconds:.1f}"])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
