"""The public report: a release's own noisy numbers against rows of its generator.

Guarantee:
    It is computed from a release and a generator alone, so it costs no privacy and may be
    published with them if the release is private, which it says either way. Nothing here takes
    rows that were not drawn from the generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.accounting.mechanisms import Neighbours
from understudy.arrays import Integers, StageProgress
from understudy.files import refusing_damage
from understudy.generators.base import Generator
from understudy.released import Release, build_certificate
from understudy.reports.agreement import (
    INTERVAL,
    Agreement,
    Fit,
    Margin,
    compare,
    counts_per_feature,
    margins_of,
    pairs_of,
    rows_to_draw,
)
from understudy.reports.charts import (
    MOST_COLUMNS,
    HeatMap,
    Series,
    heat_map,
    listed,
    out_of,
    render,
)
from understudy.reports.pictures import LOOKED_AT, picture_of
from understudy.schema.encode import encode_batch

COLUMNS_DRAWN = 24
FEW = 50
FOLLOWS = 0.75
"""Residuals of this size and less: the generator follows noise."""

LARGEST_RESIDUAL = 3.0
"""The size of residuals from which on the shade of a pair of columns is the darkest."""

EDGES = np.arange(-4.0, 4.1, 0.5)


@dataclass(frozen=True)
class PublicReport:
    """How well a generator agrees with its release."""

    release: Release
    rows_drawn: int
    agreements: tuple[Agreement, ...]
    margins: tuple[Margin, ...]
    """Worst first."""
    pairs: tuple[Fit, ...]
    """Worst first."""
    picture: str | None = None
    """Of drawn images, as a data address."""

    @property
    def whole(self) -> Fit:
        """All measured numbers."""
        every = np.concatenate([each.fit.residuals.ravel() for each in self.agreements])
        return Fit((self.release.plan.schema.name,), every, self.release.plan.mechanism)

    @property
    def is_private(self) -> bool:
        """Whether the release is; only then may the report be published."""
        return self.release.is_private

    @property
    def fits(self) -> dict[str, list[Fit]]:
        """What headline and sentences speak of, worst first."""
        blocks = sorted((each.fit for each in self.agreements), key=lambda fit: -fit.rms)
        found = {"column": [margin.fit for margin in self.margins], "pair": list(self.pairs), "block": blocks}
        return {noun: fits for noun, fits in found.items() if fits}

    @property
    def headline(self) -> str:
        """The report in one sentence."""
        is_all_counted = all(counts_per_feature(each.block) is not None for each in self.agreements)
        counts, missed = [], []
        for noun, fits in self.fits.items():
            if noun == "block" and self.pairs and is_all_counted:
                continue
            wrong = [fit for fit in fits if fit.is_missed]
            counts.append(out_of(len(fits) - len(wrong), len(fits), noun))
            missed += wrong
        words = f"Synthetic rows agree with the release, to about the size of its noise, in {listed(counts)}"
        if not missed:
            return f"{words} that it measured."
        return f"{words} that it measured; they differ most in {max(missed, key=lambda fit: fit.rms).words}."

    def to_json(self) -> dict[str, Any]:
        """The numbers of the report."""
        return {
            "release": self.release.fingerprint,
            "is_private": self.is_private,
            "headline": self.headline,
            "rows_drawn": self.rows_drawn,
            "share_inside_95": self.whole.inside,
            "blocks": [
                {
                    "stage": each.stage,
                    "block": each.block.name,
                    "numbers": each.fit.size,
                    "noise_std_of_a_sum": each.noise,
                    "rms_residual": each.fit.rms,
                    "share_inside_95": each.fit.inside,
                }
                for each in self.agreements
            ],
            "columns": [{"column": margin.column.name, "rms_residual": margin.fit.rms} for margin in self.margins],
            "pairs": [
                {"pair": fit.names, "size": fit.size, "rms": fit.rms, "inside": fit.inside} for fit in self.pairs
            ],
        }


@refusing_damage("release")
def examine(
    release: Release, generator: Generator, *, seed: int = 0, progress: StageProgress | None = None
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


def _codes(generator: Generator, num_rows: int, seed: int) -> Integers:
    batches = generator.sample(num_rows, seed=seed).to_batches()
    return np.concatenate([encode_batch(generator.schema, batch) for batch in batches])


@refusing_damage("release")
def render_public(report: PublicReport, *, version: str) -> str:
    """The public report as HTML."""
    release = report.release
    certificate = build_certificate(release.plan, dict(release.facts), fingerprint=release.fingerprint)
    total = float(release.label_counts.sum())
    is_count_public = release.plan.neighbours is Neighbours.REPLACE_ONE
    interval = release.plan.mechanism.deviations(INTERVAL)
    counted = {margin.column.name for margin in report.margins}
    large = [each for each in report.agreements if each.fit.size > FEW]
    return render(
        "public.html.jinja",
        {
            "certificate": certificate,
            "version": version,
            "report": report,
            "public_rows": release.plan.num_rows if is_count_public else None,
            "total": total,
            "doubt_of_total": interval * release.noise_std("count") * math.sqrt(len(release.sums("count"))),
            "interval": interval,
            "uncounted": [f"'{column.name}'" for column in release.plan.schema.used if column.name not in counted],
            "close": [each.fit.words for each in large if each.fit.rms <= FOLLOWS],
            "counts_per_feature": counts_per_feature,
            "charts": [(each.fit, _chart(each.fit)) for each in large],
            "cards": [(margin.fit, margin.series(total)) for margin in report.margins[:COLUMNS_DRAWN]],
            "rest": report.margins[COLUMNS_DRAWN:],
            "map": _map(report.pairs) if report.pairs else None,
            "limit": LARGEST_RESIDUAL,
        },
    )


def _chart(fit: Fit) -> Series:
    """Residuals beside what noise alone gives."""
    shares = np.histogram(np.clip(fit.residuals, -3.99, 3.99), EDGES)[0] / fit.size
    noise = np.diff([fit.mechanism.below(edge) for edge in EDGES])
    ticks = tuple(f"{edge:g}" for edge in EDGES)
    return Series(ticks[:-1], ticks, tuple(noise.tolist()), tuple(shares.tolist()))


def _map(pairs: Sequence[Fit]) -> HeatMap:
    """The columns of the worst pairs, each against each: noise alone gives 1, which stays blank."""
    names = list(dict.fromkeys(name for fit in pairs for name in fit.names))[:MOST_COLUMNS]
    known = {frozenset(fit.names): fit.rms for fit in pairs}
    beyond = np.array([[known.get(frozenset((a, b)), math.nan) - 1 for b in names] for a in names])
    return heat_map(names, beyond, darkest=LARGEST_RESIDUAL - 1, above="lost")
