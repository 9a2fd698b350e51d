from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from understudy.codec import encode
from understudy.errors import InputError, UsageError
from understudy.features import Sign
from understudy.features.base import MAP_KINDS
from understudy.features.perceptual import NetworkLayers, Perceptual, perceptual
from understudy.networks import activations as acts
from understudy.networks.activations import BLOCK, activations, activations_of_rows
from understudy.networks.public import Intake, PublicNetwork, network_of_module, registered_network
from understudy.private.lattice import to_lattice
from understudy.schema.images import ImageShape

SHAPE = ImageShape(6, 5)


def seeded(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for values in module.parameters():
            values.normal_(generator=source)
    return module


def network(seed: int = 0, name: str = "small") -> PublicNetwork:
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(inplace=True), torch.nn.Conv2d(4, 3, 3)
    )
    intake = Intake(1, (0.5,), (0.25,))
    return network_of_module(seeded(module, seed), name=name, intake=intake, layers=("0", "2"))


def images(count: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(seed).integers(0, 2**16 + 1, (count, SHAPE.num_pixels)) / 2**16


def test_every_layer_has_the_same_norm():
    map_ = perceptual(network(), SHAPE)
    features = map_(images(5))
    assert map_.sizes == (4 * 30, 3 * 12)
    for start, stop in ((0, 120), (120, 156)):
        norms = np.linalg.norm(features[:, start:stop], axis=1)
        assert norms == pytest.approx(np.sqrt(0.5), abs=1e-9)


def test_features_are_the_layers_outputs_before_the_activation_even_if_it_works_in_place():
    net = network()
    cells = images(4)
    scaled = (torch.from_numpy(cells).float().reshape(-1, 1, 6, 5) - 0.5) / 0.25
    expected = net.module[0](scaled).flatten(1).numpy()
    assert (expected < 0).any()
    found = perceptual(net, SHAPE, layers=("0",))(cells)
    assert found == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
    after = perceptual(net, SHAPE, layers=("0",), rectified=True)(cells)
    positive = np.maximum(expected, 0)
    assert after == pytest.approx(positive / np.linalg.norm(positive, axis=1, keepdims=True), abs=1e-6)


def test_second_moments_are_squares():
    net = network()
    first, second = (perceptual(net, SHAPE, layers=("2",), moment=m)(images(4)) for m in (1, 2))
    squares = first**2
    assert second == pytest.approx(squares / np.linalg.norm(squares, axis=1, keepdims=True), abs=1e-6)


def test_signs_say_where_features_cannot_be_negative():
    net = network()
    assert perceptual(net, SHAPE).sign is Sign.SIGNED
    assert perceptual(net, SHAPE, moment=2).sign is Sign.NONNEGATIVE
    assert perceptual(net, SHAPE, rectified=True).sign is Sign.NONNEGATIVE


def test_images_go_through_a_network_in_blocks_of_one_shape():
    net = network(seed=3)
    seen = []
    handle = net.module[0].register_forward_hook(lambda m, i, o: seen.append(tuple(i[0].shape)))
    for count in (1, BLOCK - 1, BLOCK, BLOCK + 1):
        activations_of_rows(net, images(count), SHAPE, ("0", "2"))
    handle.remove()
    assert set(seen) == {(BLOCK, 1, 6, 5)}


def test_a_network_whose_rows_see_each_other_is_refused():
    class Sees(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x - 1e-3 * x.mean(0, keepdim=True)

    module = torch.nn.Sequential(Sees())
    net = network_of_module(module, name="sees", intake=Intake(), layers=("0",))
    with pytest.raises(InputError, match="differently"):
        perceptual(net, SHAPE)(images(3))


def test_a_network_that_depends_on_the_place_in_a_block_is_refused():
    class Counts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1e-3 * torch.arange(len(x), dtype=x.dtype)[:, None, None, None]

    module = torch.nn.Sequential(Counts())
    net = network_of_module(module, name="counts", intake=Intake(), layers=("0",))
    with pytest.raises(InputError, match="differently"):
        perceptual(net, SHAPE)(images(3))


def test_threads_do_not_hear_each_others_rows():
    class Slow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.002)  # another thread has its turn
            return 2 * x

    module = torch.nn.Sequential(Slow(), Slow())
    net = network_of_module(module, name="slow", intake=Intake(), layers=("0", "1"))
    map_ = perceptual(net, SHAPE)
    parts = [images(BLOCK + 1, seed) for seed in range(8)]
    expected = [map_(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(map_, parts), expected, strict=True):
            assert np.array_equal(found, wanted)


def test_the_machine_is_tested_once_for_a_network(monkeypatch: pytest.MonkeyPatch):
    calls = []
    monkeypatch.setattr(acts, "_CHECKED", set())
    monkeypatch.setattr(acts, "_check_rows_alone", lambda *given: calls.append(given))
    map_ = perceptual(network(), SHAPE)
    map_(images(2))
    map_(images(3))
    assert len(calls) == 1


def test_rows_that_overflow_in_the_network_add_nothing():
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1))
    with torch.no_grad():
        module[0].weight.fill_(3e38)
        module[0].bias.fill_(3e38)
    net = network_of_module(module, name="huge", intake=Intake(), layers=("0",))
    features = Perceptual(SHAPE, NetworkLayers(net.name, net.sha256, ("0",)), (30,))
    assert (to_lattice(features(np.ones((1, 30))), 2**20) == 0).all()


