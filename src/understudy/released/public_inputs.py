"""What a plan was given as public: points, networks, and directions of images."""

from __future__ import annotations

from understudy.features import Points, PublicInput
from understudy.features.image_bases import Principal
from understudy.features.perceptual import NetworkLayers
from understudy.plan.plan import Plan


def _inputs(plan: Plan) -> list[PublicInput]:
    """Whatever the plan's feature maps hold of the world outside the schema."""
    return [given for stage in plan.stages for block in stage.embedding.blocks for given in block.map.public_inputs]


def given_points(plan: Plan) -> int:
    """How many rows the plan was given as public points, which the release holds as they are."""
    if str(plan.setting("points")).startswith("drawn"):
        return 0
    return max((len(given) for given in _inputs(plan) if isinstance(given, Points)), default=0)


def public_networks(plan: Plan) -> dict[tuple[str, str], tuple[str, ...]]:
    """Name and hash of every public network that features are taken from, and its layers."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for given in _inputs(plan):
        if isinstance(given, NetworkLayers):
            key = (given.network, given.sha256)
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *given.layers)))
    return found


def has_given_basis(plan: Plan) -> bool:
    """Whether the plan holds directions that were found in images given as public."""
    return any(isinstance(given, Principal) for given in _inputs(plan))
