from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from receipts import unrecorded

from understudy.accounting.mechanisms import Budget
from understudy.errors import InputError
from understudy.methods import dp_anova, dp_merf
from understudy.plan.plan import Plan
from understudy.private.noise import SeededNoise
from understudy.private.release import noisy
from understudy.released import Release, save_release, verify_release
from understudy.schema import load_schema

Path_ = tuple[str | int, ...]
SCHEMA = load_schema(
    {
        "name": "tiny",
        "notes": "public words",
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
FACTS = (
    ("created", "2000-01-01 00:00 UTC"),
    ("is_private", True),
    ("ledger", {"key": "k", "row": 1}),
    ("noise", "exact"),
    ("query", None),
    ("software", {"understudy": "0.1.0"}),
)
PLAN = dp_merf(SCHEMA, Budget(1.0), num_features=4, length_scale="private")


def noisy_release(plan: Plan) -> Release:
    """Noise alone, on an empty table."""
    source = SeededNoise(0)
    vectors = tuple(
        noisy(np.zeros(stage.embedding.dim, dtype=np.int64), plan, i, source, unrecorded(plan_id=plan.fingerprint))
        for i, stage in enumerate(plan.stages)
    )
    return Release(plan, vectors, FACTS)


RELEASE = noisy_release(PLAN)
FILES = RELEASE.files()


def leaves(document: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value that is not a container, and every container that is empty."""
    inner: Any = ()
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = enumerate(document)
    if not inner:
        yield path, document
    for key, value in inner:
        yield from leaves(value, (*path, key))


def changes(value: Any) -> list[Any]:
    """Values that say something else, of the same type where there is one."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, -value - 1, float(value) + 0.5]
    if isinstance(value, float):
        return [value * (1 + 2**-50) + 5e-324, value / 2 + 1, -value - 1]
    if isinstance(value, str):
        return [value + " ", "", None]
    return ["x", 0]


def put(document: Any, path: Path_, value: Any) -> Any:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def cut(document: Any, path: Path_) -> Any:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return changed


def is_refused(folder: Path) -> bool:
    try:
        verify_release(folder)
    except InputError:
        return True
    return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_release(RELEASE, tmp_path / "out")


def test_an_untouched_release_passes_with_its_numbers(folder: Path) -> None:
    found = verify_release(folder)
    assert found.is_private
    assert found.epsilon == PLAN.epsilon() <= 1.0
    assert found.fingerprint == RELEASE.fingerprint
    assert found.noise_std == tuple(noise / PLAN.lattice for noise in PLAN.noise_stds)
    assert found.sensitivity == pytest.approx((1.0, 1.0), abs=1e-6)
    assert set(found.checks) == {*FILES, "noise"}
    json.dumps(found.to_dict())


@pytest.mark.parametrize(("name", "most"), [("release.json", 2), ("certificate.json", 1)])
def test_every_field_is_checked_one_at_a_time(folder: Path, name: str, most: int) -> None:
    document = json.loads(FILES[name])
    found = list(leaves(document))
    assert len(found) > 60
    for path, value in found:
        versions = [put(document, path, new) for new in changes(value)[:most]]
        for version in versions if most == 1 else [*versions, cut(document, path)]:
            (folder / name).write_text(json.dumps(version, indent=1, sort_keys=True) + "\n")
            assert is_refused(folder), f"{path} was changed and verified"
    (folder / name).write_bytes(FILES[name])
    verify_release(folder)


def test_a_plan_of_tables_is_checked_wherever_it_is_changed(tmp_path: Path) -> None:
    """Rules run on what the file says, before anything is compared; none may stumble."""
    columns = [
        {"name": "x", "kind": "integer", "bounds": [0, 6], "nullable": True},
        {"name": "c", "kind": "categorical", "categories": ["a", "b", "c"]},
        {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
    ]
    schema = load_schema({"name": "tiny", "columns": columns})
    plan = dp_anova(schema, Budget(3.0), pairs=True, num_rows=1000)
    rng, vectors = np.random.default_rng(0), []
    for index in range(3):
        dim = plan.embeddings(vectors)[index].dim
        vectors.append((rng.exponential(100, dim) * plan.lattice).astype(np.int64))
    release = Release(plan, tuple(vectors), FACTS)
    folder = save_release(release, tmp_path / "out")
    assert verify_release(folder).fingerprint == release.fingerprint
    document = json.loads((folder / "release.json").read_bytes())
    stages = [path for path in leaves(document) if path[0][:2] == ("plan", "stages")]
    assert len(stages) > 100
    for path, value in stages:
        for version in [cut(document, path), *(put(document, path, new) for new in changes(value))]:
            (folder / "release.json").write_text(json.dumps(version, indent=1, sort_keys=True) + "\n")
            assert is_refused(folder), f"{path} was changed and verified"


@pytest.mark.parametrize("name", FILES)
def test_every_byte_counts(folder: Path, name: str) -> None:
    content = FILES[name]
    rng = np.random.default_rng(0)
    places = {0, len(content) - 1, *rng.integers(0, len(content), 12).tolist()}
    for place in places:
        for flip in (0x01, 0x80):
            changed = bytearray(content)
            changed[place] ^= flip
            (folder / name).write_bytes(changed)
            assert is_refused(folder), f"byte {place} was changed and verified"


@pytest.mark.parametrize("name", FILES)
def test_every_file_must_be_there_and_be_whole(folder: Path, name: str) -> None:
    for damaged in (FILES[name][:-1], FILES[name] + b"\n", b"", b"[" * 100_000):
        (folder / name).write_bytes(damaged)
        with pytest.raises(InputError):
            verify_release(folder)
    (folder / name).unlink()
    with pytest.raises(InputError):
        verify_release(folder)
    (folder / name).mkdir()
    with pytest.raises(InputError):
        verify_release(folder)


@pytest.mark.parametrize("name", ["rows.csv", ".hidden", "certificate.pdf"])
def test_a_file_that_does_not_belong_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("x")
    with pytest.raises(InputError, match="does not belong"):
        verify_release(folder)


@pytest.mark.parametrize("field", ["weight", "per_label", "separate", "share", "epsilon"])
def test_a_plan_that_would_need_less_noise_is_caught(folder: Path, field: str) -> None:
    """A forger who also rewrites the stages' numbers still has the certificate against him."""
    document = json.loads(FILES["release.json"])
    for path, value in leaves(document["plan"]):
        if path[-1] == field:
            smaller = value / 2 if isinstance(value, float) else not value
            forged = document | {"plan": put(document["plan"], path, smaller)}
            (folder / "release.json").write_text(json.dumps(forged, indent=1, sort_keys=True) + "\n")
            with pytest.raises(InputError):
                verify_release(folder)


def test_a_release_of_other_numbers_under_the_same_certificate_is_caught(folder: Path) -> None:
    named = {stage.name: vector + 1 for stage, vector in zip(PLAN.stages, RELEASE.vectors, strict=True)}
    safetensors.numpy.save_file(named, folder / "embedding.safetensors")
    with pytest.raises(InputError):
        verify_release(folder)


def test_files_of_two_releases_do_not_mix(folder: Path, tmp_path: Path) -> None:
    other = Release(PLAN, tuple(vector + 7 for vector in RELEASE.vectors), FACTS)
    save_release(other, tmp_path / "other")
    for name in FILES:
        mixed = tmp_path / f"mixed {name}"
        shutil.copytree(folder, mixed)
        if (tmp_path / "other" / name).read_bytes() == FILES[name]:
            continue
        shutil.copy(tmp_path / "other" / name, mixed / name)
        with pytest.raises(InputError):
            verify_release(mixed)


def test_a_release_with_laplace_noise_is_checked_field_by_field(tmp_path: Path) -> None:
    plan = dp_merf(SCHEMA, Budget(1.0, 0), num_features=4, length_scale="private")
    release = noisy_release(plan)
    folder = save_release(release, tmp_path / "out")
    found = verify_release(folder)
    assert (found.mechanism, found.delta) == ("laplace", 0.0)
    assert found.epsilon == plan.epsilon() <= 1.0
    assert found.sensitivity == pytest.approx((1.0, 1.0), abs=1e-6)
    document = json.loads((folder / "release.json").read_bytes())
    for path, value in leaves(document):
        for version in [cut(document, path), *(put(document, path, new) for new in changes(value)[:2])]:
            (folder / "release.json").write_text(json.dumps(version, indent=1, sort_keys=True) + "\n")
            assert is_refused(folder), f"{path} was changed and verified"
