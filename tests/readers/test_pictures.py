"""Folders of pictures and pictures in Parquet files: what is read, and that no refusal names a file."""

from __future__ import annotations

import io
import traceback
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from understudy.errors import InputError, MissingExtraError, UnderstudyError
from understudy.readers import open_source, pictures, source_columns
from understudy.schema.images import ImageShape

SECRET = "SECRET-7f3a"
GREY = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3) * 10
COLOUR = np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3) * 3
PIXELS, COLOURS = ImageShape(2, 3).names, ImageShape(2, 3, 3).names


def encoded(image: Any, form: str = "PNG", **options: Any) -> bytes:
    content = io.BytesIO()
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    picture.save(content, form, **options)
    return content.getvalue()


def put(folder: Path, name: str, content: bytes | Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else encoded(content))
    return folder


def read(source: Path, *columns: str) -> dict[str, list[Any]]:
    names = list(columns) or [name for name, _ in source_columns(source)]
    with open_source(source, columns=names) as stream:
        found: dict[str, list[Any]] = pa.Table.from_batches(list(stream)).to_pydict()
    return found


def images_in(found: dict[str, list[Any]], names: tuple[str, ...] = PIXELS) -> Any:
    return np.array([found[name] for name in names]).T


def drain(source: Path, *columns: str, query: str | None = None) -> None:
    with open_source(source, columns=columns, query=query) as stream:
        for _ in stream:
            pass


