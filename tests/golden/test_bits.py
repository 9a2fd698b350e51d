"""The bits of every method and variant: plan, released integers under seeded noise, certificate, rows of a seed.

Dates, versions of packages and, in the certificate, the fingerprint of the release are masked: they move for
other reasons. The fingerprint is recorded with the vectors that it is a hash of.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from receipts import unrecorded

from understudy import Budget, Neighbours, Schema, fit_release, load_schema, make_plan, release_table
from understudy.files import to_json
from understudy.fits.anova import AnovaTraining
from understudy.fits.images import ImageTraining, PerceptualTraining
from understudy.fits.mixture import MixtureTraining
from understudy.fits.network import Training
from understudy.methods import FITS, METHODS
from understudy.networks.public import Intake, network_of_module
from understudy.plan.plan import Plan, plan_from_dict
from understudy.private.noise import LongNoise, SeededNoise
from understudy.released.certificate import build_certificate, render_html
from understudy.released.release import Release
from understudy.schema.encode import encode_column

NUM_ROWS = 150
SAMPLED_ROWS = 50
NUMBERS_SHOWN = 5
ROWS_TOLERANCE = 0.02
"""How far means of columns, as shares of their range, may be off on another machine."""

Options = dict[str, Any]
SCALES = {"age": 0.05, "dose": 0.3, "visit": 0.1, "grade": 0.5}
REPLACE_ONE: Options = {"neighbours": Neighbours.REPLACE_ONE}
NETWORK = Training(steps=3, batch=40, hidden=(8,), num_components=4)
IMAGE_NETWORK = ImageTraining(hidden=(8,), channels=(4, 2), steps=2, batch=20)
PERCEPTUAL = PerceptualTraining(hidden=(8,), channels=(4, 2), noise_dim=4, steps=2, batch=20, judged=10, checkpoints=2)

TABLE_OPTIONS: dict[str, Options] = {
    "dp-anova": {"training": AnovaTraining(steps=3, num_components=20), "pairs": True},
    "dp-merf": {"num_features": 40, "training": NETWORK},
    "dp-hp": {"training": MixtureTraining(steps=3, num_components=20)},
    "balog-subspace": {"num_candidates": 60, "weights": "bounded", "steps": 4},
    "balog-features": {"num_features": 40, "num_points": 30, "num_candidates": 30, "steps": 3},
}
PUBLIC_POINTS = pa.table(
    {
        "age": [10, 40, 80, 61, 33],
        "dose": [0.5, None, 1.5, 0.1, 2.0],
        "visit": [dt.date(2020 + i, 2 * i + 1, 5 * i + 1) for i in range(5)],
        "ward": ["north", "south", None, "west", "south"],
        "grade": [1, 2, 3, 4, 5],
        "ill": [0, 1, 1, 0, 1],
    }
)
TABLE_VARIANTS: dict[str, dict[str, Options]] = {
    "dp-anova": {
        "imbalanced": {},
        "balanced": {"labels": "balanced"},
        "unlabelled": {"labels": "none"},
        "pairs-by-noise": {"pairs": None},
        "no-pairs": {"pairs": False},
        "no-values": {"values": False},
        "neither": {"pairs": False, "values": False},
        "steps": {"training": None, "steps": 2},
        "another-seed": {"seed": 7},
        "replace-one": REPLACE_ONE,
        "replace-one-unlabelled": REPLACE_ONE | {"labels": "none"},
    },
    "dp-merf": {
        "imbalanced": {},
        "balanced": {"labels": "balanced"},
        "unlabelled": {"labels": "none"},
        "separate": {"separate_releases": True},
        "private-scale": {"length_scale": "private"},
        "one-scale": {"length_scale": 0.3},
        "another-seed": {"seed": 7},
        "replace-one": REPLACE_ONE,
    },
    "dp-hp": {
        "imbalanced": {},
        "balanced": {"labels": "balanced", "num_products": 4},
        "unlabelled": {"labels": "none", "num_products": 4},
        "all-pairs": {"num_products": 100},
        "network": {"generator": "network", "training": NETWORK, "num_products": 4},
        "fresh": {"fresh_products": True, "num_products": 3},
        "fresh-network": {"fresh_products": True, "num_products": 2, "generator": "network", "training": NETWORK},
        "preset-pairs": {"preset": "covtype"},
        "preset-fives": {"preset": "adult", "product_order": 2, "num_products": 2},
        "triples": {"product_dim": 3, "product_order": 2, "num_products": 5},
        "gamma": {"gamma": 0.1, "num_products": 4},
        "no-products": {"num_products": 0},
        "named-scales": {"length_scale": SCALES},
        "another-seed": {"seed": 7, "num_products": 4},
        "replace-one": REPLACE_ONE | {"num_products": 4},
    },
    "balog-subspace": {
        "bounded": {},
        "a-wider-bound": {"bound": 3.0},
        "shrunk": {"weights": "shrunk"},
        "plain": {"weights": "plain"},
        "look": {"weights": "shrunk", "look": True},
        "look-and-bound": {"look": True},
        "no-look": {"weights": "shrunk", "look": False},
        "few-points": {"num_points": 3},
        "given": {"public_points": PUBLIC_POINTS, "weights": "shrunk"},
        "sum": {"join": "sum", "mismatch": 0.2},
        "laplace-kernel": {"kernel": "laplace", "length_scale": 0.5},
        "matern": {"kernel": "matern52"},
        "named-scales": {"length_scale": SCALES},
        "another-seed": {"seed": 7},
        "replace-one": REPLACE_ONE | {"look": True},
        "replace-one-no-look": REPLACE_ONE | {"look": False},
    },
    "balog-features": {
        "free": {},
        "uniform": {"weights": "uniform"},
        "one-row": {"num_points": 1, "steps": 1},
        "no-mismatch": {"mismatch": 0.0, "length_scale": 0.3},
        "named-scales": {"length_scale": SCALES},
        "another-seed": {"seed": 7},
        "replace-one": REPLACE_ONE,
    },
}


def small_network() -> torch.nn.Module:
    """A convolution whose weights are eighths, so that every machine holds the same."""
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU())
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for values in module.parameters():
            eighths = rng.integers(-8, 9, tuple(values.shape)).astype(np.float32) / 8
            values.copy_(torch.from_numpy(eighths))
    return module


ENCODER = network_of_module(small_network(), name="small", intake=Intake(), layers=("pixels", "0"))
PUBLIC_IMAGES = {
    f"pixel_{y}_{x}": np.random.default_rng(4 * y + x).integers(0, 256, 50) for y in range(3) for x in range(4)
}
IMAGE_OPTIONS: dict[str, Options] = {
    "dp-spectrum": {},
    "dp-merf": {"training": IMAGE_NETWORK, "num_features": 40},
    "dp-hp": {"training": IMAGE_NETWORK},
    "dp-merf-ae": {"training": IMAGE_NETWORK, "descent_steps": 3},
    "dp-mepf": {"encoder": ENCODER, "training": PERCEPTUAL},
}
IMAGE_VARIANTS: dict[str, dict[str, Options]] = {
    "dp-spectrum": {
        "plain": {},
        "few-coefficients": {"num_coefficients": 3},
        "all-coefficients": {"num_coefficients": 12},
        "flat": {"tilt": 0.0},
        "components": {"components": 4},
        "public-basis": {"basis": PUBLIC_IMAGES, "num_coefficients": 6, "components": 2},
        "network": {"generator": "connected", "training": IMAGE_NETWORK},
        "replace-one": REPLACE_ONE,
    },
    "dp-merf": {
        "plain": {},
        "connected": {"generator": "connected"},
        "balanced": {"labels": "balanced"},
        "mini-batches": {"mini_batches": 3},
        "replace-one": REPLACE_ONE,
    },
    "dp-hp": {
        "plain": {},
        "connected": {"generator": "connected"},
        "published": {"preset": "mnist", "order": 9},
        "fresh": {"fresh_products": True, "num_products": 2},
        "replace-one": REPLACE_ONE,
    },
    "dp-merf-ae": {"plain": {}, "images-alone": {"labels": "none"}},
    "dp-mepf": {
        "plain": {},
        "residual": {"generator": "residual"},
        "one-moment": {"moments": 1, "activation": "after", "layers": ["0"], "stopping": 0},
        "products": {"multiply": "pixels"},
        "balanced": {"labels": "balanced"},
        "images-alone": {"labels": "none"},
        "replace-one": REPLACE_ONE,
    },
}
SCHEMA_VARIANTS = {
    "numeric-label": ("dp-anova", "dp-merf", "dp-hp", "balog-subspace", "balog-features"),
    "persons": ("dp-anova", "dp-merf", "balog-subspace"),
    "rules": ("dp-anova", "dp-hp"),
    "unlabelled-images": ("dp-spectrum", "dp-merf", "dp-hp", "dp-merf-ae", "dp-mepf"),
    "colours": ("dp-spectrum", "dp-merf", "dp-hp", "dp-merf-ae", "dp-mepf"),
}
"""Other schemas than the plain table and the plain images, and the methods that they are planned with."""


@dataclass(frozen=True)
class Case:
    """One plan of one method."""

    method: str
    variant: str
    schema: str
    delta: float

    @property
    def options(self) -> Options:
        """What the method is told."""
        if self.schema in ("images", "unlabelled-images", "colours"):
            return IMAGE_OPTIONS[self.method] | IMAGE_VARIANTS[self.method].get(self.variant, {})
        return TABLE_OPTIONS[self.method] | TABLE_VARIANTS[self.method].get(self.variant, {})

    @property
    def is_planned_with_floats(self) -> bool:
        """Whether the plan holds points or directions that linear algebra has found."""
        return self.method == "balog-subspace" or self.variant == "public-basis"

    @property
    def is_counted(self) -> bool:
        """Whether all that is released are counts of rows."""
        return self.method == "dp-anova"

    def __str__(self) -> str:
        schema = "" if self.schema == self.variant else f" of {self.schema}"
        return f"{self.method} {self.variant}{schema} {'gaussian' if self.delta else 'laplace'}"


def all_cases() -> list[Case]:
    """Every variant with both kinds of noise, and every other schema with Gaussian noise."""
    both = {"table": TABLE_VARIANTS, "images": IMAGE_VARIANTS}
    cases = [
        Case(method, variant, schema, delta)
        for schema, methods in both.items()
        for method, variants in methods.items()
        for variant in variants
        for delta in (1e-5, 0.0)
        if delta or method != "dp-merf-ae"  # it has a descent, and with that a delta
    ]
    others = [Case(method, schema, schema, 1e-5) for schema, methods in SCHEMA_VARIANTS.items() for method in methods]
    return cases + others


CASES = all_cases()
FITTED = {
    ("dp-anova", "table"): ("imbalanced", "unlabelled", "replace-one"),
    ("dp-merf", "table"): ("imbalanced",),
    ("dp-hp", "table"): ("imbalanced", "network", "fresh-network"),
    ("balog-subspace", "table"): ("bounded", "shrunk", "plain", "look"),
    ("balog-features", "table"): ("free", "uniform"),
    ("dp-spectrum", "images"): ("plain", "components", "network"),
    ("dp-merf", "images"): ("plain", "connected", "mini-batches"),
    ("dp-hp", "images"): ("plain", "fresh"),
    ("dp-merf-ae", "images"): ("plain", "images-alone"),
    ("dp-mepf", "images"): ("plain", "residual"),
    ("dp-anova", "numeric-label"): ("numeric-label",),
    ("dp-hp", "rules"): ("rules",),
    ("dp-spectrum", "colours"): ("colours",),
}
"""Variants whose generators are fitted, which takes longest: each kind of generator, and each way into it."""

FITTED_CASES = [case for case in CASES if case.delta and case.variant in FITTED.get((case.method, case.schema), ())]


def schema_of(kind: str) -> Schema:
    """A table with every kind of column, or small images."""
    if kind in ("images", "unlabelled-images", "colours"):
        label = {"name": "shape", "kind": "categorical", "role": "label", "categories": ["up", "down"]}
        wide, channels = (2, 3) if kind == "colours" else (4, 1)
        return load_schema(
            {
                "name": "slopes",
                "rows": NUM_ROWS,
                "image": {"height": 3, "width": wide, "channels": channels},
                "columns": [] if kind == "unlabelled-images" else [label],
            }
        )
    wards = ["north", "south", "west"]
    label = {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]}
    if kind == "numeric-label":
        label = {"name": "ill", "kind": "continuous", "role": "label", "bounds": [0, 1]}
    document: dict[str, Any] = {
        "name": "visits",
        "rows": NUM_ROWS,
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 100]},
            {"name": "dose", "kind": "continuous", "bounds": [0, 2], "nullable": True},
            {"name": "visit", "kind": "datetime", "bounds": ["2020-01-01", "2024-12-31"]},
            {"name": "ward", "kind": "categorical", "categories": wards, "nullable": True},
            {"name": "grade", "kind": "ordinal", "bounds": [1, 5]},
            label,
        ],
    }
    if kind == "persons":
        document["columns"].append({"name": "person", "kind": "id", "role": "id"})
        document["privacy"] = {"unit": "person", "max_rows": 2}
    if kind == "rules":
        document["rules"] = ["age >= 10", "grade <= age"]
    return load_schema(document)


@cache
def data_of(kind: str) -> pa.Table:
    """Made-up rows with nulls, decimals, cells out of bounds, unlisted categories and text for numbers."""
    schema = schema_of(kind)
    return messy_table() if schema.image is None else messy_images(schema)


def messy_table() -> pa.Table:
    rng = np.random.default_rng(3)
    cents = rng.integers(-20, 230, NUM_ROWS)
    doses = [None if lost else Decimal(int(c)) / 100 for c, lost in zip(cents, cents % 7 == 0, strict=True)]
    days = rng.integers(-100, 2000, NUM_ROWS)
    ages = [str(age) for age in rng.integers(-5, 110, NUM_ROWS)]
    ages[3], ages[5], ages[8] = "n/a", "forty", " 41 "
    wards = np.array(["north", "south", "east", " west ", None, ""], dtype=object)
    return pa.table(
        {
            "age": ages,
            "dose": pa.array(doses, pa.decimal128(6, 2)),
            "visit": [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in days],
            "ward": pa.array(rng.choice(wards, NUM_ROWS).tolist(), pa.string()),
            "grade": rng.choice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, np.nan], NUM_ROWS),
            "ill": pa.array([None if n == 9 else n % 3 for n in rng.integers(0, 10, NUM_ROWS).tolist()]),
            "person": [f"p{n}" for n in rng.integers(0, 70, NUM_ROWS)],
        }
    )


def messy_images(schema: Schema) -> pa.Table:
    rng = np.random.default_rng(5)
    assert schema.image is not None
    pixels = rng.integers(-10, 300, (NUM_ROWS, len(schema.image.names)))
    shapes = np.array(["up", "down", "up", "sideways", None], dtype=object)
    columns = {
        name: pa.array([None if value == 7 else value for value in column.tolist()], pa.int64())
        for name, column in zip(schema.image.names, pixels.T, strict=True)
    }
    return pa.table(columns | {"shape": pa.array(rng.choice(shapes, NUM_ROWS).tolist(), pa.string())})


@cache
def plan_of(case: Case) -> Plan:
    return make_plan(schema_of(case.schema), Budget(1.0, case.delta), method=case.method, options=case.options)


@cache
def release_of(case: Case) -> Release:
    """A release with seeded noise, its date and versions masked."""
    made = release_table(data_of(case.schema), plan_of(case), noise=SeededNoise(11))
    facts = dict(made.facts)
    masked = {"created": "masked", "software": dict.fromkeys(facts["software"], "masked")}
    return replace(made, facts=tuple((facts | masked).items()))


@pytest.fixture(autouse=True)
def _seeded_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn from the operating system is drawn from a seed: rows of steps of a descent, names of releases.

    One stream for each length, as modules that are imported meanwhile may draw some bytes too.
    """
    streams: dict[int, np.random.Generator] = {}

    def seeded(count: int) -> bytes:
        return streams.setdefault(count, np.random.default_rng([17, count])).bytes(count)

    monkeypatch.setattr(os, "urandom", seeded)


