from __future__ import annotations

import mpmath
import numpy as np
import pytest

from understudy.features.exact import WORST_ERROR, cosines_and_sines, phases_of
from understudy.features.fourier import SLACK

EDGES = np.array([0, 1, -1, 2**29, -(2**29), 2**30, -(2**30), 2**31 - 1, -(2**31)], dtype=np.int64)


def some_phases(count: int) -> np.ndarray:
    drawn = np.random.default_rng(0).integers(-(2**31), 2**31, count)
    near = (EDGES[:, None] + np.arange(-40, 41)).ravel()
    return np.concatenate([drawn, near]).astype(np.int32)


def test_cosines_and_sines_are_close_to_the_true_ones_and_their_norm_to_one() -> None:
    phases = some_phases(200_000)
    angles = phases.astype(np.float64) * (2 * np.pi / 2**32)
    cosines, sines = (each.astype(np.float64) for each in cosines_and_sines(phases))
    assert np.abs(cosines - np.cos(angles)).max() < WORST_ERROR
    assert np.abs(sines - np.sin(angles)).max() < WORST_ERROR
    assert np.abs(np.hypot(cosines, sines) - 1).max() < 2 * WORST_ERROR


def test_they_agree_with_many_digits() -> None:
    phases = some_phases(50)
    for phase, cosine, sine in zip(phases.tolist(), *cosines_and_sines(phases), strict=True):
        angle = 2 * mpmath.pi * mpmath.mpf(phase) / 2**32
        assert abs(float(cosine) - mpmath.cos(angle)) < WORST_ERROR
        assert abs(float(sine) - mpmath.sin(angle)) < WORST_ERROR


def test_a_phase_does_not_depend_on_the_phases_beside_it() -> None:
    phases = some_phases(1000)
    together = np.stack(cosines_and_sines(phases))
    alone = np.stack([np.concatenate(cosines_and_sines(phases[i : i + 1])) for i in range(1000)])
    assert np.array_equal(together[:, :1000], alone.T)


@pytest.mark.parametrize("turns", [0.0, 0.25, -0.25, 0.5, -0.5, 3.5, 1000.125, 2.0**-32, -(2.0**-32)])
def test_whole_turns_are_left_out_of_a_phase(turns: float) -> None:
    (phase,) = phases_of(np.array([turns])).tolist()
    assert -(2**31) <= phase < 2**31
    assert (phase - round(turns * 2**32)) % 2**32 == 0


def test_on_the_axes_hardly_anything_is_rounded() -> None:
    cosines, sines = cosines_and_sines(np.array([0, 2**30, -(2**31), -(2**30)], dtype=np.int32))
    assert cosines[[0, 2]].tolist() == [1, -1]
    assert sines[[0, 2]].tolist() == [0, 0]
    assert np.abs(cosines[[1, 3]]).max() < 1e-7
    assert np.abs(sines[[1, 3]] - [1, -1]).max() < 1e-7


def test_of_all_phases_none_has_a_cosine_and_sine_longer_than_the_slack_allows() -> None:
    """Phases are rounded to 24 bits, so these are all there are."""
    longest = 0.0
    for start in range(-(2**31), 2**31, 2**28):
        waves = cosines_and_sines(np.arange(start, start + 2**28, 2**8, dtype=np.int32))
        cosines, sines = (wave.astype(np.float64) for wave in waves)
        longest = max(longest, float((cosines**2 + sines**2).max()))
    assert 1 < longest**0.5 < 1 + SLACK


def test_phases_are_rounded_to_24_bits() -> None:
    near = np.array([-128, -1, 0, 1, 127], dtype=np.int32)
    assert cosines_and_sines(near)[1].tolist() == [0] * 5
    assert cosines_and_sines(np.array([128, 383], dtype=np.int32))[1].tolist() == pytest.approx(
        [2 * np.pi * 2**-24] * 2
    )
