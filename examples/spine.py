"""The default method, DP-ANOVA, from private rows to synthetic rows, to be read from top to bottom.

Rows become integer codes; codes are counted in tables; counts get noise; noisy counts decide what is counted next.
Four stages share one budget: the number of rows tells how fine histograms may be; histograms of all columns tell where
bins should lie; columns and coarse pairs of columns in those bins tell which columns depend on one another; those pairs
are counted again in finer bins, and columns too. All that follows the noise is post-processing, and free.

The package does the same for more kinds of noise and neighbours, in parallel, with a ledger and a certificate. A test
holds that both give the same integers, bins, pairs and rows. Left out here: tables with so few rows that the budget
does not carry all pairs, and row counts that are public. Taken from the package: the first bars, which follow from the
schema and the noise, the denoising of histograms, and bins that are cut anew (``understudy.rules``).

    python examples/spine.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.accounting.mechanisms import Budget, mechanism_for
from understudy.arrays import Floats, Integers, Truths
from understudy.demo import demo_schema, demo_table
from understudy.features import Block, Cells, Constant, Embedding, Norm, Tables
from understudy.features.tables import bars_carried, coarser_bars, fine_bars, first_bars, values_stand_out
from understudy.generators.base import Generator
from understudy.methods import fit_release, make_plan
from understudy.released import Release
from understudy.rules.adaptive_bins import Pieces, most_cells, pieces_of, refined, total_rows
from understudy.rules.denoise import centred
from understudy.rules.marginals import Marginals, find_marginals
from understudy.rules.measurement import Measurement
from understudy.rules.spikes import parts_of
from understudy.rules.tails import doubling_breaks
from understudy.schema import Column, Schema
from understudy.schema.columns import UNLISTED
from understudy.schema.encode import encode_batch

LATTICE = 2**32  # a contribution of norm 1 as an integer: sums are exact, and so is the noise on them
STAGES = (  # blocks, and their shares of the budget
    {"rows": 0.005},
    {"count": 0.015, "columns": 0.15, "values": 0.02},
    {"cells": 0.315, "looks": 0.1},
    {"marginals": 0.395},
)
DIGITS = {"cells": "digits", "marginals": "last digits"}  # what 0.005 of it goes to, if columns have many decimals

AddNoise = Callable[[Integers, int], Integers]
"""From integer sums and a standard deviation to noisy sums."""


def discrete_gaussian(sums: Integers, deviation: int) -> Integers:
    """Exact noise from the operating system's randomness. Real noise has no seed; only a test may bring its own."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return np.asarray(dp.m.make_gaussian(*space, scale=float(deviation))(sums.tolist()), dtype=np.int64)


@dataclass(frozen=True)
class Synthesis:
    """What the steps have come to."""

    measurements: tuple[Measurement, ...]  # of all stages: all that is ever learnt of the rows
    bins: tuple[Cells, ...]  # of every column but the label
    pairs: tuple[tuple[Cells, ...], ...]  # that were measured in finer bins
    generator: Generator


