"""Norm-bounded feature maps: pure functions of a row's cells and public randomness."""

from understudy.features.base import FeatureMap, Sign, map_from_dict
from understudy.features.combine import Product
from understudy.features.embedding import Block, Embedding
from understudy.features.fourier import Fourier, Scales
from understudy.features.grid import Constant, Grid, OneHot

__all__ = [
    "Block", "Constant", "Embedding", "FeatureMap", "Fourier", "Grid", "OneHot", "Product", "Scales", "Sign",
    "map_from_dict",
]  # fmt: skip
