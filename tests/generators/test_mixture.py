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
from scipy.stats import chisquare

from understudy import load_generator, load_schema, save_generator
from understudy.errors import InputError
from understudy.generators.mixture import ColumnGrid, Components, Mixture, grids_of, spans_of
from understudy.generators.rejection import CHUNK
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
    count = sum(SIZES)
    cells = [rng.dirichlet(np.full(grid.width, 0.2), size=count) for grid in grids_of(SCHEMA)]
    cells[LABEL] = np.repeat(np.eye(2), SIZES, axis=0)
    probabilities = np.concatenate(cells, axis=1).astype(np.float32).astype(np.float64)
    return Mixture(SCHEMA, probabilities, SIZES, 77, SHARES)


def weights_of(mixture: Mixture) -> Floats:
    """Share of each component, by hand."""
    return np.concatenate([np.full(size, share / size) for size, share in zip(SIZES, SHARES, strict=True)])


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    return random_mixture()


@pytest.fixture(scope="module")
def cells(mixture: Mixture) -> npt.NDArray[np.int64]:
    """The grid cells of sampled rows, read back from the table.  # (rows, columns)"""
    return cells_of(SCHEMA, mixture.sample(NUM_ROWS, seed=3))


def cells_of(schema: Schema, rows: pa.Table) -> npt.NDArray[np.int64]:
    codes = encode_batch(schema, rows.combine_chunks().to_batches()[0])
    found = [
        np.where(code == NULL, grid.width - 1, np.searchsorted(grid.lows, code, side="right") - 1)
        for code, grid in zip(codes.T, grids_of(schema), strict=True)
    ]
    return np.stack(found, axis=1)


def assert_frequencies(seen: npt.NDArray[np.int64], exact: Floats) -> None:
    """Counts of NUM_ROWS rows are within six deviations of binomial counts."""
    deviations = np.sqrt(NUM_ROWS * exact * (1 - exact)) + 1e-6
    assert (np.abs(seen - NUM_ROWS * exact) <= SIX_SIGMA * deviations + 1).all()


@pytest.mark.parametrize("column", range(5))
def test_single_columns_have_the_models_marginals(column: int, mixture: Mixture, cells: npt.NDArray[np.int64]):
    start, stop = spans_of(grids_of(SCHEMA))[column]
    exact = weights_of(mixture) @ mixture.probabilities[:, start:stop]
    assert_frequencies(np.bincount(cells[:, column], minlength=stop - start), exact)


@pytest.mark.parametrize("pair", [*combinations(range(5), 2)])
def test_pairs_of_columns_have_the_models_joint_marginals(
    pair: tuple[int, int], mixture: Mixture, cells: npt.NDArray[np.int64]
):
    left, right = (mixture.probabilities[:, slice(*spans_of(grids_of(SCHEMA))[i])] for i in pair)
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


@pytest.mark.parametrize("words", ['"sizes"', '"default_num_rows"', '"label_shares"', '"kind": "mixture"'])
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


# Grids of the mixture's own, and how even its draws are.


def pieced(rng: np.random.Generator, num_cells: int, *, has_null: bool) -> ColumnGrid:
    """Cells of up to three pieces each, which need not be neighbours."""
    cells = rng.permutation(np.concatenate([np.arange(num_cells), rng.integers(0, num_cells, 5)]))
    lows = np.cumsum(rng.integers(1, 40, len(cells))) - 1
    highs = np.append(lows[1:] - 1, lows[-1] + 9)
    shares = rng.random(len(cells)) + 0.05
    return ColumnGrid(lows, highs, has_null, cells, shares / np.bincount(cells, shares)[cells])


def pieced_components(seed: int = 0, count: int = 6) -> Components:
    rng = np.random.default_rng(seed)
    grids = tuple(pieced(rng, cells, has_null=cells % 2 == 0) for cells in (2, 5, 1, 8))
    chances = [rng.dirichlet(np.full(grid.width, 0.5), count) for grid in grids]
    return Components(rng.dirichlet(np.ones(count)), np.concatenate(chances, axis=1), grids)


def piece_chances(components: Components) -> list[Floats]:
    """Each component's chance of every piece, and of null, of each column."""
    found = []
    for grid, (start, stop) in zip(components.grids, spans_of(components.grids), strict=True):
        cells = components.probabilities[:, start:stop]
        known = cells[:, grid.cell_of_piece] * grid.share_of_piece
        found.append(np.concatenate([known, cells[:, grid.num_known :]], axis=1))
    return found


