"""Plans of weighted databases: public points, kernels and shares of the budget, from public facts alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from understudy import Budget, Neighbours, balog_subspace, fit_release, load_release, load_schema, release_table
from understudy.errors import InputError, UsageError
from understudy.features import KernelSums, Landmarks
from understudy.methods.balog import balog_kernel
from understudy.plan.plan import plan_from_dict
from understudy.schema import Layout

SCHEMA = load_schema(
    {
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 100], "nullable": True},
            {"name": "pay", "kind": "continuous", "bounds": [0, 10]},
            {"name": "city", "kind": "categorical", "categories": ["a", "b"]},
        ],
        "rows": 5000,
    }
)
PUBLIC = pd.DataFrame({"age": [10, 50, None, 90], "pay": [1.0, 2.0, 3.0, 9.5], "city": ["a", "b", "b", "a"]})


def blocks(plan: Any, stage: int = -1) -> dict[str, Any]:
    return {block.name: block for block in plan.stages[stage].embedding.blocks}


def test_given_points_span_the_space_and_are_part_of_the_plan() -> None:
    plan = balog_subspace(SCHEMA, Budget(1.0), public_points=PUBLIC)
    map_ = blocks(plan)["coordinates"].map
    assert isinstance(map_, Landmarks)
    assert len(map_.points) == 4
    assert set(map_.kept) == {0, 1, 2, 3}
    assert map_.points.codes(plan.layout)[:, 0].tolist() == [10, 50, -1, 90]
    assert plan_from_dict(plan.to_dict()).fingerprint == plan.fingerprint


@pytest.mark.parametrize("form", [pa.Table.from_pandas, dict, lambda frame: frame])
def test_points_come_in_every_form_of_table(form: Any) -> None:
    found = balog_subspace(SCHEMA, Budget(1.0), public_points=form(PUBLIC.dropna()))
    expected = balog_subspace(SCHEMA, Budget(1.0), public_points=PUBLIC.dropna())
    assert found.fingerprint == expected.fingerprint


def test_a_release_needs_no_other_file_to_be_fitted(tmp_path: Path) -> None:
    plan = balog_subspace(SCHEMA, Budget(1.0), public_points=PUBLIC)
    release_table(PUBLIC, plan, directory=tmp_path / "release")
    rows = fit_release(load_release(tmp_path / "release")).weighted_rows().to_pandas()
    assert rows["city"].tolist() == ["a", "b", "b", "a"]
    assert rows["pay"].tolist() == pytest.approx(PUBLIC["pay"].tolist(), abs=10 / 2**16)


def test_a_little_noise_deserves_more_of_the_points() -> None:
    ranks = [
        blocks(balog_subspace(SCHEMA, Budget(epsilon), look=False, num_rows=10**6, num_candidates=300))[
            "coordinates"
        ].map.dim
        for epsilon in (0.01, 0.1, 1.0)
    ]
    assert ranks[0] < ranks[1] < ranks[2] <= 300


def test_points_all_over_the_place_are_looked_at_first() -> None:
    wide = balog_subspace(SCHEMA, Budget(1.0), num_candidates=400, length_scale=0.05)
    assert [stage.name for stage in wide.stages] == ["look", "embedding"]
    assert [stage.share for stage in wide.stages] == pytest.approx([0.1, 0.9])
    assert isinstance(blocks(wide, 0)["look"].map, KernelSums)
    smooth = balog_subspace(SCHEMA, Budget(1.0), num_candidates=400, length_scale=2.0)
    assert [stage.name for stage in smooth.stages] == ["embedding"]


def test_the_row_count_rides_free_where_rows_are_replaced() -> None:
    plan = balog_subspace(SCHEMA, Budget(1.0), neighbours=Neighbours.REPLACE_ONE, public_points=PUBLIC)
    assert blocks(plan)["coordinates"].weight == 1.0
    ((square,),) = plan.mechanism_sensitivities
    assert math.sqrt(square) / plan.lattice == pytest.approx(2.0)
    plan = balog_subspace(SCHEMA, Budget(1.0), public_points=PUBLIC)
    ((square,),) = plan.mechanism_sensitivities
    assert math.sqrt(square) / plan.lattice == pytest.approx(1.0)


def test_a_look_costs_root_two_norms_where_rows_are_replaced() -> None:
    plan = balog_subspace(SCHEMA, Budget(1.0), neighbours=Neighbours.REPLACE_ONE, look=True)
    (look,), (rest,) = plan.mechanism_sensitivities
    assert math.sqrt(look) / plan.lattice == pytest.approx(math.sqrt(2), rel=1e-6)
    assert math.sqrt(rest) / plan.lattice == pytest.approx(2.0)
    assert plan.epsilon() <= 1.0


def test_the_plan_says_rank_kernel_and_weights() -> None:
    plan = balog_subspace(SCHEMA, Budget(1.0), public_points=PUBLIC, weights="bounded", bound=2.0)
    kernel, rank, weights = plan.setting("explanation")
    assert "gaussian kernel, product, length scale 0.354, mismatch 0.607" in kernel
    assert rank.startswith("4 of 4 public points span the space")
    assert "absolute sum at most 2 (Theorem 11)" in weights
    look = balog_subspace(SCHEMA, Budget(1.0), look=True, weights="plain").setting("explanation")
    assert "a noisy look at 2000 public points: 10 % of the budget" in look[1]
    assert "line 8" in look[2]


def test_a_sum_kernel_has_a_term_per_column_with_its_null_flag() -> None:
    kernel = balog_kernel(Layout(SCHEMA), join="sum", length_scale={"age": 0.1, "pay": 0.2})
    assert [term.numbers for term in kernel.terms] == [(0,), (1,), ()]
    assert [len(term.spans) for term in kernel.terms] == [1, 0, 1]
    assert [term.length_scales for term in kernel.terms] == [(0.1,), (0.2,), ()]
    cells = Layout(SCHEMA).expand(np.array([[10, 0, 0], [10, 0, 1], [-1, 0, 0]]))
    gram = kernel(cells, cells)
    assert gram[0, 1] == pytest.approx(2 / 3)
    assert gram[0, 2] == pytest.approx(2 / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "heavy"}, "one of shrunk, plain, bounded"),
        ({"bound": 0.5}, "at least 1"),
        ({"bound": float("nan")}, "at least 1"),
        ({"num_points": 0}, "between 1 and 2048"),
        ({"num_candidates": 10**6}, "between 1 and 20000"),
        ({"kernel": "cauchy"}, "Kernels are gaussian"),
        ({"join": "mean"}, "one of product, sum"),
        ({"mismatch": 1.0}, "below 1"),
        ({"length_scale": {"age": 0.1}}, "every numeric column"),
        ({"length_scale": "private"}, "must be a number"),
        ({"length_scale": -1.0}, "between 0.0001 and 10000"),
        ({"public_points": "rows.csv"}, "Arrow table"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        balog_subspace(SCHEMA, Budget(1.0), **options)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (PUBLIC.drop(columns="pay"), "no column 'pay'"),
        (PUBLIC[:0], "between 1 and 20000 rows"),
        (pd.concat([PUBLIC] * 5001), "random part"),
    ],
)
def test_public_points_that_do_not_fit_are_refused(table: pd.DataFrame, words: str) -> None:
    with pytest.raises(InputError, match=words):
        balog_subspace(SCHEMA, Budget(1.0), public_points=table)
