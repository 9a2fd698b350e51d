"""Gaussian spectra come back from moments, and noise is not taken for detail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, fit_release, load_schema, make_plan, release_table
from understudy.features.image_bases import Cosines
from understudy.fits.spectral import shrunk_symmetric


def test_noise_alone_shrinks_to_nothing_and_a_strong_part_stays():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((60, 60))
    noise = (noise + noise.T) / np.sqrt(2)
    assert np.linalg.norm(shrunk_symmetric(noise, 1.05), 2) < 2.0
    part = rng.standard_normal(60)
    strong = 100 * np.outer(part, part) / (part @ part)
    found = shrunk_symmetric(strong + noise, 1.05)
    assert np.linalg.norm(found - strong) < 0.6 * np.linalg.norm(noise)
    negative = shrunk_symmetric(noise - strong, 1.05)
    assert np.linalg.norm(negative + strong) < 0.6 * np.linalg.norm(noise)


def test_without_noise_matrices_stay():
    matrix = np.array([[2.0, 0.5], [0.5, -1.0]])
    assert shrunk_symmetric(matrix, 0.0) == pytest.approx(matrix)


def test_means_and_spread_come_back_at_a_large_budget():
    """Images far from black and white, so that clipping changes nothing."""
    rng = np.random.default_rng(1)
    schema = load_schema({"name": "clouds", "image": {"height": 5, "width": 5}})
    cosines = Cosines(schema.image)
    spectra = np.zeros((20_000, 25))
    spectra[:, 0] = 2.5
    spectra[:, 1:5] = rng.standard_normal((20_000, 4)) @ np.diag([0.2, 0.15, 0.1, 0.05])
    spectra[:, 2] += spectra[:, 1]
    pixels = np.rint(np.clip(cosines.images(spectra), 0, 1) * 255)
    frame = dict(zip(schema.image.names, pixels.T, strict=True))

    options = {"num_coefficients": 9, "num_rows": 20_000}
    plan = make_plan(schema, Budget(100.0), options=options)
    generator = fit_release(release_table(pd.DataFrame(frame), plan))
    drawn = generator.sample(8000, seed=0).to_pandas().to_numpy() / 255
    found, wanted = (cosines.coefficients(each)[:, :5] for each in (drawn, pixels / 255))
    assert found.mean(axis=0) == pytest.approx(wanted.mean(axis=0), abs=0.02)
    assert np.cov(found.T) == pytest.approx(np.cov(wanted.T), abs=0.01)
