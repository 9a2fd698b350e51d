"""Weights and shares for Laplace noise, made from those for Gaussian noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec import decode, encode
from understudy.features import Block, Constant, Embedding, Grid, Hermite, Norm
from understudy.plan.stage import LEAST_COUNT_PART, Stage, epsilon_parts, weighed_for_laplace

shares = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5)


def variance(parts: list[float], shares_: list[float], nonzeros: list[int]) -> float:
    """Noise of blocks with these parts of epsilon, as important as their Gaussian shares say.

    Shares s of mu squared are best for sum_b c_b / s_b if c_b = s_b^2; Laplace noise has variance
    k_b / part_b^2 instead.
    """
    return sum(s**2 * k / p**2 for s, k, p in zip(shares_, nonzeros, parts, strict=True))


@settings(max_examples=60, deadline=None)
@given(own=shares, data=st.data())
def test_parts_of_epsilon_make_the_least_noise(own: list[float], data: st.DataObject) -> None:
    nonzeros = data.draw(st.lists(st.integers(1, 500), min_size=len(own), max_size=len(own)))
    parts = epsilon_parts(own, np.sqrt(nonzeros).tolist())
    assert sum(parts) == pytest.approx(sum(own))
    least = variance(parts, own, nonzeros)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = np.asarray(parts) * np.exp(rng.normal(0, 0.3, len(parts)))
        other *= sum(parts) / other.sum()
        assert variance(other.tolist(), own, nonzeros) >= least * (1 - 1e-9)


STAGES = (
    Stage("first", Embedding((Block("histograms", Grid((0, 1), 8), 1.0),)), 0.2),
    Stage(
        "second",
        Embedding(
            (
                Block("count", Constant(), 0.1),
                Block("numbers", Hermite((0,), (0.1,), 24, 2.0), 0.9),
                Block("bins", Grid((0,), 4), 0.4),
            )
        ),
        0.7,
    ),
)


def test_a_share_is_split_as_weights_say_in_either_norm() -> None:
    parts = STAGES[1].parts
    assert sum(parts.values()) == pytest.approx(0.7)
    assert parts["numbers"] / parts["bins"] == pytest.approx(0.81 / 0.16)
    laplace = weighed_for_laplace(STAGES)[1]
    weights = {block.name: block.weight for block in laplace.embedding.blocks}
    assert laplace.parts["numbers"] / laplace.parts["bins"] == pytest.approx(weights["numbers"] / weights["bins"])


def test_stages_weighed_for_laplace_noise_spend_what_they_spent_before() -> None:
    found = weighed_for_laplace(STAGES)
    assert sum(stage.share for stage in found) == pytest.approx(0.9)
    assert all(stage.embedding.norm is Norm.L1 for stage in found)
    for stage in found:
        assert sum(block.weight for block in stage.embedding.blocks) == pytest.approx(1.0)
    assert [stage.name for stage in found] == ["first", "second"]


def test_blocks_with_many_features_get_more_of_epsilon_than_of_mu_squared() -> None:
    parts = weighed_for_laplace(STAGES)[1].parts
    assert parts["numbers"] / parts["bins"] == pytest.approx(((0.81 / 0.16) ** 2 * 25) ** (1 / 3))


def test_a_row_count_keeps_a_useful_share() -> None:
    parts = weighed_for_laplace(STAGES)[1].parts
    assert parts["count"] >= 0.98 * LEAST_COUNT_PART * 0.9


def test_a_stage_comes_back_from_its_description_in_either_norm() -> None:
    for stage in (*STAGES, *weighed_for_laplace(STAGES)):
        assert decode(Stage, encode(stage)) == stage
    assert "norm" not in encode(STAGES[0])["embedding"]["blocks"][0], "files from before have none"
