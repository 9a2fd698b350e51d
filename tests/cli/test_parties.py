from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from understudy.plan.plan import plan_from_dict
from understudy.plan.request import Request
from understudy.released import load_release, verify_release

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
                "partial",
                "rows.csv",
                "-r",
                request,
                "--party",
                name,
                "-o",
                f"{name}{rounds}",
                "--key-file",
                f"{name}.key",
                *(("--max-epsilon", "1") if own_noise else ()),
                "--json",
            )
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


def test_a_party_sees_what_is_asked_for_before_its_rows_are_read(keys: Path, run: Any) -> None:
    """With noise of its own it must also say how much it allows."""
    run("plan", *PLAN, "--parties", "2", "-o", "own.json")
    run("plan", *PLAN, "-o", "one.json")
    asked = ("--party", "a", "-o", "x", "--key-file", "a.key")
    refused = run("partial", "no-such-file.csv", "-r", "own.json", *asked)
    assert refused.code == 2
    assert "Add --max-epsilon" in refused.err
    assert run("partial", "rows.csv", "-r", "own.json", *asked, "--max-epsilon", "0.5").code == 3
    for request, allowed in (("own.json", ("--max-epsilon", "1")), ("one.json", ())):
        unread = run("partial", "no-such-file.csv", "-r", request, *asked, *allowed)
        assert unread.code == 1
        for words in ("round 1 of 3", "over all rounds", "in this one", "at delta 1e-05"):
            assert words in unread.out, request
        assert "one row (add-remove)" in unread.out
    assert "who can read the exact sum" in unread.out
    done = run("partial", "rows.csv", "-r", "own.json", *asked, "--max-epsilon", "1", "--json")
    told = done.document
    assert 0 < told["epsilon_of_round"] < told["epsilon"] <= 1
    assert (told["delta"], told["unit"], told["neighbours"]) == (1e-5, "row", "add-remove")


def test_words_of_a_request_do_not_steer_the_terminal(keys: Path, run: Any) -> None:
    run("plan", *PLAN, "--parties", "2", "-o", "request.json")
    document = json.loads((keys / "request.json").read_text())
    document["plan"]["schema"]["name"] = "\x1b[2J[bold]rows"
    plan = plan_from_dict(document["plan"])
    (keys / "other.json").write_text(json.dumps(document | {"fingerprint": Request(plan).fingerprint}))
    asked = ("--party", "a", "-o", "x", "--key-file", "a.key")
    refused = run("partial", "rows.csv", "-r", "other.json", *asked)
    assert r"\x1b[2J[bold]rows" in refused.out
    assert "\x1b" not in refused.out


def test_queries_are_shown_where_rows_are_read_merged_appended_and_verified(keys: Path, run: Any) -> None:
    query, other = "SELECT * FROM data", "SELECT DISTINCT * FROM data"
    run("plan", *PLAN, "--method", "dp-merf", "-o", "request.json")
    run(
        "partial", "rows.csv", "-r", "request.json", "--party", "a", "-o", "a1", "--query", query, "--key-file", "a.key"
    )
    merged = run("merge", "request.json", "a1", "--key-file", "a.key", "-o", "out")
    assert query in merged.out
    appended = run("append", "out", "rows.csv", "--query", other, "-o", "more")
    assert query in appended.out
    assert other in appended.out
    assert "row by row query" in run("verify", "more").out
    assert run("verify", "more", "--json").document["assumptions"].count("row by row query") == 1


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
        "release",
        "rows.csv",
        *PLAN,
        "-o",
        "out",
        "--threads",
        "2",
        "--engine",
        "local",
        "--checkpoint",
        "kept",
        "--key-file",
        "a.key",
        "--json",
    )
    assert done.code == 0, done.err
    assert not (keys / "kept").exists()
    assert verify_release(keys / "out").is_private
