"""DP-ANOVA, our default for tables: every column, every pair of columns, and both by label.

The kernel is an ANOVA kernel of order two, k = sum_j k_j + sum_{i<j} k_i k_j, and the same times
the label's kernel. Each k_j asks whether two values lie in the same cell of column j, so that the
mean embedding consists of tables of counts. Three stages share one budget: histograms of columns
tell where the cells should lie; columns by label and a coarse look at all pairs tell which pairs
depend on one another; those are measured more finely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from understudy.accounting import Budget, Neighbours, mechanism_for, neighbours_by_name
from understudy.errors import UsageError
from understudy.features import Block, Cells, Embedding, Norm, Sign, Tables
from understudy.fits.anova import AnovaTraining
from understudy.methods.common import (
    LabelledColumns,
    Labels,
    Steps,
    draw_subsets,
    labelled_columns,
    noise_of_mean,
    norm_for,
)
from understudy.methods.options import Option
from understudy.plan.plan import Plan, Stage
from understudy.rules.adaptive_bins import CELLS, COLUMNS, LOOKS, VALUES
from understudy.rules.pair_selection import MOST_PAIRS, PAIRS
from understudy.schema import Column, Schema
from understudy.schema.layout import from_position

HISTOGRAM_BARS = 256
FEWEST_BARS = 16
MOST_BARS = 2**17
LONGEST_VALUES = MOST_VALUES = 2**17
"""Bars of a column's histogram and of all; codes that are counted one by one, and of all columns."""

LONG_BARS = 4096
"""Bars of the finer histogram of a column with too many codes to count one by one."""

ROUGH_CELLS = (40, 8, 12)
"""Cells that a column may get by label, in the first look at pairs, and in chosen pairs."""

MOST_CLASSES = 24
"""A label with more classes is treated like any other column."""

SHARES = {"count": 0.015, COLUMNS: 0.15, VALUES: 0.02, CELLS: 0.33, LOOKS: 0.1, PAIRS: 0.385}
WITHOUT_PAIRS = {"count": 0.02, COLUMNS: 0.33, VALUES: 0.05, CELLS: 0.6}
"""Shares of the budget (of mu squared), if pairs are measured and if they are not."""

PURE_SHARES = {"count": 0.02, COLUMNS: 0.24, VALUES: 0.02, CELLS: 0.16, LOOKS: 0.12, PAIRS: 0.44}
PURE_WITHOUT_PAIRS = {"count": 0.03, COLUMNS: 0.35, VALUES: 0.05, CELLS: 0.57}
"""The same of epsilon, if delta is 0: noise then grows with the number of tables, not its root."""

ROWS_PER_BAR = 4.0
ROWS_PER_VALUE = 20.0
"""A histogram has as many bars, of n, as leave the noise of its half (sqrt(n) deviations) below a
quarter of the rows; values are counted one by one if a value with a 20th of the rows stands out."""

ROWS_PER_LOOK = {Norm.L2: 12.0, Norm.L1: 24.0}
"""Pairs are looked at if the table has so many times the noise of one of their counts in rows."""

LEAST_COVERAGE = 0.5
"""If noise allows fewer of the pairs, there are none: the budget serves single columns better."""


