from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from understudy.accounting.mechanisms import Budget
from understudy.classifier.model import (
    Classifier,
    classifier_certificate,
    load_classifier,
    verify_classifier,
)
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.errors import InputError
from understudy.files import write_directory

from .conftest import TABLE, visits


def test_a_classifier_comes_back_from_its_directory(trained: Classifier, tmp_path: Path) -> None:
    write_directory(tmp_path / "clf", trained.files())
    again = load_classifier(tmp_path / "clf")
    rows = visits(50, seed=1)
    codes = trained.codes(rows.drop_columns(["ill"]))
    assert np.array_equal(again.probabilities(codes), trained.probabilities(codes))
    assert again.fingerprint == trained.fingerprint
    assert again.predict(rows) == trained.predict(rows)


def test_predictions_are_good_and_add_up(trained: Classifier) -> None:
    rows = visits(1000, seed=2)
    right = np.mean([a == b for a, b in zip(trained.predict(rows), rows["ill"].to_pylist(), strict=True)])
    assert right > 0.85
    assert trained.probabilities(trained.codes(rows)).sum(axis=1) == pytest.approx(np.ones(1000))
    assert trained.probabilities(np.empty((0, 3), np.int64)).shape == (0, 2)


def test_a_whole_directory_is_verified(trained: Classifier, tmp_path: Path) -> None:
    write_directory(tmp_path / "clf", trained.files())
    found = verify_classifier(tmp_path / "clf")
    assert found.is_private
    assert found.epsilon <= 3.0
    assert found.fingerprint == trained.fingerprint
    assert found.noise_std[1] == trained.plan.descent.cost.noise_multiplier


@pytest.mark.parametrize("name", ["certificate.json", "certificate.html", "schema.yaml"])
def test_a_changed_file_is_found(trained: Classifier, tmp_path: Path, name: str) -> None:
    write_directory(tmp_path / "clf", trained.files())
    path = tmp_path / "clf" / name
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    with pytest.raises(InputError, match="changed or damaged"):
        verify_classifier(tmp_path / "clf")


def test_changed_numbers_and_files_too_many_or_too_few_are_found(trained: Classifier, tmp_path: Path) -> None:
    write_directory(tmp_path / "clf", trained.files())
    (tmp_path / "clf" / "more.txt").write_text("x")
    with pytest.raises(InputError, match=r"more\.txt"):
        verify_classifier(tmp_path / "clf")
    (tmp_path / "clf" / "more.txt").unlink()
    shutil.copytree(tmp_path / "clf", tmp_path / "other")
    (tmp_path / "clf" / "certificate.json").unlink()
    with pytest.raises(InputError, match=r"certificate\.json"):
        verify_classifier(tmp_path / "clf")
    weights = tmp_path / "other" / "maps.safetensors"
    content = bytearray(weights.read_bytes())
    content[-3] ^= 1
    weights.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        load_classifier(tmp_path / "other")
    with pytest.raises(InputError, match="not the directory"):
        load_classifier(tmp_path)


def test_the_certificate_states_all_that_matters(trained: Classifier) -> None:
    certificate = json.loads(trained.files()["certificate.json"])
    assert certificate["status"] == "PRIVATE"
    assert certificate["guarantee"]["epsilon"] <= 3.0
    assert certificate["guarantee"]["epsilon_replace_one"] > certificate["guarantee"]["epsilon"]
    assert certificate["mechanism"]["steps"] == 40
    names = {assumption["name"] for assumption in certificate["assumptions"]}
    assert "row independence of floating-point numbers" in names
    page = trained.files()["certificate.html"].decode()
    assert "second moments of inputs" in page
    assert "3000" not in json.dumps(certificate)  # how many rows there were


def test_how_often_odds_move_further_counts_what_slack_lets_through() -> None:
    # The worst pair of a Gaussian and its slack: an event that gives the table away, and a tail.
    training = Training(steps=30, sampling_rate=0.05, look=0.0)
    plan = ClassifierPlan(TABLE, Budget(1.0), training, 1000)
    (charge,) = plan.descent.charges
    mu, slack, odds = math.sqrt(charge.mu_squared), float(charge.slack), math.exp(plan.descent.epsilon())
    tails = np.linspace(0.0, 12.0, 20_001)
    seen, unseen = slack + (1 - slack) * norm.cdf(mu - tails), (1 - slack) * norm.cdf(-tails)
    worst = seen[seen >= odds * unseen].max()
    stated = classifier_certificate(plan, {}, fingerprint="")["odds"]["except_with_probability"]
    assert worst <= stated <= 1.01 * worst
