"""A score in a word: where it lies between independent columns and real rows."""

from __future__ import annotations

from enum import IntEnum
from math import isfinite

from understudy.evaluation.results import Score

SMALL_GAP = 0.02
"""Below it independent columns do as well as real rows, and the share between them says nothing."""

SHARES = (0.95, 0.8, 0.5)
"""Of the way from independent columns to real rows: like real, close, fair."""

DISTANCES = (0.01, 0.03, 0.08)
"""Worse than real rows by at most this, where no share can be given."""

UNGRADED = {"kernel_p_value", "neighbour_distance", "copied_rows"}
"""Scores that are no question of more or less: a test's p-value, and distances to real rows."""


class Level(IntEnum):
    """How good a score is; its words are those of the report."""

    WEAK = 0
    FAIR = 1
    CLOSE = 2
    LIKE_REAL = 3

    @property
    def words(self) -> str:
        """For people."""
        return ("weak", "fair", "close", "like real rows")[self]


def kept(score: Score) -> float | None:
    """How far a score gets from independent columns to real rows: 0 is the one, 1 the other."""
    if score.floor is None or score.baseline is None:
        return None
    if score.metric.key in UNGRADED or not isfinite(score.value):
        return None
    gap = _worse(score, score.baseline)
    return None if gap < SMALL_GAP else 1 - _worse(score, score.value) / gap


def _worse(score: Score, value: float) -> float:
    """How much worse than real rows, as a share of the metric's range."""
    metric, floor = score.metric, score.floor or 0.0
    span = metric.high - metric.low if metric.high is not None else abs(floor) or 1.0
    return (value - floor if metric.better == "lower" else floor - value) / span


def level_of(score: Score) -> Level | None:
    """How good a score is, if there is something to compare it with."""
    if score.floor is None or score.metric.key in UNGRADED or not isfinite(score.value):
        return None
    share = kept(score)
    if share is not None:
        return Level(sum(share >= least for least in SHARES))
    return Level(sum(_worse(score, score.value) <= most for most in DISTANCES))
