"""A release in, a sampler out. Nothing here can reach private rows."""

from understudy.generators.base import Generator, load_generator, save_generator
from understudy.generators.images import ImageNetwork, SpectralImages
from understudy.generators.mixture import Mixture
from understudy.generators.network import Network
from understudy.generators.weighted import WeightedDatabase

__all__ = [
    "Generator",
    "ImageNetwork",
    "Mixture",
    "Network",
    "SpectralImages",
    "WeightedDatabase",
    "load_generator",
    "save_generator",
]