each_case = pytest.mark.parametrize("case", CASES, ids=str)


@each_case
def test_plans_are_the_recorded_ones(golden: Any, case: Case) -> None:
    plan = plan_of(case)
    golden.check(
        f"{case}: plan",
        plan_digests(golden, plan),
        portable=not case.is_planned_with_floats,
        summary=summary_of_document(plan.to_dict()),
    )


def plan_digests(golden: Any, plan: Plan) -> dict[str, str]:
    return {
        "canonical JSON": golden.sha256(plan.to_dict()),
        "fingerprint": plan.fingerprint,
        "fingerprint when read back": plan_from_dict(json.loads(json.dumps(plan.to_dict()))).fingerprint,
        "schema": golden.sha256(plan.schema.to_yaml().encode()),
    }


def summary_of_document(document: dict[str, Any]) -> dict[str, float]:
    """How many numbers a document holds, their sum, and how much text."""
    leaves = list(leaves_of(json.loads(json.dumps(document))))
    texts = [leaf for leaf in leaves if isinstance(leaf, str)]
    numbers = [float(leaf) for leaf in leaves if isinstance(leaf, int | float)]
    return {
        "numbers": len(numbers),
        "sum of numbers": math.fsum(abs(number) for number in numbers),
        "texts": len(texts),
        "characters": sum(map(len, texts)),
    }


