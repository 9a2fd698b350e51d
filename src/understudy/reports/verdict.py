"""What the numbers mean, in sentences: good enough for what, worst where, what to leave alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite

from understudy.evaluation.metrics import ColumnView, Evaluation, Prediction, Score
from understudy.reports.charts import decimal, first_few, listed, out_of, percent

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
    if not _is_graded(score):
        return None
    gap = _worse(score, score.baseline)
    return None if gap < SMALL_GAP else 1 - _worse(score, score.value) / gap


def level_of(score: Score) -> Level | None:
    """How good a score is, if there is something to compare it with."""
    if not _is_graded(score):
        return None
    share = kept(score)
    if share is not None:
        return Level(sum(share >= least for least in SHARES))
    return Level(sum(_worse(score, score.value) <= most for most in DISTANCES))


def _is_graded(score: Score) -> bool:
    return score.metric.key not in UNGRADED and all(map(isfinite, (score.value, score.floor, score.baseline)))


def _worse(score: Score, value: float) -> float:
    """How much worse than real rows, as a share of the metric's range."""
    metric, floor = score.metric, score.floor
    span = metric.high - metric.low if metric.high is not None else abs(floor) or 1.0
    return (value - floor if metric.better == "lower" else floor - value) / span


SMALL_DISTANCE = 0.02  # total variation of a column: nobody would see it
LARGE_DISTANCE = 0.05  # total variation of a column: a warning
TIE = 0.1  # association from which two columns count as tied
LOST_TIE = 0.1  # change of an association that is named
NULLS = 0.02  # change of the share of nulls that is named
COPIES = 0.1  # share of copied rows beyond that of real rows: a warning


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


TRUST = True
DOUBT = False
Said = tuple[bool, str]
"""A sentence on what to trust, or on what not."""

USES = {
    "single columns": ("marginal_1",),
    "pairs of columns": ("marginal_2",),
    "three and more columns at once": ("marginal_3", "marginal_4"),
}
"""What people do, and the scores that tell whether it can be done."""


def judge(evaluation: Evaluation, *, epsilon: float | None = None) -> Verdict:
    """Everything that a report says in words."""
    uses, ties, copies = tuple(_uses(evaluation)), tuple(find_ties(evaluation)), tuple(_copies(evaluation))
    said = [*_columns(evaluation.columns), *_ties(ties), *_prediction(evaluation.prediction), *_details(evaluation)]
    said += [
        (DOUBT, f"{use.words[0].upper()}{use.words[1:]}: {use.reason}.")
        for use in uses
        if use.level <= Level.FAIR and use.words.startswith("three")
    ]
    said.append(
        (
            DOUBT,
            "Single rows: no synthetic row stands for a person, and rare groups smaller than the noise are not kept.",
        )
    )
    trust, doubt = (tuple(words for side, words in said if side is chosen) for chosen in (TRUST, DOUBT))
    return Verdict(_headline(uses, evaluation, ties, epsilon), uses, trust, (*copies, *doubt), ties, copies)


def _uses(evaluation: Evaluation) -> Iterator[Use]:
    by_key = {score.metric.key: score for score in evaluation.scores}
    purposes = {words: [by_key[key] for key in keys if key in by_key] for words, keys in USES.items()}
    if evaluation.prediction is not None:
        purposes[f"training models of '{evaluation.prediction.label}'"] = [evaluation.prediction.scores[0]]
    for words, found in purposes.items():
        graded = [(level, score) for score in found if (level := level_of(score)) is not None]
        if graded:
            level, score = min(graded, key=lambda pair: pair[0])
            beside = f"real rows {decimal(score.floor)}, baseline {decimal(score.baseline)}"
            yield Use(words, level, f"{score.metric.title} {decimal(score.value)}, {beside}")


def _headline(uses: Sequence[Use], evaluation: Evaluation, ties: Sequence[Tie], epsilon: float | None) -> str:
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


def _copies(evaluation: Evaluation) -> Iterator[str]:
    """Rows that equal real ones far more often than other real rows do."""
    for score in evaluation.scores:
        if score.metric.key == "copied_rows" and score.value > score.floor + COPIES:
            yield (
                f"These rows being synthetic: {percent(score.value)} of them equal one of half of the real rows in "
                f"every cell, where other real rows do so in {percent(score.floor)}. Make sure that real "
                "rows were not given in their place."
            )


