"""The public report: a release's own noisy numbers against rows of its generator.

Guarantee:
    It is computed from a release and a generator alone, so it costs no privacy and may be
    published with them if the release is private, which it says either way. Nothing here takes
    rows that were not drawn from the generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from understudy.accounting import GAUSSIAN, Mechanism, Neighbours
from understudy.arrays import Integers, StageProgress
from understudy.files import refusing_damage
from understudy.released import Release, build_certificate
from understudy.reports.agreement import (
    INTERVAL,
    Agreement,
    Margin,
    PairFit,
    compare,
    counts_per_feature,
    margins_of,
    pairs_of,
    rows_to_draw,
    share_inside,
)
from understudy.reports.charts import (
    LARGEST_RESIDUAL,
    MOST_COLUMNS,
    Series,
    categories,
    counted,
    decimal,
    histogram,
    listed,
    percent,
    render,
    residual_map,
)
from understudy.reports.pictures import LOOKED_AT, picture_of
from understudy.schema import Schema
from understudy.schema.encode import encode_batch

COLUMNS_DRAWN = 24
PAIRS_LISTED = 8
NAMED = 5
FEW = 50
MISSES = 1.2
FOLLOWS = 0.75
DOUBT = 3.0
"""Residuals of this size and more, beyond three deviations of chance: the generator misses something.
Of that size and less: it follows noise."""

EDGES = np.arange(-4.0, 4.1, 0.5)


class Sampler(Protocol):
    """What the report needs of a generator."""

    @property
    def schema(self) -> Schema:
        """The schema that rows obey."""

    def sample(self, num_rows: int, *, seed: int = 0) -> pa.Table:
        """Draw rows."""


@dataclass(frozen=True)
class PublicReport:
    """How well a generator agrees with its release."""

    release: Release
    rows_drawn: int
    agreements: tuple[Agreement, ...]
    margins: tuple[Margin, ...]
    """Worst first."""
    pairs: tuple[PairFit, ...]
    """Worst first."""
    picture: str | None = None
    """Of drawn images, as a data address."""

    @property
    def inside(self) -> float:
        """Share of all measured numbers inside their 95 % interval."""
        every = np.concatenate([each.residuals.ravel() for each in self.agreements])
        return share_inside(every, self.release.plan.mechanism)

    @property
    def is_private(self) -> bool:
        """Whether the release is; only then may the report be published."""
        return self.release.is_private

    @property
    def headline(self) -> str:
        """The report in one sentence."""
        return _headline(self)

    def to_json(self) -> dict[str, Any]:
        """The numbers of the report."""
        return {
            "release": self.release.fingerprint,
            "is_private": self.is_private,
            "headline": self.headline,
            "rows_drawn": self.rows_drawn,
            "share_inside_95": self.inside,
            "blocks": [
                {
                    "stage": each.stage,
                    "block": each.name,
                    "numbers": each.size,
                    "noise_std_of_a_sum": each.noise,
                    "rms_residual": each.rms,
                    "share_inside_95": each.inside,
                }
                for each in self.agreements
            ],
            "columns": [{"column": m.column.name, "rms_residual": m.rms} for m in self.margins],
            "pairs": [asdict(fit) for fit in self.pairs],
        }


@refusing_damage("release")
def examine(
    release: Release, generator: Sampler, *, seed: int = 0, progress: StageProgress | None = None
) -> PublicReport:
    """Draw rows and compare them with every noisy number of the release."""
    num_rows = rows_to_draw(release)
    halves = []
    for half in range(2):
        if progress is not None:
            progress("drawing rows", half, 2)
        halves.append(_codes(generator, num_rows // 2, seed + half))
    agreements = tuple(compare(release, halves, progress=progress))
    return PublicReport(
        release,
        num_rows,
        agreements,
        tuple(margins_of(release, agreements)),
        tuple(pairs_of(release, agreements)),
        picture_of(generator.sample(LOOKED_AT, seed=seed), generator.schema) if generator.schema.image else None,
    )


def _codes(generator: Sampler, num_rows: int, seed: int) -> Integers:
    batches = generator.sample(num_rows, seed=seed).to_batches()
    return np.concatenate([encode_batch(generator.schema, batch) for batch in batches])


@refusing_damage("release")
def render_public(report: PublicReport, *, version: str) -> str:
    """The public report as HTML."""
    release = report.release
    certificate = build_certificate(release.plan, dict(release.facts), fingerprint=release.fingerprint)
    total = float(release.label_counts.sum())
    is_count_public = release.plan.neighbours is Neighbours.REPLACE_ONE
    drawn = report.margins[:COLUMNS_DRAWN]
    interval = release.plan.mechanism.deviations(INTERVAL)
    return render(
        "public.html.jinja",
        {
            "certificate": certificate,
            "version": version,
            "report": report,
            "picture": report.picture,
            "is_private": report.is_private,
            "public_rows": release.plan.num_rows if is_count_public else None,
            "total": total,
            "doubt_of_total": interval * release.noise_std("count") * math.sqrt(len(release.sums("count"))),
            "interval": decimal(interval, 2),
            "headline": report.headline,
            "sentences": _sentences(report),
            "blocks": [_block(each) for each in report.agreements],
            "cards": [_card(margin, total) for margin in drawn],
            "rest": report.margins[COLUMNS_DRAWN:],
            "pairs": report.pairs[:PAIRS_LISTED],
            "map": _map(report.pairs) if report.pairs else None,
            "numbers": sum(each.size for each in report.agreements),
            "few": FEW,
            "limit": decimal(LARGEST_RESIDUAL, 0),
        },
    )


def is_missed(rms: float, size: int, mechanism: Mechanism = GAUSSIAN) -> bool:
    """Whether residuals are larger than noise makes them, in what they are and in what is likely."""
    from scipy.stats import gamma, norm

    # The mean square of n residuals has mean 1 and variance (kurtosis - 1) / n. Of normal ones its law
    # is this gamma law (a chi-square); of Laplace ones that is close.
    shape = max(size, 1) / (mechanism.kurtosis - 1)
    return rms >= max(MISSES, math.sqrt(gamma.isf(norm.sf(DOUBT), shape) / shape))


@dataclass(frozen=True)
class _Part:
    """Something that was measured, with the size and the number of its residuals."""

    name: str
    rms: float
    size: int


def _parts(report: PublicReport) -> dict[str, list[_Part]]:
    """What headline and sentences speak of, worst first."""
    blocks = sorted(report.agreements, key=lambda each: -each.rms)
    found = {
        "column": [_Part(f"'{m.column.name}'", m.rms, m.residuals.size) for m in report.margins],
        "pair": [_Part("'{}' with '{}'".format(*f.pair), f.rms, f.size) for f in report.pairs],
        "block": [_Part(f"'{each.name}'", each.rms, each.size) for each in blocks],
    }
    return {noun: parts for noun, parts in found.items() if parts}


def _headline(report: PublicReport) -> str:
    parts, law = _parts(report), report.release.plan.mechanism
    is_all_counted = all(counts_per_feature(each.block) is not None for each in report.agreements)
    shown = [noun for noun in parts if noun != "block" or "pair" not in parts or not is_all_counted]
    counts, missed = [], []
    for noun in shown:
        wrong = [part for part in parts[noun] if is_missed(part.rms, part.size, law)]
        total = len(parts[noun])
        counts.append(f"{total - len(wrong)} of {counted(total, noun)}" if wrong else f"all {counted(total, noun)}")
        missed += wrong
    words = f"Synthetic rows agree with the release, to about the size of its noise, in {listed(counts)}"
    if not missed:
        return f"{words} that it measured."
    worst = max(missed, key=lambda part: part.rms)
    return f"{words} that it measured; they differ most in {worst.name}."


def _sentences(report: PublicReport) -> list[str]:
    found, law = [], report.release.plan.mechanism
    for noun, parts in _parts(report).items():
        missed = [part for part in parts if is_missed(part.rms, part.size, law)]
        named = ", ".join(f"{part.name} ({decimal(part.rms, 1)})" for part in missed[:NAMED])
        more = f" and {len(missed) - NAMED} more" if len(missed) > NAMED else ""
        if missed:
            found.append(f"More than noise, in {counted(len(missed), noun)}: {named}{more}.")
        else:
            found.append(f"To about the size of the noise: all {counted(len(parts), noun)}.")
    drawn = {margin.column.name for margin in report.margins}
    without = [f"'{column.name}'" for column in report.release.plan.schema.used if column.name not in drawn]
    if without:
        more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
        found.append(f"This release holds no counts of single values of {', '.join(without[:NAMED])}{more}.")
    close = [f"'{each.name}'" for each in report.agreements if each.rms <= FOLLOWS and each.size > FEW]
    if close:
        found.append(
            f"Closer than noise in {listed(close)}: there the generator follows some of the noise. "
            "That does no harm to privacy, and these figures are no better known than their noise."
        )
    return found


def _block(each: Agreement) -> dict[str, Any]:
    words, tables = each.block.map.words, each.block.map.count_tables
    if each.block.map.reads_codes and tables:
        widths = sorted({len(table.axes) for table in tables})
        words += f": {counted(len(tables), 'table')} of {listed([counted(width, 'column') for width in widths])}"
    shares = np.histogram(np.clip(each.residuals, -3.99, 3.99), EDGES)[0] / each.size
    noise = np.diff([each.mechanism.below(edge) for edge in EDGES])
    ticks = tuple(f"{edge:g}" for edge in EDGES)
    series = Series(ticks[:-1], ticks, tuple(noise.tolist()), tuple(shares.tolist()))
    return {
        "stage": each.stage,
        "name": each.name,
        "words": words + (", by label" if each.block.per_label else ""),
        "size": each.size,
        "noise": _noise_words(each),
        "rms": each.rms,
        "inside": each.inside,
        "chart": histogram(series),
        "label": f"Residuals of {each.name}: {percent(each.inside)} lie within their 95 % interval; their "
        f"size is {decimal(each.rms, 2)}, where noise alone gives 1.",
    }


def _noise_words(each: Agreement) -> str:
    """The deviation of the noise, in rows where rows are counted."""
    scale = counts_per_feature(each.block)
    return decimal(each.noise, 1) if scale is None else f"{decimal(each.noise * scale, 1)} rows"


def _card(margin: Margin, total: float) -> dict[str, Any]:
    series = margin.series(total)
    is_choice = margin.column.is_choice
    return {
        "name": margin.column.name,
        "words": f"residuals {decimal(margin.rms, 2)}",
        "label": f"{margin.column.name}: noisy shares with 95 % intervals, and shares of synthetic rows; "
        f"size of the residuals {decimal(margin.rms, 2)}, where noise alone gives 1.",
        "histogram": None if is_choice else histogram(series),
        "categories": categories(series) if is_choice else None,
    }


def _map(pairs: Sequence[PairFit]) -> Any:
    """The columns of the worst pairs, each against each."""
    names: list[str] = []
    for name in (name for fit in pairs for name in fit.pair):
        if name not in names and len(names) < MOST_COLUMNS:
            names.append(name)
    known = {frozenset(fit.pair): fit.rms for fit in pairs}
    matrix = [[known.get(frozenset((a, b)), math.nan) for b in names] for a in names]
    return residual_map(names, matrix)
