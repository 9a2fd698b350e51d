"""DP-ANOVA's mixture of tied product distributions, fitted to noisy marginals: loss, gradient descent, raking (IPF).

Also how rows are spread inside the bins of a column, from its finest histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from understudy.arrays import Floats, Integers, LossProgress, load_torch, one_thread
from understudy.features import Cells
from understudy.fits.heaping import with_heaps, with_spikes
from understudy.fits.mmd_loss import Term, descend, rows_per_label
from understudy.fits.shrinkage import Targets, expected_counts, members
from understudy.fits.ties import balanced, joint_margins
from understudy.generators.mixture import ColumnGrid, Tie
from understudy.released import Release
from understudy.rules.adaptive_bins import (
    CELLS,
    COARSE_PAIRS,
    COLUMNS,
    level_starts,
    masses_in,
    pieces_of,
    round_counts,
    spread_inside,
    total_rows,
)
from understudy.rules.marginals import RAKINGS, Marginals, unions
from understudy.rules.measurement import Measurement
from understudy.rules.pair_selection import SelectedPairs
from understudy.rules.spikes import Run, last_runs

MOST_WORK = 8e9
"""Operations of a training step; wide tables get fewer components instead of slower steps."""

FEWEST_COMPONENTS = 200
"""Components that a mixture has at least, however wide the table is."""

UNSEEN = 1e-4
"""Additive smoothing of a cell's share within a label, over the number of cells: logarithms stay finite."""

MOST_OFF = 0.5
"""Components' mean may differ from what is known of a cell by its noise, but by no more than this part of it: the
noise of a tail's cell is many times its rows."""

MOST_RAKED = 10.0
"""A factor of one round at most: margins that no factors can give must not make numbers overflow."""

FAR_OFF = 2.0
"""A cell with so many times the rows that even splits of bars give it holds a value that repeats."""


@dataclass(frozen=True, slots=True)
class AnovaTraining:
    """Public settings of the mixture and its training.

    ``caution`` pulls components towards their label's marginals (a relative entropy), in units of
    the noise on a pair's share: of all mixtures that explain the tables, take the plainest.
    """

    num_components: int = 1000
    steps: int = 300
    learning_rate: float = 0.5
    start_spread: float = 0.4
    caution: float = 1.0
    seed: int = 0


@one_thread()
def fit_components(
    marginals: Marginals,
    pairs: Targets,
    coarse: Targets,
    *,
    selected: SelectedPairs,
    second: Measurement,
    ties: list[Tie],
    followers: list[Tie],
    training: AnovaTraining,
    progress: LossProgress | None,
) -> tuple[Integers, list[Floats]]:
    """Fit the mixture's components to one- and two-way marginals, each weighted by the precision of its noise.

    Returns:
        How many components each label has, and every component's probabilities, column by column.
    """
    finer, coarser = selected.cells, second.map(COARSE_PAIRS).factors
    widths = [sum(cells.dim for cells in each) for each in (marginals.cells, finer, coarser)]
    of_cells, of_coarse = second.noise_of_count(CELLS), second.noise_of_count(COARSE_PAIRS)
    work = 6 * (widths[1] ** 2 + widths[2] ** 2 + widths[0] * (widths[1] + widths[2]))
    work += 30 * sum(tie.ratios.size for tie in ties)
    most = max(FEWEST_COMPONENTS, int(MOST_WORK / work))
    count = max(min(training.num_components, most), 8 * len(marginals.label_shares))
    sizes = rows_per_label(marginals.label_shares, count)
    of_pairs, cells = selected.noise, second.map(CELLS).factors
    fit = _Components(marginals, sizes, finer, ties, followers, training)
    terms = [
        fit.marginals(cells, (of_pairs / of_cells) ** 2),
        fit.pairs(pairs, finer, 1.0),
        fit.pairs(coarse, coarser, (of_pairs / of_coarse) ** 2),
        fit.plainness(training.caution * (of_pairs / marginals.total)),
    ]
    descend([fit.moves], terms, fit.found, training=training, progress=progress)
    return sizes, fit.by_column(cells, slack=of_cells / marginals.total)


class _Found(NamedTuple):
    """Components as a step of the descent sees them (tensors)."""

    own: Any  # (components, cells): what each column brings, before ties
    logs: Any  # of that
    marginals: Any  # (components, cells)
    joints: tuple[Any, ...]  # (labels, cells, others) of each tie: shares of all rows


