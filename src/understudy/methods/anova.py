"""DP-ANOVA, the default for tables: every column, every pair of columns, and both by label.

The kernel is an ANOVA kernel of order two, k = sum_j k_j + sum_{i<j} k_i k_j, and the same times the label's kernel.
Each k_j asks whether two values lie in the same cell of column j, so that the mean embedding is tables of counts.
Later stages are settled by rules of ``rules/``, which a plan names ("place-cells", "choose-pairs"); if nobody has
stated a row count, the noisy one settles how many bars there are and whether pairs are measured at all ("place-bars",
"place-cells-by-rows").
The story, in the order of this file; every measurement is a sum of integers with noise, and the rest reads only those:

1. ``dp_anova`` splits the budget over stages and plans equal bars (``features.tables.first_bars``). If nobody has
   stated a row count, it is measured first, and ``place_bars`` joins bars that so few rows do not carry.
2. Measure: histograms of columns, and of long columns value by value.
3. Adaptive bins: ``place_bins`` removes noise from the histograms (Haar thresholds) and cuts columns where rows are.
4. Measure: columns by label in these bins, and all pairs of columns by label, coarsely. In this stage and the last
   one, values that repeat in the longest columns are cut out of their bars (``rules.spikes``).
5. Pair selection: ``select_marginals`` takes the pairs whose dependence is worth the noise that they bring to all.
6. Measure: the selected pairs, each as finely as its dependence and the noise deserve, and every column by itself in
   cells cut anew (``refined``), all with the same noise.
7. ``train_anova``: marginals that agree (``find_marginals``); pairs shrunk towards independence (``pair_targets``,
   ``coarse_targets``); a mixture of products fitted to all of them by descent (``fit_components``), in which columns
   that another one determines follow it (``find_followers``), and the ones that depend most on one another are drawn
   together (``choose_ties``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Annotated

import numpy as np

from understudy.accounting.mechanisms import Budget, Neighbours, mechanism_for
from understudy.arrays import Floats, LossProgress
from understudy.errors import UsageError
from understudy.features import Block, Cells, Constant, Embedding, Norm, Sign, Tables
from understudy.features.tables import fine_bars, first_bars, planned_cells
from understudy.fits.anova import AnovaTraining, column_grids, fit_components, with_label
from understudy.fits.comonotone import Inside
from understudy.fits.followers import find_followers
from understudy.fits.shrinkage import coarse_targets, pair_targets, positive_counts
from understudy.fits.ties import choose_ties
from understudy.generators.mixture import Mixture, Tie
from understudy.methods.common import Labels, Option, Steps, Terms, draw_subsets, generator_settings, terms_of
from understudy.plan.plan import Plan, Stage
from understudy.released import Release
from understudy.rules.adaptive_bins import (
    CELLS,
    COARSE_PAIRS,
    COLUMNS,
    DIGITS,
    LEAST_COVERAGE,
    MARGINALS,
    ROWS,
    VALUES,
    looks_at_pairs,
    pairs_carried,
)
from understudy.rules.marginals import find_marginals
from understudy.rules.pair_selection import MOST_PAIRS, selected_pairs
from understudy.schema import Schema

PLANNED_CELLS = (40, 8, 12)
"""Cells that a column may get by label, in the first look at pairs, and in chosen pairs."""

MOST_CLASSES = 24
"""A label with more classes is treated like any other column."""

SHARES = {
    ROWS: 0.005,
    "count": 0.015,
    COLUMNS: 0.15,
    VALUES: 0.02,
    CELLS: 0.315,
    COARSE_PAIRS: 0.1,
    MARGINALS: 0.395,
}
WITHOUT_PAIRS = {ROWS: 0.005, "count": 0.02, COLUMNS: 0.2, VALUES: 0.03, CELLS: 0.445, MARGINALS: 0.3}
"""Shares of the budget (of mu squared), if pairs are measured and if they are not."""

DIGITS_SHARE = 0.005
"""Of the budget, in the stage by label and in the last one each: taken from columns by label and from marginals, if the
schema has columns too long to be counted code by code."""

PURE_SHARES = {
    ROWS: 0.02,
    "count": 0.02,
    COLUMNS: 0.23,
    VALUES: 0.02,
    CELLS: 0.15,
    COARSE_PAIRS: 0.12,
    MARGINALS: 0.44,
}
PURE_WITHOUT_PAIRS = {ROWS: 0.02, "count": 0.03, COLUMNS: 0.25, VALUES: 0.04, CELLS: 0.39, MARGINALS: 0.27}
"""The same of epsilon, if delta is 0: noise then grows with the number of tables, not its root."""

MOST_LOOKED = 3_000
"""Pairs that are planned for if nobody has stated a row count, which then settles whether they are measured."""


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
    terms = terms_of(schema, budget, neighbours, num_rows, labels=labels)
    if terms.num_labels > MOST_CLASSES:
        terms = terms_of(schema, budget, neighbours, num_rows)
    norm, noise = terms.norm, partial(terms.noise, sign=Sign.NONNEGATIVE)  # on the share of rows in a cell of one table
    places = [i for i, column in enumerate(schema.used) if terms.classes is None or column is not schema.label]
    if not places:
        raise UsageError("schema", "has no column beside the label", "Use --labels none")
    shares, without_pairs = (SHARES, WITHOUT_PAIRS) if norm is Norm.L2 else (PURE_SHARES, PURE_WITHOUT_PAIRS)
    by_rows = terms.num_rows is None and pairs is None and math.comb(len(places), 2) <= MOST_LOOKED
    wanted = True if by_rows else pairs
    coarse_pairs = _coarse_pairs(len(places), noise(shares[COARSE_PAIRS]), norm, wanted=wanted, seed=seed)
    parts = dict(shares if coarse_pairs else without_pairs)
    bar_noise, value_noise = 0.0, 0.0  # nobody states a row count: once it is measured, a rule joins bars
    if terms.num_rows is not None:
        parts[CELLS] += parts.pop(ROWS)
        bar_noise, value_noise = noise(parts[COLUMNS]) * norm.dilution(len(schema.used)), noise(parts[VALUES])
    bars = first_bars(schema, bar_noise)
    tail = mechanism_for(budget).deviations
    fine = fine_bars(schema, bars, value_noise, norm=norm, tail=tail) if values else ()
    if not fine:
        parts[CELLS] += parts.pop(VALUES)
    if any(_is_long(cells) for cells in fine):
        for digits, block in zip(DIGITS, (CELLS, MARGINALS), strict=True):
            parts |= {digits: DIGITS_SHARE, block: parts[block] - DIGITS_SHARE}
    stages = _stages(terms, bars, fine, places, coarse_pairs, parts, by_rows=by_rows)
    planned = {"anova": AnovaTraining(seed=seed)}
    settings = {
        "labels": labels,
        **generator_settings(planned, generator=None, training=training, steps=steps),
        "explanation": _explanation(schema, places, coarse_pairs, fine, parts, pairs, by_rows=by_rows),
    }
    return terms.plan("dp-anova", stages, settings)


def _coarse_pairs(
    num_columns: int, noise: float, norm: Norm, *, wanted: bool | None, seed: int
) -> tuple[tuple[int, ...], ...]:
    """The pairs that are looked at: all, as many as noise allows, or none."""
    every = tuple(combinations(range(num_columns), 2))
    if wanted is False or not every:
        return ()
    allowed = pairs_carried(noise, norm)
    if allowed >= len(every) or wanted:
        return every
    if allowed < LEAST_COVERAGE * len(every):
        return ()
    return draw_subsets([2] * num_columns, 2, allowed, apart=set(), largest=4, seed=seed)


def _stages(
    terms: Terms,
    bars: tuple[Cells, ...],
    fine: tuple[Cells, ...],
    places: list[int],
    coarse_pairs: tuple[tuple[int, ...], ...],
    parts: dict[str, float],
    *,
    by_rows: bool,
) -> tuple[Stage, ...]:
    """The three measurements; cells of the last two are stand-ins until the rules have placed them."""

    def stage(name: str, maps: dict[str, Tables | None], *, by_label: bool = False, rule: str | None = None) -> Stage:
        """Blocks that split a stage's share of the budget as planned."""
        share, labelled = sum(parts[block] for block in maps), by_label and terms.classes is not None
        unlisted, blocks = labelled and terms.may_be_unlisted, []
        for block, map_ in maps.items():
            weight = terms.norm.weight(parts[block] / share)
            if block == ROWS:
                blocks.append(Block(ROWS, Constant(), weight, norm=terms.norm))
            elif map_ is None:
                blocks.append(terms.count_block(weight, terms.norm))
            else:
                own = labelled and block not in DIGITS
                blocks.append(Block(block, map_, weight, own, terms.norm, with_unlisted=own and unlisted))
        return Stage(name, Embedding(tuple(blocks), terms.classes), share, rule)

    long = [replace(each, lows=(0,)) for each in fine if _is_long(each)]
    digits: list[dict[str, Tables | None]] = [{name: _tables(long)} if long else {} for name in DIGITS]
    pairs = tuple((len(places) + i, len(places) + j) for i, j in coarse_pairs[:MOST_PAIRS])
    cells, coarse, finer = ([planned_cells(bars[place], count) for place in places] for count in PLANNED_CELLS)
    first: dict[str, Tables | None] = {"count": None, COLUMNS: _tables(bars)}
    second: dict[str, Tables | None] = {CELLS: _tables(cells)}
    if fine:
        first[VALUES] = _tables(fine)
    if coarse_pairs:
        second[COARSE_PAIRS] = _tables(coarse, coarse_pairs)
    second |= digits[0]
    name = "cells" if terms.classes is None else "by label"
    rule = "place-cells-by-rows" if by_rows and coarse_pairs else "place-cells"
    counted = [stage("rows", {ROWS: None})] if ROWS in parts else []
    found = [
        *counted,
        stage("columns", first, rule="place-bars" if counted else None),
        stage(name, second, by_label=True, rule=rule),
    ]
    third = {MARGINALS: _tables([*cells, *finer], (*((j,) for j in range(len(cells))), *pairs)), **digits[1]}
    return (*found, stage("pairs" if coarse_pairs else "columns again", third, rule="choose-pairs"))


