"""Tables of counts in releases of every method."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.accounting.mechanisms import GAUSSIAN, Budget, Neighbours
from understudy.errors import UnderstudyError
from understudy.features import Block, Cells, Constant, CountTable, Embedding, FeatureMap, Sign, Tables
from understudy.plan.plan import Plan, Stage
from understudy.private.release import release_table
from understudy.queries import ask
from understudy.released.tables import NoisyTable, listed_tables, tables_of, walk_tables
from understudy.rules.measurement import Measurement
from understudy.schema.encode import encode_batch

from .conftest import NUM_ROWS, Silence

METHODS = {
    "dp-anova": ({}, {"count", "columns", "cells", "looks", "marginals"}),
    "dp-merf": ({"num_features": 60}, {"count", "choices"}),
    "dp-hp": ({}, {"count", "choices", "products"}),
}


def counted(world, table: NoisyTable) -> np.ndarray:
    """The table's counts, taken from the rows one by one."""
    codes = encode_batch(world.schema, world.table.combine_chunks().to_batches()[0])
    shape = [cells.dim for cells in table.cells]
    found = np.zeros([size + 1 for size in shape])
    places = tuple(
        np.minimum(cells(codes[:, cells.column]), size) for cells, size in zip(table.cells, shape, strict=True)
    )
    np.add.at(found, places, 1)
    return found[tuple(slice(size) for size in shape)]


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_every_table_holds_the_counts_of_the_rows(world, method: str):
    options, blocks = METHODS[method]
    measured = tables_of(world.release(Silence(), method=method, **options))
    assert {table.block for table in measured.tables} >= blocks
    for table in measured.tables:
        assert np.allclose(table.counts, counted(world, table), atol=0.01), table.block
        assert table.noise > 0


def test_histograms_of_positions_are_tables_of_numbers_that_are_never_null(world):
    release = world.release(Silence(), method="dp-merf", num_features=60, length_scale="private")
    measured = tables_of(release)
    found = [table for table in measured.tables if table.block == "histograms"]
    names = {measured.columns[table.columns[0]].name for table in found}
    assert names == {"age", "weight", "seen"}
    for table in found:
        assert np.allclose(table.counts, counted(world, table), atol=0.01)


def test_tables_that_lose_nulls_are_not_summed_over(silent):
    """A column's values are counted without its nulls, so they say nothing of all rows."""
    measured = tables_of(silent)
    assert not measured.is_whole(Cells(3, 6, has_null=False))
    assert measured.is_whole(Cells(3, 6, has_null=True))
    assert measured.is_whole(Cells(4, 73, has_null=False))


def test_the_row_count_is_public_only_where_rows_are_replaced(world, silent):
    assert tables_of(silent).num_rows is None
    assert tables_of(world.release(Silence(), neighbours="replace-one")).num_rows == 2000
    assert tables_of(silent).mechanism is GAUSSIAN


def test_a_map_of_any_class_is_walked_by_what_it_says_of_itself(silent):
    """Neither queries nor tests of noise know the class of this map, which counts rows by sex under another name."""

    class Renamed(FeatureMap):
        dim = 2
        sign = Sign.NONNEGATIVE
        count_tables = (CountTable((Cells(0, 2),), 0, 1.0),)

        def __call__(self, cells):
            raise NotImplementedError

        def to_dict(self):
            return {"kind": "renamed"}

    embedding = Embedding((Block("toy", Renamed(), 0.5),))
    ((block, axes, _),) = walk_tables(embedding)
    assert (block.name, axes) == ("toy", (Cells(0, 2),))
    reading = Measurement(embedding, np.array([600, 1400]) * block.radius(2**20), 1.0, 2**20)
    ((cells, counts, _),) = listed_tables(reading, block, silent.plan.layout).values()
    assert cells == (Cells(0, 2),)
    assert counts == pytest.approx(np.array([[600, 1400]]), rel=1e-3)


def test_cells_of_a_number_that_are_no_runs_of_codes_are_passed_by(world):
    """Even and odd ages: such a table is no help for ranges, and no hindrance for other questions."""
    age = next(i for i, column in enumerate(world.schema.used) if column.name == "age")
    odd = Cells(age, 73, groups=tuple(code % 2 for code in range(73)), is_ordered=True)
    blocks = (Block("count", Constant(), 0.6), Block("parity", Tables((odd,), ((0,),)), 0.8))
    plan = Plan(
        schema=world.schema,
        method="by hand",
        budget=Budget(1.0),
        neighbours=Neighbours.ADD_REMOVE,
        stages=(Stage("all", Embedding(blocks), 1.0),),
    )
    release = release_table(world.table, plan, noise=Silence())
    assert [table.block for table in tables_of(release).tables] == ["count"]
    assert ask(release, "count").rows[0].estimate == pytest.approx(NUM_ROWS, abs=1)
    with pytest.raises(UnderstudyError):
        ask(release, "mean(age)")