def synthesize(
    schema: Schema, rows: pa.RecordBatch, budget: Budget, *, add_noise: AddNoise = discrete_gaussian, **fit: Any
) -> Synthesis:
    """The whole path; ``fit`` are options of the last step alone."""
    # 1. Rows to codes: a number to its step between public bounds, a category to its place in the public list.
    codes = encode_batch(schema, rows, unlisted=UNLISTED)  # (num_rows, num_columns); -1 is null, -2 not listed
    label = schema.label if schema.label is not None and schema.label.is_choice else None
    classes = np.zeros(len(codes), dtype=np.int64) if label is None else codes[:, schema.used.index(label)]
    private = PrivateRows(codes, classes, label, add_noise)
    columns = [j for j, column in enumerate(schema.used) if column is not label]
    pairs = tuple(combinations(range(len(columns)), 2))

    # 2. The number of rows, and then a histogram of every column: as many bars of equal width as they carry.
    tail, bars = mechanism_for(budget).deviations, first_bars(schema, 0.0)
    fine = fine_bars(schema, bars, 0.0, norm=Norm.L2, tail=tail)
    long = [replace(own, lows=(0,)) for own in fine if not own.steps and own.num_pieces < own.num_codes]
    noise = share_out(budget, has_values=bool(fine), has_digits=bool(long))
    counted = private.measure({"rows": None}, noise)
    num_rows = max(1.0, float(counted.all_sums("rows")[0, 0]))
    most = bars_carried(noise["columns"].of_count(len(bars)) / num_rows)
    maps = {"count": None, "columns": each_alone([coarser_bars(bar, most) if bar.is_ordered else bar for bar in bars])}
    if fine:  # value by value, if any would stand out; how round values are in any case
        steps = tuple(own for own in fine if own.steps) or fine
        stands_out = values_stand_out(fine, noise["values"].of_count(len(fine)) / num_rows, tail=tail)
        maps["values"] = each_alone(fine if stands_out else steps)
    first = private.measure(maps, noise)
    total = total_rows(first)  # of the count and of histograms, by inverse variance

    # 3. Bins that hold about equally many rows by the noisy histograms, and several deviations of the noise to come.
    runs = [pieces_of(first, j) for j in columns]  # runs of codes in which nothing stands out of the noise
    bins = [cut(first, j, run, noise["cells"].of_count(len(columns))) for j, run in zip(columns, runs, strict=True)]
    wanted = np.rint(np.sqrt(total / (1.5 * noise["looks"].of_count(len(pairs)))))
    coarse = [coarsened(own, run.masses, float(np.clip(wanted, 2, 8))) for own, run in zip(bins, runs, strict=True)]

    # 4. Stage two: every column in its bins, and all pairs coarsely; by class, if there is a label.
    #    Of columns too long to be counted code by code, bars in which a value repeats are cut into 1,024 parts.
    maps = {"cells": each_alone(bins), "looks": tables(coarse, pairs)}
    if long:
        maps["digits"] = each_alone(parts_of(long, [first]))
    second = private.measure(maps, noise)

    # 5. The last stage: the pairs whose dependence is worth its noise in finer bins, and columns in bins cut anew.
    margins = find_marginals([first, second])  # one estimate of every column, by inverse-variance weighting
    alone, noise_of_one = len(bins), noise["marginals"].of_count(1)
    chosen = select_pairs(dependence(margins, second), bins, runs, noise_of_one / total, alone)
    again = noise_of_one * math.sqrt(alone + len(chosen))
    of_all = [margins.total * (margins.label_shares @ shares) for shares in margins.by_label]
    anew = [refined(first, own, counts, again, most_cells(alone)) for own, counts in zip(bins, of_all, strict=True)]
    maps = {"marginals": over([*((own,) for own in anew), *chosen])}
    if long:
        maps["last digits"] = each_alone(parts_of(long, [first, second]))
    third = private.measure(maps, noise)

    # 6. Shrink the tables towards what their margins explain, fit a mixture of products to them (descent with
    #    torch), and sample it. The package's plan holds the same decisions as steps 2 to 5, written as a document: its
    #    rules settle the same bins and pairs from the same noisy vectors.
    plan = make_plan(schema, budget, method="dp-anova", options={"pairs": True} | fit)
    stages = (counted, first, second, third)
    release = Release(plan, tuple(stage.vector for stage in stages), facts=())
    return Synthesis(stages, tuple(bins), tuple(chosen), fit_release(release))


# Measuring: integer counts, and noise by the share of the budget.