def leaves_of(document: Any) -> Iterator[Any]:
    """Everything in nested JSON that is no list or object, keys too."""
    if isinstance(document, dict):
        yield from document
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from leaves_of(part)
    else:
        yield document


@each_case
def test_released_integers_are_the_recorded_ones(golden: Any, case: Case) -> None:
    release = release_of(case)
    stages = zip(release.plan.stages, release.vectors, strict=True)
    named = {f"stage {stage.name}": vector for stage, vector in stages}
    named |= {f"learnt {name}": value for name, value in release.weights}
    value = {name: golden.sha256(array) for name, array in named.items()}
    value["fingerprint"] = release.fingerprint
    golden.check(f"{case}: vector", value, portable=case.is_counted, summary=summary_of_arrays(named))


def summary_of_arrays(named: dict[str, Any]) -> dict[str, float]:
    """Norms, and the first numbers in units of them."""
    found: dict[str, float] = {}
    for name, array in named.items():
        numbers = array.astype(np.float64).ravel()
        norm = float(np.linalg.norm(numbers))
        found[f"{name}: size"] = float(len(numbers))
        found[f"{name}: norm"] = norm
        for place, number in enumerate(numbers[:NUMBERS_SHOWN]):
            found[f"{name}: {place}"] = float(number) / max(norm, 1.0)
    return found


