from __future__ import annotations

import base64
import io

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from understudy.reports.pictures import GAP, LARGEST_ZOOMED, PAPER, draw_grid, picture_of
from understudy.schema import Schema, load_schema
from understudy.schema.encode import pixel_columns
from understudy.schema.images import ImageShape

SHAPE = ImageShape(2, 2)


def described(*, labelled: bool) -> Schema:
    label = {"name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b"]}
    columns = [label] if labelled else []
    return load_schema({"image": {"height": 2, "width": 2}, "columns": columns})


def opened(address: str | None) -> Image.Image:
    assert address is not None
    head, content = address.split(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_coloured_images_are_drawn_in_colours() -> None:
    image = np.array([[[200, 10, 30]]], dtype=np.uint8)
    with Image.open(io.BytesIO(draw_grid([image[None]], columns=2))) as picture:
        assert picture.mode == "RGB"
        assert picture.getpixel((GAP, GAP)) == (200, 10, 30)
        assert picture.getpixel((GAP + LARGEST_ZOOMED + GAP, GAP)) == (PAPER, PAPER, PAPER)


def test_large_images_keep_their_size() -> None:
    content = draw_grid([np.zeros((1, 70, 80), np.uint8)], columns=1)
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.size == (80 + 2 * GAP, 70 + 2 * GAP)


def test_a_page_shows_the_first_images_of_every_class() -> None:
    images = np.repeat(np.arange(6, dtype=np.uint8) * 40, 4).reshape(6, 2, 2)
    labels = pa.array(["b", "a", "b", "a", "a", None])
    rows = pa.table(pixel_columns(images, SHAPE) | {"label": labels})
    with opened(picture_of(rows, described(labelled=True), per_class=2)) as picture:
        step = LARGEST_ZOOMED + GAP
        shown = [[picture.getpixel((GAP + x, GAP + y)) for x in (0, step)] for y in (0, step)]
    assert shown == [[40, 120], [0, 80]]


def test_without_classes_images_fill_the_rows() -> None:
    rows = pa.table(pixel_columns(np.zeros((9, 2, 2), np.uint8), SHAPE))
    with opened(picture_of(rows, described(labelled=False), per_class=3)) as picture:
        assert picture.size == (3 * (LARGEST_ZOOMED + GAP) + GAP,) * 2


def test_tables_and_machines_without_pillow_have_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table(pixel_columns(np.zeros((1, 2, 2), np.uint8), SHAPE))
    plain = load_schema({"columns": [{"name": "a", "kind": "integer", "bounds": [0, 1]}]})
    assert picture_of(pa.table({"a": [0]}), plain) is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert picture_of(rows, described(labelled=False)) is None
