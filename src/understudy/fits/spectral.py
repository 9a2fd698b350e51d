"""Gaussian models of images from noisy first and second moments, with eigenvalues shrunk by random matrix theory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from understudy.arrays import Floats, LossProgress
from understudy.features import Spectrum
from understudy.features.spectrum import Basis
from understudy.generators.images import Spectra, SpectralImages
from understudy.released import Release

MEANS = "means"
SECONDS = "seconds"
PARTS = "parts"
LOW = (1.5, 6.0)
"""Frequencies that the law of the detail is taken from: above the mean brightness, and clear of noise."""

STEP = 0.5
"""Damping: what part of a covariance's shortfall a round makes up for."""


@dataclass(frozen=True, slots=True)
class SpectralFit:
    """Public settings of the fit.

    Unseen detail is taken to fall off as frequency to the power ``-fall`` (in variance), as it does in
    most pictures. Pixels are clipped to [0, 1], which moves means and covariances; ``rounds`` of drawing
    ``draws`` images of each class move them back.
    """

    fall: float = 2.0
    rounds: int = 8
    draws: int = 2000
    seed: int = 0


def fit_spectra(release: Release, settings: SpectralFit, *, progress: LossProgress | None = None) -> SpectralImages:
    """Fit Gaussian spectra to a release; the same release and settings give the same ones."""
    spectrum = release.measurement_of(MEANS).embedding.block(MEANS).map_of(Spectrum)
    basis, by_part = spectrum.weighted.basis, _counts(release)
    counts = by_part.ravel()
    means, covariances, noise = _moments(release, by_part)
    units = spectrum.reach / spectrum.weighted.weights
    scales = np.outer(units, units)
    means, covariances = means * units, covariances * scales
    pooled = np.einsum("c,cij->ij", counts / counts.sum(), covariances)
    law = _law(basis.frequencies, np.diag(pooled), settings.fall)
    factors = np.stack([_root(each) for each in covariances])
    held = np.zeros((len(means), len(law)))
    held[:, : len(units)] = np.einsum("cik,cik->ci", factors, factors)
    spectra = Spectra(means, factors, np.sqrt(np.maximum(law - held, 0.0)))

    def beyond_noise(difference: Floats) -> Floats:
        """What noise does not explain of a difference between covariances."""
        return shrunk_symmetric(difference / scales, noise) * scales

    return SpectralImages(
        schema=release.plan.schema,
        spectra=_clipped_alike(spectra, basis, beyond_noise, settings, progress),
        default_num_rows=release.plan.num_rows or round(float(counts.sum())),
        label_shares=tuple((by_part.sum(axis=1) / counts.sum()).tolist()),
        part_shares=tuple(map(tuple, (by_part / by_part.sum(axis=1, keepdims=True)).tolist())),
        principal=spectrum.weighted.principal,
    )


def _counts(release: Release) -> Floats:
    """Images of every part of every class, at least 1; a class has one part unless it was split."""
    classes = release.label_counts[:, None]
    if not any(block.name == PARTS for block in release.blocks):
        return classes
    parts = np.maximum(release.sums(PARTS), 1.0)
    return np.asarray(parts * (classes / parts.sum(axis=1, keepdims=True)))