def _is_long(cells: Cells) -> bool:
    """Whether a column's finer histogram has fewer bars than the column has codes."""
    return not cells.steps and cells.num_pieces < cells.num_codes


def _tables(cells: Sequence[Cells], subsets: tuple[tuple[int, ...], ...] | None = None) -> Tables:
    """Tables of subsets, or of each column, in which every row has a cell, so that all have the same total."""
    return Tables(tuple(cells), subsets or tuple((j,) for j in range(len(cells))), with_unlisted=True)


def train_anova(release: Release, training: AnovaTraining, *, progress: LossProgress | None = None) -> Mixture:
    """Fit a mixture to a release; the same release and settings give the same mixture."""
    measurements = [each for each in release.measurements if not each.has(ROWS)]
    marginals = find_marginals(measurements, positive=positive_counts)
    shares, ties = marginals.label_shares, list[Tie]()
    if not looks_at_pairs(measurements[1]):  # no pairs: columns are independent within labels
        sizes, by_column = np.ones(len(shares), dtype=np.int64), list(marginals.by_label)
    else:
        _, second, third = measurements
        selected = selected_pairs(third)
        pairs = pair_targets(marginals, selected)
        coarse = coarse_targets(marginals, second, pairs, selected.cells)
        inside = Inside(measurements[0], release.plan.schema.used)
        noise = second.noise_of_count(CELLS)
        followers, marginals = find_followers(marginals, pairs, selected, noise=noise, inside=inside)
        apart = {tie.child for tie in followers}
        ties = choose_ties(marginals, pairs, selected.cells, noise=noise, followers=apart)
        sizes, by_column = fit_components(
            marginals,
            pairs,
            coarse,
            selected=selected,
            second=second,
            ties=ties,
            followers=followers,
            training=training,
            progress=progress,
        )
        ties = [*ties, *followers]
    return Mixture(
        schema=release.plan.schema,
        probabilities=_single(with_label(release, by_column, sizes)),
        sizes=tuple(sizes.tolist()),
        default_num_rows=release.plan.num_rows or round(marginals.total),
        label_shares=tuple(shares.tolist()),
        grids=column_grids(measurements, marginals),
        ties=tuple(
            Tie(marginals.cells[tie.parent].column, marginals.cells[tie.child].column, _single(tie.ratios))
            for tie in ties
        ),
    )


