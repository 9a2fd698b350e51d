"""Norm-bounded feature maps: pure functions of a row's cells and public randomness."""

from understudy.features.base import Constant, CountTable, FeatureGroup, FeatureMap, Norm, PublicInput, Sign
from understudy.features.combine import Tensors, product
from understudy.features.embedding import Block, Embedding
from understudy.features.fourier import Fourier, Scales
from understudy.features.grid import Buckets, Grid, OneHot
from understudy.features.hermite import Hermite, Mahalanobis
from understudy.features.landmarks import Kernel, KernelSums, Landmarks, Term
from understudy.features.perceptual import Perceptual, perceptual
from understudy.features.points import Points
from understudy.features.spectrum import Lengths, Sides, Spectrum, Weighted
from understudy.features.tables import Cells, Tables
