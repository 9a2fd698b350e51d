"""A release in, a sampler out. Nothing here can reach private rows."""

from understudy.generators.base import Generator, load_generator, save_generator
from understudy.generators.image_architectures import clouds, residual
from understudy.generators.image_network import ImageNetwork
from understudy.generators.mixture import Mixture
from understudy.generators.network import Network
from understudy.generators.spectral import SpectralImages
from understudy.generators.weighted import WeightedDatabase

__all__ = [
    "Generator",
    "ImageNetwork",
    "Mixture",
    "Network",
    "SpectralImages",
    "WeightedDatabase",
    "clouds",
    "load_generator",
    "residual",
    "save_generator",
]
