"""Every row obeys every rule, and there are always as many rows as were asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from understudy import load_generator, load_schema, save_generator
from understudy.errors import InputError, UsageError
from understudy.generators.base import Generator
from understudy.generators.conditioning import Condition
from understudy.generators.mixture import Mixture, grids_of
from understudy.generators.network import Network
from understudy.generators.rejection import CHUNK, FEWEST_DRAWS, Source, rejection_sample
from understudy.schema import Layout, Schema
from understudy.schema.encode import decode_table, encode_batch
from understudy.schema.rules import obeys
from understudy.schema.values import CodeSet

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "bounds": [0, 100]},
    {"name": "low", "kind": "continuous", "bounds": [0, 10], "nullable": True},
    {"name": "high", "kind": "continuous", "bounds": [-5, 20]},
    {"name": "admitted", "kind": "datetime", "bounds": ["2015-01-01", "2025-12-31"]},
    {
        "name": "discharged",
        "kind": "datetime",
        "bounds": ["2015-01-01T00:00:00", "2026-12-31T00:00:00"],
        "nullable": True,
    },
    {"name": "sex", "kind": "categorical", "categories": ["m", "f"], "nullable": True},
    {"name": "birth", "kind": "categorical", "categories": ["f", "other", "m"]},
    {"name": "pregnant", "kind": "binary", "categories": ["no", "yes"]},
    {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
]
RULES: list[Any] = [
    "age >= 18",
    "low < high",
    "low <= age",
    "admitted <= discharged",
    "sex == birth",
    "ill != age",
    {"forbid": {"sex": ["m", None], "pregnant": "yes"}},
    {"forbid": {"age": {"from": 60}, "pregnant": "yes"}},
    {"forbid": {"ill": 1, "discharged": None}},
]
SHARES = (0.7, 0.3)


def schema_with(rules: list[Any]) -> Schema:
    return load_schema({"columns": COLUMNS, "rules": rules})


def a_mixture(schema: Schema, seed: int = 0) -> Mixture:
    rng = np.random.default_rng(seed)
    pieces = [rng.dirichlet(np.full(grid.width, 0.3), size=7) for grid in grids_of(schema)]
    pieces[-1] = np.repeat(np.eye(2), (3, 4), axis=0)
    return Mixture(schema, np.concatenate(pieces, axis=1), (3, 4), 50, SHARES)


def a_network(schema: Schema, seed: int = 0) -> Network:
    rng, layout = np.random.default_rng(seed), Layout(schema)
    label = next(choice for choice in layout.choices if choice.column == "ill")
    return Network(
        schema,
        weights=(rng.normal(size=(9, 16)), 0.1 * rng.normal(size=(16, layout.width))),
        biases=(rng.normal(size=16), np.zeros(layout.width)),
        skip=0.5 * rng.normal(size=(2, layout.width)),
        noise_dim=4,
        num_components=3,
        default_num_rows=50,
        label=(label.start, label.stop),
        label_shares=SHARES,
    )


MAKERS = {"mixture": a_mixture, "network": a_network}
both = pytest.mark.parametrize("kind", MAKERS)


def assert_obeyed(schema: Schema, rows: pa.Table) -> None:
    codes = encode_batch(schema, rows.combine_chunks().to_batches()[0])
    assert obeys(schema, codes).all()


# The generators.


@both
@pytest.mark.parametrize("num_rows", [0, 1, 300, CHUNK + 5])
def test_rows_are_as_many_as_asked_for_and_obey_the_rules(kind: str, num_rows: int):
    generator: Generator = MAKERS[kind](schema_with(RULES))
    rows = generator.sample(num_rows, seed=1)
    assert rows.num_rows == num_rows
    if not num_rows:
        return
    assert_obeyed(generator.schema, rows)
    frame = rows.to_pandas()  # the same rules once more, by hand
    stays = frame["discharged"].notna()
    assert (frame["age"] >= 18).all()
    assert (frame["low"].isna() | (frame["low"] < frame["high"])).all()
    assert (frame["admitted"].astype("datetime64[us]")[stays] <= frame["discharged"][stays]).all()
    assert (frame["sex"].isna() | (frame["sex"] == frame["birth"])).all()
    assert not ((frame["pregnant"] == "yes") & ((frame["sex"] != "f") | (frame["age"] >= 60))).any()


@both
def test_the_same_seed_gives_the_same_rows_and_a_saved_generator_too(kind: str, tmp_path: Any):
    generator = MAKERS[kind](schema_with(RULES))
    rows = generator.sample(200, seed=4)
    assert rows.equals(generator.sample(200, seed=4))
    assert not rows.equals(generator.sample(200, seed=5))
    save_generator(generator, tmp_path / "model", release="f" * 64)
    loaded = load_generator(tmp_path / "model")
    assert loaded.schema.rules == generator.schema.rules
    assert_obeyed(generator.schema, loaded.sample(200, seed=4))


@both
def test_without_rules_and_wishes_rows_are_the_plain_draws(kind: str):
    generator = MAKERS[kind](schema_with([]))
    rng = np.random.default_rng(3)
    draw = generator.components.codes if isinstance(generator, Mixture) else generator.codes
    plain = [decode_table(generator.schema, draw(count, rng)) for count in (CHUNK, 100)]
    assert generator.sample(CHUNK + 100, seed=3).equals(pa.concat_tables(plain).combine_chunks())
    assert generator.sample(9, seed=3, given={}, balance="kept").equals(generator.sample(9, seed=3))


@both
@given(data=st.data())
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_any_rules_that_can_be_obeyed_are(kind: str, data: st.DataObject):
    wanted = data.draw(st.lists(st.sampled_from(RULES), unique_by=str, max_size=5))
    bound = data.draw(st.integers(0, 100))
    op = data.draw(st.sampled_from(["<=", ">=", "=="]))
    try:
        schema = schema_with([*wanted, f"age {op} {bound}"])
    except InputError:  # such as age >= 18 and age <= 17
        return
    generator = MAKERS[kind](schema, seed=data.draw(st.integers(0, 5)))
    rows = generator.sample(20, seed=0)
    assert rows.num_rows == 20
    assert_obeyed(schema, rows)


@both
def test_conditions_balance_and_rules_hold_together(kind: str):
    generator = MAKERS[kind](schema_with(RULES))
    rows = generator.sample(601, seed=2, given={"age": (8, 70), "pregnant": "no"}, balance={0: 1, 1: 2})
    assert_obeyed(generator.schema, rows)
    frame = rows.to_pandas()
    assert frame["age"].between(18, 70).all()
    assert (frame["pregnant"] == "no").all()
    assert frame["ill"].value_counts().to_dict() == {1: 401, 0: 200}
    assert frame["ill"].head(60).nunique() == 2  # in no order


@both
def test_a_condition_on_the_label_is_met_at_no_cost(kind: str):
    generator = MAKERS[kind](schema_with([]))
    rows = generator.sample(500, given={"ill": 1}).to_pandas()
    assert (rows["ill"] == 1).all()
    assert (generator.sample(500, given={"ill": 1}, balance="equal").to_pandas()["ill"] == 1).all()


def test_a_network_under_a_condition_draws_what_its_rows_that_meet_it_are():
    network = a_network(schema_with([]))
    plain = network.sample(60_000, seed=1).to_pandas()
    wanted = plain[plain["age"].between(30, 60) & (plain["sex"] == "f")]
    found = network.sample(20_000, seed=2, given={"age": (30, 60), "sex": "f"}).to_pandas()
    assert len(found) == 20_000
    for column in ("birth", "pregnant", "ill"):
        exact = wanted[column].value_counts(normalize=True)
        seen = found[column].value_counts(normalize=True)
        assert ((exact - seen).abs() < 0.03).all()


def test_a_condition_that_a_network_meets_too_seldom_is_refused():
    network = a_network(schema_with([]))
    with pytest.raises(UsageError, match="fewer than one row in 1000 is such"):
        network.sample(3, given={"low": 1.2345})
    no_ill = replace(network, label_shares=(1.0, 0.0))
    with pytest.raises(UsageError, match="no row has such a label"):
        no_ill.sample(3, given={"ill": 1})


# Drawing again, and mending.

TWO = load_schema(
    {
        "columns": [
            {"name": "a", "kind": "integer", "bounds": [0, 9999]},
            {"name": "b", "kind": "integer", "bounds": [0, 9999]},
        ],
        "rules": ["a < b"],
    }
)


def rare(share: float) -> Any:
    """Rows of which only a share obeys ``a < b``."""

    def draw(num_rows: int, rng: np.random.Generator) -> Any:
        a = rng.integers(5000, 10_000, num_rows)
        b = np.where(rng.random(num_rows) < share, np.minimum(a + 1, 9999), a - 3000)
        return np.stack([a, b], axis=1)

    return draw


@pytest.mark.parametrize("share", [1.0, 0.5, 0.01, 1e-4, 0.0])
@pytest.mark.parametrize("num_rows", [1, 50, 2000])
def test_exactly_n_rows_obey_however_seldom_they_are_drawn(share: float, num_rows: int):
    codes = rejection_sample(Source(rare(share)), TWO, Condition(), num_rows, np.random.default_rng(0))
    assert codes.shape == (num_rows, 2)
    assert obeys(TWO, codes).all()


def test_rows_that_are_drawn_again_have_the_law_of_those_that_obey():
    def draw(num_rows: int, rng: np.random.Generator) -> Any:
        return rng.integers(0, 4, (num_rows, 2))

    codes = rejection_sample(Source(draw), TWO, Condition(), CHUNK, np.random.default_rng(0))
    seen = np.bincount(4 * codes[:, 0] + codes[:, 1], minlength=16).reshape(4, 4)
    above = np.triu_indices(4, k=1)
    assert seen[above].sum() == CHUNK
    assert chisquare(seen[above]).pvalue > 1e-3


def test_drawing_again_is_bounded_in_number_and_in_memory():
    sizes: list[int] = []

    def draw(num_rows: int, rng: np.random.Generator) -> Any:
        sizes.append(num_rows)
        return np.full((num_rows, 2), 7)

    codes = rejection_sample(Source(draw), TWO, Condition(), 10, np.random.default_rng(0))
    assert obeys(TWO, codes).all()
    assert sizes[0] == 10
    assert max(sizes) <= CHUNK
    assert FEWEST_DRAWS <= sum(sizes) <= FEWEST_DRAWS + CHUNK


@pytest.mark.parametrize("num_rows", [20, 3000])
def test_rules_are_mended_only_in_rows_that_meet_the_condition(num_rows: int):
    condition = Condition({0: CodeSet(((5000, 5009),))})  # one row in 500
    codes = rejection_sample(Source(rare(0.001), condition), TWO, condition, num_rows, np.random.default_rng(0))
    assert len(codes) == num_rows
    assert obeys(TWO, codes).all()
    assert condition.holds(codes).all()


def test_mended_rows_still_meet_the_condition():
    condition = Condition({0: CodeSet(((6000, 7000), (9000, 9100)))})

    def draw(num_rows: int, rng: np.random.Generator) -> Any:
        a = rng.integers(6000, 7001, num_rows)
        return np.stack([a, np.full(num_rows, 10)], axis=1)

    codes = rejection_sample(Source(draw), TWO, condition, 100, np.random.default_rng(0))
    assert obeys(TWO, codes).all()
    assert condition.holds(codes).all()


def test_a_long_chain_of_comparisons_is_mended():
    names = ["a", "b", "c", "d", "e"]
    schema = load_schema(
        {
            "columns": [{"name": name, "kind": "integer", "bounds": [0, 9]} for name in names],
            "rules": ["a < b", "b < c", "c < d", "d < e"],
        }
    )

    def draw(num_rows: int, rng: np.random.Generator) -> Any:
        return np.tile([9, 7, 5, 3, 1], (num_rows, 1))

    codes = rejection_sample(Source(draw), schema, Condition(), 64, np.random.default_rng(0))
    assert obeys(schema, codes).all()


def test_rules_that_contradict_one_another_are_refused_by_name():
    schema = load_schema({"columns": TWO.to_dict()["columns"], "rules": ["a < b", "b < a"]})
    with pytest.raises(InputError, match="no row that obeys it and the other rules") as caught:
        rejection_sample(Source(rare(0.5)), schema, Condition(), 5, np.random.default_rng(0))
    assert caught.value.where in ("rule 'a < b'", "rule 'b < a'")
