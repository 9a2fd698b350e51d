"""Directories, documents and options that somebody made to do harm: a refusal, soon, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
EVIL = "evil\x1b[2J\nrefused: \u202e[bold red]x[/bold red]"


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """A command that waits is a failure, not a hang."""
    signal.alarm(60)
    yield
    signal.alarm(0)


def assert_refused(outcome: Any, code: int = 1) -> None:
    assert outcome.code == code, outcome
    (line,) = outcome.err.splitlines()
    assert line.startswith("refused: ")
    assert line.isprintable()
    assert "internal error" not in line


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with a generator and a request, made once."""
    from understudy.accounting.mechanisms import Budget
    from understudy.generators import save_generator
    from understudy.methods import dp_anova, fit_release
    from understudy.plan.request import Request
    from understudy.private.release import release_table
    from understudy.schema.table import parse_yaml

    from .conftest import SCHEMA, small_table

    folder = tmp_path_factory.mktemp("made")
    plan = dp_anova(parse_yaml(SCHEMA, name="t"), Budget(1.0), steps=3, pairs=False)
    release = release_table(small_table(), plan, directory=folder / "release")
    save_generator(fit_release(release), folder / "generator", release=release.fingerprint)
    Request(plan).save(folder / "request.json")
    return folder


def harms(file: Path) -> Iterator[str]:
    """A file turned into each thing that must not be read, one after another."""
    content = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    yield "pipe"
    file.unlink()
    file.symlink_to("/dev/zero")
    yield "endless device"
    file.unlink()
    elsewhere = file.with_name("..").resolve() / "elsewhere"
    elsewhere.write_bytes(content)
    file.symlink_to(elsewhere)
    yield "link to the very bytes"
    file.unlink()
    with file.open("wb") as opened:
        opened.truncate(2**40)
    yield "1 TB of nothing"
    file.write_bytes(b"[" * 200_000)
    yield "deep nesting"
    file.write_bytes(content)


VERBS: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "verify": lambda release, _: ("verify", release),
    "fit": lambda release, out: ("fit", release, "-o", out),
    "query": lambda release, _: ("query", release, "count"),
    "compare": lambda release, _: ("compare", release, release),
    "report": lambda release, out: ("report", release, "-o", f"{out}.html"),
    "append": lambda release, out: ("append", release, "rows.csv", "-o", out),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["release.json", "embedding.safetensors"])
def test_no_verb_reads_what_is_no_file_of_a_release(run: Any, made: Path, tmp_path: Path, verb: str, name: str) -> None:
    folder = Path(shutil.copytree(made / "release", tmp_path / "release"))
    for harm in harms(folder / name):
        assert_refused(run(*VERBS[verb](folder, tmp_path / "out"))), harm


@pytest.mark.parametrize("name", ["certificate.html", "certificate.json", "schema.yaml"])
def test_verify_reads_regular_files_only(run: Any, made: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(made / "release", tmp_path / "release"))
    for harm in harms(folder / name):
        assert_refused(run("verify", folder)), harm
    assert run("verify", folder).code == 0


@pytest.mark.parametrize("name", ["generator.json", "generator.safetensors"])
def test_sample_reads_regular_files_only(run: Any, made: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(made / "generator", tmp_path / "generator"))
    for harm in harms(folder / name):
        assert_refused(run("sample", folder, "-o", tmp_path / "out.csv")), harm


def test_other_documents_are_read_within_bounds_too(run: Any, office: Any, made: Path) -> None:
    request = Path(shutil.copy(made / "request.json", office.path("request.json")))
    key = office.put("key", "ab" * 32)
    out = office.path("out")
    for _ in harms(request):
        if request.is_symlink() and "elsewhere" in os.readlink(request):
            continue  # a name that a person gives may be a link
        rest = ("--key-file", key, "-o", out)
        assert_refused(run("partial", office.csv, "-r", request, "--party", "a", *rest))
        assert_refused(run("merge", request, office.csv, *rest))
    for name in ("encoder.json", "classifier.json"):
        folder = office.path(name.split(".")[0])
        folder.mkdir()
        os.mkfifo(folder / name)
        assert_refused(run("encoder", "show", folder))
        assert_refused(run("predict", folder, office.csv, "-o", office.path("p.csv")))
        assert_refused(run("verify", folder))


