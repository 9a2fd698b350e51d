"""What the numbers mean, in sentences: good enough for what, worst where, what to leave alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite, nan
from statistics import fmean

from understudy.evaluation.metrics import METRICS, ColumnView, Evaluation, Prediction, Score
from understudy.reports.charts import counted, decimal, listed, percent

# A score in a word: where it lies between independent columns and real rows.

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


SMALL_DISTANCE = 0.02
LARGE_DISTANCE = 0.05
TIE = 0.1
LOST_TIE = 0.1
NULLS = 0.02
COPIES = 0.1
NAMED = 5


@dataclass(frozen=True, slots=True)
class Use:
    """Something people do with a table, and how far it can be done with this one."""

    words: str
    level: Level
    reason: str


@dataclass(frozen=True, slots=True)
class Tie:
    """A pair of columns, and how strongly they depend on one another."""

    pair: tuple[str, str]
    real: float
    synthetic: float

    @property
    def difference(self) -> float:
        """Above 0: stronger than in the real rows."""
        return self.synthetic - self.real


@dataclass(frozen=True, slots=True)
class Verdict:
    """The report's sentences."""

    headline: str
    uses: tuple[Use, ...]
    trust: tuple[str, ...]
    doubt: tuple[str, ...]
    ties: tuple[Tie, ...]
    """Most different first."""
    copies: tuple[str, ...] = ()
    """The first of ``doubt``, if rows equal real ones too often."""


def judge(evaluation: Evaluation, *, epsilon: float | None = None) -> Verdict:
    """Everything that a report says in words."""
    uses = tuple(_uses(evaluation))
    ties = tuple(find_ties(evaluation))
    trust, doubt = _columns(evaluation.columns)
    for sentences, others in (_ties(ties), _prediction(evaluation.prediction)):
        trust, doubt = trust + sentences, doubt + others
    copies = _copies(evaluation)
    doubt = copies + doubt + _details(evaluation)
    doubt += [
        f"{use.words[0].upper()}{use.words[1:]}: {use.reason}."
        for use in uses
        if use.level <= Level.FAIR and use.words.startswith("three")
    ]
    doubt.append(
        "Single rows: no synthetic row stands for a person, and rare groups smaller than the noise are not kept."
    )
    return Verdict(_headline(uses, evaluation, ties, epsilon), uses, tuple(trust), tuple(doubt), ties, tuple(copies))


def _uses(evaluation: Evaluation) -> Iterable[Use]:
    by_key = {score.metric.key: score for score in evaluation.scores}
    for words, keys in USES.items():
        found = [by_key[key] for key in keys if key in by_key]
        graded = [(level, score) for score in found if (level := level_of(score)) is not None]
        if graded:
            level, score = min(graded, key=lambda pair: pair[0])
            yield Use(words, level, _beside(score))
    if evaluation.prediction is not None and evaluation.prediction.models:
        score = mean_score(evaluation.prediction)
        level = level_of(score)
        if level is not None:
            label = evaluation.prediction.label
            yield Use(f"training models of '{label}'", level, _beside(score))


USES = {
    "single columns": ("marginal_1",),
    "pairs of columns": ("marginal_2",),
    "three and more columns at once": ("marginal_3", "marginal_4"),
}
"""What people do, and the scores that tell whether it can be done."""


def mean_score(prediction: Prediction) -> Score:
    """The mean over all models of the task's first score, beside real rows and the baseline."""
    models = prediction.models
    key = next(iter(models[0].synthetic))

    def mean(sides: Iterable[dict[str, float]]) -> float | None:
        values = [side[key] for side in sides if isfinite(side.get(key, nan))]
        return fmean(values) if values else None

    return Score(
        METRICS[key],
        nan if (value := mean(model.synthetic for model in models)) is None else value,
        mean(model.real for model in models),
        mean(model.baseline for model in models),
    )


def bare_title(key: str) -> str:
    """A prediction's score without the words that all of them share."""
    return METRICS[key].title.removesuffix(" on real test rows")


def _beside(score: Score) -> str:
    words = f"{score.metric.title} {decimal(score.value)}, real rows {decimal(score.floor)}"
    if score.baseline is not None:
        words += f", baseline {decimal(score.baseline)}"
    return words


def _headline(uses: tuple[Use, ...], evaluation: Evaluation, ties: tuple[Tie, ...], epsilon: float | None) -> str:
    groups = {
        "good enough for": [use.words for use in uses if use.level >= Level.CLOSE],
        "with care for": [use.words for use in uses if use.level is Level.FAIR],
        "not for": [use.words for use in uses if use.level is Level.WEAK],
    }
    parts = [f"{words} {listed(named)}" for words, named in groups.items() if named]
    if evaluation.columns:
        worst = evaluation.columns[0]
        where = f"'{worst.name}' (distance {decimal(worst.distance)}"
        where += f", where real rows alone give {decimal(worst.floor)})"
        if ties and abs(ties[0].difference) > LOST_TIE:
            where += " and the tie of '{}' with '{}'".format(*ties[0].pair)
        parts.append(f"worst in {where}")
    sentence = "; ".join(parts)
    before = f"At epsilon {epsilon:g}: " if epsilon is not None else ""
    return before + (sentence if before else sentence[:1].upper() + sentence[1:]) + "."


def is_close(view: ColumnView) -> bool:
    """Whether a column differs no more than two samples of real rows do, or hardly."""
    return view.distance <= max(SMALL_DISTANCE, 2 * view.floor)


def is_far(view: ColumnView) -> bool:
    """Whether a column's shares should not be relied on."""
    return view.distance > max(LARGE_DISTANCE, 3 * view.floor)


