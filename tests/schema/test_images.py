"""Image sets in schemas: one line declares all pixels."""

from __future__ import annotations

import pytest

from understudy.errors import InputError
from understudy.schema import load_schema
from understudy.schema.images import MOST_PIXELS, ImageShape, is_pixel, shape_of
from understudy.schema.table import parse_yaml

DIGITS = {
    "name": "digits",
    "image": {"height": 2, "width": 3},
    "columns": [{"name": "label", "kind": "categorical", "role": "label", "categories": [0, 1]}],
}


def test_pixels_are_columns_from_left_to_right_and_top_to_bottom():
    schema = load_schema(DIGITS)
    names = [column.name for column in schema.used]
    assert names == ["pixel_0_0", "pixel_0_1", "pixel_0_2", "pixel_1_0", "pixel_1_1", "pixel_1_2", "label"]
    assert schema.used[0].low_high == (0.0, 255.0)
    assert schema.label is not None
    assert schema.label.name == "label"


def test_channels_of_a_place_lie_together():
    assert ImageShape(1, 2, 3).names == (
        "pixel_0_0_0",
        "pixel_0_0_1",
        "pixel_0_0_2",
        "pixel_0_1_0",
        "pixel_0_1_1",
        "pixel_0_1_2",
    )


def test_files_do_not_list_the_pixels():
    schema = load_schema(DIGITS)
    text = schema.to_yaml()
    assert "pixel_" not in text
    assert parse_yaml(text, name="digits") == schema
    assert parse_yaml(text, name="digits").fingerprint == schema.fingerprint


def test_images_need_no_other_column():
    assert len(load_schema({"image": {"height": 2, "width": 2}}).used) == 4


@pytest.mark.parametrize(
    "image",
    [
        {"height": 2},
        {"height": 0, "width": 3},
        {"height": 2, "width": 3, "channels": 2},
        {"height": True, "width": 3},
        {"height": 2, "width": 3, "depth": 8},
        {"height": MOST_PIXELS, "width": 2},
        "28 x 28",
    ],
)
def test_what_is_no_image_is_refused(image: object):
    with pytest.raises(InputError):
        load_schema(DIGITS | {"image": image})


def test_a_column_may_not_be_called_like_a_pixel():
    column = {"name": "pixel_0_1", "kind": "binary", "categories": [0, 1]}
    with pytest.raises(InputError, match="twice"):
        load_schema(DIGITS | {"columns": [column]})


@pytest.mark.parametrize("shape", [ImageShape(1, 1), ImageShape(2, 3), ImageShape(4, 1, 3)])
def test_a_shape_is_known_by_its_pixels_in_any_order(shape: ImageShape):
    assert shape_of(["label", *reversed(shape.names)]) == shape


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["label", "pixel_0"],
        ImageShape(2, 3).names[1:],
        [*ImageShape(2, 3).names, "pixel_9_9"],
        [*ImageShape(2, 3).names, "pixel_0_0_0"],
        ["pixel_0_0_0"],
        ["pixel_0_0_0", "pixel_0_0_1"],
        ["pixel_00_0"],
        [f"pixel_0_{column}" for column in range(MOST_PIXELS + 1)],
    ],
)
def test_names_that_are_no_whole_image_have_no_shape(names: list[str]):
    assert shape_of(names) is None


def test_only_pixels_are_called_like_pixels():
    assert all(is_pixel(name) for name in ImageShape(12, 11, 3).names)
    assert not any(is_pixel(name) for name in ("pixel", "pixel_1", "xpixel_0_0", "pixel_0_0_", "label"))
