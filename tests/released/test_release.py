from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from understudy import files
from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.errors import InputError
from understudy.features import Block, Constant, Embedding, Grid, OneHot, Tensors
from understudy.methods import dp_anova, dp_merf
from understudy.plan.plan import LATTICE, Plan, Stage
from understudy.private.sums import Rows, partial_sum
from understudy.released import Release, load_release, save_release
from understudy.schema import load_schema

SCHEMA = load_schema(
    {
        "name": "tiny",
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
FACTS = (
    ("created", "2000-01-01 00:00 UTC"),
    ("is_private", True),
    ("ledger", None),
    ("noise", "exact"),
    ("query", None),
    ("software", {}),
)


def release_of(plan: Plan) -> Release:
    vectors = tuple(np.arange(stage.embedding.dim, dtype=np.int64) * 2**20 - 5 for stage in plan.stages)
    return Release(plan, vectors, FACTS)


@pytest.fixture
def release() -> Release:
    return release_of(dp_merf(SCHEMA, Budget(1.0), num_features=4, length_scale="private"))


def test_a_release_comes_back_as_it_was(release: Release, tmp_path: Path) -> None:
    again = load_release(save_release(release, tmp_path / "out"))
    assert again.fingerprint == release.fingerprint
    assert again.files() == release.files()
    for one, other in zip(again.vectors, release.vectors, strict=True):
        assert np.array_equal(one, other)
    assert again.embeddings == release.embeddings


def test_a_release_is_five_inert_files(release: Release, tmp_path: Path) -> None:
    folder = save_release(release, tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir()) == [
        "certificate.html",
        "certificate.json",
        "embedding.safetensors",
        "release.json",
        "schema.yaml",
    ]
    for path in folder.iterdir():
        assert not os.access(path, os.X_OK) or os.stat(path).st_mode & 0o111 == 0
        assert not path.read_bytes().startswith(b"\x80"), "a pickle begins like this"


def test_the_fingerprint_covers_every_number_and_every_fact(release: Release) -> None:
    vector = release.vectors[0].copy()
    vector[-1] += 1
    changed = [
        Release(release.plan, (vector, *release.vectors[1:]), release.facts),
        Release(release.plan, release.vectors, (*release.facts[:-1], ("software", {"a": "1"}))),
        release_of(dp_merf(SCHEMA, Budget(1.0), num_features=4, length_scale="private", seed=1)),
    ]
    assert len({release.fingerprint, *(each.fingerprint for each in changed)}) == 4


def test_sums_undo_the_lattice_and_the_weight() -> None:
    plan = dp_merf(SCHEMA, Budget(1.0), num_features=4)
    release = release_of(plan)
    embedding = plan.stages[0].embedding
    for block in embedding.blocks:
        start, stop = embedding.spans[block.name]
        expected = release.vectors[0][start:stop] / LATTICE / block.weight
        measurement = release.measurement_of(block.name)
        assert np.allclose(measurement.all_sums(block.name).ravel(), expected, rtol=1e-5)
        listed = expected.reshape(embedding.copies(block), -1)[: embedding.num_labels]
        assert np.allclose(release.sums(block.name), listed, rtol=1e-5)
        noise = plan.noise_stds[0] / LATTICE / block.weight
        assert release.noise_std(block.name) == pytest.approx(noise, rel=1e-5)


def test_sums_undo_the_rounding_of_products_and_the_number_of_their_subsets() -> None:
    choice = OneHot(((1, 3),))
    map_ = Tensors((Grid((0,), 3), choice, Constant()), ((0, 1), (0, 2), (0, 1, 2)))
    pairs = Block("pairs", map_, 0.6, per_label=True)
    embedding = Embedding((Block("count", Constant(), 0.8, per_label=True), pairs), label=(1, 3))
    plan = Plan(
        schema=SCHEMA,
        method="products",
        budget=Budget(1.0),
        neighbours=Neighbours.ADD_REMOVE,
        stages=(Stage("embedding", embedding),),
    )
    steps = SCHEMA.used[0].num_steps
    rows = Rows(plan.layout, np.array([[steps // 10, 0], [steps // 2, 1], [steps - 9, 1], [steps, 1]]))
    cells = rows.cells
    exact = partial_sum(rows, embedding=embedding, lattice=plan.lattice)
    release = Release(plan, (exact,), FACTS)
    expected = np.stack([map_(cells[:1])[0], map_(cells[1:]).sum(axis=0)])
    assert np.abs(release.sums("pairs") - expected).max() < 1e-3
    assert np.allclose(release.label_counts, [1, 3])
    noise = plan.noise_stds[0] / LATTICE / 0.6
    assert noise < release.noise_std("pairs") < 1.001 * noise


def test_blocks_and_sums_are_found_in_whichever_stage_they_are(release: Release) -> None:
    assert [block.name for block in release.blocks] == ["histograms", "count", "numbers"]
    assert release.label == release.plan.stages[1].embedding.label is not None
    for stage, vector in zip(release.plan.stages, release.vectors, strict=True):
        for block in stage.embedding.blocks:
            rows = stage.embedding.rows_of(block.name, vector)
            ratios = rows / release.measurement_of(block.name).all_sums(block.name)
            assert np.allclose(ratios, block.weight * LATTICE, rtol=1e-5)
            ratio = release.plan.noise_stds[release.plan.stages.index(stage)]
            assert release.noise_std(block.name) == pytest.approx(ratio / ratios[0, 0])


def test_label_counts_are_at_least_one_whatever_the_noise() -> None:
    plan = dp_merf(SCHEMA, Budget(1.0), num_features=4)
    low = Release(plan, (np.full(plan.stages[0].embedding.dim, -(2**58)),), FACTS)
    assert low.label_counts.tolist() == [1.0, 1.0]


def test_a_single_total_is_shared_by_the_labels() -> None:
    plan = dp_merf(SCHEMA, Budget(1.0), num_features=4, labels="balanced")
    vector = np.zeros(plan.stages[0].embedding.dim, dtype=np.int64)
    block = plan.stages[0].embedding.block("count")
    vector[0] = round(100 * LATTICE * block.weight)
    assert np.allclose(Release(plan, (vector,), FACTS).label_counts, [50, 50])


def test_an_existing_directory_is_never_written_to(release: Release, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists already"):
        save_release(release, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_directory_without_a_parent_is_refused(release: Release, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="parent"):
        save_release(release, tmp_path / "no" / "out")


def test_a_write_that_fails_half_way_leaves_nothing(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def full_disk(path: Path, content: bytes) -> None:
        written.append(path.name)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr(files, "_write_durably", full_disk)
    with pytest.raises(InputError, match="cannot be written"):
        save_release(release, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_vector_of_another_size_or_type_is_refused(release: Release, tmp_path: Path) -> None:
    for number, wrong in enumerate([release.vectors[1][:-1], release.vectors[1].astype(np.int32)]):
        broken = Release(release.plan, (release.vectors[0], wrong), release.facts)
        folder = save_release(broken, tmp_path / str(number))
        with pytest.raises(InputError, match="damaged"):
            load_release(folder)


# Stages whose size earlier ones settle


def tables_release(seed: int = 0) -> Release:
    plan = dp_anova(SCHEMA, Budget(2.0), labels="none", pairs=True, num_rows=5000)
    rng, vectors = np.random.default_rng(seed), []
    for index in range(3):
        dim = plan.embeddings(vectors)[index].dim
        vectors.append((rng.exponential(300, dim) * plan.lattice).astype(np.int64))
    return Release(plan, tuple(vectors), FACTS)


def test_a_release_of_settled_size_comes_back_as_it_was(tmp_path: Path) -> None:
    release = tables_release()
    sizes = [len(vector) for vector in release.vectors]
    assert sizes != [stage.embedding.dim for stage in release.plan.stages]
    again = load_release(save_release(release, tmp_path / "out"))
    assert again.fingerprint == release.fingerprint
    assert again.embeddings == release.embeddings
    assert [embedding.dim for embedding in again.embeddings] == sizes


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_vector_that_is_not_of_the_settled_size_is_refused(tmp_path: Path, stage: int) -> None:
    release = tables_release()
    for number, wrong in enumerate([release.vectors[stage][:-1], np.append(release.vectors[stage], 1)]):
        vectors = list(release.vectors)
        vectors[stage] = wrong
        broken = Release(release.plan, tuple(vectors), FACTS)
        folder = save_release(broken, tmp_path / str(number))
        with pytest.raises(InputError, match="damaged"):
            load_release(folder)


def test_readings_are_the_vectors_with_their_noise_and_settled_embeddings() -> None:
    release = tables_release()
    for measurement, vector, embedding, noise in zip(
        release.measurements, release.vectors, release.embeddings, release.plan.noise_stds, strict=True
    ):
        assert measurement.vector is vector
        assert (measurement.embedding, measurement.noise_std) == (embedding, noise)
        for block in embedding.blocks:
            assert release.measurement_of(block.name) is measurement
            assert np.array_equal(release.sums(block.name), measurement.sums(block.name))
            assert release.noise_std(block.name) == measurement.noise_of_sum(block.name)


def test_a_directory_that_is_no_release_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="not the directory of a release"):
            load_release(folder)


def test_a_count_alone_is_a_release_too(tmp_path: Path) -> None:
    embedding = Embedding((Block("count", Constant(), 1.0),))
    plan = dp_merf(SCHEMA, Budget(1.0), num_features=4)
    alone = Plan(
        schema=plan.schema,
        method="count",
        budget=plan.budget,
        neighbours=plan.neighbours,
        stages=(type(plan.stages[0])("embedding", embedding),),
    )
    again = load_release(save_release(release_of(alone), tmp_path / "out"))
    assert again.label_counts.shape == (1,)
