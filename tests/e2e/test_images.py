"""The real command on image sets: from private images to synthetic ones, in every form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

SECRET = "SECRET-7f3a"
COMMAND = Path(sys.executable).parent / "understudy"
METHOD = ("--method", "dp-merf", "--features", 40, "--steps", 5)


def understudy(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *(str(each) for each in arguments)], capture_output=True, text=True, check=False)


def document(*arguments: object) -> dict[str, Any]:
    done = understudy(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty small images, dark and light ones, in an archive and in a folder, and their schema."""
    made = tmp_path_factory.mktemp("studio")
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    images = np.clip(rng.normal(60 + 120 * labels[:, None, None], 30, (60, 4, 4)), 0, 255)
    images = images.astype(np.uint8)
    words = np.where(labels == 0, "dark", "light")
    np.savez_compressed(made / "set.npz", x=images, y=words)
    for number, (word, image) in enumerate(zip(words, images, strict=True)):
        (made / "pictures" / word).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(made / "pictures" / word / f"{SECRET}-{number}.png")
    drafted = yaml.safe_load(understudy("schema", "draft", made / "set.npz").stdout)
    drafted["columns"][0] |= {"categories": ["dark", "light"], "nullable": False, "bounds_from": "definition"}
    (made / "schema.yaml").write_text(yaml.safe_dump(drafted))
    return made


@pytest.fixture(scope="module")
def model(studio: Path) -> Path:
    """A generator of the folder's images."""
    base = ("release", studio / "pictures", "-s", studio / "schema.yaml", "-e", 1, *METHOD)
    assert document(*base, "-o", studio / "release")["epsilon"] <= 1
    document("fit", studio / "release", "-o", studio / "model")
    return studio / "model"


def test_the_short_way_from_an_archive_to_an_archive(studio: Path) -> None:
    made = document(
        "synth", studio / "set.npz", "-s", studio / "schema.yaml", "-e", 1, *METHOD, "-n", 20, "-o", studio / "new.npz"
    )
    assert made["num_rows"] == 20
    with np.load(studio / "new.npz", allow_pickle=False) as arrays:
        assert (arrays["x"].shape, arrays["x"].dtype) == ((20, 4, 4), np.uint8)
        assert set(arrays["y"]) <= {"dark", "light"}


def test_the_long_way_from_a_folder_to_a_folder_and_a_grid(studio: Path, model: Path) -> None:
    for name in ("new", "new.csv"):
        document("sample", model, "-n", 20, "-o", studio / name)
    assert len(list((studio / "new").rglob("*.png"))) == 20
    assert {each.name for each in (studio / "new").iterdir()} <= {"dark", "light"}
    grids = []
    for name in ("new", "new.csv"):
        grid = ("grid", studio / name, "-s", studio / "schema.yaml", "--per-class", 20)
        document(*grid, "-o", studio / f"{name}.png")
        grids.append((studio / f"{name}.png").read_bytes())
    assert grids[0] == grids[1]


def test_a_private_folder_leaves_no_name_of_a_file_behind(studio: Path, model: Path) -> None:
    made = [*(studio / "release").rglob("*"), *model.rglob("*")]
    assert made
    assert not any(SECRET.encode() in path.read_bytes() for path in made if path.is_file())


def test_a_damaged_image_is_refused_before_anything_is_made(studio: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / "dark"
    folder.mkdir(parents=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(folder / "1.png")
    (folder / f"{SECRET}.png").write_bytes((folder / "1.png").read_bytes()[:45])
    base = ("synth", tmp_path / "pictures", "-s", studio / "schema.yaml", "-e", 1, *METHOD)
    done = understudy(*base, "-o", tmp_path / "new.npz")
    assert done.returncode == 1
    assert "an image is damaged or cut short" in " ".join(done.stderr.split())
    assert SECRET not in done.stderr + done.stdout
    assert not (tmp_path / "new.npz").exists()


def test_an_output_that_cannot_be_written_is_refused_before_the_budget_is_spent(studio: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    document("ledger", "init", ledger, "-e", 2)
    before = document("ledger", "show", ledger)
    base = ("synth", studio / "set.npz", "-s", studio / "schema.yaml", "-e", 1, *METHOD)
    done = understudy(*base, "--ledger", ledger, "-o", tmp_path / "new.gif")
    assert done.returncode == 2
    assert document("ledger", "show", ledger) == before
