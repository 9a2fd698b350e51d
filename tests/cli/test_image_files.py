"""Synthetic images in files: whole or not at all, and readable again under the same schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from understudy.cli.files import check_sample_output, write_sample
from understudy.errors import InputError, MissingExtraError, UnderstudyError, UsageError
from understudy.readers import open_source
from understudy.schema import Schema, load_schema
from understudy.schema.encode import decode_table, encode_batch


def schema_of(*columns: dict[str, Any], channels: int = 1) -> Schema:
    image = {"height": 2, "width": 3, "channels": channels}
    return load_schema({"name": "digits", "image": image, "columns": list(columns)})


def label(categories: list[Any], **fields: Any) -> dict[str, Any]:
    return {"name": "label", "kind": "categorical", "role": "label", "categories": categories} | fields


def codes_of(schema: Schema, count: int = 25) -> Any:
    largest = [len(c.categories) if c.is_choice else c.num_steps + 1 for c in schema.used]
    return np.random.default_rng(0).integers(0, largest, (count, len(largest)))


def read_codes(path: Path, schema: Schema) -> Any:
    with open_source(path, columns=[column.name for column in schema.used]) as stream:
        return np.concatenate([encode_batch(schema, batch) for batch in stream])


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.npz", "ROWS.NPZ"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("categories", [[7, 3], ["cat", "big dog"], [False, True], [0.5, 1.0]])
def test_images_that_were_written_are_read_back_to_the_same_codes(
    tmp_path: Path, name: str, channels: int, categories: list[Any]
) -> None:
    schema, path = schema_of(label(categories), channels=channels), tmp_path / name
    codes = codes_of(schema)
    check_sample_output(path, schema)
    write_sample(decode_table(schema, codes), path, schema)
    assert np.array_equal(read_codes(path, schema), codes)
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("categories", [[7, 3], ["cat", "big dog"], [False, True], [0.5, 1.0]])
def test_a_folder_has_a_sub_folder_per_class_and_a_number_per_row(
    tmp_path: Path, channels: int, categories: list[Any]
) -> None:
    schema, path = schema_of(label(categories), channels=channels), tmp_path / "pictures"
    codes = codes_of(schema)
    check_sample_output(path, schema)
    write_sample(decode_table(schema, codes), path, schema)
    files = sorted(path.rglob("*.png"), key=lambda file: file.name)
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(25)]
    assert [file.parent.name for file in files] == [str(categories[code]) for code in codes[:, -1]]
    with Image.open(files[0]) as picture:
        assert picture.mode == {1: "L", 3: "RGB"}[channels]
    in_order = np.array(sorted(codes.tolist(), key=lambda row: str(categories[row[-1]])))
    assert np.array_equal(read_codes(path, schema), in_order)
    assert [each.name for each in tmp_path.iterdir()] == ["pictures"]
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["rows.npz", "pictures"])
def test_images_without_labels_are_written(tmp_path: Path, name: str) -> None:
    schema, path = schema_of(), tmp_path / name
    codes = codes_of(schema)
    check_sample_output(path, schema)
    write_sample(decode_table(schema, codes), path, schema)
    assert np.array_equal(read_codes(path, schema), codes)


def test_an_archive_holds_plain_arrays_and_is_the_same_every_time(tmp_path: Path) -> None:
    schema = schema_of(label(["a", "b"]), channels=3)
    rows = decode_table(schema, codes_of(schema))
    for name in ("one.npz", "two.npz"):
        write_sample(rows, tmp_path / name, schema)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as arrays:
        assert arrays["x"].shape == (25, 2, 3, 3)
        assert arrays["x"].dtype == np.uint8
        assert arrays["y"].tolist() == rows["label"].to_pylist()


OTHER = {"name": "age", "kind": "integer", "bounds": [0, 9]}
DATE = {"name": "label", "kind": "datetime", "bounds": ["2000-01-01", "2001-01-01"]}
WHOLE = {"name": "label", "kind": "integer", "bounds": [0, 9]}


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [
        ("rows.npz", [OTHER], "and nothing else"),
        ("pictures", [OTHER], "and nothing else"),
        ("rows.npz", [label(["a"], nullable=True)], "without nulls"),
        ("rows.npz", [DATE], "and nothing else"),
        ("rows.npz", [label(["a"], name="digit")], "a column 'label'"),
        ("pictures", [WHOLE], "names of folders"),
        ("pictures", [label(["a", "../b"])], "names of folders"),
        ("pictures", [label(["a", "/b"])], "names of folders"),
        ("pictures", [label(["a", ".."])], "names of folders"),
        ("pictures", [label(["a", ".b"])], "names of folders"),
        ("pictures", [label(["a", "_b"])], "names of folders"),
        ("pictures", [label(["a", "b\\c"])], "names of folders"),
        ("pictures", [label(["a", "b\nc"])], "names of folders"),
        ("pictures", [label(["a", "A"])], "names of folders"),
        ("pictures", [label(["a", "b" * 300])], "names of folders"),
        ("pictures.png", [], "a folder of PNG files"),
        ("rows.txt", [], "must end in .csv, .parquet or .npz"),
    ],
)
def test_an_output_that_cannot_hold_the_rows_is_refused_beforehand(
    tmp_path: Path, name: str, columns: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_sample_output(tmp_path / name, schema_of(*columns))
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["rows.npz", "pictures"])
def test_tables_without_images_are_written_as_before(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"must end in \.csv or \.parquet"):
        check_sample_output(tmp_path / name, load_schema({"columns": [OTHER]}))


def test_whole_labels_fit_an_archive(tmp_path: Path) -> None:
    schema = schema_of(WHOLE)
    check_sample_output(tmp_path / "rows.npz", schema)
    codes = codes_of(schema)
    write_sample(decode_table(schema, codes), tmp_path / "rows.npz", schema)
    assert np.array_equal(read_codes(tmp_path / "rows.npz", schema), codes)


@pytest.mark.parametrize("name", ["rows.npz", "pictures"])
def test_an_output_that_exists_or_has_no_place_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="exists already"):
        check_sample_output(tmp_path / name, schema_of())
    with pytest.raises(InputError, match="directory does not exist"):
        check_sample_output(tmp_path / "none" / name, schema_of())


def test_a_folder_without_pillow_is_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError):
        check_sample_output(tmp_path / "pictures", schema_of())
    check_sample_output(tmp_path / "rows.npz", schema_of())


@pytest.mark.parametrize("name", ["rows.npz", "pictures"])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("PIL.Image.Image.save", fail)
    monkeypatch.setattr("numpy.savez_compressed", fail)
    schema = schema_of()
    with pytest.raises(UnderstudyError, match="cannot be written"):
        write_sample(decode_table(schema, codes_of(schema)), tmp_path / name, schema)
    assert list(tmp_path.iterdir()) == []


def test_rows_in_another_order_of_columns_are_written_alike(tmp_path: Path) -> None:
    schema = schema_of(label(["a", "b"]))
    rows: pa.Table = decode_table(schema, codes_of(schema))
    write_sample(rows, tmp_path / "one.npz", schema)
    write_sample(rows.select(rows.column_names[::-1]), tmp_path / "two.npz", schema)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