class _Components:
    """Softmax scores (logits) of every component's cells, and the terms of the loss whose gradient moves them."""

    def __init__(
        self,
        marginals: Marginals,
        sizes: Integers,
        moved: Sequence[Cells],
        ties: list[Tie],
        followers: list[Tie],
        training: AnovaTraining,
    ) -> None:
        self._torch, self._marginals, self._ties, self._followers = load_torch(), marginals, ties, followers
        label = np.repeat(np.arange(len(sizes)), sizes)
        self._edges = np.cumsum([0, *sizes]).tolist()
        self._weights = self._tensor((marginals.label_shares / sizes)[label])[:, None]
        self._average = self._tensor(np.eye(len(sizes))[label].T / sizes[:, None])
        self._widths = [cells.dim for cells in marginals.cells]
        spans = np.repeat(np.arange(len(self._widths)), self._widths)
        self._spans = self._tensor(np.eye(len(self._widths))[spans])  # (cells, columns)
        self._ratios, self._laws = ([self._tensor(tie.ratios) for tie in own] for own in (ties, followers))
        floors = [shares + UNSEEN / shares.shape[1] for shares in marginals.by_label]
        plain = [each / each.sum(axis=1, keepdims=True) for each in floors]
        for tie in ties:
            plain[tie.parent], plain[tie.child] = balanced(tie.ratios, plain[tie.parent], plain[tie.child])
        self._plain = self._tensor(np.log(np.concatenate(plain, axis=1))[label])
        union = self._union(moved)  # components start apart in the cells that pairs are made of
        rng = np.random.default_rng(training.seed)
        start = rng.standard_normal((len(label), union.shape[1])) * training.start_spread
        self.moves = (self._tensor(start) @ union.T).contiguous().requires_grad_()

    def _tensor(self, array: Floats) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))

    def _union(self, of: Sequence[Cells]) -> Any:
        """Which cells of all columns lie in each of these, column by column.  # (cells of all, cells)"""
        starts = np.cumsum([0, *self._widths])
        found = []
        for cells in of:
            place = self._marginals.place(cells)
            found.append(np.zeros((starts[-1], cells.dim)))
            found[-1][starts[place] : starts[place + 1]] = members(self._marginals.cells[place], cells)
        return self._tensor(np.concatenate(found, axis=1))

    def found(self) -> _Found:
        """Softmax within every column, its logarithm, and marginals given the ties."""
        scores = self._plain + self.moves
        scores = scores - scores.detach().amax(dim=1, keepdim=True)
        raised = self._torch.exp(scores)
        sums = raised @ self._spans + 1e-30
        logs = scores - self._torch.log(sums) @ self._spans.T
        own = raised * ((1 / sums) @ self._spans.T)
        parts, joints = list(self._torch.split(own, self._widths, dim=1)), []
        for tie, ratios in zip(self._ties, self._ratios, strict=True):
            left, right = parts[tie.parent], parts[tie.child]
            parts[tie.parent], parts[tie.child], whole = joint_margins(left, right, ratios)
            weighted = left * (self._weights / whole)
            joint = self._torch.stack([weighted[a:b].T @ right[a:b] for a, b in pairwise(self._edges)])
            joints.append(joint * ratios)
        for tie, law in zip(self._followers, self._laws, strict=True):
            parts[tie.child] = parts[tie.parent] @ law
        return _Found(own, logs, self._torch.cat(parts, dim=1), tuple(joints))

    def marginals(self, cells: Sequence[Cells], weight: float) -> Term:
        """One-way marginals within labels, in the cells that were counted by label.

        A rare label weighs in proportion to its share, not to its square.
        """
        union = self._union(cells)
        targets = self._tensor(np.concatenate(self._marginals.by_label, axis=1)) @ union
        shares = self._tensor(np.sqrt(self._marginals.label_shares)[:, None])

        def loss(found: _Found) -> Any:
            apart = ((self._average @ found.marginals) @ union - targets) * shares
            return weight * (apart**2).sum()

        return Term(loss)

    def pairs(self, targets: Targets, cells: Sequence[Cells], weight: float) -> Term:
        """Two-way marginals, for all labels together or for each: E[p q^T] over components, as one matrix product.

        Pairs that are tied have their joint law's own table, also if one of the columns follows a tied one. That of a
        follower and the column that determines it is what it is.
        """
        union = self._union(cells)
        edges = np.cumsum([0, *(each.dim for each in cells)])
        copies = len(next(iter(targets.values())).table)
        aim = np.zeros((copies, edges[-1], edges[-1]))
        seen = np.zeros((edges[-1], edges[-1]))
        tied = []
        for pair, target in targets.items():
            sides = [self._drawn(cells[j]) for j in pair]
            places = {place for place, _ in sides}
            tie = next((k for k, tie in enumerate(self._ties) if {tie.parent, tie.child} == places), None)
            if tie is not None:
                is_turned = sides[0][0] != self._ties[tie].parent
                table = target.table.transpose(0, 2, 1) if is_turned else target.table
                (_, left), (_, right) = sides[::-1] if is_turned else sides
                tied.append((tie, self._tensor(left), self._tensor(right), self._tensor(table), target.weight))
            elif len(places) > 1:
                rows, columns = (slice(edges[j], edges[j + 1]) for j in pair)
                aim[:, rows, columns], seen[rows, columns] = target.table, np.sqrt(target.weight)
        mask = self._tensor(seen)
        bounds = list(pairwise(self._edges if copies > 1 else [0, self._edges[-1]]))
        groups = list(zip(bounds, self._tensor(aim), strict=True))

        def loss(found: _Found) -> Any:
            merged = found.marginals @ union
            weighted = merged * self._weights
            total = sum((((weighted[a:b].T @ merged[a:b] - table) * mask) ** 2).sum() for (a, b), table in groups)
            for place, left, right, tables, importance in tied:
                joint = found.joints[place] if copies > 1 else found.joints[place].sum(0, keepdim=True)
                total = total + importance * ((left.T @ joint @ right - tables) ** 2).sum()
            return weight * total

        return Term(loss)

    def _drawn(self, cells: Cells) -> tuple[int, Floats]:
        """The column that components draw these cells by: their own, or the one that it follows; and what its cells say
        of them.  # -> ..., (cells of that column, cells)
        """
        place = self._marginals.place(cells)
        held = members(self._marginals.cells[place], cells)
        followed = next((tie for tie in self._followers if tie.child == place), None)
        return (place, held) if followed is None else (followed.parent, followed.ratios @ held)

    def plainness(self, weight: float) -> Term:
        """Relative entropy of components to their label's marginals."""

        def loss(found: _Found) -> Any:
            return weight * (self._weights * found.own * (found.logs - self._plain)).sum()

        return Term(loss)

    def by_column(self, cells: Sequence[Cells], slack: float) -> list[Floats]:
        """Probabilities of each column's cells, raked to its marginals within their slack.

        A tie's parent has its marginals, its child what the ratios are multiplied with, and a follower its law alone.
        """
        own, near = self.found().own.detach().double().numpy(), slack / self._marginals.label_shares
        found = np.split(own, np.cumsum(self._widths)[:-1], axis=1)
        known = zip(self._marginals.by_label, self._marginals.cells, cells, strict=True)
        marginals = [Known(aim, near, self._edges, unions(finer, each)) for aim, finer, each in known]
        following = {tie.child for tie in self._followers}
        ways = [(place, marginals[place]) for place in range(len(found)) if place not in following]
        for tie in self._followers:  # cells that one value of a follower goes with have that value's rows
            groups = marginals[tie.child].union[tie.ratios.argmax(axis=1)]
            ways.append((tie.parent, marginals[tie.parent]._replace(union=np.unique(groups, return_inverse=True)[1])))
        partners = {tie.parent: (tie.child, tie.ratios) for tie in self._ties}
        partners |= {tie.child: (tie.parent, tie.ratios.T) for tie in self._ties}
        for _ in range(RAKINGS):
            for place, own in ways:
                other, ratios = partners.get(place, (place, None))
                found[place] = raked(found[place], own, None if ratios is None else found[other] @ ratios.T)
        for tie in self._ties:
            found[tie.parent], _, _ = joint_margins(found[tie.parent], found[tie.child], tie.ratios)
        for place in following:
            found[place] = np.full(found[place].shape, 1 / found[place].shape[1])
        return found


