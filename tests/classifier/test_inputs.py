from __future__ import annotations

import numpy as np
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.classifier.inputs import CONSTANT, KNOTS, TableInputs, inputs_for, unit_inputs
from understudy.classifier.plan import ClassifierPlan
from understudy.errors import UsageError
from understudy.schema import load_schema

from .conftest import IMAGES, TABLE

FEATURES, PIXELS = (ClassifierPlan(schema, Budget(1.0)).features for schema in (TABLE, IMAGES))


def test_the_label_is_no_input() -> None:
    assert [column.name for column in FEATURES.used] == ["age", "income", "colour"]
    assert not any(column == "ill" for column, _ in TableInputs(FEATURES).names)


def test_every_input_has_norm_one_and_ends_with_the_constant() -> None:
    rng = np.random.default_rng(0)
    for schema, kind in ((FEATURES, "table"), (PIXELS, "strokes"), (PIXELS, "cosines")):
        inputs = inputs_for(schema, kind, 30)
        largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in schema.used]
        codes = rng.integers(0, np.array(largest) + 1, (20, len(largest)))
        found = unit_inputs(inputs, codes)
        assert found.shape == (20, inputs.dim)
        assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(20))
        assert found[:, -1] == pytest.approx(np.full(20, CONSTANT))


def test_hats_over_a_number_give_every_piecewise_linear_function() -> None:
    inputs = TableInputs(FEATURES)
    codes = np.stack([np.arange(101), np.zeros(101, np.int64), np.zeros(101, np.int64)], axis=1)
    hats = inputs.raw(codes)[:, :KNOTS]
    assert hats.sum(axis=1) == pytest.approx(np.ones(101))
    knots = np.linspace(0, 100, KNOTS)
    assert hats @ knots == pytest.approx(np.arange(101), abs=0.01)
    assert inputs.names[0] == ("age", "about 0")
    assert inputs.names[KNOTS - 1] == ("age", "about 100")


def test_a_missing_number_has_a_membership_of_its_own() -> None:
    inputs = TableInputs(FEATURES)
    found = inputs.raw(np.array([[50, -1, 2], [50, 7, 2]]))
    place = inputs.names.index(("income", "missing"))
    assert found[:, place].tolist() == [1.0, 0.0]


def test_a_zero_image_is_no_division_by_zero() -> None:
    for kind in ("strokes", "cosines"):
        inputs = inputs_for(PIXELS, kind, 30)
        assert np.isfinite(unit_inputs(inputs, np.zeros((1, 144), np.int64))).all()


def test_refusals() -> None:
    with pytest.raises(UsageError, match="no images"):
        inputs_for(FEATURES, "strokes", 5)
    with pytest.raises(UsageError, match="unknown"):
        inputs_for(PIXELS, "pixels", 5)
    tiny = load_schema({"name": "t", "image": {"height": 4, "width": 4}, "columns": []})
    with pytest.raises(UsageError, match="too small"):
        inputs_for(tiny, "strokes", 5)