def refusal(source: Path, *columns: str, query: str | None = None, kind: type[UnderstudyError] = InputError) -> str:
    with pytest.raises(kind) as caught:
        drain(source, *(columns or PIXELS), query=query)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pictures in two classes."""
    made = tmp_path / "pictures"
    put(made, f"b/{SECRET}-2.PNG", GREY[2])
    put(made, f"a/{SECRET}-9.png", GREY[1])
    return put(made, f"a/{SECRET}-0.png", GREY[0])


# --- folders ---


def test_sub_folders_are_labels_and_files_come_in_the_order_of_their_paths(folder: Path) -> None:
    found = read(folder)
    assert list(found) == [*PIXELS, "label"]
    assert found["label"] == ["a", "a", "b"]
    assert np.array_equal(images_in(found), GREY[:3].reshape(3, -1))


def test_only_names_are_known_before_rows_are_read(folder: Path) -> None:
    fields = source_columns(folder)
    assert fields == [*((name, pa.uint8()) for name in PIXELS), ("label", pa.string())]


def test_pictures_without_folders_have_no_labels(tmp_path: Path) -> None:
    made = put(put(tmp_path / "p", "2.png", GREY[1]), "1.png", GREY[0])
    found = read(made)
    assert list(found) == list(PIXELS)
    assert np.array_equal(images_in(found), GREY[:2].reshape(2, -1))
    with pytest.raises(InputError, match="names none of the columns"):
        open_source(made, columns=["image"])


def test_hidden_names_and_other_files_are_not_data(folder: Path) -> None:
    before = read(folder)
    put(folder, ".hidden/1.png", GREY[3])
    put(folder, "a/_1.png", GREY[3])
    put(folder, "a/notes.txt", SECRET.encode())
    assert read(folder) == before


def test_a_file_of_labels_is_preferred_to_sub_folders(folder: Path) -> None:
    lines = f'file,label\nb/{SECRET}-2.PNG,x y\na/{SECRET}-0.png,\n"a/{SECRET}-9.png","z,z"\n'
    put(folder, "labels.csv", lines.encode())
    assert source_columns(folder)[-1] == ("label", None)
    found = read(folder)
    assert found["label"] == [None, b"z,z", b"x y"]
    assert np.array_equal(images_in(found), GREY[:3].reshape(3, -1))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f"file,label\na/{SECRET}-0.png,1\n", "every image of the folder once"),
        (f"file,label\na/{SECRET}-0.png,1\na/{SECRET}-9.png,1\nb/{SECRET}-2.PNG,1\n../{SECRET}.png,1\n", "once"),
        (f"file,label\na/{SECRET}-0.png,1\na/{SECRET}-9.png,1\nb/{SECRET}-2.PNG,1\na/{SECRET}-0.png,2\n", "once"),
        ("file,label\n", "once"),
        (f"file,label\na/{SECRET}-0.png,1,{SECRET}\n", "as many cells as the header"),
        ("name,label\n", "it has no column 'file'"),
        (f"a/{SECRET}-0.png,1\n", "it names none of the columns"),
        ("", "column names"),
    ],
)
def test_a_file_of_labels_must_list_every_picture_once(folder: Path, lines: str, words: str) -> None:
    put(folder, "labels.csv", lines.encode())
    message = refusal(folder)
    assert words in message
    assert "labels.csv" in message


def test_a_directory_with_parquet_files_is_still_one(folder: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), folder / "part.parquet")
    assert read(folder) == {"a": [1, 2]}


def test_more_pictures_than_a_batch_are_all_read_in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(folder)
    monkeypatch.setattr("understudy.readers.pictures.BATCH_IMAGES", 2)
    with open_source(folder, columns=[*PIXELS, "label"]) as stream:
        batches = list(stream)
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert pa.Table.from_batches(batches).to_pydict() == before


def test_large_pictures_come_in_short_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(folder)
    monkeypatch.setattr("understudy.readers.pictures.BATCH_BYTES", 1)
    with open_source(folder, columns=[*PIXELS, "label"]) as stream:
        batches = list(stream)
    assert [batch.num_rows for batch in batches] == [1, 1, 1]
    assert pa.Table.from_batches(batches).to_pydict() == before


def test_labels_alone_are_read_without_decoding(folder: Path) -> None:
    put(folder, "b/3.png", SECRET.encode())
    assert read(folder, "label") == {"label": ["a", "a", "b", "b"]}


@pytest.mark.parametrize("names", [("1.png", "a/2.png"), ("a/b/1.png",), ("a/1.png", "a/b/2.png")])
def test_labels_in_more_than_one_manner_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        put(tmp_path / "p", f"{name}", GREY[0])
    assert "all in sub-folders" in refusal(tmp_path / "p")


@pytest.mark.parametrize("name", ["1.gif", "1.TIFF", "1.bmp"])
def test_pictures_of_other_kinds_are_refused_and_not_left_out(folder: Path, name: str) -> None:
    put(folder, f"a/{SECRET}{name}", b"x")
    assert "neither PNG nor JPEG" in refusal(folder)


def test_a_query_on_a_folder_is_refused(folder: Path) -> None:
    assert "a query cannot select images" in refusal(folder, query="SELECT * FROM data")


def test_a_picture_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "a" / f"{SECRET}-5.png").symlink_to(folder / f"{SECRET}-gone")
    assert "there is no such file" in refusal(folder)


# --- what a picture becomes ---


def shaped(*images: Any) -> list[list[int]]:
    pixels = [pictures.picture_pixels("w", image, ImageShape(2, 3)) for image in images]
    return [each.tolist() for each in pixels]


def test_how_a_grey_picture_is_stored_does_not_matter() -> None:
    grey = Image.fromarray(GREY[0])
    alpha = Image.merge("LA", [grey, Image.new("L", grey.size, 7)])
    plain, clear, see_through = shaped(encoded(grey), encoded(alpha), encoded(grey, transparency=10))
    assert plain == clear == see_through == GREY[0].reshape(-1).tolist()


def test_black_and_white_is_0_and_255() -> None:
    bits = Image.fromarray(GREY[0] > 20)
    assert bits.mode == "1"
    assert shaped(encoded(bits)) == [[0, 0, 0, 255, 255, 255]]


def coloured(image: bytes) -> list[int]:
    pixels = pictures.picture_pixels("w", image, ImageShape(2, 3, 3))
    found: list[int] = pixels.tolist()
    return found


def test_how_a_coloured_picture_is_stored_does_not_matter() -> None:
    picture = Image.fromarray(COLOUR[0])
    alpha = picture.copy()
    alpha.putalpha(Image.fromarray(GREY[0]))
    palette = Image.new("P", picture.size)
    palette.putpalette(COLOUR[0].reshape(-1).tobytes())
    palette.putdata(range(6))
    wanted = COLOUR[0].reshape(-1).tolist()
    assert coloured(encoded(picture)) == wanted
    assert coloured(encoded(alpha)) == wanted
    assert coloured(encoded(palette)) == wanted
    assert coloured(encoded(palette, transparency=bytes(range(6)))) == wanted
    assert pictures.picture_shape("w", encoded(palette)) == ImageShape(2, 3, 3)


def test_colours_become_luma_and_grey_three_equal_channels() -> None:
    luma = COLOUR[0].reshape(-1, 3) @ [0.299, 0.587, 0.114]
    (found,) = shaped(encoded(COLOUR[0]))
    assert np.abs(found - luma).max() <= 1
    assert coloured(encoded(GREY[0])) == np.repeat(GREY[0], 3).tolist()


def test_jpegs_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    flat = np.full((8, 8), 90, np.uint8)
    made = put(tmp_path / "p", "1.jpeg", encoded(flat, "JPEG"))
    put(made, "2.png", encoded(flat, "JPEG"))
    put(made, "3.JPG", encoded(flat, "PNG"))
    assert np.array_equal(images_in(read(made), ImageShape(8, 8).names), np.full((3, 64), 90))


def test_the_schema_decides_the_channels_and_else_the_first_picture(tmp_path: Path) -> None:
    made = put(put(tmp_path / "p", "1.png", GREY[0]), "2.png", COLOUR[0])
    assert list(read(made)) == list(PIXELS)
    as_colours = read(made, *COLOURS)
    assert images_in(as_colours, COLOURS)[1].tolist() == COLOUR[0].reshape(-1).tolist()


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_what_a_picture_becomes_does_not_depend_on_the_others(tmp_path: Path, left_out: int) -> None:
    images = [GREY[0], COLOUR[1], GREY[2]]
    whole, less = tmp_path / "whole", tmp_path / "less"
    for number, image in enumerate(images):
        put(whole, f"{number}.png", image)
        if number != left_out:
            put(less, f"{number}.png", image)
    expected = np.delete(images_in(read(whole, *COLOURS), COLOURS), left_out, axis=0)
    assert np.array_equal(images_in(read(less, *COLOURS), COLOURS), expected)


# --- pictures that are refused ---


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (SECRET.encode(), "neither PNG nor JPEG"),
        (b"", "neither PNG nor JPEG"),
        (encoded(COLOUR[0], "GIF"), "neither PNG nor JPEG"),
        (encoded(np.random.default_rng(0).integers(0, 255, (2, 3)).astype(np.uint8))[:-25], "cut short"),
        (encoded(GREY[0])[:20], "cut short"),
        (encoded(np.full((2, 3), 9, np.uint8), "JPEG")[:200], "cut short"),
        (encoded(GREY[0].astype(np.uint16)), "8 bits"),
        (encoded(Image.new("CMYK", (3, 2)), "JPEG"), "8 bits"),
        (encoded(GREY[0, :, :2]), "must have 2 rows and 3 columns"),
        (encoded(GREY[0].T.copy()), "must have 2 rows and 3 columns"),
    ],
    ids=["text", "empty", "gif", "cut png", "cut header", "cut jpeg", "16 bits", "cmyk", "narrow", "turned"],
)
def test_a_picture_that_cannot_be_taken_is_refused(folder: Path, tmp_path: Path, content: bytes, words: str) -> None:
    put(folder, f"a/{SECRET}-1.png", content)
    assert words in refusal(folder)
    rows = {"image": [encoded(GREY[0]), content], "label": [SECRET, SECRET]}
    pq.write_table(pa.table(rows), tmp_path / "set.parquet")
    assert words in refusal(tmp_path / "set.parquet")


def png_of_size(width: int, height: int) -> bytes:
    """A small file that would decode to a large picture."""
    content = encoded(np.zeros((2, 3), np.uint8))
    header = b"IHDR" + width.to_bytes(4) + height.to_bytes(4) + content[24:29]
    return content[:12] + header + zlib.crc32(header).to_bytes(4) + content[33:]


@pytest.mark.parametrize("size", [(129, 128), (20_000, 20_000), (2**31 - 1, 2**31 - 1)])
def test_a_decompression_bomb_is_refused_by_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    made = put(tmp_path / "p", f"{SECRET}.png", png_of_size(*size))

    def explode(*_: Any) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", explode)
    assert "must have 2 rows and 3 columns" in refusal(made)
    assert "at most 16384 numbers" in refusal(made, "pixel_0_1")
    with pytest.raises(InputError, match="at most 16384 numbers"):
        source_columns(made)


def test_colours_that_are_turned_to_grey_count_as_grey(tmp_path: Path) -> None:
    made = put(tmp_path / "p", "1.png", np.full((128, 128, 3), 50, np.uint8))
    names = ImageShape(128, 128).names
    assert np.array_equal(images_in(read(made, *names), names), np.full((1, 128**2), 50))


def test_a_file_that_is_too_long_for_a_picture_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "LARGEST_PICTURE", 60)
    assert "MB each" in refusal(folder)


def test_without_pillow_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "extra 'images'" in refusal(folder, kind=MissingExtraError)


# --- pictures in Parquet files ---


def parquet(folder: Path, *, as_struct: bool, images: Any = GREY) -> Path:
    contents = [encoded(image) for image in images]
    cells = [{"bytes": each, "path": SECRET} for each in contents] if as_struct else contents
    table = pa.table({"nr": list(range(len(images))), "image": cells, "label": [3, 1, None, 2]})
    pq.write_table(table, folder / "set.parquet")
    return folder / "set.parquet"


@pytest.mark.parametrize("as_struct", [False, True])
def test_pixels_stand_in_place_of_encoded_images(tmp_path: Path, as_struct: bool) -> None:
    path = parquet(tmp_path, as_struct=as_struct)
    fields = source_columns(path)
    assert [name for name, _ in fields] == ["nr", *PIXELS, "label"]
    assert fields[-1] == ("label", pa.int64())
    found = read(path)
    assert np.array_equal(images_in(found), GREY.reshape(4, -1))
    assert (found["nr"], found["label"]) == ([0, 1, 2, 3], [3, 1, None, 2])


def test_directories_and_long_cells_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for part in (0, 1):
        cells = pa.array([encoded(image) for image in GREY[2 * part :][:2]], pa.large_binary())
        pq.write_table(pa.table({"image": cells}), tmp_path / "set" / f"{part}.parquet")
    assert np.array_equal(images_in(read(tmp_path / "set")), GREY.reshape(4, -1))


def test_the_schema_decides_the_channels_of_encoded_images(tmp_path: Path) -> None:
    found = read(parquet(tmp_path, as_struct=True), *COLOURS, "label")
    assert np.array_equal(images_in(found, COLOURS), np.repeat(GREY.reshape(4, -1), 3, axis=1))


def test_a_table_with_photographs_is_read_without_them_if_no_pixel_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"image": [SECRET.encode(), None], "age": [1, 2]}), path)
    assert read(path, "age") == {"age": [1, 2]}


def test_a_query_sees_encoded_images_as_they_are_stored_and_gives_no_pixels(tmp_path: Path) -> None:
    path = parquet(tmp_path, as_struct=True)
    with open_source(path, columns=["n"], query="SELECT count(*) AS n FROM data") as stream:
        assert [batch.to_pydict() for batch in stream] == [{"n": [4]}]
    assert "a query cannot select images" in refusal(path, query="SELECT image, label FROM data")


def test_a_set_without_rows_is_read_if_a_schema_gives_its_shape(tmp_path: Path) -> None:
    path = parquet(tmp_path, as_struct=True)
    pq.write_table(pq.read_table(path)[:0], path)
    with open_source(path, columns=[*PIXELS, "label"]) as stream:
        assert sum(batch.num_rows for batch in stream) == 0
    with pytest.raises(InputError, match="must hold a PNG or JPEG"):
        source_columns(path)


@pytest.mark.parametrize("cells", [[None], [{"bytes": None, "path": SECRET}]])
def test_a_row_without_an_image_is_refused(tmp_path: Path, cells: list[Any]) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    first = {"bytes": encoded(GREY[0]), "path": SECRET}
    pq.write_table(pa.table({"image": pa.array([first, *cells], kind)}), tmp_path / "t.parquet")
    assert "every cell of column 'image'" in refusal(tmp_path / "t.parquet")


def test_a_damaged_parquet_file_is_told_apart_from_a_damaged_image(tmp_path: Path) -> None:
    path = parquet(tmp_path, as_struct=False)
    path.write_bytes(path.read_bytes()[:-20])
    assert "not a Parquet file" in refusal(path)