class Known(NamedTuple):
    """What is known of a column, by label: the mean of its components, within a slack."""

    aims: Floats  # (labels, cells)
    slack: Floats  # (labels,)
    edges: Sequence[int]  # of the labels' components
    union: Integers  # which of the cells that were counted by label each cell lies in


def raked(probabilities: Floats, known: Known, factors: Floats | None = None) -> Floats:
    """One round of bringing components' mean within a label to what is known of the column, as far as noise lets.

    Raking, or iterative proportional fitting (Deming & Stephan 1940), towards an interval instead of a number: a
    mean within the label's slack of its aim stays; others are brought to the edge, by small factors. Cells that were
    counted by label are raked. A tied column's marginals are its probabilities times ``factors``.

    # (components, cells), (components, cells) -> (components, cells)
    """
    found, union = probabilities.copy(), known.union
    within = np.eye(int(union.max()) + 1)[union]
    given = found if factors is None else found * factors
    given = given / np.maximum(given.sum(axis=1, keepdims=True), 1e-300)
    for (start, stop), aim, near in zip(pairwise(known.edges), known.aims, known.slack, strict=True):
        means, wished = given[start:stop].mean(axis=0) @ within, aim @ within
        slack = np.minimum(near, MOST_OFF * wished)
        factor = np.clip(means, wished - slack, wished + slack) / np.maximum(means, 1e-12)
        part = found[start:stop] * np.minimum(factor, MOST_RAKED)[union]
        sums = part.sum(axis=1, keepdims=True)
        found[start:stop] = np.where(sums > 0, part / np.where(sums > 0, sums, 1.0), aim)
    return found


