from __future__ import annotations

import numpy as np
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.classifier.inputs import CosineInputs, unit_inputs
from understudy.classifier.maps import LocallyLinearMaps, MapShape
from understudy.classifier.model import Classifier, column_weights, contrast, drawn, explain_row, patterns
from understudy.classifier.plan import ClassifierPlan
from understudy.private.dpsgd.classifier import train_classifier

from .conftest import TABLE, bars, visits


def test_the_columns_that_matter_come_first_and_speak_for_what_they_should() -> None:
    found = train_classifier(visits(20_000), ClassifierPlan(TABLE, Budget(20.0)))
    columns = column_weights(found, 0, 1)
    assert set(list(columns)[:2]) == {"age", "colour"}
    values = {column: dict(listed) for column, listed in columns.items()}
    assert values["age"]["about 100"] > 0 > values["age"]["about 0"]
    assert values["colour"]["blue"] > 0 > values["colour"]["red"]


def test_contrasts_of_classes_cancel() -> None:
    filters = np.random.default_rng(0).normal(size=(2, 3, 4))
    assert contrast(filters).sum(axis=1) == pytest.approx(np.zeros((2, 4)))


def test_what_columns_add_is_the_score_against_a_mean_row(trained: Classifier) -> None:
    """With one map, the parts of a row and of a mean row differ by the difference of scores."""
    shape = MapShape(trained.plan.inputs.dim, 2)
    whitening = trained.whitening
    assert whitening is not None
    single = Classifier(trained.plan, LocallyLinearMaps(shape, trained.maps.weights[:1]), whitening, trained.facts)
    codes = single.codes(visits(5, seed=3))
    for row in codes:
        found = explain_row(single, row)
        unit = unit_inputs(single.plan.inputs, row[None])[0]
        length = np.linalg.norm(unit @ whitening.matrix)
        score, other = (single.filters[0, k] @ unit / length for k in (found.predicted, 1 - found.predicted))
        mean, mean_other = (
            single.filters[0, k] @ whitening.mean / length for k in (found.predicted, 1 - found.predicted)
        )
        constant = (single.filters[0, found.predicted] - single.filters[0, 1 - found.predicted])[-1]
        constant *= (unit - whitening.mean)[-1] / length
        expected = (score - other) - (mean - mean_other) - constant
        assert sum(part for _, part in found.by_column) == pytest.approx(expected)
        assert found.probabilities[found.predicted] >= 0.5
        assert found.importances == pytest.approx([1.0])


def test_places_of_an_image_are_explained(sees: Classifier) -> None:
    table, _ = bars(4, seed=5)
    found = explain_row(sees, sees.codes(table.drop_columns(["label"]))[0])
    assert found.by_place is not None
    assert np.isfinite(found.by_place).all()
    assert found.by_column == ()


def test_weights_are_drawn_as_what_inputs_are(sees: Classifier, trained: Classifier) -> None:
    weights = contrast(sees.filters)
    images = drawn(sees, weights)
    if isinstance(sees.plan.inputs, CosineInputs):
        assert images.shape == (1, 2, 1, 12, 12)
        pixels = np.random.default_rng(0).integers(0, 256, (3, 144))
        expected = sees.plan.inputs.raw(pixels) @ weights[0, :, :-1].T
        assert pixels / 255 @ images[0].reshape(2, 144).T == pytest.approx(expected)
    else:
        assert images.shape[:3] == (1, 2, 17)
    with pytest.raises(TypeError):
        drawn(trained, contrast(trained.filters))
    with pytest.raises(TypeError):
        column_weights(sees, 0, 0)


def test_a_pattern_is_second_moments_times_weights(trained: Classifier) -> None:
    whitening = trained.whitening
    assert whitening is not None
    moments = np.linalg.inv(whitening.matrix @ whitening.matrix.T)  # up to a factor, by its making
    assert patterns(trained) == pytest.approx(trained.filters @ moments, rel=1e-4, abs=1e-6)
    plain = Classifier(trained.plan, trained.maps, None, trained.facts)
    assert np.array_equal(patterns(plain), trained.maps.filters)
