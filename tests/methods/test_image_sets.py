"""Which tables are images, and what plans say of image networks."""

from __future__ import annotations

import math
from typing import Any

import pytest

from understudy import Budget, load_schema, make_plan
from understudy.errors import UsageError
from understudy.features import Fourier, Hermite, Tensors
from understudy.fits.images import ImageTraining
from understudy.fits.network import Training
from understudy.methods.common import image_set
from understudy.schema import Schema

LABEL = {"name": "what", "kind": "categorical", "role": "label", "categories": ["a", "b"]}
AGE = {"name": "age", "kind": "integer", "bounds": [0, 9]}


def schema(*columns: dict[str, Any], image: bool = True) -> Schema:
    size = {"image": {"height": 6, "width": 4}} if image else {}
    return load_schema({"name": "some", "rows": 5000, "columns": list(columns), **size})


def planned(method: str, **options: Any) -> Any:
    return make_plan(schema(LABEL), Budget(1.0), method=method, options=options)


def test_images_have_at_most_a_label_of_named_classes_beside_them():
    assert image_set(schema(LABEL)) is not None
    assert image_set(schema()) is not None
    assert image_set(schema(LABEL, AGE)) is None
    assert image_set(schema(AGE | {"role": "label"})) is None
    assert image_set(schema(AGE, image=False)) is None


def test_the_length_scale_of_images_is_public_and_follows_their_size():
    """Uniform and independent pixels are 1 / sqrt(6) apart in the root mean square."""
    (_, numbers) = planned("dp-merf").stages[0].embedding.blocks
    assert isinstance(numbers.map, Fourier)
    assert numbers.map.length_scales == pytest.approx([math.sqrt(24 / 6)] * 24)
    assert [part.size for part in numbers.map.parts] == [24]
    (_, numbers) = planned("dp-merf", length_scale=0.7).stages[0].embedding.blocks
    assert set(numbers.map.length_scales) == {0.7}


def test_batches_multiply_what_is_released_and_not_what_it_costs():
    one, three = (planned("dp-merf", mini_batches=n, num_features=40) for n in (1, 3))
    assert one.stages[0].embedding.dim == 2 * (1 + 40) + 1  # rows whose label is not listed are counted too
    assert three.stages[0].embedding.dim == 2 * (1 + 3 * 40) + 1
    assert three.noise_scales == one.noise_scales
    assert three.epsilon() == one.epsilon()


def test_pairs_of_pixels_are_planned_for_unless_the_paper_is_asked_for():
    (_, numbers, products) = planned("dp-hp").stages[0].embedding.blocks
    assert isinstance(numbers.map, Hermite)
    assert isinstance(products.map, Tensors)
    assert (numbers.map.order, len(products.map.subsets)) == (10, math.comb(24, 2))
    (_, numbers, products) = planned("dp-hp", preset="mnist").stages[0].embedding.blocks
    assert (numbers.map.order, len(products.map.subsets)) == (100, 8)


def test_tables_with_pixels_among_other_columns_are_tables():
    plan = make_plan(schema(LABEL, AGE), Budget(1.0), method="dp-merf")
    assert plan.setting("generator") == "network"
    assert planned("dp-merf", labels="none").setting("generator") == "network"
    assert planned("dp-merf").setting("generator") == "image-network"


@pytest.mark.parametrize(
    ("method", "options", "where"),
    [
        ("dp-merf", {"generator": "mixture"}, "generator"),
        ("dp-merf", {"generator": "decoded"}, "generator"),
        ("dp-hp", {"generator": "network"}, "generator"),
        ("dp-merf", {"training": Training()}, "training"),
        ("dp-merf", {"mini_batches": 0}, "mini batches"),
        ("dp-merf", {"mini_batches": 2, "length_scale": "private"}, "mini batches"),
    ],
)
def test_what_makes_no_sense_for_images_is_refused(method: str, options: dict[str, Any], where: str):
    with pytest.raises(UsageError, match=where):
        planned(method, **options)


def test_settings_of_image_networks_are_not_for_tables():
    with pytest.raises(UsageError, match="training"):
        make_plan(schema(AGE, image=False), Budget(1.0), method="dp-hp", options={"training": ImageTraining()})