def with_label(release: Release, by_column: list[Floats], sizes: Integers) -> Floats:
    """The columns in the schema's order, with each component's label."""
    if release.label is None:
        return np.concatenate(by_column, axis=1)
    parts, name = list(by_column), release.plan.layout.column_at(release.label[0])
    place = [column.name for column in release.plan.schema.used].index(name)
    parts.insert(place, np.repeat(np.eye(len(sizes)), sizes, axis=0))
    return np.concatenate(parts, axis=1)


def column_grids(measurements: Sequence[Measurement], marginals: Marginals) -> tuple[ColumnGrid, ...]:
    """The cells of every column, and how their rows are spread inside."""
    first, runs = measurements[0], last_runs(measurements)
    grids = [ColumnGrid(each.first_codes, each.last_codes, each.has_null) for each in first.map(COLUMNS).factors]
    for place, cells in enumerate(marginals.cells):
        own = [run for run in runs if run.column == cells.column]
        grids[cells.column] = _grid(first, cells, marginals.total * marginals.of_all(place), own)
    return tuple(grids)


def _remainders(first: Measurement, cells: Cells, masses: Floats, counts_of_cells: Floats) -> Floats:
    """Masses of pieces; in cells with far more rows than histograms show, parts of a bar have what whole bars have not.

    A histogram knows how many rows a bar has, and of its parts nothing: a bar of a single value was split evenly,
    and the part with all of the rows may share a cell with bars that are nearly empty.
    """
    is_part = ~np.isin(cells.first_codes, level_starts(first, cells.column))
    is_part[:-1] |= is_part[1:]  # the first part of a bar begins where the bar does
    groups = cells.cell_of_piece
    whole = np.bincount(groups, weights=np.where(is_part, 0.0, masses), minlength=cells.num_known)
    parts = np.bincount(groups, weights=np.where(is_part, masses, 0.0), minlength=cells.num_known)
    counts = counts_of_cells[: cells.num_known]
    is_off = (parts > 0) & (counts > FAR_OFF * (whole + parts))
    factor = np.where(is_off, (counts - whole) / np.where(is_off, parts, 1.0), 1.0)
    return np.asarray(np.where(is_part, masses * factor[groups], masses))


def _grid(first: Measurement, cells: Cells, counts_of_cells: Floats, runs: Sequence[Run]) -> ColumnGrid:
    if cells.is_ordered:
        masses = _remainders(first, cells, masses_in(cells, first), counts_of_cells)
    else:
        counts = first.tables(COLUMNS)[cells.column][0][: cells.num_pieces]
        masses = expected_counts(counts, first.noise_of_count(COLUMNS), total_rows(first))
    shares = spread_inside(cells, masses)
    grid = ColumnGrid(cells.first_codes, cells.last_codes, cells.has_null, cells.cell_of_piece, shares)
    if cells.is_ordered:
        grid = with_spikes(grid, counts_of_cells, runs)
    counted = round_counts(first, cells.column)
    if counted is None:
        return grid
    bars, pieces = first.map(COLUMNS).factors[cells.column], pieces_of(first, cells.column)
    spikes = pieces.atoms[np.searchsorted(pieces.lows, grid.lows, side="right") - 1]
    return with_heaps(grid, counts_of_cells[: cells.num_known], bars, spikes, *counted)