def test_slopes_reach_the_pixels():
    map_ = perceptual(network(), SHAPE)
    cells = torch.from_numpy(images(3)).float().requires_grad_()
    map_(cells)[:, 7].sum().backward()
    assert cells.grad is not None
    assert float(cells.grad.abs().sum()) > 0


def test_a_map_is_told_apart_by_its_weights_and_needs_them_only_to_be_evaluated():
    one, other = (perceptual(network(seed), SHAPE) for seed in (1, 2))
    assert one.source.sha256 != other.source.sha256
    document = encode(one) | {"sha256": "0" * 64}
    unknown = MAP_KINDS.decode(document)
    assert unknown.dim == one.dim
    with pytest.raises(InputError, match="is not at hand"):
        unknown(images(1))


def test_a_registered_network_is_found_by_its_hash():
    net = network(5)
    assert registered_network(net.sha256, "small") is net


def test_form_and_intake_are_part_of_the_hash():
    module = seeded(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3)))
    plain, scaled = (
        network_of_module(module, name="x", intake=Intake(1, (mean,), (1.0,)), layers=("0",)) for mean in (0.0, 0.5)
    )
    assert plain.sha256 != scaled.sha256


def test_colours_become_grey_and_grey_becomes_colours():
    coloured = acts.taken_in(torch.ones(1, 3, 2, 2), Intake(1))
    assert coloured.shape == (1, 1, 2, 2)
    assert torch.allclose(coloured, torch.ones(()))
    grey = acts.taken_in(torch.rand(1, 1, 4, 4), Intake(3, (0.0,) * 3, (1.0,) * 3, (2, 2)))
    assert grey.shape == (1, 3, 2, 2)
    assert torch.equal(grey[:, 0], grey[:, 2])


def test_layers_that_a_network_has_not_are_refused():
    with pytest.raises(UsageError, match="none called 'attic'"):
        perceptual(network(), SHAPE, layers=("attic",))


def test_images_too_small_for_a_network_are_refused():
    with pytest.raises(UsageError, match="cannot read"):
        perceptual(network(), ImageShape(1, 1))


def test_a_pass_ends_with_the_last_layer_that_is_wanted():
    net = network(seed=8)
    seen = []
    handle = net.module[2].register_forward_hook(lambda *given: seen.append(given))
    (found,) = activations(net, torch.rand(2, 30), SHAPE, ("0",))
    handle.remove()
    assert found.shape == (2, 120)
    assert not seen


@pytest.mark.parametrize("wrong", [{"layers": ()}, {"sizes": (1,)}, {"moment": 3}, {"layers": ("0", "0")}])
def test_a_description_that_makes_no_sense_is_refused(wrong: dict[str, Any]):
    map_ = perceptual(network(), SHAPE)
    with pytest.raises(ValueError, match="layers"):
        MAP_KINDS.decode(encode(map_) | wrong)