def dp_anova(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    pairs: Annotated[bool | None, Option("Measure pairs of columns (default: if the noise allows it).")] = None,
    values: Annotated[bool, Option("Pay for finding values that repeat in long columns (default: yes).")] = True,
    seed: int = 0,
    training: AnovaTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a DP-ANOVA release: tables of counts over cells that the release itself places.

    Args:
        schema: the public description of the table.
        budget: the guarantee to meet.
        neighbours: between which tables it holds.
        num_rows: the public row count (``replace-one``), or a public guess that the plan is
            made for (``add-remove``). By default what the schema says.
        labels: as for ``dp_merf``; with a categorical label, components belong to a class.
        pairs: whether pairs of columns are measured; by default if the noise allows it.
        values: whether integers with many values are counted one by one, so that values which
            repeat come back as values.
        seed: public seed of drawn pairs and training.
        training: settings of the mixture.
        steps: training steps, if only their number should differ.
    """
    num_rows = num_rows if num_rows is not None else schema.rows
    neighbours, norm = neighbours_by_name(neighbours), norm_for(budget)
    columns = _labelled(schema, labels)
    places = [i for i, column in enumerate(schema.used) if not _is_label(schema, columns, column)]
    if not places:
        raise UsageError("schema", "has no column beside the label", "Use --labels none")

    shares, without_pairs = (SHARES, WITHOUT_PAIRS) if norm is Norm.L2 else (PURE_SHARES, PURE_WITHOUT_PAIRS)

    def noise(part: float) -> float:
        """Noise on the share of rows in a cell, if there were one table."""
        sign = Sign.NONNEGATIVE
        return noise_of_mean(
            budget, neighbours, share=part, num_rows=num_rows, sign=sign, max_rows=schema.privacy.max_rows
        )

    looks = _looks(len(places), noise(shares[LOOKS]), norm, wanted=pairs, seed=seed)
    parts = dict(shares if looks else without_pairs)
    cuts = _first_cuts(schema, noise(parts[COLUMNS]) * norm.dilution(len(schema.used)))
    fine = _fine_cuts(schema, cuts, noise(parts[VALUES]), budget) if values else ()
    if not fine:
        parts[CELLS] += parts.pop(VALUES)
    stages = _stages(columns, cuts, fine, places, looks, parts, norm)
    training = training or AnovaTraining(seed=seed)
    settings: dict[str, Any] = {
        "labels": labels,
        "generator": "anova",
        "training": asdict(training if steps is None else replace(training, steps=steps)),
        "explanation": _explanation(schema, places, looks, fine, parts, pairs),
    }
    return Plan(
        schema=schema,
        method="dp-anova",
        budget=budget,
        neighbours=neighbours,
        stages=stages,
        num_rows=num_rows,
        settings=tuple(settings.items()),
    )


def _labelled(schema: Schema, labels: Labels) -> LabelledColumns:
    columns = labelled_columns(schema, labels)
    return columns if columns.num_labels <= MOST_CLASSES else labelled_columns(schema, "none")


def _is_label(schema: Schema, columns: LabelledColumns, column: Column) -> bool:
    return columns.classes is not None and column is schema.label


def _first_cuts(schema: Schema, noise: float) -> tuple[Cells, ...]:
    """Equal bars for every column, without a look at the data."""
    long = sum(not c.is_choice and c.num_steps >= HISTOGRAM_BARS for c in schema.used)
    quiet = (1 / (ROWS_PER_BAR * noise)) ** 2
    most = min(HISTOGRAM_BARS, MOST_BARS // max(1, long), int(quiet))
    bars = 1 << (max(FEWEST_BARS, most).bit_length() - 1)
    return tuple(_bars(i, column, bars) for i, column in enumerate(schema.used))


def _bars(place: int, column: Column, count: int) -> Cells:
    if column.is_choice:
        return Cells(place, len(column.categories), column.nullable)
    whole = Cells(place, column.num_steps + 1, column.nullable, is_ordered=True)
    if column.num_steps < count:
        return whole
    edges = from_position(column, np.arange(count) / count)
    return replace(whole, lows=tuple(np.unique([*edges, 1, column.num_steps]).tolist()))


def _fine_cuts(schema: Schema, cuts: tuple[Cells, ...], noise: float, budget: Budget) -> tuple[Cells, ...]:
    """Finer histograms of long columns: code by code if they are not too long, in schema order."""
    found: list[Cells] = []
    room = MOST_VALUES
    for cut, column in zip(cuts, schema.used, strict=True):
        if cut.num_codes == cut.num_known:
            continue
        exact = cut.num_codes <= LONGEST_VALUES
        fine = _bars(cut.column, column, cut.num_codes if exact else LONG_BARS)
        if fine.dim > room:
            fine = _bars(cut.column, column, LONG_BARS)
        if fine.num_known <= room:
            found.append(replace(fine, has_null=False))
            room -= fine.num_known
    longest = max((fine.num_known for fine in found), default=2)
    largest = mechanism_for(budget).deviations(math.sqrt(2 * math.log(longest)))
    stands_out = noise * norm_for(budget).dilution(len(found)) * largest
    return tuple(found) if stands_out * ROWS_PER_VALUE <= 1 else ()


def _looks(
    num_columns: int, noise: float, norm: Norm, *, wanted: bool | None, seed: int
) -> tuple[tuple[int, ...], ...]:
    """The pairs that are looked at: all, as many as noise allows, or none."""
    every = tuple(combinations(range(num_columns), 2))
    if wanted is False or not every:
        return ()
    allowed = math.floor(norm.parts(1 / (ROWS_PER_LOOK[norm] * noise)))
    if allowed >= len(every) or wanted:
        return every
    if allowed < LEAST_COVERAGE * len(every):
        return ()
    return draw_subsets([2] * num_columns, 2, allowed, apart=set(), largest=4, seed=seed)


def _stages(
    columns: LabelledColumns,
    cuts: tuple[Cells, ...],
    fine: tuple[Cells, ...],
    places: list[int],
    looks: tuple[tuple[int, ...], ...],
    parts: dict[str, float],
    norm: Norm,
) -> tuple[Stage, ...]:
    by_label = columns.classes is not None
    singles = tuple((j,) for j in range(len(places)))
    rough = [[_rough(cuts[place], count) for place in places] for count in ROUGH_CELLS]
    first: dict[str, Tables | None] = {"count": None, COLUMNS: _counted(cuts, tuple((j,) for j in range(len(cuts))))}
    if fine:
        first[VALUES] = _counted(fine, tuple((j,) for j in range(len(fine))))
    second: dict[str, Tables | None] = {CELLS: _counted(rough[0], singles)}
    if looks:
        second[LOOKS] = _counted(rough[1], looks)
    found = [
        _stage("columns", first, parts, norm, columns, set()),
        _stage("by label" if by_label else "cells", second, parts, norm, columns, {CELLS, LOOKS}, rule="place-cells"),
    ]
    if looks:
        third: dict[str, Tables | None] = {PAIRS: _counted(rough[2], looks[:MOST_PAIRS])}
        found.append(_stage("pairs", third, parts, norm, columns, set(), rule="choose-pairs"))
    return tuple(found)


def _counted(factors: Sequence[Cells], subsets: tuple[tuple[int, ...], ...]) -> Tables:
    """Tables in which every row has a cell, whatever it holds, so that all have the same total."""
    return Tables(tuple(factors), subsets, with_unlisted=True)


def _stage(
    name: str,
    maps: dict[str, Tables | None],
    parts: dict[str, float],
    norm: Norm,
    columns: LabelledColumns,
    by_label: set[str],
    *,
    rule: str | None = None,
) -> Stage:
    """Blocks that split a stage's share of the budget as planned."""
    share = sum(parts[block] for block in maps)
    blocks = []
    for block, map_ in maps.items():
        weight = norm.weight(parts[block] / share)
        if map_ is None:
            blocks.append(columns.count_block(weight, norm))
        else:
            labelled = block in by_label and columns.classes is not None
            unlisted = labelled and columns.may_be_unlisted
            blocks.append(Block(block, map_, weight, labelled, norm, with_unlisted=unlisted))
    return Stage(name, Embedding(tuple(blocks), columns.classes), share, rule)


def _rough(cells: Cells, count: int) -> Cells:
    """A stand-in for cells that are not placed yet: about as many as there may be."""
    count = min(cells.num_known, count)
    groups = np.arange(cells.num_pieces) * count // cells.num_pieces
    return replace(cells, groups=tuple(groups.tolist()))


def _explanation(
    schema: Schema,
    places: list[int],
    looks: tuple[tuple[int, ...], ...],
    fine: tuple[Cells, ...],
    parts: dict[str, float],
    wanted: bool | None,
) -> list[str]:
    """What the plan has chosen, for people."""
    percent = {name: f"{100 * part:.0f} %" for name, part in parts.items()}
    found = [f"histograms of {len(schema.used)} columns place the cells: {percent[COLUMNS]} of the budget"]
    if fine:
        names = [schema.used[cells.column].name for cells in fine]
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        found.append(f"finer histograms find values that repeat ({shown}): {percent[VALUES]}")
    has_classes = len(places) < len(schema.used)
    by_label = " by label" if has_classes else ""
    found.append(f"{len(places)} columns{by_label}, in cells placed so: {percent[CELLS]}")
    possible = math.comb(len(places), 2)
    if looks:
        found.append(
            f"a coarse look at {len(looks)} of {possible} pairs of columns: {percent[LOOKS]}; "
            f"the pairs that depend on one another are measured again, finer: {percent[PAIRS]}"
        )
    elif wanted is False:
        found.append("no pairs of columns, as asked")
    elif possible:
        found.append(
            "no pairs of columns: the budget does not carry them on so few rows; columns will be "
            "independent" + (" within each class" if has_classes else "")
        )
    return found
