from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from understudy.errors import InputError, UsageError
from understudy.evaluation.evaluate import evaluate
from understudy.evaluation.image_features import ImageFeatures
from understudy.evaluation.metrics import METRICS
from understudy.schema import Schema, load_schema
from understudy.schema.images import ImageShape


def with_label(schema: Schema, name: str) -> Schema:
    document = schema.to_dict()
    for entry in document["columns"]:
        entry["role"] = "label" if entry["name"] == name else "feature"
    return load_schema(document)


@pytest.fixture(scope="module")
def found(schema, clinic, other_clinic):
    return evaluate(other_clinic, clinic, schema, quick=True)


def by_key(evaluation):
    return {score.metric.key: score for score in evaluation.scores}


OF_OTHER_TASKS = {"accuracy", "bins_apart", "coverage", "f1_macro", "f1_weighted", "frechet_distance", "r2", "rmse"}
"""Metrics of images and of regression, which this table has not."""


def test_every_score_is_in_its_range_with_floor_and_baseline(found):
    for score in found.scores:
        assert score.metric is METRICS[score.metric.key]
        for value in (score.value, score.floor, score.baseline):
            assert value >= score.metric.low
            assert score.metric.high is None or value <= score.metric.high
    assert set(by_key(found)) == set(METRICS) - OF_OTHER_TASKS


def test_fresh_real_rows_score_as_the_floor_and_better_than_independent_columns(found):
    scores = by_key(found)
    for key in ("marginal_2", "marginal_3", "marginal_4"):
        assert scores[key].value == pytest.approx(scores[key].floor, rel=0.25)
    assert scores["association_mean"].value < 0.5 * scores["association_mean"].baseline
    assert scores["roc_auc"].value == pytest.approx(scores["roc_auc"].floor, abs=0.05)
    assert scores["roc_auc"].baseline == 0.5
    assert scores["invalid_cells"].value == 0.0


def test_the_result_is_json_and_the_same_for_the_same_seed(found, schema, clinic, other_clinic):
    again = evaluate(other_clinic, clinic, schema, quick=True).to_json()
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    again["seconds"] = document["seconds"]
    assert json.loads(json.dumps(again)) == document
    assert document["rows_real"] == 600
    assert document["rows_synthetic"] == 500


def test_a_fifth_is_split_off_and_never_called_held_out(found):
    assert found.prediction is not None
    assert not found.prediction.is_held_out
    assert 80 < found.prediction.test_rows < 160
    assert found.prediction.task == "binary"
    assert [model.model for model in found.prediction.models] == [
        "lda",
        "decision tree",
        "logistic regression",
        "xgboost",
    ]
    sizes = [size for size, _ in found.prediction.by_set_size]
    assert sizes == [50, 500]
    means = np.mean([model.synthetic["roc_auc"] for model in found.prediction.models])
    assert found.prediction.by_set_size[-1][1] == pytest.approx(means)


def test_test_rows_that_are_given_are_all_used(schema, clinic, other_clinic):
    found = evaluate(clinic[:300], clinic[300:], schema, test=other_clinic, quick=True)
    assert found.prediction is not None
    assert found.prediction.is_held_out
    assert found.prediction.test_rows == len(other_clinic)


@pytest.mark.parametrize(
    ("label", "task", "keys"),
    [("city", "multiclass", {"f1_weighted", "f1_macro", "accuracy"}), ("weight", "regression", {"r2", "rmse"})],
)
def test_other_labels_make_other_tasks(schema, clinic, other_clinic, label, task, keys):
    found = evaluate(other_clinic, clinic, with_label(schema, label), quick=True)
    assert found.prediction is not None
    assert found.prediction.task == task
    assert set(found.prediction.models[0].real) == keys
    assert keys <= set(by_key(found))


def test_synthetic_rows_of_one_class_and_with_nulls_only_give_a_result(schema, clinic):
    poor = clinic.assign(sick="no", weight=np.nan, city="elsewhere", age=130)
    found = evaluate(poor, clinic, schema, quick=True)
    scores = by_key(found)
    assert scores["roc_auc"].value == 0.5
    assert scores["invalid_cells"].value == pytest.approx(2 / 5)
    assert scores["two_sample_auc_raw"].value > 0.99
    assert scores["copied_rows"].value == 0.0
    assert any("lack a class" in note for note in found.notes)
    json.dumps(found.to_json(), allow_nan=False)


def test_copies_show_in_the_neighbours(schema, clinic):
    scores = by_key(evaluate(clinic, clinic, schema, quick=True))
    assert scores["copied_rows"].value > 0.4
    assert scores["copied_rows"].floor < 0.05
    assert scores["neighbour_distance"].value < scores["neighbour_distance"].floor


def test_a_table_without_label_or_with_one_column_is_judged_all_the_same(schema, clinic):
    document = schema.to_dict()
    document["columns"] = [entry for entry in document["columns"] if entry["name"] == "weight"]
    found = evaluate(clinic[:300], clinic[300:], load_schema(document), quick=True)
    assert found.prediction is None
    assert any("no label" in note for note in found.notes)
    assert "marginal_1" in by_key(found)
    assert "marginal_2" not in by_key(found)
    document["columns"][0]["role"] = "label"
    found = evaluate(clinic[:300], clinic[300:], load_schema(document), quick=True)
    assert any("no other column" in note for note in found.notes)