DETAILS = {
    "kolmogorov_smirnov": "Exact values of numbers: cumulative shares are off by {} on average; values that "
    "repeat may come back spread out.",
    "two_sample_auc_raw": "Passing for real rows: boosted trees tell synthetic from real ones with a ROC-AUC "
    "of {}, where 0.5 is a guess.",
}
"""What bins hide, by the scores that show it."""


def _details(evaluation: Evaluation) -> Iterator[Said]:
    for score in evaluation.scores:
        level = level_of(score)
        if score.metric.key in DETAILS and level is not None and level <= Level.FAIR:
            yield DOUBT, DETAILS[score.metric.key].format(decimal(score.value))


def _columns(views: Sequence[ColumnView]) -> Iterator[Said]:
    # A column is close if it differs no more than two samples of real rows do, or hardly.
    close = [view.distance for view in views if view.distance <= max(SMALL_DISTANCE, 2 * view.floor)]
    if close:
        columns = out_of(len(close), len(views), "column")
        yield TRUST, f"Shares of {columns}: no more than {percent(max(close))} of rows would have to move."
    far = [
        f"'{view.name}' ({percent(view.distance)})"
        for view in views
        if view.distance > max(LARGE_DISTANCE, 3 * view.floor)
    ]
    if far:
        yield DOUBT, f"Shares of {first_few(far, 'column')}: so many rows sit in another bin or category."
    apart = [
        f"'{view.name}' ({percent(view.null_share_real)} became {percent(view.null_share_synthetic)})"
        for view in views
        if abs(view.null_share_real - view.null_share_synthetic) > NULLS
    ]
    if apart:
        yield DOUBT, f"How often cells are null: {first_few(apart, 'column')}."


def find_ties(evaluation: Evaluation) -> list[Tie]:
    """All pairs of columns, those that differ most first."""
    names, real, synthetic = (getattr(evaluation.associations, part) for part in ("columns", "real", "synthetic"))
    pairs = ((i, j) for i in range(len(names)) for j in range(i))
    found = [Tie((names[i], names[j]), real[i][j], synthetic[i][j]) for i, j in pairs]
    known = [tie for tie in found if tie.difference == tie.difference]
    return sorted(known, key=lambda tie: -abs(tie.difference))


def _ties(ties: Sequence[Tie]) -> Iterator[Said]:
    real = [tie for tie in ties if tie.real >= TIE]
    held = [tie for tie in real if abs(tie.difference) <= LOST_TIE]
    if held:
        yield (
            TRUST,
            f"{out_of(len(held), len(real), 'tie').capitalize()} between columns that real rows show "
            f"(strength of {TIE} and more): within {LOST_TIE} of their real strength.",
        )
    for words, sign in (("Weaker", -1), ("Stronger", 1)):
        changed = [
            f"'{tie.pair[0]}' with '{tie.pair[1]}' ({decimal(tie.real, 2)} became {decimal(tie.synthetic, 2)})"
            for tie in ties
            if sign * tie.difference > LOST_TIE
        ]
        if changed:
            yield DOUBT, f"{words} than in real rows: {first_few(changed)}."


def _prediction(prediction: Prediction | None) -> Iterator[Said]:
    if prediction is None:
        return
    metric, models = prediction.scores[0].metric, prediction.models
    key, sign = metric.key, 1.0 if metric.better == "higher" else -1.0
    lost = {model.model: sign * (model.real[key] - model.synthetic[key]) for model in models}
    good = [name for name, gap in lost.items() if gap <= DISTANCES[1]]
    if good:
        yield (
            TRUST,
            f"Models of '{prediction.label}': in {out_of(len(good), len(lost), 'model')}, training on "
            f"synthetic instead of real rows costs at most {DISTANCES[1]} of {metric.name}.",
        )
    bad = sorted((name for name, gap in lost.items() if gap > DISTANCES[2]), key=lambda name: -lost[name])
    if bad:
        named = [f"{name} (loses {decimal(lost[name])})" for name in bad]
        yield DOUBT, f"Models that need what was not kept: {first_few(named)}."
    if len(models) > 1:
        best_on_real = max(models, key=lambda model: sign * model.real[key]).model
        best_here = max(models, key=lambda model: sign * model.synthetic[key]).model
        words = f"Choosing among models: {best_here} does best when trained on synthetic rows"
        if best_here == best_on_real:
            yield TRUST, f"{words}, and on real ones."
        else:
            yield DOUBT, f"{words}, {best_on_real} when trained on real ones."