@each_case
def test_certificates_are_the_recorded_ones(golden: Any, case: Case) -> None:
    facts = dict(release_of(case).facts)
    certificate = build_certificate(plan_of(case), facts, fingerprint="masked")
    page = render_html(json.loads(to_json(certificate)))
    value = {"JSON": golden.sha256(to_json(certificate)), "page": golden.sha256(page.encode())}
    golden.check(
        f"{case}: certificate",
        value,
        portable=not case.is_planned_with_floats,
        summary=summary_of_document(certificate),
    )


@pytest.mark.parametrize("case", FITTED_CASES, ids=str)
def test_rows_of_a_seed_are_the_recorded_ones(golden: Any, case: Case) -> None:
    generator = fit_release(release_of(case))
    rows = generator.sample(SAMPLED_ROWS, seed=5)
    content = {"types": str(rows.schema), "rows": json.dumps(rows.to_pydict(), default=str)}
    value = {"rows": golden.sha256(content), "generator": golden.sha256(generator.to_dict())}
    value |= {f"tensor {name}": golden.sha256(array) for name, array in generator.tensors().items()}
    golden.check(
        f"{case}: rows",
        value,
        portable=False,
        summary=summary_of_rows(generator.schema, rows),
        tolerance=ROWS_TOLERANCE,
    )


