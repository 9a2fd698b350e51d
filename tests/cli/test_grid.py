"""The grid of an image set, and what the other verbs say of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from understudy.cli.grid import first_images
from understudy.errors import MissingExtraError
from understudy.reports.pictures import GAP, LARGEST_ZOOMED, PAPER
from understudy.schema import load_schema
from understudy.schema.encode import pixel_columns
from understudy.schema.images import ImageShape

SECRET = "SECRET-7f3a"
SHAPE = ImageShape(2, 3)
SCHEMA = """\
name: digits
image: {height: 2, width: 3}
columns:
- {name: label, kind: categorical, role: label, categories: [4, 7], bounds_from: definition}
"""
IMAGES = np.arange(60, dtype=np.uint8).reshape(10, 2, 3)
LABELS = np.array([7, 9, 4, 7, 7, 4, 7, 7, 7, 7])


@pytest.fixture
def studio(tmp_path: Path) -> Path:
    """A folder with a schema and an image set."""
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    np.savez_compressed(tmp_path / "set.npz", x=IMAGES, y=LABELS)
    return tmp_path


def dots(path: Path) -> Any:
    with Image.open(path) as picture:
        return np.asarray(picture)


def tile(paper: Any, row: int, column: int) -> Any:
    """An image of a grid, at its own size."""
    zoom = LARGEST_ZOOMED // 3
    top, left = GAP + row * (2 * zoom + GAP), GAP + column * (3 * zoom + GAP)
    return paper[top : top + 2 * zoom : zoom, left : left + 3 * zoom : zoom]


def test_a_grid_has_a_row_per_class_with_its_first_images(run: Any, studio: Path) -> None:
    made = studio / "grid.png"
    found = run("grid", studio / "set.npz", "-s", studio / "schema.yaml", "-o", made, "--per-class", 3, "--json")
    assert found.document == {"output": str(made), "classes": ["4", "7"], "per_class": 3}
    paper = dots(made)
    shown = [[IMAGES[2], IMAGES[5], np.full((2, 3), PAPER)], [IMAGES[0], IMAGES[3], IMAGES[4]]]
    for i, row in enumerate(shown):
        for j, image in enumerate(row):
            assert np.array_equal(tile(paper, i, j), image)


def test_a_grid_may_be_read_by_its_owner_alone_and_says_so(run: Any, studio: Path) -> None:
    made = studio / "grid.png"
    found = run("grid", studio / "set.npz", "-s", studio / "schema.yaml", "-o", made)
    assert (found.code, found.err) == (0, "")
    assert "its owner alone" in found.out
    assert made.stat().st_mode & 0o777 == 0o600
    assert "of PRIVATE images it is private" in " ".join(run("grid", "--help").out.split())


def test_any_form_of_a_set_gives_the_same_grid(run: Any, studio: Path) -> None:
    rows = pa.table(pixel_columns(IMAGES, SHAPE) | {"label": LABELS})
    pq.write_table(rows, studio / "set.parquet")
    pa.csv.write_csv(rows, studio / "set.csv")
    for number, (image, label) in enumerate(zip(IMAGES, LABELS, strict=True)):
        folder = studio / "pictures" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.png")
    grids = []
    for name in ("set.npz", "set.parquet", "set.csv", "pictures"):
        made = studio / f"{name}.png"
        assert run("grid", studio / name, "-s", studio / "schema.yaml", "-o", made).code == 0
        grids.append(made.read_bytes())
    assert len(set(grids)) == 1


def test_images_without_classes_fill_a_square_in_their_order(studio: Path) -> None:
    rows = first_images(studio / "set.npz", SHAPE, None, per_class=3)
    assert np.array_equal(np.concatenate(rows), IMAGES[:9])
    assert [len(row) for row in rows] == [3, 3, 3]


def test_a_grid_stops_reading_once_it_is_full(studio: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    label = load_schema(studio / "schema.yaml").label
    content = (studio / "set.npz").read_bytes()
    monkeypatch.setattr("understudy.cli.grid.LOOKED_AT_ONCE", 3)
    looked_at = []
    whole = first_images.__globals__["_pieces"]
    monkeypatch.setattr(
        "understudy.cli.grid._pieces",
        lambda stream: (looked_at.append(piece.num_rows) or piece for piece in whole(stream)),
    )
    found = first_images(studio / "set.npz", SHAPE, label, per_class=1)
    assert [len(row) for row in found] == [1, 1]
    assert looked_at == [3]
    assert (studio / "set.npz").read_bytes() == content


def test_refusals_of_a_grid(run: Any, studio: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = ("grid", studio / "set.npz", "-s", studio / "schema.yaml", "--json", "-o")
    assert "must end in .png" in run(*base, studio / "grid.jpg").refusal["rule"]
    (studio / "plain.yaml").write_text("columns: [{name: a, kind: integer, bounds: [0, 1]}]")
    plain = ("grid", studio / "set.npz", "-s", studio / "plain.yaml", "--json", "-o", studio / "g.png")
    assert run(*plain).refusal["rule"] == "declares no images"
    np.savez_compressed(studio / "set.npz", x=IMAGES, y=np.full(10, SECRET))
    found = run(*base, studio / "g.png")
    assert found.refusal["rule"] == "has no image of any class"
    assert SECRET not in found.err
    assert not (studio / "g.png").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(*base, studio / "g.png").refusal["where"] == MissingExtraError("pillow", "images").where


# --- schemas of image sets ---


def test_a_draft_of_an_image_set_holds_its_size_and_nothing_of_its_cells(run: Any, studio: Path) -> None:
    printed = run("schema", "draft", studio / "set.npz").out
    document = yaml.safe_load(printed)
    assert document["image"] == {"height": 2, "width": 3, "channels": 1}
    assert [entry["categories"] for entry in document["columns"]] == ["???"]
    np.savez_compressed(studio / "set.npz", x=255 - IMAGES[:4], y=LABELS[:4] + 100)
    assert run("schema", "draft", studio / "set.npz").out == printed


def test_a_draft_of_a_folder_names_no_class_and_no_file(run: Any, studio: Path) -> None:
    (studio / "pictures" / SECRET).mkdir(parents=True)
    Image.fromarray(IMAGES[0]).save(studio / "pictures" / SECRET / f"{SECRET}.png")
    found = run("schema", "draft", studio / "pictures")
    assert found.code == 0
    assert SECRET not in found.out
    assert yaml.safe_load(found.out)["image"] == {"height": 2, "width": 3, "channels": 1}


def test_a_check_shows_one_line_for_all_pixels(run: Any, studio: Path) -> None:
    found = run("schema", "check", studio / "schema.yaml", studio / "set.npz")
    assert (found.code, found.err) == (0, "")
    assert "image, 2 x 3 x 1" in found.out
    assert "pixel_" not in found.out


def test_a_check_refuses_images_of_another_size(run: Any, studio: Path) -> None:
    """A larger image has all the columns of a smaller one, so names alone do not tell."""
    np.savez_compressed(studio / "set.npz", x=np.zeros((2, 3, 3), np.uint8), y=LABELS[:2])
    found = run("schema", "check", studio / "schema.yaml", studio / "set.npz", "--json")
    assert "its images are 3 x 3 x 1, and those of the schema 2 x 3 x 1" in found.refusal["rule"]


def test_a_basis_of_public_images_is_planned_with_and_the_private_set_is_refused_as_one(run: Any, studio: Path) -> None:
    np.savez_compressed(studio / "public.npz", x=np.arange(120, dtype=np.uint8).reshape(20, 2, 3))
    base = ("plan", "-s", studio / "schema.yaml", "-e", 1, "--coefficients", 3, "--json", "--basis")
    found = run(*base, studio / "public.npz")
    assert found.code == 0
    assert "3 of 6 principal coefficients" in found.out
    few = run(*base, studio / "public.npz", "--coefficients", 6, "--components", 2)
    assert few.code == 0
    release = (
        "release",
        studio / "set.npz",
        "-s",
        studio / "schema.yaml",
        "-e",
        1,
        "--json",
        "-o",
        studio / "r",
        "--basis",
    )
    assert "is the private table itself" in run(*release, studio / "set.npz").refusal["rule"]
    assert not (studio / "r").exists()
    (studio / "plain.yaml").write_text("columns: [{name: a, kind: integer, bounds: [0, 1]}]")
    refused = run("plan", "-s", studio / "plain.yaml", "-e", 1, "--json", "--basis", studio / "public.npz")
    assert "the schema has none" in refused.refusal["rule"]