def _single(numbers: Floats) -> Floats:
    """What single precision keeps, as a generator's file does: a stored one samples the same rows."""
    return numbers.astype(np.float32).astype(np.float64)


def _explanation(
    schema: Schema,
    places: list[int],
    coarse_pairs: tuple[tuple[int, ...], ...],
    fine: tuple[Cells, ...],
    parts: dict[str, float],
    wanted: bool | None,
    *,
    by_rows: bool,
) -> list[str]:
    """What the plan has chosen, for people."""
    percent = {name: f"{100 * part:.1f} %" if part < 0.01 else f"{100 * part:.0f} %" for name, part in parts.items()}
    found = [f"histograms of {len(schema.used)} columns place the cells: {percent[COLUMNS]} of the budget"]
    if ROWS in parts:
        found = [
            f"no row count is stated: it is measured first, and says how fine histograms are: {percent[ROWS]}",
            *found,
        ]
    if fine:
        names = [schema.used[cells.column].name for cells in fine if not cells.steps]
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        found.append(f"finer histograms find values that repeat ({shown}): {percent[VALUES]}")
    if DIGITS[0] in parts:
        found.append(f"values that repeat in the longest columns, to one of 2^32 codes: {percent[DIGITS[0]]} twice")
    has_classes = len(places) < len(schema.used)
    by_label = " by label" if has_classes else ""
    again = "" if coarse_pairs else f"; once more by themselves, in cells cut anew: {percent[MARGINALS]}"
    found.append(f"{len(places)} columns{by_label}, in cells placed so: {percent[CELLS]}{again}")
    possible = math.comb(len(places), 2)
    if coarse_pairs:
        found.append(
            f"a coarse look at {len(coarse_pairs)} of {possible} pairs of columns: {percent[COARSE_PAIRS]}; "
            f"the pairs that depend on one another are measured again, finer, and columns in cells cut anew: "
            f"{percent[MARGINALS]}"
        )
        if by_rows:
            found.append("if the noisy row count carries no pairs, columns are measured instead")
    elif wanted is False:
        found.append("no pairs of columns, as asked")
    elif possible:
        found.append(
            "no pairs of columns: the budget does not carry them on so few rows; columns will be "
            "independent" + (" within each class" if has_classes else "")
        )
    return found
