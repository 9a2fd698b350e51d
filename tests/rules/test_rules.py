from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from understudy.errors import InputError
from understudy.features import Block, Embedding, Fourier, Grid, OneHot, Scales, product
from understudy.rules.clipping_norm import HISTOGRAMS, scale_by_histograms, spreads
from understudy.rules.measurement import Measurement

GAUSSIAN = Fourier((0, 1), (1.0, 2.0), (Scales(2, 0.1, 0.5),), 12, 0)
TARGET = Embedding(
    (Block("numbers", GAUSSIAN, 0.6, per_label=True), Block("choices", product(OneHot(((2, 4),)), GAUSSIAN), 0.8)),
    label=(4, 7),
)
EARLIER = Embedding((Block(HISTOGRAMS, Grid((0, 1), 8), 1.0),))


@settings(max_examples=80, deadline=None)
@given(vector=arrays(np.int64, 16, elements=st.one_of(st.integers(-(2**62), 2**62), st.integers(-3, 3))))
def test_no_noisy_histogram_can_change_the_sensitivity_or_the_size(
    vector: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> None:
    planned = Measurement(TARGET, np.empty(0, dtype=np.int64), 2**20, 2**24)
    settled = scale_by_histograms(planned, [Measurement(EARLIER, vector, 2**20, 2**24)])
    assert settled.dim == TARGET.dim
    for replace in (False, True):
        for lattice in (2**10, 2**24):
            assert settled.mechanism_sensitivities(lattice, replace=replace) == TARGET.mechanism_sensitivities(
                lattice, replace=replace
            )
    numbers = settled.block("numbers").map
    assert isinstance(numbers, Fourier)
    assert all(0 < scale < 4 for scale in numbers.length_scales)
    assert np.isfinite(numbers.frequencies).all()


def test_scales_are_read_from_the_stage_just_before() -> None:
    """A histogram with everything in one bin, and a uniform one, on top of another stage."""
    other = Measurement(Embedding((Block("other", Grid((0,), 3), 1.0),)), np.ones(3, dtype=np.int64), 1, 2**24)
    vector = np.zeros(16, dtype=np.int64)
    vector[3], vector[8:] = 2**40, 2**40
    planned = Measurement(TARGET, np.empty(0, dtype=np.int64), 1, 2**24)
    settled = scale_by_histograms(planned, [other, Measurement(EARLIER, vector, 1, 2**24)])
    numbers = settled.block("numbers").map
    assert isinstance(numbers, Fourier)
    assert numbers.length_scales == pytest.approx((np.sqrt(12) / 8, 2 * np.sqrt(1 - 1 / 64)))


def test_a_stage_without_histograms_is_refused() -> None:
    wrong = Embedding((Block(HISTOGRAMS, OneHot(((2, 4),)), 1.0),))
    planned = Measurement(TARGET, np.empty(0, dtype=np.int64), 1, 2**24)
    with pytest.raises(InputError, match="no grid"):
        scale_by_histograms(planned, [Measurement(wrong, np.ones(2, dtype=np.int64), 1, 2**24)])


def test_a_narrow_histogram_gives_a_short_length_scale() -> None:
    narrow, wide = np.zeros(8), np.ones(8)
    narrow[3] = 100.0
    found = spreads(np.stack([narrow, wide]))
    assert abs(found[0] - 1 / 8) < 1e-6, "never below one bin"
    assert abs(found[1] - np.sqrt((1 - 1 / 64) / 12)) < 1e-6
