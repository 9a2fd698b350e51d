"""Image sets in .npz archives: what is read, what is refused, and that nothing is executed."""

from __future__ import annotations

import io
import traceback
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.errors import InputError
from understudy.readers import open_source, source_columns
from understudy.schema.images import MOST_PIXELS, ImageShape

SECRET = "SECRET-7f3a"
GREY = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4)
COLOUR = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)
LABELS = np.array([7, 0, 7])


def saved(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez_compressed(path, **arrays)
    return path


def read(path: Path, *columns: str) -> dict[str, list[Any]]:
    names = list(columns) or [name for name, _ in source_columns(path)]
    with open_source(path, columns=names) as stream:
        found: dict[str, list[Any]] = pa.Table.from_batches(list(stream)).to_pydict()
    return found


def drain(path: Path, *columns: str, query: str | None = None) -> None:
    with open_source(path, columns=columns, query=query) as stream:
        for _ in stream:
            pass


def refusal(path: Path, *columns: str, query: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        drain(path, *(columns or ["pixel_0_1"]), query=query)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("names", [("x", "y"), ("images", "labels"), ("x_train", "y_train")])
def test_grey_images_are_columns_of_pixels_beside_their_labels(tmp_path: Path, names: tuple[str, str]) -> None:
    path = saved(tmp_path, **dict(zip(names, (GREY, LABELS), strict=True)), other=np.zeros(9))
    found = read(path)
    assert list(found) == [*ImageShape(2, 4).names, "label"]
    assert found["label"] == [7, 0, 7]
    for row in range(2):
        for column in range(4):
            assert found[f"pixel_{row}_{column}"] == GREY[:, row, column].tolist()


def test_coloured_images_have_a_column_per_channel(tmp_path: Path) -> None:
    found = read(saved(tmp_path, x=COLOUR))
    assert list(found) == list(ImageShape(2, 2, 3).names)
    assert found["pixel_1_0_2"] == COLOUR[:, 1, 0, 2].tolist()


def test_an_axis_for_one_channel_changes_nothing(tmp_path: Path) -> None:
    flat = read(saved(tmp_path, x=GREY, y=LABELS))
    assert read(saved(tmp_path, x=GREY[..., None], y=LABELS)) == flat


def test_the_first_pair_of_names_is_preferred(tmp_path: Path) -> None:
    path = saved(tmp_path, x_train=COLOUR, labels=LABELS, images=GREY, x=GREY + 100)
    found = read(path)
    assert found["pixel_0_0"] == (GREY + 100)[:, 0, 0].tolist()
    assert "label" not in found


@pytest.mark.parametrize(
    ("labels", "kind", "cells"),
    [
        (np.array(["a", "bé", ""]), pa.string(), ["a", "bé", ""]),
        (np.array([b"a", b"b", b"c"]), pa.binary(), [b"a", b"b", b"c"]),
        (np.array([1, 2, 3], ">i4"), pa.int32(), [1, 2, 3]),
        (np.array([True, False, True]), pa.bool_(), [True, False, True]),
        (np.array([0.5, 1.5, 2.5], "f4"), pa.float32(), [0.5, 1.5, 2.5]),
    ],
)
def test_labels_keep_their_type(tmp_path: Path, labels: Any, kind: Any, cells: Any) -> None:
    path = saved(tmp_path, x=GREY, y=labels)
    assert source_columns(path)[-1] == ("label", kind)
    assert read(path, "label")["label"] == cells


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, x=GREY, y=LABELS)
    assert list(read(path, "label", "pixel_1_1", "pixel_0_1")) == ["label", "pixel_1_1", "pixel_0_1"]


def test_a_set_without_images_has_no_batches_and_is_not_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, x=GREY[:0], y=LABELS[:0])
    with open_source(path, columns=[*ImageShape(2, 4).names, "label"]) as stream:
        assert list(stream) == []


def test_a_large_set_is_streamed_in_small_batches(tmp_path: Path) -> None:
    images = np.zeros((50_000, 20, 20), np.uint8)
    images[:, 0, 0] = np.arange(50_000) % 251
    path = saved(tmp_path, x=images, y=np.arange(50_000))
    del images
    tracemalloc.start()
    with open_source(path, columns=[*ImageShape(20, 20).names, "label"]) as stream:
        seen = [(b.num_rows, b.column(400)[0].as_py(), b.column(0)[1].as_py()) for b in stream]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == [(2000, 2000 * i, (2000 * i + 1) % 251) for i in range(25)]
    assert peak < 10_000_000  # all images have 20 MB


