from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from understudy.evaluation import columns
from understudy.evaluation.columns import column_sets, marginal_distance, marginal_gaps
from understudy.evaluation.tables import code_table
from understudy.schema import load_schema

HAND = load_schema(
    {
        "name": "hand",
        "columns": [
            {"name": "flag", "kind": "binary", "categories": [0, 1]},
            {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True},
            {"name": "size", "kind": "continuous", "bounds": [0, 20], "nullable": True},
        ],
    }
)
REAL = pd.DataFrame({"flag": [0, 0, 1, 1], "city": ["a", "a", "b", None], "size": [0.5, 0.7, 19, 20]})
MADE = pd.DataFrame({"flag": [0, 1], "city": ["a", "c"], "size": [0.1, np.nan]})


def sides(real=REAL, made=MADE, schema=HAND):
    return code_table(schema, real), code_table(schema, made)


def one_way_distances(real, made):
    found = marginal_gaps(real, made, sets=column_sets(len(real.columns), 1))
    return {column.name: distance for column, distance in zip(real.columns, found, strict=True)}


def test_single_columns_by_hand():
    # city: a 1/2 on both sides, b and null 1/4 in real rows only, c 1/2 in synthetic rows only.
    assert one_way_distances(*sides()) == {"flag": 0.0, "city": 0.5, "size": 0.5}


def test_pairs_and_triples_by_hand():
    # (0, a) is half of both tables; all other pairs of values occur on one side only.
    assert marginal_distance(*sides(), size=2) == pytest.approx(0.5)
    assert marginal_distance(*sides(), size=3) == pytest.approx(0.5)


def test_a_binary_column_that_flips_is_seen():
    flipped = REAL.assign(flag=1 - REAL["flag"], city=REAL["city"])
    assert one_way_distances(*sides(made=flipped))["flag"] == 0.0
    # real pairs (0,a)2 (1,b)1 (1,null)1 against (1,a)2 (0,b)1 (0,null)1: nothing in common
    pairs = HAND.used[:2]
    tables = (code_table(HAND, frame, columns=pairs) for frame in (REAL, flipped))
    assert marginal_distance(*tables, size=2) == 1.0


def test_an_unlisted_value_is_no_null():
    only_null = pd.DataFrame({"flag": [0], "city": [None], "size": [1.0]})
    unlisted = only_null.assign(city=["elsewhere"])
    assert one_way_distances(*sides(only_null, unlisted))["city"] == 1.0


def test_the_order_of_the_tables_does_not_matter_and_equal_tables_have_no_distance():
    real, made = sides()
    for size in (1, 2, 3):
        assert marginal_distance(real, made, size=size) == marginal_distance(made, real, size=size)
        assert marginal_distance(real, real, size=size) == 0.0


def slow_distance(left, right, chosen) -> float:
    """From the definition, cell by cell."""
    values = [sorted({*left[:, i], *right[:, i]}) for i in chosen]
    total = 0.0
    for cell in product(*values):
        total += abs((left[:, chosen] == cell).all(axis=1).mean() - (right[:, chosen] == cell).all(axis=1).mean())
    return total / 2


@pytest.mark.parametrize("most_cells", [2**22, 8])
def test_distances_agree_with_the_definition_on_thin_and_full_tables(
    schema, clinic, other_clinic, monkeypatch, most_cells
):
    monkeypatch.setattr(columns, "MOST_JOINT_CELLS", most_cells)
    real, made = code_table(schema, clinic[:60]), code_table(schema, other_clinic[:40])
    for size in (1, 2, 3):
        expected = np.mean([slow_distance(real.bins, made.bins, list(c)) for c in combinations(range(5), size)])
        assert marginal_distance(real, made, size=size) == pytest.approx(expected, abs=1e-12)


def test_figures_agree_with_sdmetrics():
    # sdmetrics 0.32.0 on these rows: TVComplement 0.67500002 (city) and 0.85 (sick),
    # ContingencySimilarity 0.475 (both). Category d occurs in synthetic rows only.
    i = np.arange(40)
    names, answers = np.array(["a", "b", "c", "d"]), np.array(["no", "yes"])
    real = pd.DataFrame({"city": names[i * i % 4 + (i % 3 == 0)], "sick": answers[(i % 5 < 2).astype(int)]})
    made = pd.DataFrame({"city": names[i * 3 % 4], "sick": answers[(i % 4 < 1).astype(int)]})
    schema = load_schema(
        {
            "name": "t",
            "columns": [
                {"name": "city", "kind": "categorical", "categories": names.tolist()},
                {"name": "sick", "kind": "binary", "categories": answers.tolist()},
            ],
        }
    )
    tables = sides(real, made, schema)
    singles = one_way_distances(*tables)
    assert 1 - singles["city"] == pytest.approx(0.6750000206249995, abs=1e-6)
    assert 1 - singles["sick"] == pytest.approx(0.85, abs=1e-6)
    assert 1 - marginal_distance(*tables, size=2) == pytest.approx(0.475, abs=1e-6)


def test_sets_are_all_or_a_seeded_draw():
    assert column_sets(4, 2) == list(combinations(range(4), 2))
    assert column_sets(4, 2, most_sets=6) == list(combinations(range(4), 2))
    drawn = column_sets(20, 3, most_sets=50, seed=3)
    assert drawn == column_sets(20, 3, most_sets=50, seed=3)
    assert drawn != column_sets(20, 3, most_sets=50, seed=4)
    assert len(drawn) == 50
    assert all(len(set(chosen)) == 3 for chosen in drawn)
