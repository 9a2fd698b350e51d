"""Gaussian spectra from noisy moments, without believing the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.features import Spectrum
from understudy.features.cosines import Cosines
from understudy.generators.descent import Progress
from understudy.generators.spectral import Spectra, SpectralImages
from understudy.published import Release

Floats = npt.NDArray[np.float64]
MEANS, SECONDS = "means", "seconds"
LOW = (1.5, 6.0)
"""Frequencies that the law of the detail is taken from: above the mean brightness, and clear of noise."""


@dataclass(frozen=True, slots=True)
class SpectralFit:
    """Public settings of the fit.

    Unseen detail is taken to fall off as frequency to the power ``-fall`` (in variance), as it does in
    most pictures. Pixels are clipped to [0, 1], which moves means; ``rounds`` of drawing ``draws``
    images of each class move them back.
    """

    fall: float = 2.0
    rounds: int = 4
    draws: int = 1000
    seed: int = 0


def fit_spectra(
    release: Release, settings: SpectralFit, *, progress: Progress | None = None
) -> SpectralImages:
    """Fit Gaussian spectra to a release; the same release and settings give the same ones."""
    schema, spectrum = release.plan.schema, _spectrum(release)
    if schema.image is None:
        raise ValueError("the schema has no images")
    cosines, counts = Cosines(schema.image), release.label_counts
    means, covariances = _moments(release, counts)
    units = spectrum.reach / spectrum.weighted.weights
    means, covariances = means * units, covariances * np.outer(units, units)
    pooled = np.einsum("c,cij->ij", counts / counts.sum(), covariances)
    law = _law(cosines.frequencies, np.diag(pooled), settings.fall)
    factors = np.stack([_root(each) for each in covariances])
    held = np.zeros((len(means), len(law)))
    held[:, : len(units)] = np.einsum("cik,cik->ci", factors, factors)
    spectra = Spectra(means, factors, np.sqrt(np.maximum(law - held, 0.0)))
    return SpectralImages(
        schema=schema,
        spectra=_kept_means(spectra, cosines, settings, progress),
        default_num_rows=release.plan.num_rows or max(1, round(float(counts.sum()))),
        label_shares=tuple((counts / counts.sum()).tolist()),
    )


def _spectrum(release: Release) -> Spectrum:
    map_ = release.reading_of(MEANS).embedding.block(MEANS).map
    if not isinstance(map_, Spectrum):
        raise TypeError("the release holds no spectrum")
    return map_


def _moments(release: Release, counts: Floats) -> tuple[Floats, Floats]:
    """Means and covariances of every class, shrunk towards what classes share.

    # (classes, dim), (classes, dim, dim)
    """
    noise_of_means, noise = release.noise_std(MEANS), release.noise_std(SECONDS) / math.sqrt(2)
    raw = release.sums(MEANS) / counts[:, None]
    dim = raw.shape[1]
    seconds = release.sums(SECONDS).reshape(-1, dim, dim)
    seconds = (seconds + seconds.transpose(0, 2, 1)) / 2 / counts[:, None, None]
    # A noisy mean's square is too large by the noise's variance, on the diagonal.
    extra = (noise_of_means / counts) ** 2
    own = seconds - raw[:, :, None] * raw[:, None, :] + extra[:, None, None] * np.eye(dim)
    shares, total = counts / counts.sum(), float(counts.sum())
    pooled = np.einsum("c,cij->ij", shares, own)
    noise_of_pooled = noise * math.sqrt(len(counts)) / total
    shared = shrunk_symmetric(pooled, noise_of_pooled)
    covariances = []
    for each, share, count in zip(own, shares, counts, strict=True):
        apart = noise / count * math.sqrt(max(0.0, 1 - share))
        covariances.append(shared + shrunk_symmetric(each - pooled, apart))
    return _shrunk_means(raw, shares, noise_of_means / counts), np.stack(covariances)


def _shrunk_means(means: Floats, shares: Floats, noise: Floats) -> Floats:
    """Class means pulled towards the mean of all, as far as noise explains the difference."""
    middle = shares @ means
    apart = means - middle
    lengths = np.maximum((apart**2).sum(axis=1), 1e-300)
    kept = np.maximum(0.0, 1 - means.shape[1] * noise**2 / lengths)
    return np.asarray(middle + kept[:, None] * apart)


def shrunk_symmetric(matrix: Floats, noise: float) -> Floats:
    """A symmetric matrix plus noise without the noise: eigenvalues that noise reaches vanish.

    Noise of deviation s beside the diagonal has eigenvalues between -2 s sqrt(n) and 2 s sqrt(n)
    (Wigner). One beyond that edge e is what is left of sqrt(v^2 - e^2) if errors are squared.
    """
    values, vectors = np.linalg.eigh(matrix)
    edge = 2 * noise * math.sqrt(len(matrix))
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.asarray((vectors * kept) @ vectors.T)


def _root(covariance: Floats) -> Floats:
    """A square root of the nearest covariance that is nonnegative.  # (dim, dim)"""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _law(frequencies: Floats, variances: Floats, fall: float) -> Floats:
    """Variances of all coefficients by a power law through those of low frequency."""
    known = frequencies[: len(variances)]
    low = (known > LOW[0]) & (known < LOW[1])
    powers = known**fall
    level = float(np.mean((np.maximum(variances, 0.0) * powers)[low])) if low.any() else 0.0
    return np.asarray(level / frequencies**fall)


def _kept_means(
    spectra: Spectra, cosines: Cosines, settings: SpectralFit, progress: Progress | None
) -> Spectra:
    """The spectra whose images, once they are clipped, have the means that were asked for."""
    wanted, rng = spectra.means, np.random.default_rng(settings.seed)
    size = spectra.factors.shape[2] + spectra.detail.shape[1]
    means, classes = wanted.copy(), len(wanted)
    for place in range(classes):
        normals = rng.standard_normal((settings.draws, size))
        for _ in range(settings.rounds):
            images = replace(spectra, means=means).images(cosines, place, normals)
            reached = cosines.coefficients(images).mean(axis=0)[: wanted.shape[1]]
            means[place] += wanted[place] - reached
        if progress is not None:
            progress(place + 1, classes, float(np.abs(wanted[place] - reached).mean()))
    parts = (means, spectra.factors, spectra.detail)  # as files hold them
    return Spectra(*(each.astype(np.float32).astype(np.float64) for each in parts))