@dataclass(frozen=True)
class BlockNoise:
    """The Euclidean norm that one row has in a block, and the deviation of the noise on its stage's integers."""

    weight: float
    deviation: int

    def row_unit(self, num_tables: int) -> int:
        """What a row adds to one count of each of T tables: sqrt(T) units are at most the norm."""
        return math.isqrt(math.floor(self.weight * LATTICE) ** 2 // num_tables)

    def of_count(self, num_tables: int) -> float:
        """Deviation of the noise on a count, in rows."""
        return self.deviation / self.row_unit(num_tables)


def share_out(budget: Budget, *, has_values: bool, has_digits: bool) -> dict[str, BlockNoise]:
    """A row has norm 1 in every stage, split over its blocks; mu squared (Gaussian DP) adds up over the stages."""
    mechanism = mechanism_for(budget)
    found: dict[str, BlockNoise] = {}
    for stage in STAGES:
        own = {name: share for name, share in stage.items() if has_values or name != "values"}
        if "cells" in own and not has_values:
            own["cells"] += STAGES[1]["values"]
        for name, digits in DIGITS.items():
            if has_digits and name in own:
                own |= {name: own[name] - 0.005, digits: 0.005}
        share = sum(own.values())
        weights = {name: math.sqrt(part / share) for name, part in own.items()}
        squared = sum(math.floor(weight * LATTICE) ** 2 for weight in weights.values())  # sensitivity, exactly
        deviation = mechanism.noise_scale(squared, mechanism.total(budget) * Fraction(share))
        found |= {name: BlockNoise(weight, deviation) for name, weight in weights.items()}
    return found


@dataclass(frozen=True)
class PrivateRows:
    """The rows as codes. Nothing leaves but noisy sums."""

    codes: Integers
    classes: Integers  # the codes of the label
    label: Column | None
    add_noise: AddNoise

    def measure(self, maps: dict[str, Tables | None], noise: dict[str, BlockNoise]) -> Measurement:
        """One stage: integer sums over the rows, with noise."""
        blocks, sums, span = [], [], None
        if self.label is not None:
            span = (0, len(self.label.categories) + self.label.nullable)
        for name, map_ in maps.items():
            own, classes, copies, unlisted = noise[name], np.zeros(len(self.codes), dtype=np.int64), 1, False
            if self.label is not None and name in ("count", "cells", "looks"):
                last = len(self.label.categories)  # a copy for each class, and one for rows without a listed class
                classes, copies = np.where(self.classes < 0, last, self.classes), last + 1
                unlisted = not self.label.nullable
            if map_ is None:  # the number of rows: a constant, rounded to units of 2^8 and two units inside its norm
                unit = 2**8 * (math.floor(own.weight * LATTICE) // 2**8 - 2)
                sums.append(np.bincount(classes, minlength=copies) * unit)
            else:
                sums.append(count_rows(map_, self.codes, classes, copies).ravel() * own.row_unit(len(map_.subsets)))
            blocks.append(Block(name, map_ or Constant(), own.weight, copies > 1, with_unlisted=unlisted))
        deviation = next(iter(noise[name].deviation for name in maps))  # the blocks of a stage share its noise
        noisy = self.add_noise(np.concatenate(sums), deviation)
        return Measurement(Embedding(tuple(blocks), span), noisy, deviation, LATTICE)


def count_rows(map_: Tables, codes: Integers, classes: Integers, copies: int) -> Integers:
    """Rows in every cell of every table, for each class.  # (copies, cells of all tables)"""
    found = []
    for subset in map_.subsets:
        factors = [map_.factors[j] for j in subset]
        counts = np.zeros((copies, *(cells.dim + 1 for cells in factors)), dtype=np.int64)  # the last: not listed
        np.add.at(counts, (classes, *(cells(codes[:, cells.column]) for cells in factors)), 1)
        found.append(counts.reshape(copies, -1))
    return np.concatenate(found, axis=1)


def tables(factors: Sequence[Cells], subsets: Sequence[tuple[int, ...]]) -> Tables:
    return Tables(tuple(factors), tuple(subsets), with_unlisted=True)


def over(marginals: Sequence[tuple[Cells, ...]]) -> Tables:
    """Tables over these cells, in an order that tells nothing of which were chosen first."""
    place: dict[Cells, int] = {}
    subsets = [tuple(place.setdefault(own, len(place)) for own in cells) for cells in marginals]
    return tables(list(place), sorted(subsets))


def each_alone(factors: Sequence[Cells]) -> Tables:
    return tables(factors, [(j,) for j in range(len(factors))])


# Stage two: adaptive bins.


def cut(first: Measurement, column: int, run: Pieces, noise: float) -> Cells:
    """Bins of a column: unions of its runs."""
    whole, most = first.map("columns").factors[column], 100
    if whole.is_ordered:
        alone = run.atoms & (run.masses > 2.0 * noise)
        if alone.sum() > most // 2:
            alone &= run.masses > np.sort(run.masses[alone])[-(most // 2) - 1]
        breaks = doubling_breaks(np.asarray(run.lows), run.masses, whole.num_codes)
        groups = neighbours_together(run.masses, alone, least=6.0 * noise, most=most, breaks=breaks)
    else:
        noisy = first.tables("columns")[column][0][: whole.num_known]
        groups = rare_together(noisy, max(2 * first.noise_of_count("columns"), noise), most)
    return replace(whole, lows=run.lows, groups=tuple(groups.tolist()))


def coarsened(cells: Cells, rows: Floats, count: float) -> Cells:
    """The same column in about ``count`` bins, each a union of the given ones."""
    held = np.bincount(cells.cell_of_piece, weights=rows).astype(np.float64)
    share = float(held.sum()) / count
    if cells.is_ordered:
        union = neighbours_together(held, np.zeros(len(held), dtype=bool), share, max(2, round(count)))
    else:
        union = rare_together(held, share / 4, 100)
    return replace(cells, groups=tuple(union[cells.cell_of_piece].tolist()))


def neighbours_together(
    rows: Floats, alone: Truths, least: float, most: int, *, breaks: Truths | None = None
) -> Integers:
    """Close a bin once it holds enough rows, and at breaks; towards both tails half of what lies beyond is enough."""
    has_tails, breaks = breaks is not None, np.zeros(len(rows), dtype=bool) if breaks is None else breaks
    total = float(rows.sum())
    largest = max(least, total / most)
    groups, group, held, beyond, is_open = [], -1, 0.0, 0.0, False
    for own, is_alone, is_break in zip(rows.tolist(), alone.tolist(), breaks.tolist(), strict=True):
        is_open = is_open and not is_break
        enough = min(largest, max(least, 0.5 * min(beyond, total - beyond))) if has_tails else largest
        if is_alone or own >= (largest if has_tails else 0.5 * largest):
            group, is_open = group + 1, False
        elif is_open:
            held += own
        else:
            group, held, is_open = group + 1, own, True
        groups.append(group)
        beyond += own
        is_open = is_open and held < enough
    return np.array(groups)


def rare_together(counts: Floats, least: float, most: int) -> Integers:
    """A bin for each frequent category, and one for all others together."""
    own = np.zeros(len(counts), dtype=bool)
    own[np.argsort(-counts, kind="stable")[: most - 1]] = True
    own &= counts >= least
    if (~own).sum() == 1:
        own[:] = True
    return np.where(own, np.cumsum(own) - 1, own.sum())


# Stage three: pair selection.


def dependence(margins: Marginals, second: Measurement) -> dict[tuple[int, ...], float]:
    """How far each coarse table is from independent within classes, without what noise and chance would add."""
    looks, found = second.map("looks"), {}
    for pair, table in zip(looks.subsets, second.tables("looks"), strict=True):
        expected = margins.independent((pair[0], pair[1]), looks.factors).sum(axis=0)
        apart = centred(table.sum(axis=0) / margins.total - expected)
        variance = len(table) * (second.noise_of_count("looks") / margins.total) ** 2 + 1 / (apart.size * margins.total)
        energy = float((apart**2).sum()) - (apart.shape[0] - 1) * (apart.shape[1] - 1) * variance
        found[pair] = min(2.0, math.sqrt(max(0.0, energy) * apart.size))  # an L1 distance is at most 2
    return found


def select_pairs(
    strengths: dict[tuple[int, ...], float], bins: list[Cells], runs: list[Pieces], noise_of_one: float, alone: int
) -> list[tuple[Cells, ...]]:
    """The strongest pairs, as many as cost least: each brings noise to all, and each left out its dependence.

    ``noise_of_one`` is that of a share of the rows if a single table were measured; so many columns are too.
    """
    order = sorted(strengths, key=lambda pair: -strengths[pair])[:400]
    left_out, errors = sum(strengths.values()), []
    for count, pair in enumerate(order, start=1):
        left_out -= strengths[pair]
        noise = noise_of_one * math.sqrt(alone + count)
        errors.append(
            sum(width(strengths[each], [bins[j] for j in each], noise)[1] for each in order[:count]) + left_out
        )
    best = int(np.argmin(errors)) + 1
    noise, chosen = noise_of_one * math.sqrt(alone + best), list[tuple[Cells, ...]]()
    for pair in order[:best]:
        count, _ = width(strengths[pair], [bins[j] for j in pair], noise)
        chosen.append(tuple(in_pair(bins[j], runs[j].masses, count, noise) for j in pair))
    sizes = np.cumsum([math.prod(own.dim + 1 for own in pair) for pair in chosen])
    return chosen[: max(1, int((sizes <= 150_000).sum()))]  # about a megabyte


def in_pair(own: Cells, rows: Floats, count: int, noise: float) -> Cells:
    """A column as it is cut in a pair; a category has a bin if it holds 1.5 deviations of rows."""
    if own.is_ordered and own.dim <= count:
        return own
    return coarsened(own, rows, count if own.is_ordered else 1 / (6 * noise))


def width(strength: float, pair: list[Cells], noise: float) -> tuple[int, float]:
    """Bins of a number in a pair for the least expected error, and that error: coarse bins lose, fine ones bring noise.

    0.35 of the noise is left in a cell once tables are shrunk. A choice that a number determines uses few cells.
    """
    found = (3, math.inf)
    for count in (3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96):
        dims = [min(count, own.dim) if own.is_ordered else own.dim for own in pair]
        in_use = float(math.prod(dims))
        if not all(own.is_ordered for own in pair):
            in_use = max(in_use * (1 - strength / 2), max(dims))
        error = sum(own.is_ordered and own.dim > count for own in pair) * strength / count + 0.35 * noise * in_use
        if error < found[1]:
            found = (count, error)
    return found


def main() -> None:
    """Show every step on the table of the demo."""
    schema, frame = demo_schema(), demo_table()
    rows = pa.RecordBatch.from_pandas(frame[[column.name for column in schema.used]], preserve_index=False)
    found = synthesize(schema, rows, Budget(1.0, 1e-5))
    for name, reading in zip(("columns", "cells", "marginals"), found.measurements[1:], strict=True):
        noise = reading.noise_of_count(name)
        print(f"{name:8} {len(reading.vector):7,} noisy integers; noise on a count: {noise:.0f} rows")
    print("bins    ", ", ".join(f"{schema.used[own.column].name} {own.num_known}" for own in found.bins))
    names = [" x ".join(schema.used[own.column].name for own in pair) for pair in found.pairs]
    print("pairs   ", ", ".join(names))
    print(found.generator.sample(5).to_pandas().to_string(index=False))


if __name__ == "__main__":
    main()
