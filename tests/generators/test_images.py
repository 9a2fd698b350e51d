"""Image networks draw what they are asked for, and come back from files as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from understudy import load_generator, load_schema, save_generator
from understudy.codec import encode
from understudy.errors import InputError
from understudy.generators.image_architectures import ARCHITECTURES, Architecture, initialise
from understudy.generators.images import ImageNetwork, by_pixel, state_of
from understudy.schema.images import ImageShape

SIZES = [(8, 8, 1), (5, 7, 3), (28, 28, 1), (3, 2, 1), (32, 32, 3)]
each_kind = pytest.mark.parametrize("kind", sorted(ARCHITECTURES))


def a_network(kind: str, shape: ImageShape, *, labelled: bool = True, seed: int = 0) -> ImageNetwork:
    label = {"name": "what", "kind": "categorical", "role": "label", "categories": ["a", "b", "c"]}
    schema = load_schema({"name": "little", "image": encode(shape), "columns": [label] if labelled else []})
    shares = (0.5, 0.3, 0.2) if labelled else (1.0,)
    architecture = Architecture(kind, noise_dim=3, hidden=(12,), channels=(6, 4))
    module = architecture.build(torch, shape, len(shares))
    initialise(torch, module, seed)
    weights = {n: 5 * w if w.ndim > 1 else w for n, w in state_of(module).items()}
    return ImageNetwork(schema, architecture, weights, 100, shares)


@each_kind
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("labelled", [True, False], ids=["labelled", "unlabelled"])
def test_images_of_any_shape_are_drawn(kind: str, sizes: tuple[int, int, int], labelled: bool):
    shape = ImageShape(*sizes)
    network = a_network(kind, shape, labelled=labelled)
    rows = network.sample(7, seed=1)
    assert rows.num_rows == 7
    assert rows.num_columns == shape.num_pixels + labelled
    assert rows.equals(network.sample(7, seed=1))
    assert not rows.equals(network.sample(7, seed=2))


@each_kind
def test_a_network_comes_back_from_its_files(kind: str, tmp_path: Path):
    network = a_network(kind, ImageShape(5, 7, 3))
    save_generator(network, tmp_path / "model", release="f" * 64)
    assert load_generator(tmp_path / "model").sample(9, seed=3).equals(network.sample(9, seed=3))


@pytest.mark.parametrize("damage", ["missing", "misshapen"])
def test_weights_of_another_network_are_refused_when_it_is_read(damage: str, tmp_path: Path):
    network = a_network("connected", ImageShape(4, 4))
    name = next(iter(network.weights))
    weights = dict(network.weights) | {name: network.weights[name][:-1]}
    if damage == "missing":
        del weights[name]
    save_generator(replace(network, weights=weights), tmp_path / "model", release="f" * 64)
    with pytest.raises(InputError, match="damaged"):
        load_generator(tmp_path / "model")


@each_kind
def test_classes_are_drawn_by_their_shares_and_on_demand(kind: str):
    network = a_network(kind, ImageShape(4, 4))
    drawn = network.sample(10_000, seed=0).column("what").to_numpy(zero_copy_only=False)
    for name, share in zip("abc", network.label_shares, strict=True):
        assert abs((drawn == name).mean() - share) < 6 * 0.005
    assert set(network.sample(50, given={"what": ["b"]}).column("what").to_pylist()) == {"b"}
    equal = network.sample(300, balance="equal").column("what").to_pylist()
    assert [equal.count(name) for name in "abc"] == [100, 100, 100]


@each_kind
def test_a_class_changes_the_image_and_other_rows_do_not(kind: str):
    """Batch normalisation must not look at the batch when images are drawn."""
    network = a_network(kind, ImageShape(6, 6))
    one = network.images(np.array([0]), np.random.default_rng(5))
    other = network.images(np.array([1]), np.random.default_rng(5))
    assert np.abs(one - other).max() > 1e-4
    noise = np.random.default_rng(5).standard_normal((1, 3))

    class Fixed(np.random.Generator):
        def standard_normal(self, size):
            return np.concatenate([noise, np.full((size[0] - 1, 3), 9.0)])

    among = network.images(np.array([0, 2, 2]), Fixed(np.random.PCG64(0)))
    assert among[0] == pytest.approx(one[0], abs=1e-4)


def test_pixels_are_in_the_order_of_the_schemas_columns():
    images = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    flat = by_pixel(images)
    names = ImageShape(4, 5, 3).names
    assert flat[1, names.index("pixel_2_3_1")] == images[1, 1, 2, 3]


def test_first_values_follow_the_seed_and_leave_torchs_own_chance_alone():
    before = torch.get_rng_state()
    one, same, other = (a_network("convolutional", ImageShape(8, 8), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    for name, value in one.weights.items():
        assert np.array_equal(value, same.weights[name])
    assert any(not np.array_equal(value, other.weights[name]) for name, value in one.weights.items())


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ValueError, match="no architecture"):
        Architecture("wishful")
