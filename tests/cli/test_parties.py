from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy.published import load_release, verify_release

KEYS = {"a": "11" * 32, "b": "22" * 32}
PLAN = ("--schema", "schema.yaml", "--epsilon", "1", "--rows", "300")


@pytest.fixture
def folder(office: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(office.folder)
    return Path(office.folder)


@pytest.fixture
def keys(folder: Path) -> Path:
    for name, digits in KEYS.items():
        (folder / f"{name}.key").write_text(digits)
    return folder


@pytest.mark.parametrize("own_noise", [False, True])
def test_two_parties_answer_every_round_of_a_plan(keys: Path, run: Any, own_noise: bool) -> None:
    shared = ("--parties", "2") if own_noise else ()
    assert run("plan", *PLAN, *shared, "-o", "request.json").code == 0
    request, rounds, made = "request.json", 0, None
    while made is None:
        rounds += 1
        for name in KEYS:
            done = run(
                "partial", "rows.csv", "-r", request, "--party", name, "-o", f"{name}{rounds}",
                "--key-file", f"{name}.key", "--json",
            )  # fmt: skip
            assert done.code == 0, done.err
            assert done.document["own_noise"] is own_noise
        files = [f"{name}{rounds}" for name in KEYS]
        key_files = [part for name in KEYS for part in ("--key-file", f"{name}.key")]
        merged = run("merge", request, *files, *key_files, "-o", "out", "--json")
        assert merged.code == 0, merged.err
        made = merged.document.get("release")
        request = merged.document.get("request", request)
    release = load_release(keys / "out")
    assert rounds == len(release.plan.stages) > 1
    assert verify_release(keys / "out").is_private
    assert release.plan.parties == (2 if own_noise else 1)


def test_a_missing_key_is_refused(keys: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNDERSTUDY_KEY", raising=False)
    run("plan", *PLAN, "-o", "request.json")
    done = run("partial", "rows.csv", "-r", "request.json", "--party", "a", "-o", "x", "--json")
    assert done.code == 2
    assert done.refusal["where"] == "variable UNDERSTUDY_KEY"


def test_a_release_of_a_horizon_says_what_it_is_part_of(folder: Path, run: Any) -> None:
    alone = run("plan", *PLAN, "--json").document
    fifth = run("plan", *PLAN, "--horizon", "5", "--json").document
    assert fifth["epsilon"] < 0.5 * alone["epsilon"]
    assert "one of 5 releases, together epsilon 1" in run("plan", *PLAN, "--horizon", "5").out
    run("release", "rows.csv", *PLAN, "--horizon", "5", "-o", "out", "--json")
    assert "planned as one of 5 releases" in (folder / "out" / "certificate.html").read_text()


def test_a_key_without_a_checkpoint_is_refused(keys: Path, run: Any) -> None:
    done = run("release", "rows.csv", *PLAN, "-o", "out", "--key-file", "a.key", "--json")
    assert (done.code, done.refusal["where"]) == (2, "key file")


def test_threads_and_checkpoints_change_nothing_else(keys: Path, run: Any) -> None:
    done = run(
        "release", "rows.csv", *PLAN, "-o", "out", "--threads", "2", "--engine", "local",
        "--checkpoint", "kept", "--key-file", "a.key", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert not (keys / "kept").exists()
    assert verify_release(keys / "out").is_private
