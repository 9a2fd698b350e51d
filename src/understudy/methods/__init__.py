"""Published methods as small compositions of feature maps, a release and a generator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from understudy.accounting.mechanisms import Budget
from understudy.arrays import LossProgress
from understudy.errors import UsageError
from understudy.files import refusing_damage
from understudy.fits.anova import AnovaTraining
from understudy.fits.images import ImageTraining, PerceptualTraining, train_image_network, train_perceptual
from understudy.fits.mixture import MixtureTraining, train_mixture
from understudy.fits.network import Training, train_network
from understudy.fits.reduced_set import ReducedSet, find_reduced_set
from understudy.fits.spectral import SpectralFit, fit_spectra
from understudy.fits.weighting import Weighting, weigh_points
from understudy.generators.base import Generator
from understudy.methods.anova import dp_anova as dp_anova
from understudy.methods.anova import train_anova
from understudy.methods.balog import balog_features as balog_features
from understudy.methods.balog import balog_subspace as balog_subspace
from understudy.methods.hp import dp_hp as dp_hp
from understudy.methods.mepf import dp_mepf as dp_mepf
from understudy.methods.merf import dp_merf as dp_merf
from understudy.methods.merf import dp_merf_ae as dp_merf_ae
from understudy.methods.spectrum import dp_spectrum as dp_spectrum
from understudy.plan.plan import ROW_CAP, Plan
from understudy.released import Release
from understudy.schema import Schema

METHODS: dict[str, Callable[..., Plan]] = {
    "dp-anova": dp_anova,
    "dp-merf": dp_merf,
    "dp-hp": dp_hp,
    "balog-subspace": balog_subspace,
    "balog-features": balog_features,
    "dp-spectrum": dp_spectrum,
    "dp-merf-ae": dp_merf_ae,
    "dp-mepf": dp_mepf,
}
IMAGE_METHODS = ("dp-spectrum", "dp-merf-ae", "dp-mepf")
"""Methods that take images and nothing else."""

FITS: dict[str, tuple[Callable[..., Any], Callable[..., Generator]]] = {
    "anova": (AnovaTraining, train_anova),
    "mixture": (MixtureTraining, train_mixture),
    "network": (Training, train_network),
    "weights": (Weighting, weigh_points),
    "reduced-set": (ReducedSet, find_reduced_set),
    "spectral": (SpectralFit, fit_spectra),
    "image-network": (ImageTraining, train_image_network),
    "perceptual": (PerceptualTraining, train_perceptual),
}
"""Settings and fit of every generator, by the name that plans give it."""

WITHOUT_TORCH = ("weights", "spectral")


MOST_STEPS = 10**7
"""Steps of training that a plan may ask for."""

LIMITS: dict[str, tuple[float, float]] = {"num_rows": (1, ROW_CAP), "steps": (1, MOST_STEPS), "gamma": (1e-6, 1e6)}
"""What options of any method may be, where absurd numbers would only be found out after long work."""


def make_plan(
    schema: Schema, budget: Budget, *, method: str = "auto", options: Mapping[str, Any] | None = None
) -> Plan:
    """Plan a release with a method by name; ``auto`` takes the best one for tables, or for images.

    ``options`` are keyword arguments of the method, such as ``num_rows`` or ``seed``.
    """
    automatic = "dp-anova" if schema.image is None else "dp-spectrum"
    name = find_method(automatic if method == "auto" else method)
    known = signature(METHODS[name]).parameters
    stray = sorted(set(options or {}) - set(known))
    if stray:
        raise UsageError(
            stray[0].replace("_", " "), f"is not an option of {name}", "Its options are " + ", ".join(list(known)[2:])
        )
    for option, value in (options or {}).items():
        least, most = LIMITS.get(option, (-math.inf, math.inf))
        if isinstance(value, int | float) and not least <= value <= most:
            raise UsageError(option.replace("_", " "), f"must lie between {least:,} and {most:,}")
    return METHODS[name](schema, budget, **(options or {}))


def find_method(name: str) -> str:
    """A method's name, or a refusal that lists them."""
    if name not in METHODS:
        raise UsageError("method", f"'{name}' is unknown", "Methods are auto, " + ", ".join(METHODS))
    return name


@refusing_damage("release")
def fit_release(release: Release, *, progress: LossProgress | None = None) -> Generator:
    """Turn a release into a generator, as its plan's method has it.

    Raises:
        InputError: what the plan says of the generator, or what was released for it, is not what the fit needs.
    """
    make, fit = FITS[release.plan.setting("generator", "network")]
    settings = make(**release.plan.setting("training"))
    steps = getattr(settings, "steps", None)
    if steps is not None and not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"more than {MOST_STEPS} steps")
    return fit(release, settings, progress=progress)


def needs_torch(plan: Plan) -> bool:
    """Whether fitting a release of this plan trains something."""
    return plan.setting("generator") not in WITHOUT_TORCH
