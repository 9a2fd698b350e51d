"""A release in, a sampler out. Nothing here can reach private rows."""

from understudy.generators.base import Generator, load_generator, save_generator
from understudy.generators.mixture import Mixture
from understudy.generators.network import Network

__all__ = ["Generator", "Mixture", "Network", "load_generator", "save_generator"]
