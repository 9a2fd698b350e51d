"""The demo: a real table, our schema, and every result in its place."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.csv
import pytest

from understudy import UnderstudyError, load_generator, verify_release
from understudy.demo import demo_schema, demo_table, run_demo
from understudy.fits.anova import AnovaTraining
from understudy.reports.internal import BANNER
from understudy.schema.encode import batch_misfits


def test_the_schema_has_the_tables_columns():
    assert [column.name for column in demo_schema().columns] == list(demo_table().columns)


def test_every_cell_of_the_table_lies_in_its_public_domain():
    table = demo_table()
    for column in demo_schema().columns:
        if column.is_choice:
            assert set(table[column.name]) <= set(column.categories)
        else:
            assert table[column.name].between(*column.low_high).all(), column.name


def test_every_row_of_the_table_fits_its_one_hot_groups():
    (batch,) = pyarrow.Table.from_pandas(demo_table()).combine_chunks().to_batches()
    assert not any(found.unlisted for found in batch_misfits(demo_schema(), batch).values())


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], list[str]]:
    """A short demo: where its results are, and what it said it was doing."""
    stages: list[str] = []
    results = run_demo(
        tmp_path_factory.mktemp("demo") / "out",
        training=AnovaTraining(steps=5, num_components=20),
        progress=lambda stage, *_: stages.append(stage),
    )
    return results, stages


def test_the_demo_leaves_rows_a_picture_and_a_release_that_verifies(ended):
    results, _ = ended
    assert all(path.exists() for path in results.values())
    assert verify_release(results["release"]).epsilon <= 1.0
    rows = pyarrow.csv.read_csv(results["rows"])
    assert rows.column_names == list(demo_table().columns)
    assert rows.num_rows == load_generator(results["generator"]).default_num_rows
    assert results["picture"].read_bytes().startswith(b"\x89PNG")


def test_the_demo_ends_with_the_internal_report_and_says_what_it_is_doing(ended):
    results, stages = ended
    assert list(results)[-1] == "report"
    page = results["report"].read_text()
    assert BANNER in page
    assert "At epsilon 1:" in page
    assert all(f"<strong>{name}</strong>" in page for name in demo_table().columns)
    assert stages[0] == "training"
    assert len(set(stages)) > 2


def test_the_demo_does_not_overwrite(tmp_path: Path):
    (tmp_path / "out").mkdir()
    with pytest.raises(UnderstudyError, match="exists"):
        run_demo(tmp_path / "out")
