"""Images as arrays and as columns of pixels: there and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from understudy.errors import MissingExtraError
from understudy.schema.encode import pixel_array, pixel_columns
from understudy.schema.images import ImageShape, require_pillow

SHAPES = [ImageShape(2, 3), ImageShape(3, 2, 3)]


def images_of(shape: ImageShape, count: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *shape.axes)).astype(np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_become_the_images_that_they_were_made_of(shape: ImageShape):
    images = images_of(shape)
    columns = pixel_columns(images, shape)
    assert tuple(columns) == shape.names
    again = pixel_array(pa.table(columns), shape)
    assert again.dtype == np.uint8
    assert np.array_equal(again, images)


def test_a_column_holds_one_place_of_every_image():
    images = images_of(ImageShape(2, 3))
    assert pixel_columns(images, ImageShape(2, 3))["pixel_1_2"].to_pylist() == images[:, 1, 2].tolist()
    colours = images_of(ImageShape(3, 2, 3))
    column = pixel_columns(colours, ImageShape(3, 2, 3))["pixel_2_0_1"]
    assert column.to_pylist() == colours[:, 2, 0, 1].tolist()


def test_columns_that_are_not_wanted_are_not_made():
    columns = pixel_columns(images_of(ImageShape(2, 3)), ImageShape(2, 3), ["label", "pixel_0_1"])
    assert list(columns) == ["pixel_0_1"]


def test_cells_of_any_type_are_read_as_a_schema_reads_them():
    rows = pa.table(
        {
            "pixel_0_0": pa.array([b"7", b" 255 ", None]),
            "pixel_0_1": pa.array([-3.0, 300.0, 12.4]),
            "pixel_1_0": pa.array([1, None, 3], pa.int64()),
            "pixel_1_1": pa.array([0, 1, 2], pa.uint8()),
        }
    )
    assert pixel_array(rows, ImageShape(2, 2)).tolist() == [[[7, 0], [1, 0]], [[255, 255], [0, 1]], [[0, 12], [3, 2]]]


def test_text_that_is_no_number_is_a_pixel_without_light():
    rows = pa.table({"pixel_0_0": ["SECRET-7f3a", "7"]})
    assert pixel_array(rows, ImageShape(1, 1)).tolist() == [[[0]], [[7]]]


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    require_pillow()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="extra 'images'"):
        require_pillow()
