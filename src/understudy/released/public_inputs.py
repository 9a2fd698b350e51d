"""What a plan was given as public: points, networks, and directions of images."""

from __future__ import annotations

from understudy.features import FeatureMap, Lengths, Perceptual, Points, Sides, Spectrum, Tensors
from understudy.plan.plan import Plan


def given_points(plan: Plan) -> int:
    """How many rows the plan was given as public points, which the release holds as they are."""
    if str(plan.setting("points")).startswith("drawn"):
        return 0
    maps = [block.map for stage in plan.stages for block in stage.embedding.blocks]
    points = [getattr(map_, "points", None) for map_ in maps]
    return max((len(each) for each in points if isinstance(each, Points)), default=0)


def public_networks(plan: Plan) -> dict[tuple[str, str], tuple[str, ...]]:
    """Name and hash of every public network that features are taken from, and its layers."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for stage in plan.stages:
        for block in stage.embedding.blocks:
            for map_ in _factors(block.map):
                if isinstance(map_, Perceptual):
                    key = (map_.network, map_.sha256)
                    found[key] = tuple(dict.fromkeys((*found.get(key, ()), *map_.layers)))
    return found


def has_given_basis(plan: Plan) -> bool:
    """Whether the plan holds directions that were found in images given as public."""
    maps = [map_ for stage in plan.stages for block in stage.embedding.blocks for map_ in _factors(block.map)]
    return any(isinstance(map_, Spectrum | Lengths | Sides) and map_.weighted.principal is not None for map_ in maps)


def _factors(map_: FeatureMap) -> tuple[FeatureMap, ...]:
    return map_.factors if isinstance(map_, Tensors) else (map_,)
