"""The loss of one image, which is all that a descent sees of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from understudy.codec import decode, encode
from understudy.networks.autoencoder import AutoEncoder

NETWORK = AutoEncoder(num_pixels=6, num_labels=3, code_dim=4, encoder=(5, 4), decoder=5)


def parameters(network: AutoEncoder = NETWORK, seed: int = 1) -> dict[str, torch.Tensor]:
    return {n: torch.from_numpy(v) for n, v in network.first_parameters(seed).items()}


def test_the_siamese_loss_is_the_papers_with_a_public_partner_for_every_class():
    """Pull the own class within the margin, push the others beyond it (eqs. 22 and 23)."""
    image, weights = torch.rand(6, generator=torch.Generator().manual_seed(0)), parameters()
    code = NETWORK.encode(weights, image).numpy()
    errors = float(((NETWORK.decode(weights, torch.from_numpy(code)) - image) ** 2).sum())
    for own in range(3):
        wanted = errors
        for label in range(3):
            place = np.zeros(4)
            place[label] = 2 * NETWORK.margin
            beyond = math.dist(code, place) - NETWORK.margin
            wanted += max(beyond, 0.0) if label == own else -min(beyond, 0.0)
        found = NETWORK.loss(weights, image, torch.eye(3)[own])
        assert float(found) == pytest.approx(wanted, rel=1e-5)


def test_without_classes_only_pixels_count():
    network = AutoEncoder(num_pixels=6, code_dim=2, encoder=(4,), decoder=3)
    image, weights = torch.full((6,), 0.25), parameters(network)
    found = network.loss(weights, image, torch.ones(1))
    decoded = network.decode(weights, network.encode(weights, image))
    assert float(found) == pytest.approx(float(((decoded - 0.25) ** 2).sum()))


def test_slopes_are_finite_where_a_code_is_at_its_place():
    weights = {name: torch.zeros_like(value) for name, value in parameters().items()}
    weights["encoder.2.bias"] = torch.tensor([2.0 * NETWORK.margin, 0.0, 0.0, 0.0])
    slopes = torch.func.grad(NETWORK.loss)(weights, torch.zeros(6), torch.eye(3)[0])
    assert all(torch.isfinite(value).all() for value in slopes.values())


def test_first_parameters_follow_the_seed():
    first, same, other = (NETWORK.first_parameters(seed) for seed in (0, 0, 1))
    assert all(np.array_equal(value, same[name]) for name, value in first.items())
    assert not np.array_equal(first["decoder.0.weight"], other["decoder.0.weight"])


def test_a_network_comes_back_from_its_description():
    assert decode(AutoEncoder, encode(NETWORK)) == NETWORK


def test_codes_have_an_axis_for_every_class():
    with pytest.raises(ValueError, match="axis"):
        AutoEncoder(num_pixels=4, num_labels=3, code_dim=2)
