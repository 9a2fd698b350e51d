"""Every method for images: plan, release, verify, fit, save, load and sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from understudy import (
    Budget,
    Neighbours,
    Schema,
    Synthesizer,
    fit_release,
    load_generator,
    load_schema,
    make_plan,
    release_table,
    save_generator,
    verify_release,
)
from understudy.errors import UsageError
from understudy.fits.images import ImageTraining, PerceptualTraining
from understudy.methods import IMAGE_METHODS
from understudy.networks.public import Intake, network_of_module
from understudy.schema.images import ImageShape

NUM_IMAGES = 400
SMALL = ImageTraining(hidden=(24,), channels=(8, 4), steps=300, batch=40)
QUICK = replace(SMALL, steps=3)
PUBLIC_IMAGES = {
    name: np.random.default_rng(place).integers(0, 256, 50)
    for shape in (ImageShape(3, 4), ImageShape(3, 2, 3))
    for place, name in enumerate(shape.names)
}


def tiny_module() -> torch.nn.Module:
    """A convolution with weights of a seed."""
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 3, padding=1), torch.nn.ReLU())
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for values in module.parameters():
            values.normal_(generator=source)
    return module


ENCODER = network_of_module(tiny_module(), name="tiny", intake=Intake(), layers=("pixels", "0"))
BENT = PerceptualTraining(hidden=(24,), channels=(8, 4), noise_dim=4, steps=300, batch=40, judged=20, checkpoints=2)
HASTY = replace(BENT, steps=3)
MEPF = {"encoder": ENCODER, "training": HASTY}
VARIANTS: dict[str, dict[str, dict[str, object]]] = {
    "dp-spectrum": {
        "plain": {},
        "few-coefficients": {"num_coefficients": 3},
        "all-coefficients": {"num_coefficients": 12},
        "flat": {"tilt": 0.0},
        "components": {"components": 4},
        "public-basis": {"basis": PUBLIC_IMAGES, "num_coefficients": 6, "components": 2},
        "network": {"generator": "connected", "training": QUICK},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE},
    },
    "dp-merf": {
        "plain": {"training": QUICK},
        "connected": {"generator": "connected", "training": QUICK},
        "balanced": {"labels": "balanced", "training": QUICK},
        "mini-batches": {"mini_batches": 3, "training": QUICK},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE, "training": QUICK},
    },
    "dp-hp": {
        "plain": {"training": QUICK},
        "connected": {"generator": "connected", "training": QUICK},
        "published": {"preset": "mnist", "order": 9, "training": QUICK},
        "fresh": {"fresh_products": True, "num_products": 2, "training": QUICK},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE, "training": QUICK},
    },
    "dp-merf-ae": {
        "plain": {"training": QUICK, "descent_steps": 4},
        "images-alone": {"labels": "none", "training": QUICK, "descent_steps": 4},
    },
}
VARIANTS["dp-mepf"] = {
    "plain": MEPF,
    "residual": MEPF | {"generator": "residual"},
    "one-moment": MEPF | {"moments": 1, "activation": "after", "layers": ["0"], "stopping": 0},
    "products": MEPF | {"multiply": "pixels"},
    "balanced": MEPF | {"labels": "balanced"},
    "images-alone": MEPF | {"labels": "none"},
    "replace-one": MEPF | {"neighbours": Neighbours.REPLACE_ONE},
}
FITTED: dict[str, dict[str, object]] = {
    "dp-mepf": {"encoder": ENCODER, "training": BENT},
    "dp-spectrum": {},
    "dp-merf": {"training": SMALL},
    "dp-hp": {"training": SMALL},
    "dp-merf-ae": {"training": SMALL, "descent_steps": 100},
}
"""Options that fit small images well, and quickly."""

each_method = pytest.mark.parametrize("method", sorted(VARIANTS))


def the_schema(*, channels: int = 1, labelled: bool = True, rules: list[str] | None = None) -> Schema:
    width = 4 if channels == 1 else 2
    label = {"name": "shape", "kind": "categorical", "role": "label", "categories": ["up", "down"]}
    return load_schema(
        {
            "name": "slopes",
            "rows": NUM_IMAGES,
            "image": {"height": 3, "width": width, "channels": channels},
            "columns": [label] if labelled else [],
            "rules": rules or [],
        }
    )


def images(schema: Schema) -> pa.Table:
    """Brightness rises or falls from left to right."""
    rng = np.random.default_rng(0)
    image = schema.image
    assert image is not None
    falls = rng.random(NUM_IMAGES) < 0.3
    slope = np.linspace(0.0, 200.0, image.width)[None, None, :, None]
    slope = np.where(falls[:, None, None, None], slope[:, :, ::-1], slope)
    shape = (NUM_IMAGES, image.height, image.width, image.channels)
    pixels = np.clip(slope + rng.normal(20.0, 15.0, shape), 0, 255).astype(np.uint8)
    columns = dict(zip(image.names, pixels.reshape(NUM_IMAGES, -1).T, strict=True))
    return pa.table(columns | {"shape": np.where(falls, "down", "up")})


def test_every_method_for_images_has_variants_here():
    assert set(VARIANTS) == set(IMAGE_METHODS) | {"dp-merf", "dp-hp"}


def test_auto_is_the_method_for_images():
    schema = the_schema()
    assert make_plan(schema, Budget(1.0)).method == "dp-spectrum"


@pytest.mark.parametrize(("method", "variant"), [(m, v) for m, variants in VARIANTS.items() for v in variants])
@pytest.mark.parametrize("delta", [1e-5, 0.0], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("labelled", [True, False], ids=["labelled", "unlabelled"])
def test_a_method_runs_from_images_to_images(
    method: str, variant: str, delta: float, channels: int, labelled: bool, tmp_path: Path
):
    schema = the_schema(channels=channels, labelled=labelled)
    budget = Budget(1.0, delta)
    if method == "dp-merf-ae" and delta == 0:
        with pytest.raises(UsageError, match="above 0"):
            make_plan(schema, budget, method=method)
        return
    plan = make_plan(schema, budget, method=method, options=VARIANTS[method][variant])
    release = release_table(images(schema), plan, directory=tmp_path / "release")
    assert verify_release(tmp_path / "release").epsilon <= 1.0
    generator = fit_release(release)
    rows = generator.sample(100, seed=1)
    made = schema.image.names if variant == "images-alone" else [column.name for column in schema.used]
    assert rows.column_names == list(made)
    for name in schema.image.names:
        assert pa.types.is_int64(rows[name].type)
        assert rows[name].null_count == 0
        assert 0 <= min(rows[name].to_pylist()) <= max(rows[name].to_pylist()) <= 255
    save_generator(generator, tmp_path / "generator", release=release.fingerprint)
    assert load_generator(tmp_path / "generator").sample(100, seed=1).equals(rows)


@each_method
def test_classes_look_like_themselves(method: str):
    schema = the_schema()
    plan = make_plan(schema, Budget(20.0), method=method, options=FITTED[method])
    generator = fit_release(release_table(images(schema), plan))
    rows = generator.sample(600, seed=0, balance="equal").to_pandas()
    assert rows["shape"].value_counts().to_dict() == {"up": 300, "down": 300}
    rise = rows["pixel_1_3"] - rows["pixel_1_0"]
    assert rise[rows["shape"] == "up"].mean() > 100
    assert rise[rows["shape"] == "down"].mean() < -100
    share = (generator.sample(2000, seed=2)["shape"].to_numpy(zero_copy_only=False) == "down").mean()
    assert 0.2 < share < 0.4


@each_method
def test_images_obey_conditions_and_rules(method: str):
    schema = the_schema(rules=["pixel_0_0 <= pixel_0_3"])
    plan = make_plan(schema, Budget(5.0), method=method, options=FITTED[method])
    generator = fit_release(release_table(images(schema), plan))
    rows = generator.sample(50, seed=0, given={"shape": "up", "pixel_2_0": (0, 60)}).to_pandas()
    assert (rows["shape"] == "up").all()
    assert (rows["pixel_2_0"] <= 60).all()
    assert (rows["pixel_0_0"] <= rows["pixel_0_3"]).all()


@each_method
def test_the_same_release_and_seed_give_the_same_images(method: str):
    schema = the_schema()
    plan = make_plan(schema, Budget(1.0), method=method, options=VARIANTS[method]["plain"])
    release = release_table(images(schema), plan)
    first, second = fit_release(release), fit_release(release)
    assert first.sample(20, seed=5).equals(second.sample(20, seed=5))
    assert not first.sample(20, seed=5).equals(first.sample(20, seed=6))


@each_method
def test_fitting_tells_its_progress(method: str):
    schema = the_schema()
    plan = make_plan(schema, Budget(1.0), method=method, options=VARIANTS[method]["plain"])
    release = release_table(images(schema), plan)
    seen: list[tuple[int, int, float]] = []
    fit_release(release, progress=lambda *state: seen.append(state))
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize("method", IMAGE_METHODS)
def test_tables_are_refused(method: str):
    table = load_schema({"columns": [{"name": "age", "kind": "integer", "bounds": [0, 9]}]})
    with pytest.raises(UsageError, match="images"):
        make_plan(table, Budget(1.0), method=method)
    mixed = the_schema().to_dict()
    mixed["columns"].append({"name": "age", "kind": "integer", "bounds": [0, 9]})
    with pytest.raises(UsageError, match="images"):
        make_plan(load_schema(mixed), Budget(1.0), method=method)


@each_method
def test_the_synthesizer_is_the_same_pipeline(method: str):
    schema = the_schema()
    wish = VARIANTS[method]["plain"]
    synthesizer = Synthesizer(schema, epsilon=1.0, method=method, options=wish).fit(images(schema))
    assert synthesizer.sample(10, seed=0).num_rows == 10
    assert synthesizer.release_.plan == synthesizer.plan()
