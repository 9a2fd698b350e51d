from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from understudy.errors import InputError
from understudy.features import Block, Cells, Constant, Embedding, Grid, Tables
from understudy.rules.measurement import Measurement

Integers = npt.NDArray[np.int64]
LATTICE, NOISE = 2**32, 2**34
CUTS = (Cells(0, 9, is_ordered=True, lows=(0, 3, 7)), Cells(1, 4, has_null=True))
MAP = Tables(CUTS, ((0,), (1,), (0, 1)))
EMBEDDING = Embedding(
    (
        Block("count", Constant(), 0.3, per_label=True),
        Block("tables", MAP, 0.7, per_label=True),
        Block("bins", Grid((0,), 4), 0.5),
    ),
    label=(1, 3),
)


def counts_of(codes: Integers, labels: Integers) -> Integers:
    return MAP.counts(codes, labels, 2)


def measurement_of(codes: Integers, labels: Integers) -> Measurement:
    """Without noise, as the private side would sum them."""
    tables = counts_of(codes, labels) * EMBEDDING.block("tables").rounding(LATTICE)[0]
    vector = np.zeros(EMBEDDING.dim, dtype=np.int64)
    start, stop = EMBEDDING.spans["tables"]
    vector[start:stop] = tables.ravel()
    vector[:2] = np.bincount(labels, minlength=2) * EMBEDDING.block("count").scales(LATTICE)[0]
    return Measurement(EMBEDDING, vector, NOISE, LATTICE)


@pytest.fixture
def measurement() -> Measurement:
    rng = np.random.default_rng(0)
    return measurement_of(rng.integers(0, (9, 4), (500, 2)), rng.integers(0, 2, 500))


def test_tables_are_the_counts_whatever_the_weight_and_the_number_of_tables() -> None:
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(-1, (9, 4), (500, 2)), rng.integers(0, 2, 500)
    found = measurement_of(codes, labels).tables("tables")
    assert [table.shape for table in found] == [(2, 3), (2, 5), (2, 3, 5)]
    flat = np.concatenate([table.reshape(2, -1) for table in found], axis=1)
    assert np.abs(flat - counts_of(codes, labels)).max() < 1e-6


def test_sums_are_counts_over_the_root_of_the_number_of_tables(measurement: Measurement) -> None:
    first = measurement.sums("tables")[:, :3]
    assert first * math.sqrt(3) == pytest.approx(measurement.tables("tables")[0])
    assert measurement.sums("count").sum() == pytest.approx(500)


def test_noise_of_counts_and_sums_is_what_noise_on_the_lattice_becomes() -> None:
    rng = np.random.default_rng(2)
    drawn = []
    for _ in range(300):
        vector = np.rint(rng.normal(0, NOISE, EMBEDDING.dim)).astype(np.int64)
        drawn.append(Measurement(EMBEDDING, vector, NOISE, LATTICE))
    for name in ("count", "tables", "bins"):
        spread = np.std([measurement.sums(name) for measurement in drawn])
        assert spread == pytest.approx(drawn[0].noise_of_sum(name), rel=0.1)
    counts = [np.concatenate([t.ravel() for t in measurement.tables("tables")]) for measurement in drawn]
    assert np.std(counts) == pytest.approx(drawn[0].noise_of_count("tables"), rel=0.05)
    assert drawn[0].noise_of_count("tables") == pytest.approx(4 * math.sqrt(3) / 0.7, rel=1e-6)


def test_a_block_is_there_or_it_is_not(measurement: Measurement) -> None:
    assert measurement.has("tables")
    assert not measurement.has("pairs")
    with pytest.raises(KeyError):
        measurement.sums("pairs")


@pytest.mark.parametrize("name", ["count", "bins"])
def test_a_block_without_tables_has_none_to_read(measurement: Measurement, name: str) -> None:
    with pytest.raises(InputError, match="no tables"):
        measurement.tables(name)


def test_what_is_kept_under_a_key_is_made_once(measurement: Measurement) -> None:
    made: list[int] = []
    for _ in range(3):
        assert measurement.once("key", lambda: made.append(1) or len(made)) == 1
    assert measurement.tables("tables") is measurement.tables("tables")
    assert measurement == Measurement(EMBEDDING, measurement.vector, NOISE, LATTICE), "what is kept is no part"


def test_marginals_are_found_by_their_cells(measurement: Measurement) -> None:
    for block in measurement.embedding.blocks:
        if not isinstance(block.map, Tables):
            continue
        found = measurement.by_cells(block.name)
        subsets = [tuple(block.map.factors[j] for j in subset) for subset in block.map.subsets]
        assert list(found) == subsets
        for cells, table in zip(subsets, measurement.tables(block.name), strict=True):
            np.testing.assert_array_equal(found[cells][0], table)
            assert found[cells][1] == measurement.noise_of_count(block.name)