SCHEMAS = {
    "billion laughs": LAUGHS + "columns: *l\n",
    "one alias": "a: &a [f, m]\ncolumns: [{name: x, kind: categorical, categories: *a}]\n",
    "deep lists": "columns: " + "[" * 50_000,
    "deep tables": "columns:\n" + "".join(" " * i + "a:\n" for i in range(2000)),
    "a key twice": "columns: [{name: x, kind: integer, bounds: [0, 1], bounds: [0, 2]}]\n",
    "no end of digits": "columns: [{name: x, kind: integer, bounds: [0, 1" + "0" * 5000 + "]}]",
    "many digits": "columns: [{name: x, kind: integer, bounds: [0, 1" + "0" * 4000 + "]}]",
    "beyond floats": "columns: [{name: x, kind: continuous, bounds: [0, 1e400]}]",
    "not a number": "columns: [{name: x, kind: continuous, bounds: [0, .nan]}]",
    "a large image": "image: {height: 1000000000, width: 1000000000}\n",
    "python": "columns: !!python/object/apply:os.system [true]\n",
    "escapes": 'columns: [{name: "\\e[2J\\n[bold]", kind: integer}]\n',
}
"""Documents that take for ever, take all memory, or are not what they look like."""


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_that_means_harm_is_refused_at_once(run: Any, office: Any, name: str) -> None:
    schema = office.put("bad.yaml", SCHEMAS[name])
    signal.alarm(10)
    assert_refused(run("schema", "check", schema))
    assert_refused(run("plan", "-s", schema, "-e", 1))


def test_a_schema_that_is_no_file_is_refused(run: Any, office: Any) -> None:
    os.mkfifo(office.path("pipe.yaml"))
    for schema in (office.path("pipe.yaml"), "/dev/zero", office.folder):
        assert_refused(run("schema", "check", schema))


def test_names_of_files_and_columns_cannot_speak_to_a_terminal(run: Any, office: Any, made: Path) -> None:
    folder = Path(shutil.copytree(made / "release", office.path("release")))
    (folder / EVIL.replace("/", " ")).touch()
    outcome = run("verify", folder)
    assert_refused(outcome)
    assert "\\x1b[2J\\nrefused: \\u202e[bold red]" in outcome.err
    (folder / os.fsdecode(b"\xff\xfe")).touch()
    assert_refused(run("verify", folder))
    column = {"name": EVIL, "kind": "categorical", "categories": [EVIL + "1", EVIL + "2"]}
    schema = {"name": EVIL, "columns": [column], EVIL: 1}
    path = office.put("named.yaml", json.dumps(schema))
    for arguments in (("schema", "check", path), ("plan", "-s", path, "-e", 1)):
        found = run(*arguments)
        assert found.code == 0, found
        assert "\x1b" not in found.out
        assert "\u202e" not in found.out
        assert not any(line.startswith("refused") for line in found.out.splitlines())
        assert "[bold red]" in found.out


def test_a_release_that_claims_numbers_without_end_is_refused_before_memory_is_touched(
    run: Any, made: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made / "release", tmp_path / "release"))
    document = json.loads((folder / "release.json").read_bytes())
    block = document["plan"]["stages"][0]["embedding"]["blocks"][0]
    for count in (10**12, 10**39):
        fourier = {
            "kind": "fourier",
            "numbers": [0],
            "length_scales": [1.0],
            "parts": [[1, 1.0, 1.0]],
            "num_features": count,
            "seed": 0,
        }
        for map_ in (fourier, {"kind": "grid", "numbers": [0], "num_bins": count}):
            block["map"] = map_
            (folder / "release.json").write_text(json.dumps(document))
            for verb in ("verify", "fit", "query"):
                assert_refused(run(*VERBS[verb](folder, tmp_path / "out")))


@pytest.mark.parametrize("verb", ["fit", "query", "compare", "report"])
@pytest.mark.parametrize("name", ["x", [0, 1], 7])
def test_a_plan_that_was_altered_within_bounds_is_refused(run: Any, office: Any, verb: str, name: Any) -> None:
    """Its vectors have the stated length, and yet nothing in it is called the count."""
    folder = office.path("release")
    rest = ("-s", office.schema, "-e", 1, "-m", "balog-subspace", "--candidates", 20)
    assert run("release", office.csv, *rest, "-o", folder).code == 0
    document = json.loads((folder / "release.json").read_bytes())
    document["plan"]["stages"][0]["embedding"]["blocks"][0]["name"] = name
    (folder / "release.json").write_text(json.dumps(document))
    assert_refused(run(*VERBS[verb](folder, office.path("out"))))


@pytest.mark.parametrize("option", [("--given", "sex=f"), ("--balance", "equal"), ()])
def test_a_generator_that_was_altered_within_bounds_is_refused(
    run: Any, made: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    folder = Path(shutil.copytree(made / "generator", tmp_path / "generator"))
    document = json.loads((folder / "generator.json").read_bytes())
    document["generator"]["sizes"] = [1] * 7
    (folder / "generator.json").write_text(json.dumps(document))
    assert_refused(run("sample", folder, "-n", 5, "-o", tmp_path / "out.csv", *option))


def test_a_name_that_is_too_long_for_the_system_is_refused_before_anything_is_spent(run: Any, office: Any) -> None:
    before, name = office.spent(), "x" * 300
    rest = ("-s", office.schema, "-e", 1, "--ledger", office.ledger)
    for verb in ("release", "classify"):
        assert_refused(run(verb, office.csv, *rest, "-o", name))
    request = office.path("request.json")
    assert run("plan", "-s", office.schema, "-e", 1, "-o", request).code == 0
    assert_refused(run("merge", request, office.csv, "--key-file", name, "-o", office.path("out")))
    assert office.spent() == before
