from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.classifier.model import Classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.private.dpsgd.classifier import train_classifier
from understudy.schema import Schema, load_schema
from understudy.schema.encode import pixel_columns

TABLE = load_schema(
    {
        "name": "visits",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 100]},
            {"name": "income", "kind": "continuous", "bounds": [0, 1e5], "nullable": True},
            {"name": "colour", "kind": "categorical", "categories": ["red", "green", "blue"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
IMAGES = load_schema(
    {
        "name": "bars",
        "image": {"height": 12, "width": 12},
        "columns": [{"name": "label", "kind": "categorical", "role": "label", "categories": ["-", "|"]}],
    }
)


def visits(count: int, seed: int = 0) -> pa.Table:
    """Old people and blue ones are ill."""
    rng = np.random.default_rng(seed)
    age, colour = rng.integers(0, 101, count), rng.integers(0, 3, count)
    ill = (age + 40 * (colour == 2) + rng.normal(0, 8, count)) > 70
    income = [None if i % 7 == 0 else float(v) for i, v in enumerate(rng.uniform(0, 1e5, count))]
    return pa.table(
        {
            "age": age,
            "income": pa.array(income),
            "colour": [("red", "green", "blue")[c] for c in colour],
            "ill": ["yes" if each else "no" for each in ill],
        }
    )


def bars(count: int, seed: int = 0, schema: Schema = IMAGES) -> tuple[pa.Table, np.ndarray]:
    """Images of lying and standing bars."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 40, (count, 12, 12)).astype(np.uint8)
    labels = rng.integers(0, 2, count)
    for image, label in zip(images, labels, strict=True):
        place = rng.integers(2, 9)
        part = image[place : place + 2] if label == 0 else image[:, place : place + 2]
        part[...] = 220
    assert schema.image is not None
    columns = pixel_columns(images, schema.image, schema.image.names)
    names = [("-", "|")[label] for label in labels]
    return pa.table(columns | {"label": names}), images


@pytest.fixture(scope="session")
def trained() -> Classifier:
    """A classifier of a small table."""
    plan = ClassifierPlan(TABLE, Budget(3.0), Training(steps=40, num_maps=2))
    return train_classifier(visits(3000), plan)


@pytest.fixture(scope="session", params=["strokes", "cosines"])
def sees(request: pytest.FixtureRequest) -> Classifier:
    """A classifier of small images."""
    training = Training(steps=30, inputs=request.param, num_coefficients=40)
    return train_classifier(bars(1500)[0], ClassifierPlan(IMAGES, Budget(4.0), training))