def _moments(release: Release, by_part: Floats) -> tuple[Floats, Floats, float]:
    """Means and covariances of every part, shrunk towards what classes share; and the noise on that.

    # (parts, dim), (parts, dim, dim)
    """
    counts = by_part.ravel()
    noise_of_means, noise = release.noise_std(MEANS), release.noise_std(SECONDS) / math.sqrt(2)
    raw = release.sums(MEANS).reshape(len(counts), -1) / counts[:, None]
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

    def of_class(parts: Floats, sizes: Floats) -> list[Floats]:
        """Covariances of a class's parts: what all classes share, what is the class's, what is their own."""
        size = float(sizes.sum())
        middle = np.einsum("p,pij->ij", sizes / size, parts)
        noise_of_middle = noise * math.sqrt(len(sizes)) / size
        known = shared + shrunk_symmetric(middle - pooled, noise_of_middle * math.sqrt(max(0.0, 1 - size / total)))
        if len(parts) == 1:
            return [known]
        return [
            known + shrunk_symmetric(part - middle, noise / count * math.sqrt(max(0.0, 1 - count / size)))
            for part, count in zip(parts, sizes, strict=True)
        ]

    classes = zip(own.reshape(*by_part.shape, dim, dim), by_part, strict=True)
    covariances = [covariance for parts, sizes in classes for covariance in of_class(parts, sizes)]
    shrunk = _shrunk_means(raw, shares, noise_of_means / counts)
    return shrunk, np.stack(covariances), noise_of_pooled


def _shrunk_means(means: Floats, shares: Floats, noise: Floats) -> Floats:
    """Positive-part James-Stein shrinkage of class means towards the mean of all (with d for d - 2)."""
    middle = shares @ means
    apart = means - middle
    lengths = np.maximum((apart**2).sum(axis=1), 1e-300)
    kept = np.maximum(0.0, 1 - means.shape[1] * noise**2 / lengths)
    return np.asarray(middle + kept[:, None] * apart)


def shrunk_symmetric(matrix: Floats, noise: float) -> Floats:
    """Denoise a symmetric matrix by shrinking its eigenvalues, optimally for the Frobenius error.

    Noise of standard deviation s off the diagonal has eigenvalues between -2 s sqrt(n) and 2 s sqrt(n) (Wigner's
    semicircle law). An eigenvalue v within that edge e becomes 0, one beyond it sqrt(v^2 - e^2), as for the
    singular values of a square matrix (Gavish & Donoho 2017).
    """
    values, vectors = np.linalg.eigh(matrix)
    edge = 2 * noise * math.sqrt(len(matrix))
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.asarray((vectors * kept) @ vectors.T)


def _root(covariance: Floats) -> Floats:
    """A square root of the nearest positive semidefinite matrix (Higham 1988).  # (dim, dim)"""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _law(frequencies: Floats, variances: Floats, fall: float) -> Floats:
    """Variances of all coefficients by a power law through those of low frequency."""
    known = frequencies[: len(variances)]
    low = (known > LOW[0]) & (known < LOW[1])
    powers = known**fall
    level = float(np.mean((np.maximum(variances, 0.0) * powers)[low])) if low.any() else 0.0
    return np.asarray(level / frequencies**fall)


def _clipped_alike(
    spectra: Spectra,
    basis: Basis,
    known: Callable[[Floats], Floats],
    settings: SpectralFit,
    progress: LossProgress | None,
) -> Spectra:
    """The spectra whose images, once they are clipped, have the moments that were asked for.

    Clipping takes contrast away. Covariances are given it back only as far as noise leaves them
    ``known``: what was not seen is not to be made stronger.
    """
    rng, classes, dim = np.random.default_rng(settings.seed), *spectra.means.shape
    means, factors = spectra.means.copy(), spectra.factors.copy()
    for place in range(classes):
        normals = rng.standard_normal((settings.draws, spectra.num_normals))
        latent = factors[place] @ factors[place].T
        wanted = latent + np.diag(spectra.detail[place, :dim] ** 2)
        for _ in range(settings.rounds):
            images = replace(spectra, means=means, factors=factors).images(basis, place, normals)
            reached = basis.coefficients(images)[:, :dim]
            off = spectra.means[place] - reached.mean(axis=0)
            means[place] += off
            latent += STEP * known(wanted - np.cov(reached.T).reshape(dim, dim))
            factors[place] = _root(latent)
        if progress is not None:
            progress(place + 1, classes, float(np.abs(off).mean()))
    parts = (means, factors, spectra.detail)  # as files hold them
    return Spectra(*(each.astype(np.float32).astype(np.float64) for each in parts))
