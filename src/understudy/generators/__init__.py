"""A release in, a sampler out. Nothing here can reach private rows."""

from understudy.generators.base import Generator, load_generator, save_generator

__all__ = ["Generator", "load_generator", "save_generator"]
