"""A class of two kinds is split between them, and both come back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, Schema, fit_release, load_schema, make_plan, release_table
from understudy.errors import InputError, UsageError
from understudy.features import Sides
from understudy.rules.clipping_norm import split_classes

NUM_IMAGES = 4000


def the_schema() -> Schema:
    label = {"name": "kind", "kind": "categorical", "role": "label", "categories": ["bar", "dot"]}
    return load_schema({"image": {"height": 4, "width": 4}, "columns": [label], "rows": NUM_IMAGES})


def two_kinds() -> pd.DataFrame:
    """Bars are light above or light to the left; dots are all alike."""
    rng = np.random.default_rng(0)
    is_dot, is_left = rng.random(NUM_IMAGES) < 0.4, rng.random(NUM_IMAGES) < 0.3
    pixels = rng.integers(90, 110, (NUM_IMAGES, 4, 4))
    pixels[~is_dot & ~is_left, :2, :] += 80
    pixels[~is_dot & is_left, :, :2] += 80
    pixels[is_dot, 1:3, 1:3] += 80
    names = the_schema().image.names
    frame = pd.DataFrame(pixels.reshape(NUM_IMAGES, -1), columns=list(names))
    return frame.assign(kind=np.where(is_dot, "dot", "bar"))


def contrasts(frame: pd.DataFrame) -> np.ndarray:
    """How much lighter bars are on the left than on the right, less above than below."""
    bars = frame[frame["kind"] == "bar"].drop(columns="kind").to_numpy(float).reshape(-1, 4, 4)
    down = bars[:, :2].mean(axis=(1, 2)) - bars[:, 2:].mean(axis=(1, 2))
    across = bars[:, :, :2].mean(axis=(1, 2)) - bars[:, :, 2:].mean(axis=(1, 2))
    return across - down


def drawn(components: int) -> np.ndarray:
    options = {"components": components, "num_coefficients": 10}
    release = release_table(two_kinds(), make_plan(the_schema(), Budget(50.0), options=options))
    return contrasts(fit_release(release).sample(4000, seed=1).to_pandas())


def test_two_kinds_come_back_as_two():
    real, split, whole = contrasts(two_kinds()), drawn(2), drawn(1)

    def between(values: np.ndarray) -> float:
        """Images that are neither the one nor the other."""
        return float(np.mean(np.abs(values) < 40))

    assert between(real) == 0.0
    assert between(whole) > 0.2
    assert between(split) < 0.05
    assert np.mean(split > 0) == pytest.approx(np.mean(real > 0), abs=0.05)


def test_planes_go_through_the_middle_of_each_class():
    plan = make_plan(the_schema(), Budget(50.0), options={"components": 2, "num_coefficients": 10})
    release = release_table(two_kinds(), plan)
    sides = release.embeddings[-1].block("parts").map
    assert isinstance(sides, Sides)
    assert sides == release.embeddings[-1].block("means").map.factors[0]
    assert np.linalg.norm(sides.normals, axis=1).min() > 0
    parts = np.sort(release.sums("parts")[0])
    assert parts / parts.sum() == pytest.approx([0.3, 0.7], abs=0.05)


def test_a_stage_without_a_look_is_refused():
    plan = make_plan(the_schema(), Budget(1.0), options={"components": 1})
    measurements = release_table(two_kinds(), plan).measurements
    with pytest.raises((InputError, KeyError)):
        split_classes(measurements[1], measurements[:1])


@pytest.mark.parametrize("options", [{"components": 3}, {"components": 2, "generator": "connected"}])
def test_impossible_components_are_refused(options):
    with pytest.raises(UsageError, match="components"):
        make_plan(the_schema(), Budget(1.0), options=options)
