"""Ray Data against the local engine: the same integers. Needs ray."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conftest import plan_of, work_of
from understudy.arrays import Integers
from understudy.errors import InputError
from understudy.private.engines import ray as engine
from understudy.private.passes import Run, sum_table
from understudy.private.release import release_table
from understudy.private.sums import Work

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS = [("dp-anova", "row"), ("dp-merf", "row"), ("dp-merf", "person")]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray
    import ray.data

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=2**28,
        _system_config={"automatic_object_spilling_enabled": False},
    )
    yield ray
    ray.shutdown()


@pytest.mark.parametrize(("method", "unit"), WAYS)
def test_a_dataset_and_files_have_the_integers_of_the_local_engine(
    ray: Any, table: pa.Table, folder: Path, expected: Callable[[Work], Integers], method: str, unit: str
) -> None:
    work = work_of(method, unit)
    whole, split = ray.data.from_arrow(table), ray.data.read_parquet(str(folder)).repartition(3)
    for dataset in (split, whole) if unit == "row" else (split,):
        found = sum_table(dataset, work, query=None, run=Run())
        assert np.array_equal(found, expected(work))
    found = sum_table(folder, work, query=None, run=Run(engine="ray"))
    assert np.array_equal(found, expected(work))


def test_a_killed_worker_and_a_second_try_count_once(
    ray: Any, folder: Path, tmp_path: Path, expected: Callable[[Work], Integers]
) -> None:
    work, marks = work_of("dp-merf", "row"), str(tmp_path)

    def dies_once(block: pa.Table) -> pa.Table:
        import os

        mark = f"{marks}/{block.num_rows}"
        if not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(1)
        return block

    dataset = ray.data.read_parquet(str(folder)).repartition(2)
    shaky = dataset.map_batches(dies_once, batch_format="pyarrow", batch_size=None)
    assert np.array_equal(sum_table(shaky, work, query=None, run=Run()), expected(work))
    assert list(tmp_path.iterdir())


def test_a_whole_release_is_made_of_a_dataset(ray: Any, folder: Path) -> None:
    plan = plan_of("dp-anova", "row")
    release = release_table(ray.data.read_parquet(str(folder)), plan)
    assert abs(release.sums("count").sum() - 3000) < 500


def test_a_refusal_comes_back_in_words(ray: Any) -> None:
    work = work_of("dp-merf", "row")
    columns = {name: [["SECRET"]] for name in work.columns}
    with pytest.raises(InputError, match="column 'age'") as caught:
        sum_table(ray.data.from_arrow(pa.table(columns)), work, query=None, run=Run())
    assert "SECRET" not in str(caught.value)


def test_the_command_line_releases_a_directory(released_by: Callable[[str], tuple[str, Path]]) -> None:
    """And leaves nothing behind: Ray's objects are rows, and its logs tell how many there are."""
    before = left_behind()
    printed, release = released_by("ray")
    assert json.loads(printed)["release"] == str(release)
    assert left_behind() == before


def left_behind() -> set[Path]:
    """What Ray, and Understudy for it, keep in memory and on disk; other programs have their own files there."""
    sessions = Path(tempfile.gettempdir(), "ray").glob("session_2*")
    return {*Path("/dev/shm").glob("us-*"), *Path("/dev/shm").glob("*plasma*"), *sessions}


def test_nothing_that_is_printed_tells_how_many_rows_there_are(
    ray: Any, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    work = work_of("dp-merf", "person")
    dataset = ray.data.read_parquet(str(folder)).repartition(3)
    sum_table(folder, work, query=None, run=Run(engine="ray"))
    sum_table(dataset, work, query=None, run=Run())
    told = "".join(capfd.readouterr())
    assert "3000" not in told
    assert "rows" not in told


def test_without_enough_memory_off_disks_ray_is_not_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "MEMORY", tmp_path / "none")
    with pytest.raises(InputError, match="rows would lie on disks"):
        engine._free_memory()