class Bomb:
    """What runs if it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("name", ["x", "y", "other"])
def test_a_pickle_in_an_archive_is_never_executed(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "executed"
    objects = np.array([Bomb(trace), SECRET, None], dtype=object)
    path = saved(tmp_path, **({"x": GREY, "y": LABELS} | {name: objects}))
    if name == "other":
        read(path)
    else:
        assert ("bytes" if name == "x" else "not objects") in refusal(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": GREY / 255}, "must be bytes (uint8) from 0 to 255"),
        ({"x": GREY.astype(int)}, "must be bytes (uint8) from 0 to 255"),
        ({"x": GREY.reshape(3, 8)}, "must have axes"),
        ({"x": np.zeros((3, 2, 2, 4), np.uint8)}, "with 1 or 3 channels"),
        ({"x": np.zeros((3, 0, 2), np.uint8)}, "must have axes"),
        ({"x": np.zeros((1, MOST_PIXELS, 2), np.uint8)}, "numbers"),
        ({"x": np.asfortranarray(GREY)}, "C order"),
        ({"x": GREY, "y": LABELS[:2]}, "one label per image"),
        ({"x": GREY, "y": LABELS[:, None]}, "one label per image"),
        ({"x": GREY, "y": np.array(["a" * 2000, SECRET, ""])}, "numbers or text"),
        ({"x": GREY, "y": LABELS.astype(complex)}, "numbers or text"),
        ({"z": GREY, SECRET: LABELS}, "looked for are 'x' and 'y', 'images' and 'labels'"),
    ],
)
def test_what_is_no_image_set_is_refused(tmp_path: Path, arrays: Any, words: str) -> None:
    assert words in refusal(saved(tmp_path, **arrays))


def test_images_of_another_shape_than_the_schema_has_are_refused(tmp_path: Path) -> None:
    """And not cut to their upper left corner, whose columns are all there."""
    path = saved(tmp_path, x=GREY)
    message = refusal(path, *ImageShape(2, 3).names)
    assert "must have 2 rows and 3 columns" in message
    assert "1 channel" in refusal(saved(tmp_path, x=COLOUR), *ImageShape(2, 2).names)


def test_a_query_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, x=GREY)
    assert "a query cannot select images" in refusal(path, query="SELECT * FROM data")


def member(content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", compression) as opened:
        opened.writestr("x.npy", content)
    return archive.getvalue()


def plain_array(images: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, images)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        SECRET.encode() * 100,
        member(SECRET.encode()),
        member(plain_array(GREY)[:-1]),
        member(plain_array(GREY) + SECRET.encode()),
        member(plain_array(GREY))[:-30],
        member(plain_array(GREY).replace(b"(3, 2, 4)", b"(-3, 2,4)")),
        member(plain_array(GREY).replace(b"(3, 2, 4)", b"'SECRET' ")),
        member(plain_array(GREY).replace(b"NUMPY\x01", b"NUMPY\x09")),
    ],
    ids=["no archive", "no array", "short", "long", "cut", "negative", "odd header", "odd version"],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "set.npz"
    path.write_bytes(content)
    assert "it is damaged, or not an .npz archive" in refusal(path)


def test_a_flipped_bit_is_seen_by_the_checksum(tmp_path: Path) -> None:
    content = bytearray(member(plain_array(GREY), zipfile.ZIP_STORED))
    content[content.index(GREY.tobytes()) + 5] ^= 1
    path = tmp_path / "set.npz"
    path.write_bytes(bytes(content))
    assert "damaged" in refusal(path)


def test_a_header_that_promises_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    header = plain_array(np.empty((0, 2, 4), np.uint8)).replace(b"(0, 2, 4), }", b"(10000000000000000, 2, 4), }")
    header = header.replace(b" " * 16 + b"\n", b"\n")
    path = tmp_path / "set.npz"
    path.write_bytes(member(header))
    tracemalloc.start()
    assert "damaged" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_other_compressions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    path.write_bytes(member(plain_array(GREY), zipfile.ZIP_BZIP2))
    assert "compressed in a way" in refusal(path)


def test_lzma_is_read_as_numpy_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    path.write_bytes(member(plain_array(GREY), zipfile.ZIP_LZMA))
    names = ImageShape(*GREY.shape[1:]).names
    with open_source(path, columns=names) as stream:
        assert sum(batch.num_rows for batch in stream) == len(GREY)
