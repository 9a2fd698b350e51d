from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from understudy.accounting.mechanisms import Budget
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.private.dpsgd.classifier import train_classifier
from understudy.reports.explanation import STROKES_DRAWN, render_explanation, strokes_of
from understudy.reports.pictures import FOR, picture, plain_picture, signed_picture
from understudy.schema import load_schema
from understudy.schema.encode import pixel_columns


def opened(address: str) -> Image.Image:
    kind, content = address.split(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_pictures_are_what_was_drawn() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    assert np.array_equal(np.asarray(opened(picture(pixels))), pixels)
    signed = np.asarray(opened(signed_picture(np.array([[1.0, 0.0, -0.5]]), 1.0)))
    assert tuple(signed[0, 0]) == (*FOR, 255)
    assert signed[0, 1, 3] == 0
    assert signed[0, 2, 3] == 128
    grey = np.asarray(opened(plain_picture(np.full((2, 2, 1), 77.0))))
    assert grey[0, 0].tolist() == [77, 77, 77, 255]


def test_strokes_stand_where_weights_are_and_run_across_the_change() -> None:
    weights = np.zeros((17, 4, 5))
    weights[1, 2, 3] = 2.0  # brightness changes across, so the edge stands upright
    drawn = strokes_of(weights, 2.0)
    x1, y1, x2, y2, strength = drawn["lines"][-1]
    assert strength == 1.0
    assert x1 == pytest.approx(x2, abs=1e-9)
    assert (x1 / 20 - 0.5, (y1 + y2) / 40 - 0.5) == pytest.approx((3, 2))
    assert len(drawn["lines"]) == STROKES_DRAWN


@pytest.mark.parametrize("inputs", ["strokes", "cosines"])
def test_a_page_about_images_shows_every_class_and_fetches_nothing(inputs: str) -> None:
    label = {"name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b&c", "d"]}
    schema = load_schema({"name": "dots", "image": {"height": 8, "width": 8}, "columns": [label]})
    assert schema.image is not None
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8)).astype(np.uint8)
    columns = pixel_columns(images, schema.image, schema.image.names)
    import pyarrow as pa

    rows = pa.table(columns | {"label": [("a", "b&c", "d")[i % 3] for i in range(60)]})
    training = Training(inputs=inputs, steps=2, num_coefficients=20)
    made = train_classifier(rows, ClassifierPlan(schema, Budget(1.0), training))
    page = render_explanation(made, images[:2].reshape(2, 64).astype(np.int64))
    assert page.count("<figure>") == 3 + 2 * 2
    assert "b&amp;c" in page
    assert not re.search(r"(?:src|href)=\"(?!data:)", page)
    assert "<script" not in page
