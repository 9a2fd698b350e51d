"""A mixture's sampler, apart from how it is fitted: rows follow the model's exact marginals."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from understudy import load_generator, load_schema, save_generator
from understudy.errors import InputError
from understudy.generators.grids import Runs
from understudy.generators.mixture import Mixture
from understudy.generators.obey import CHUNK
from understudy.schema import NULL, Schema
from understudy.schema.encode import encode_batch

Floats = npt.NDArray[np.float64]
SCHEMA = load_schema(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "age", "kind": "integer", "bounds": [0, 9]},
            {"name": "ward", "kind": "categorical", "categories": ["a", "b", "c"]},
            {"name": "sex", "kind": "binary", "categories": ["f", "m"], "nullable": True},
            {"name": "nr", "kind": "id"},
            {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
        ]
    }
)
LABEL = 4  # among the used columns
SIZES = (3, 5)
SHARES = (0.8, 0.2)
NUM_ROWS = 120_000
SIX_SIGMA = 6.0
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # an import of it now fails
from understudy import load_generator

print(load_generator(sys.argv[1]).sample(5, seed=1).to_pylist())
"""


def random_mixture(seed: int = 0) -> Mixture:
    """Components that differ much, each with its own label; single precision, as files have it."""
    rng = np.random.default_rng(seed)
    runs = Runs(SCHEMA)
    count = sum(SIZES)
    cells = [rng.dirichlet(np.full(grid.width, 0.2), size=count) for grid in runs.grids]
    cells[LABEL] = np.repeat(np.eye(2), SIZES, axis=0)
    probabilities = np.concatenate(cells, axis=1).astype(np.float32).astype(np.float64)
    return Mixture(SCHEMA, probabilities, SIZES, 77, SHARES)


def weights_of(mixture: Mixture) -> Floats:
    """Share of each component, by hand."""
    return np.concatenate(
        [np.full(size, share / size) for size, share in zip(SIZES, SHARES, strict=True)]
    )


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    return random_mixture()


@pytest.fixture(scope="module")
def cells(mixture: Mixture) -> npt.NDArray[np.int64]:
    """The grid cells of sampled rows, read back from the table.  # (rows, columns)"""
    return cells_of(SCHEMA, mixture.sample(NUM_ROWS, seed=3), Runs(SCHEMA))


def cells_of(schema: Schema, rows: pa.Table, runs: Runs) -> npt.NDArray[np.int64]:
    codes = encode_batch(schema, rows.combine_chunks().to_batches()[0])
    found = [
        np.where(code == NULL, grid.width - 1, np.searchsorted(grid.lows, code, side="right") - 1)
        for code, grid in zip(codes.T, runs.grids, strict=True)
    ]
    return np.stack(found, axis=1)


def assert_frequencies(seen: npt.NDArray[np.int64], exact: Floats) -> None:
    """Counts of NUM_ROWS rows are within six deviations of binomial counts."""
    deviations = np.sqrt(NUM_ROWS * exact * (1 - exact)) + 1e-6
    assert (np.abs(seen - NUM_ROWS * exact) <= SIX_SIGMA * deviations + 1).all()


@pytest.mark.parametrize("column", range(5))
def test_single_columns_have_the_models_marginals(
    column: int, mixture: Mixture, cells: npt.NDArray[np.int64]
):
    start, stop = Runs(SCHEMA).spans[column]
    exact = weights_of(mixture) @ mixture.probabilities[:, start:stop]
    assert_frequencies(np.bincount(cells[:, column], minlength=stop - start), exact)


@pytest.mark.parametrize("pair", [*combinations(range(5), 2)])
def test_pairs_of_columns_have_the_models_joint_marginals(
    pair: tuple[int, int], mixture: Mixture, cells: npt.NDArray[np.int64]
):
    left, right = (mixture.probabilities[:, slice(*Runs(SCHEMA).spans[i])] for i in pair)
    exact = (left * weights_of(mixture)[:, None]).T @ right
    seen = np.zeros(exact.shape, dtype=np.int64)
    np.add.at(seen, (cells[:, pair[0]], cells[:, pair[1]]), 1)
    assert_frequencies(seen, exact)
    with pytest.raises(AssertionError):  # independent columns would be noticed
        assert_frequencies(seen, np.outer(exact.sum(1), exact.sum(0)))


def test_labels_come_in_their_shares_and_not_by_their_components(cells: npt.NDArray[np.int64]):
    assert (cells[:, LABEL] == 1).mean() == pytest.approx(SHARES[1], abs=0.008)


@pytest.mark.parametrize("num_rows", [0, 1, CHUNK - 1, CHUNK, 20_000, 2 * CHUNK])
def test_as_many_rows_come_as_were_asked_for(mixture: Mixture, num_rows: int):
    rows = mixture.sample(num_rows)
    assert rows.num_rows == num_rows
    assert rows.column_names == ["x", "age", "ward", "sex", "ill"]
    assert pa.types.is_float64(rows["x"].type)
    assert pa.types.is_int64(rows["age"].type)


def test_a_chunk_is_not_the_one_before_again(mixture: Mixture):
    rows = mixture.sample(2 * CHUNK)
    assert not rows.slice(0, CHUNK).equals(rows.slice(CHUNK))


def test_the_same_seed_gives_the_same_rows_and_another_others(mixture: Mixture):
    assert mixture.sample(100, seed=4).equals(mixture.sample(100, seed=4))
    assert not mixture.sample(100, seed=4).equals(mixture.sample(100, seed=5))


def test_a_saved_mixture_is_the_same_mixture(mixture: Mixture, tmp_path: Path):
    save_generator(mixture, tmp_path / "model", release="f" * 64)
    loaded = load_generator(tmp_path / "model")
    assert isinstance(loaded, Mixture)
    np.testing.assert_array_equal(loaded.probabilities, mixture.probabilities)
    assert loaded.to_dict() == mixture.to_dict()
    assert loaded.schema == SCHEMA
    assert loaded.default_num_rows == 77
    assert loaded.sample(300, seed=9).equals(mixture.sample(300, seed=9))


@pytest.mark.parametrize(
    "words", ['"sizes"', '"default_num_rows"', '"label_shares"', '"kind": "mixture"']
)
def test_a_document_with_a_part_missing_is_refused(mixture: Mixture, tmp_path: Path, words: str):
    save_generator(mixture, tmp_path / "model", release="f" * 64)
    document = tmp_path / "model" / "generator.json"
    whole = document.read_text()
    assert whole.count(words) == 1
    document.write_text(whole.replace(words, words.replace(words.split('"')[-2], "other")))
    with pytest.raises(InputError, match="is missing or damaged"):
        load_generator(tmp_path / "model")


def test_a_saved_mixture_is_sampled_where_torch_is_not_installed(mixture: Mixture, tmp_path: Path):
    save_generator(mixture, tmp_path / "model", release="f" * 64)
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(mixture.sample(5, seed=1).to_pylist())