def summary_of_rows(schema: Schema, rows: pa.Table) -> dict[str, float]:
    """The mean code of each column, as a share of the largest, and the share of nulls."""
    found = {}
    for column in schema.used:
        if column.name in rows.column_names:
            codes = encode_column(column, rows[column.name])
            largest = (column.num_choices if column.is_choice else column.num_steps) - 1
            found[column.name] = float(np.maximum(codes, 0).mean()) / max(largest, 1)
            found[f"{column.name} null"] = float((codes < 0).mean())
    return found


def test_noise_is_the_recorded_one(golden: Any) -> None:
    """That of tests, and that of long vectors, drawn from seeded bytes in place of the operating system's."""
    sums = np.arange(3000)
    for source in (SeededNoise(1), LongNoise()):
        kind = type(source).__name__
        gaussian, laplace = (add(sums, 12345, unrecorded()) for add in (source.add_noise, source.add_laplace_noise))
        golden.check(f"{kind}: gaussian", golden.sha256(gaussian), portable=True)
        golden.check(f"{kind}: laplace", golden.sha256(laplace), portable=True)


def test_every_method_generator_and_case_is_recorded(golden: Any) -> None:
    assert {case.method for case in CASES} == set(METHODS)
    assert {plan_of(case).setting("generator", "network") for case in FITTED_CASES} == set(FITS)
    parts = {f"{case}: {part}" for case in CASES for part in ("plan", "vector", "certificate")}
    rows = {f"{case}: rows" for case in FITTED_CASES}
    noise = {f"{source}: {kind}" for source in ("SeededNoise", "LongNoise") for kind in ("gaussian", "laplace")}
    assert golden.names == parts | rows | noise