DETAILS = {
    "kolmogorov_smirnov": "Exact values of numbers: cumulative shares are off by {} on average; values that "
    "repeat may come back spread out.",
    "two_sample_auc_raw": "Passing for real rows: boosted trees tell synthetic from real ones with a ROC-AUC "
    "of {}, where 0.5 is a guess.",
}
"""What bins hide, by the scores that show it."""


def _copies(evaluation: Evaluation) -> list[str]:
    """Rows that equal real ones far more often than other real rows do."""
    return [
        f"These rows being synthetic: {percent(score.value)} of them equal one of half of the real rows in "
        f"every cell, where other real rows do so in {percent(score.floor or 0.0)}. Make sure that real "
        "rows were not given in their place."
        for score in evaluation.scores
        if score.metric.key == "copied_rows" and score.value > (score.floor or 0.0) + COPIES
    ]


def _details(evaluation: Evaluation) -> list[str]:
    found = []
    for score in evaluation.scores:
        level = level_of(score)
        if score.metric.key in DETAILS and level is not None and level <= Level.FAIR:
            found.append(DETAILS[score.metric.key].format(decimal(score.value)))
    return found


def _columns(views: tuple[ColumnView, ...]) -> tuple[list[str], list[str]]:
    close = [view for view in views if is_close(view)]
    far = [view for view in views if is_far(view)]
    trust, doubt = [], []
    if close:
        trust.append(
            f"Shares of {_of(len(close), len(views), 'column')}: no more than "
            f"{percent(max(view.distance for view in close))} of rows would have to move."
        )
    if far:
        named = [f"'{view.name}' ({percent(view.distance)})" for view in far[:NAMED]]
        more = f" and {counted(len(far) - NAMED, 'more column')}" if len(far) > NAMED else ""
        doubt.append(f"Shares of {', '.join(named)}{more}: so many rows sit in another bin or category.")
    apart = [v for v in views if abs(v.null_share_real - v.null_share_synthetic) > NULLS]
    if apart:
        named = [
            f"'{view.name}' ({percent(view.null_share_real)} became {percent(view.null_share_synthetic)})"
            for view in apart[:NAMED]
        ]
        more = f" and {counted(len(apart) - NAMED, 'more column')}" if len(apart) > NAMED else ""
        doubt.append(f"How often cells are null: {', '.join(named)}{more}.")
    return trust, doubt


def _of(part: int, total: int, noun: str) -> str:
    return f"all {counted(total, noun)}" if part == total else f"{part} of {counted(total, noun)}"


def find_ties(evaluation: Evaluation) -> list[Tie]:
    """All pairs of columns, those that differ most first."""
    names = evaluation.associations.columns
    found = [
        Tie((names[i], names[j]), evaluation.associations.real[i][j], evaluation.associations.synthetic[i][j])
        for i in range(len(names))
        for j in range(i)
    ]
    known = [tie for tie in found if tie.difference == tie.difference]
    return sorted(known, key=lambda tie: -abs(tie.difference))


def _ties(ties: tuple[Tie, ...]) -> tuple[list[str], list[str]]:
    real = [tie for tie in ties if tie.real >= TIE]
    held = [tie for tie in real if abs(tie.difference) <= LOST_TIE]
    trust, doubt = [], []
    if held:
        trust.append(
            f"{_of(len(held), len(real), 'tie').capitalize()} between columns that real rows show "
            f"(strength of {TIE} and more): within {LOST_TIE} of their real strength."
        )
    for words, chosen in (
        ("Weaker than in real rows", [t for t in ties if t.difference < -LOST_TIE]),
        ("Stronger than in real rows", [t for t in ties if t.difference > LOST_TIE]),
    ):
        if chosen:
            named = [
                f"'{tie.pair[0]}' with '{tie.pair[1]}' ({decimal(tie.real, 2)} became {decimal(tie.synthetic, 2)})"
                for tie in chosen[:NAMED]
            ]
            more = f", and {len(chosen) - NAMED} more" if len(chosen) > NAMED else ""
            doubt.append(f"{words}: {', '.join(named)}{more}.")
    return trust, doubt


def _prediction(prediction: Prediction | None) -> tuple[list[str], list[str]]:
    if prediction is None or not prediction.models:
        return [], []
    score = mean_score(prediction)
    sign = 1.0 if score.metric.better == "higher" else -1.0
    key = score.metric.key
    known = [model for model in prediction.models if key in model.real and key in model.synthetic]
    lost = [(sign * (model.real[key] - model.synthetic[key]), model.model) for model in known]
    good = [name for gap, name in lost if gap <= DISTANCES[1]]
    bad = sorted(((gap, name) for gap, name in lost if gap > DISTANCES[2]), reverse=True)
    trust, doubt = [], []
    if good:
        trust.append(
            f"Models of '{prediction.label}': in {_of(len(good), len(lost), 'model')}, training on "
            f"synthetic instead of real rows costs at most {DISTANCES[1]} of {bare_title(key)}."
        )
    if bad:
        named = [f"{name} (loses {decimal(gap)})" for gap, name in bad[:NAMED]]
        doubt.append(f"Models that need what was not kept: {', '.join(named)}.")
    if len(known) > 1:
        best_on_real = max(known, key=lambda model: sign * model.real[key]).model
        best_here = max(known, key=lambda model: sign * model.synthetic[key]).model
        words = f"Choosing among models: {best_here} does best when trained on synthetic rows"
        if best_here == best_on_real:
            trust.append(f"{words}, and on real ones.")
        else:
            doubt.append(f"{words}, {best_on_real} when trained on real ones.")
    return trust, doubt