def pieces_of(grid: ColumnGrid, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    place = np.searchsorted(grid.lows, codes, side="right") - 1
    return np.where(codes == NULL, len(grid.lows), place)


@pytest.mark.parametrize("pair", [*combinations(range(4), 2)])
def test_pieces_of_two_columns_have_the_models_exact_joint_law(pair: tuple[int, int]):
    """Even draws tie no columns together: the table is sum_k w_k P_ki P_kj, piece by piece."""
    components = pieced_components()
    codes = components.codes(NUM_ROWS, np.random.default_rng(1))
    left, right = (piece_chances(components)[i] for i in pair)
    exact = (left * components.weights[:, None]).T @ right
    seen = np.zeros(exact.shape, dtype=np.int64)
    np.add.at(seen, tuple(pieces_of(components.grids[i], codes[:, i]) for i in pair), 1)
    assert_frequencies(seen, exact)
    likely = exact * NUM_ROWS > 5
    assert (
        chisquare(
            np.append(seen[likely], seen[~likely].sum()),
            np.append(exact[likely], exact[~likely].sum()) * NUM_ROWS + 1e-9,
            sum_check=False,
        ).pvalue
        > 1e-4
    )


def test_columns_are_independent_inside_a_component():
    components = pieced_components(seed=3, count=1)
    codes = components.codes(NUM_ROWS, np.random.default_rng(2))
    for i, j in combinations(range(4), 2):
        ranks = np.argsort(np.argsort(codes[:, [i, j]], axis=0, kind="stable"), axis=0)
        assert abs(np.corrcoef(ranks.T)[0, 1]) < 5 / np.sqrt(NUM_ROWS)


def test_three_columns_are_independent_inside_a_component_too():
    halves = ColumnGrid(np.array([0, 1]), np.array([0, 1]), has_null=False)
    components = Components(np.ones(1), np.full((1, 6), 0.5), (halves,) * 3)
    codes = components.codes(80_000, np.random.default_rng(4))
    assert chisquare(np.bincount(codes @ [4, 2, 1], minlength=8)).pvalue > 1e-3


@pytest.mark.parametrize("num_rows", [300, 1000, 3000])
def test_components_of_a_row_or_two_tie_no_columns_together_either(num_rows: int):
    halves = ColumnGrid(np.array([0, 1]), np.array([0, 1]), has_null=False)
    alike = Components(np.full(1000, 1e-3), np.full((1000, 4), 0.5), (halves,) * 2)
    draws = [alike.codes(num_rows, np.random.default_rng(seed)) for seed in range(40)]
    ties = np.array([np.corrcoef(codes.T)[0, 1] for codes in draws])
    assert np.sqrt((ties**2).mean()) < 1.6 / np.sqrt(num_rows)  # independent draws: 1.0


def test_rows_come_in_no_order():
    components = pieced_components(seed=5)
    codes = components.codes(NUM_ROWS, np.random.default_rng(6))
    for column in codes.T:
        assert abs(np.corrcoef(column[:-1], column[1:])[0, 1]) < 5 / np.sqrt(NUM_ROWS)
        assert abs(np.corrcoef(column, np.arange(NUM_ROWS))[0, 1]) < 5 / np.sqrt(NUM_ROWS)


@pytest.mark.parametrize("num_rows", [50, 1000, 20_000])
def test_counts_of_single_columns_are_nearer_to_expected_than_those_of_independent_draws(num_rows: int):
    components = pieced_components(seed=7, count=40)
    exact = components.weights @ components.probabilities
    independent = num_rows * (exact * (1 - exact))
    apart = np.zeros(len(exact))
    for seed in range(30):
        codes = components.codes(num_rows, np.random.default_rng(seed))
        counts = [
            np.bincount(np.append(grid.cell_of_piece, grid.num_known)[pieces_of(grid, column)], minlength=grid.width)
            for grid, column in zip(components.grids, codes.T, strict=True)
        ]
        apart += (np.concatenate(counts) - num_rows * exact) ** 2 / 30
    # Each of the forty components rounds its own rows: about that many rows of error in square.
    assert apart.sum() < 0.7 * independent.sum()
    if num_rows >= 20_000:
        assert apart.max() < 60
        assert apart.sum() < 0.05 * independent.sum()


def test_components_get_their_rows_to_the_nearest():
    rng = np.random.default_rng(8)
    count = 30
    grid = ColumnGrid(np.arange(count), np.arange(count), has_null=False)
    components = Components(rng.dirichlet(np.ones(count)), np.eye(count), (grid,))
    counts = np.bincount(components.codes(997, rng)[:, 0], minlength=count)
    assert (np.abs(counts - 997 * components.weights) < 1 + 1e-9).all()


def test_a_saved_mixture_with_grids_of_its_own_draws_the_same_rows(tmp_path: Path):
    rng = np.random.default_rng(9)
    columns = [
        {"name": "x", "kind": "integer", "bounds": [0, 10_000], "nullable": True},
        {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
    ]
    schema = load_schema({"columns": columns})
    x, ill = pieced(rng, 7, has_null=True), ColumnGrid(np.arange(2), np.arange(2), has_null=False)
    chances = np.concatenate([rng.dirichlet(np.ones(8), 5), np.eye(2)[[0, 0, 1, 1, 1]]], axis=1)
    chances = chances.astype(np.float32).astype(np.float64)
    mixture = Mixture(schema, chances, (2, 3), 9, (0.3, 0.7), (x, ill))
    save_generator(mixture, tmp_path / "model", release="f" * 64)
    loaded = load_generator(tmp_path / "model")
    assert loaded.sample(500, seed=1).equals(mixture.sample(500, seed=1))
    narrow = {"x": (10, 60)}
    assert loaded.sample(50, given=narrow).equals(mixture.sample(50, given=narrow))
