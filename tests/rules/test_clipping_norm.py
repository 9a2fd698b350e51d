"""The rule that reads how far images reach from a noisy histogram of their lengths."""

from __future__ import annotations

import numpy as np
import pytest

from understudy import Budget, load_schema, make_plan
from understudy.errors import InputError
from understudy.features import Lengths
from understudy.rules.clipping_norm import KEPT_SHARE, LENGTHS, choose_clipping_norm
from understudy.rules.measurement import Measurement

PLAN = make_plan(load_schema({"image": {"height": 6, "width": 6}}), Budget(1.0), options={"num_rows": 1000})


def measurements(counts: np.ndarray) -> tuple[Measurement, Measurement]:
    """The first stage with these counts and no noise, and the second as planned."""
    first, second = (stage.embedding for stage in PLAN.stages)
    scale = first.block(LENGTHS).scales(PLAN.lattice)[0]
    total = first.block("count").scales(PLAN.lattice)[0] * counts.sum()
    vector = np.rint(np.concatenate([[total], counts * scale])).astype(np.int64)
    return (
        Measurement(first, vector, PLAN.noise_stds[0], PLAN.lattice),
        Measurement(second, np.empty(0, dtype=np.int64), PLAN.noise_stds[1], PLAN.lattice),
    )


def reach_of(counts: np.ndarray) -> tuple[float, Lengths]:
    first, planned = measurements(counts)
    settled = choose_clipping_norm(planned, [first])
    spectra = [settled.block("means").map, settled.block("seconds").map.factors[0]]
    assert spectra[0] == spectra[1]
    return spectra[0].reach, first.embedding.block(LENGTHS).map


def test_most_images_are_reached():
    counts = np.zeros(64)
    counts[[20, 30, 40]] = [500, 300, 200]
    reach, lengths = reach_of(counts)
    assert reach == lengths.edges[40 if KEPT_SHARE > 0.8 else 30]
    counts[40] = 50
    assert reach_of(counts)[0] == lengths.edges[30]


def test_noise_alone_still_gives_a_reach():
    reach, lengths = reach_of(np.random.default_rng(0).normal(0, 50, 64))
    assert reach in lengths.edges
    assert reach_of(np.full(64, -5.0))[0] > 0


def test_a_stage_without_lengths_is_refused():
    _, planned = measurements(np.zeros(64))
    with pytest.raises((InputError, KeyError)):
        choose_clipping_norm(planned, [planned])