def test_test_rows_of_one_class_are_no_test(schema, clinic, other_clinic):
    healthy = other_clinic[other_clinic["sick"] == "no"]
    found = evaluate(other_clinic, clinic, schema, test=healthy, quick=True)
    assert found.prediction is None
    assert any("one class only" in note for note in found.notes)


def test_what_was_drawn_is_said(schema, clinic, other_clinic, monkeypatch):
    from understudy.evaluation import evaluate as module

    small = replace(module.QUICK, rows=400, sets=4, test_rows=100, neighbour_rows=50, training_rows=200)
    monkeypatch.setattr(module, "QUICK", small)
    found = evaluate(other_clinic, clinic, schema, quick=True)
    notes = " ".join(found.notes)
    singles = np.mean([view.distance for view in found.columns])
    assert by_key(found)["marginal_1"].value == pytest.approx(singles)
    assert "sets of 1" not in notes
    assert "400 of the real rows" in notes
    assert "400 of the synthetic rows" in notes
    assert "Of 10 sets of 2 columns, 4 were drawn" in notes
    assert "200 synthetic and 200 real rows" in notes
    assert "positive class of sick is yes" in notes


def test_progress_reaches_the_end_of_every_stage(schema, clinic, other_clinic):
    told: dict[str, tuple[int, int]] = {}
    evaluate(
        other_clinic,
        clinic,
        schema,
        quick=True,
        progress=lambda stage, done, total: told.update({stage: (done, total)}),
    )
    assert list(told) == ["distances", "tests", "models"]
    assert all(done == total for done, total in told.values())


def test_tables_that_cannot_be_judged_are_refused(schema, clinic):
    with pytest.raises(InputError, match="synthetic table: needs at least 20 rows"):
        evaluate(clinic[:5], clinic, schema)
    with pytest.raises(InputError, match="column 'city': is not in the table"):
        evaluate(clinic.drop(columns="city"), clinic, schema)
    with pytest.raises(UsageError, match="protocol"):
        evaluate(clinic, clinic, schema, protocol="other")


def test_importing_evaluation_loads_neither_torch_nor_scikit_learn_nor_pandas():
    script = (
        "import sys, understudy.evaluation.evaluate\n"
        "print({'torch', 'sklearn', 'pandas', 'xgboost', 'understudy.private'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_seed_that_models_do_not_take_is_refused_before_any_work(schema, clinic):
    for seed in (-1, 2**32):
        with pytest.raises(UsageError, match="seed: must lie between"):
            evaluate(clinic, clinic, schema, seed=seed)


def test_a_column_that_stands_in_the_table_twice_is_refused(schema, clinic):
    doubled = clinic.rename(columns={"stage": "age"})[["age", "weight", "city", "sick"]]
    with pytest.raises(InputError, match="column 'age': is in the table more than once"):
        evaluate(doubled.assign(stage=1), clinic, schema, quick=True)


def test_one_absurd_number_spoils_no_score(schema, clinic, other_clinic, found):
    typo = clinic.copy()
    typo.loc[3, "weight"] = 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        spoilt = evaluate(other_clinic, typo, schema, quick=True)
    before = by_key(found)
    for key, score in by_key(spoilt).items():
        assert score.value == pytest.approx(before[key].value, abs=0.1), key
    assert not any("refused" in note for note in spoilt.notes)


def draw_bars(num_images: int, seed: int) -> pd.DataFrame:
    """Images of 4 x 4 with one light row or one light column."""
    rng = np.random.default_rng(seed)
    places, down = rng.integers(0, 4, num_images), rng.integers(0, 2, num_images)
    images = rng.integers(0, 60, (num_images, 4, 4))
    for image, place, is_down in zip(images, places, down, strict=True):
        (image.T if is_down else image)[place] += 190
    names = ImageShape(4, 4).names
    frame = pd.DataFrame(images.reshape(num_images, -1), columns=list(names))
    return frame.assign(label=np.array(["across", "down"])[down])


def test_images_are_compared_as_a_network_sees_them():
    label = {"name": "label", "kind": "categorical", "role": "label", "categories": ["across", "down"]}
    schema = load_schema({"image": {"height": 4, "width": 4}, "columns": [label]})
    real, alike = draw_bars(400, 1), draw_bars(400, 2)
    short = alike[alike["label"] == "across"]
    good, bad = (evaluate(rows, real, schema, quick=True) for rows in (alike, short))
    for key in ("frechet_distance", "bins_apart"):
        assert by_key(good)[key].value < by_key(bad)[key].value
    assert by_key(bad)["coverage"].value < 0.7 < by_key(good)["coverage"].value
    assert "cnn" in {row.model for row in good.prediction.models}
    assert any("a small network" in note for note in good.notes)


def test_images_are_compared_in_the_features_that_are_given():
    schema = load_schema({"image": {"height": 4, "width": 4}, "columns": []})
    looked_at = []
    features = ImageFeatures("a mean", lambda pixels: looked_at.append(pixels) or pixels.mean(1)[:, None])
    frame = draw_bars(100, 1).drop(columns="label")
    found = evaluate(frame, frame, schema, quick=True, features=features)
    assert any("compared in a mean" in note for note in found.notes)
    assert all(pixels.min() >= 0 and pixels.max() <= 1 for pixels in looked_at)
