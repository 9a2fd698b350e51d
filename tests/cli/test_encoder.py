"""Public encoders from the command line, and releases that are planned with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import Budget, load_schema
from understudy.accounting.mechanisms import round_up
from understudy.networks import EncoderTraining, public
from understudy.plan.encoder import ExtractorPlan
from understudy.private.dpsgd.encoder import train_private_encoder
from understudy.private.ledger import read_ledger
from understudy.private.noise import SeededNoise

SCHEMA = """\
name: squares
rows: 80
image: {height: 6, width: 6}
columns:
- {name: label, kind: categorical, role: label, categories: [0, 1], bounds_from: definition}
"""
FORM = ("--depths", "3,4", "--strides", "2,1", "--kernels", "3,3", "--components", 4, "--steps", 4)


@pytest.fixture
def studio(tmp_path: Path) -> Path:
    """A private image set with its schema, and two public ones."""
    rng = np.random.default_rng(0)
    for name, count in (("private", 80), ("letters", 40), ("signs", 30)):
        images = rng.integers(0, 256, (count, 6, 6), dtype=np.uint8)
        np.savez_compressed(tmp_path / f"{name}.npz", x=images, y=rng.integers(0, 2, count))
    np.savez_compressed(tmp_path / "plain.npz", x=images)
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def encoder(run: Any, studio: Path) -> Path:
    made = studio / "encoder"
    run("encoder", "train", studio / "letters.npz", studio / "signs.npz", "-o", made, *FORM)
    return made


def test_an_encoder_is_trained_on_several_sets_and_shown(run: Any, studio: Path) -> None:
    sets, made = (studio / "letters.npz", studio / "signs.npz"), studio / "made"
    found = run("encoder", "train", *sets, "-o", made, *FORM, "--json").document
    assert found["images"] == 70
    shown = run("encoder", "show", made, "--json").document
    assert shown["sha256"] == found["sha256"]
    assert shown["told"] == "letters, signs"
    assert "conv1, conv2" in run("encoder", "show", made).out


def test_sets_without_labels_are_told_apart_by_how_they_are_turned(run: Any, studio: Path) -> None:
    found = run("encoder", "train", studio / "plain.npz", "-o", studio / "made", *FORM)
    assert "quarters" in found.out


def test_sets_of_other_sizes_and_tables_are_refused(run: Any, studio: Path) -> None:
    np.savez_compressed(studio / "large.npz", x=np.zeros((3, 7, 7), np.uint8))
    sets = (studio / "letters.npz", studio / "large.npz")
    refused = run("encoder", "train", *sets, "-o", studio / "made")
    assert refused.code == 1
    assert "one size" in refused.err
    assert run("encoder", "train", sets[0], "-o", studio / "made", "--depths", "x").code == 2


def test_a_plan_says_which_network_it_takes(run: Any, studio: Path, encoder: Path) -> None:
    plan = ("plan", "-s", studio / "schema.yaml", "-e", 1, "-m", "dp-mepf", "--encoder", encoder)
    words = run(*plan).out
    assert "trained on letters, signs" in words
    assert "stopping" in words
    fewer = run(
        *plan,
        "--layers",
        "conv1",
        "--moments",
        1,
        "--multiply",
        "none",
        "--stopping",
        0,
        "--activation",
        "after",
        "--json",
    ).document
    assert [block["block"] for block in fewer["blocks"]] == ["count", "first"]


def test_a_release_names_the_network_and_fitting_needs_it(
    run: Any, studio: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = studio / "release"
    run(
        "release",
        studio / "private.npz",
        "-s",
        studio / "schema.yaml",
        "-e",
        5,
        "-m",
        "dp-mepf",
        "--encoder",
        encoder,
        "--steps",
        2,
        "-o",
        made,
    )
    sha256 = run("encoder", "show", encoder, "--json").document["sha256"]
    assert sha256 in (made / "certificate.html").read_text()
    monkeypatch.setattr(public, "_REGISTERED", {})
    assert run("verify", made).code == 0, "verification needs no network"
    refused = run("fit", made, "-o", studio / "model")
    assert refused.code == 1
    assert "--encoder" in refused.err
    assert run("fit", made, "-o", studio / "model", "--encoder", encoder).code == 0
    drawn = studio / "drawn.npz"
    assert run("sample", studio / "model", "-n", 7, "-o", drawn).code == 0
    assert np.load(drawn)["x"].shape == (7, 6, 6)


def test_a_method_without_its_network_says_how_to_get_one(run: Any, studio: Path) -> None:
    refused = run("plan", "-s", studio / "schema.yaml", "-e", 1, "-m", "dp-mepf")
    assert refused.code == 2
    assert "encoder train" in refused.err


def test_an_encoder_of_private_images_is_charged_and_says_so(run: Any, studio: Path) -> None:
    made, ledger = studio / "own", studio / "ledger.db"
    run("ledger", "init", ledger, "-e", 5, "--reserve", 0.05)
    found = run(
        "encoder",
        "private",
        studio / "private.npz",
        "-s",
        studio / "schema.yaml",
        "-e",
        2,
        "-o",
        made,
        "--steps",
        2,
        "--batch",
        40,
        "--ledger",
        ledger,
        "--json",
    ).document
    assert 1.5 < found["cost"]["epsilon"] <= 2
    assert run("encoder", "show", made, "--json").document["private_cost"] == found["cost"]
    ledger_page = run("ledger", "show", ledger).out
    assert "encoder on squares" in ledger_page
    assert "protects     every row" in ledger_page
    assert found["is_private"]
    assert (found["ledger"]["row"], len(found["fingerprint"])) == (1, 64)
    plan = ("plan", "-s", studio / "schema.yaml", "-e", 1, "-m", "dp-mepf", "--encoder", made)
    words, planned = run(*plan).out, run(*plan, "--json").document
    assert "privately learnt network" in words
    assert 0.99 < planned["epsilon_alone"] <= 1 < found["cost"]["epsilon"] < planned["epsilon"]
    assert f"this release {round_up(planned['epsilon_alone'])}, the encoder before it" in words
    assert f"guarantee    epsilon {round_up(planned['epsilon'])} at delta" in words
    released = ("release", studio / "private.npz", *plan[1:], "--steps", 2, "-o", studio / "release")
    told = run(*released, "--json").document
    assert (told["epsilon"], told["is_private"]) == (planned["epsilon"], True)
    checked = run("verify", studio / "release")
    assert f"epsilon {planned['epsilon']:.6g} at delta" in checked.out
    assert f"this release {planned['epsilon_alone']:.6g}, the rest the encoder" in checked.out
    shown = run("ledger", "show", ledger, "--json").document["rows"]
    assert [row["unit"] for row in shown] == ["row"]


def test_an_encoder_of_private_images_is_verified_and_given_back_by_its_key(run: Any, studio: Path) -> None:
    ledger = studio / "ledger.db"
    run("ledger", "init", ledger, "-e", 5, "--reserve", 0.05)
    learn = (
        "encoder",
        "private",
        studio / "private.npz",
        "-s",
        studio / "schema.yaml",
        "-e",
        2,
        "--steps",
        2,
        "--batch",
        40,
    )
    assert run(*learn, "-o", studio / "own", "--key", "k").code == 2, "a key is of a ledger"
    keyed = (*learn, "--ledger", ledger, "--key", "k")
    assert "Learnt" in run(*keyed, "-o", studio / "own").out
    again = run(*keyed, "-o", studio / "copy")
    assert "Reused" in again.out
    assert len(read_ledger(ledger).rows) == 1
    found = run("verify", studio / "copy", "--json").document
    assert found["fingerprint"] == read_ledger(ledger).rows[0].fingerprint
    assert found["is_private"]
    assert 1.5 < found["epsilon"] <= 2
    certificate = studio / "copy" / "certificate.json"
    certificate.write_text(certificate.read_text().replace("PRIVATE", "private"))
    assert run("verify", studio / "copy").code == 1


def test_a_public_encoder_has_nothing_to_verify(run: Any, encoder: Path) -> None:
    refused = run("verify", encoder)
    assert refused.code == 1
    assert "is public" in refused.err


def test_an_encoder_with_noise_for_tests_is_marked_wherever_it_is_shown(run: Any, studio: Path) -> None:
    schema = load_schema(studio / "schema.yaml")
    plan = ExtractorPlan(schema, Budget(2.0), EncoderTraining(steps=2, batch=40))
    made = studio / "own"
    train_private_encoder(studio / "private.npz", plan, directory=made, noise=SeededNoise(0))
    assert "NOT PRIVATE" in run("encoder", "show", made).out
    assert "NOT PRIVATE" in run("verify", made).out
    with_it = ("-s", studio / "schema.yaml", "-e", 1, "-m", "dp-mepf", "--encoder", made)
    assert "NOT PRIVATE" in run("plan", *with_it).out
    released = ("release", studio / "private.npz", *with_it, "--steps", 2, "-o", studio / "release")
    assert "NOT PRIVATE" in run(*released).out
    checked = run("verify", studio / "release")
    assert "NOT PRIVATE" in checked.out
    assert "Verified" not in checked.out
