"""What a release itself tells of a schema that does not fit its table. Free: it reads no row."""

from __future__ import annotations

import math

import numpy as np

from understudy.features import OneHot
from understudy.published.release import Release

DOUBT = 4.0
"""Deviations of noise that a shortfall must exceed to be reported; more if its tails are heavier."""

LISTED_SHARE, PLANNED_SHARE = 0.5, 0.5


def release_warnings(release: Release) -> list[str]:
    """Columns most of whose values the schema does not list, and far too few rows.

    Everything is computed from noisy sums, so saying it costs nothing.
    """
    counts, doubt = release.sums("count")[:, 0], release.plan.mechanism.deviations(DOUBT)
    total, noise = float(counts.sum()), release.noise_std("count") * math.sqrt(len(counts))
    planned = release.plan.num_rows
    found = []
    if planned is not None and total + doubt * noise < PLANNED_SHARE * planned:
        found.append(
            f"The noisy row count is {total:.0f}, far below the {planned} rows planned for: "
            "is the right file read, and does the label's list of categories fit it?"
        )
    found += [
        f"Most values of '{name}' are none of its listed categories: check their spelling."
        for name, listed, deviation in _listed_counts(release)
        if listed + doubt * deviation < LISTED_SHARE * (total - doubt * noise)
    ]
    return found


def _listed_counts(release: Release) -> list[tuple[str, float, float]]:
    """For each choice, the noisy number of rows with a listed value, and its deviation."""
    names = {(c.start, c.stop): c.column for c in release.plan.layout.choices if not c.flags_null}
    nullable = {column.name for column in release.plan.schema.used if column.nullable}
    found = []
    for block in release.blocks:
        spans = block.map.spans if isinstance(block.map, OneHot) else ()
        scale = math.sqrt(max(1, len(spans)))
        sums = release.sums(block.name).sum(axis=0) * scale
        noise = release.noise_std(block.name) * scale
        start = 0
        for first, last in spans:
            name = names.get((first, last))
            if name is not None:
                kept = last - first - (name in nullable)
                listed = float(np.sum(sums[start : start + kept]))
                cells = kept * len(release.sums(block.name))
                found.append((name, listed, noise * math.sqrt(cells)))
            start += last - first
    return found
