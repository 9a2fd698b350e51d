"""The program as a whole: its help, how it ends, and what it says when something breaks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from understudy.cli import app as program
from understudy.cli.app import app

SECRET = "SECRET-7f3a"
HEAVY = ("torch", "pyarrow", "numpy", "scipy", "opendp", "dp_accounting", "safetensors", "jinja2", "yaml")


def commands(command: Any = None, name: str = "understudy") -> Iterator[tuple[str, Any]]:
    command = command or typer.main.get_command(app)
    for each, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, f"{name} {each}")
    if not hasattr(command, "commands"):
        yield name, command


def test_the_commands_are_the_ones_that_were_promised() -> None:
    assert {name.removeprefix("understudy ") for name, _ in commands()} == {
        "schema draft",
        "schema check",
        "plan",
        "release",
        "fit",
        "sample",
        "synth",
        "verify",
        "ledger init",
        "ledger show",
        "demo",
        "evaluate",
        "report",
        "compare",
        "query",
        "export",
        "grid",
        "append",
        "partial",
        "merge",
        "classify",
        "predict",
        "explain",
        "encoder train",
        "encoder private",
        "encoder show",
        "methods show",
    }


@pytest.mark.parametrize(("name", "command"), [*commands()], ids=str)
def test_every_command_has_json_and_every_option_says_what_it_is_for(name: str, command: Any) -> None:
    assert command.help
    assert any("--json" in parameter.opts for parameter in command.params)
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{name}: {parameter.name} has no help"


def test_help_tells_what_reads_private_data_from_what_is_free_for_ever(run: Any) -> None:
    text = run("--help").out
    reads, free = text.split("Free for ever")
    assert "Reads private data" in reads
    for verb in ("release", "synth", "evaluate"):
        assert f" {verb} " in reads
    for verb in ("plan", "fit", "sample", "verify", "report", "schema", "ledger", "demo"):
        assert f" {verb} " in free


def test_help_loads_nothing_heavy() -> None:
    program = f"""
import sys
from understudy.cli import main
for argv in (["--help"], ["synth", "--help"], ["schema", "draft", "--help"], ["ledger", "--help"]):
    sys.argv = ["understudy", *argv]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
print(sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_without_arguments_it_shows_its_help(run: Any) -> None:
    for arguments in ((), ("schema",), ("ledger",)):
        found = run(*arguments)
        assert "Usage:" in found.out + found.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("paint",),
        ("plan",),
        ("plan", "--schema", "s.yaml"),
        ("plan", "--schema", "s.yaml", "--epsilon", "much"),
        ("plan", "--schema", "s.yaml", "--epsilon", "1", "--colour", "red"),
        ("plan", "--schema", "s.yaml", "--epsilon", "1", "--seed", "-1"),
        ("sample", "model", "-o", "rows.csv", "-n", "0"),
        ("synth", "rows.csv", "--epsilon", "1", "-o", "out.csv"),
        ("schema", "draw"),
    ],
)
def test_an_argument_outside_its_rules_ends_with_code_2(run: Any, arguments: tuple[str, ...]) -> None:
    found = run(*arguments)
    assert found.code == 2
    assert found.out == ""
    assert len(found.err.splitlines()) == 1
    assert "--help" in found.err


# What breaks without anyone having foreseen it.


def _raise(kind: type[BaseException]) -> Callable[..., Any]:
    def broken(*_: object, **__: object) -> Any:
        raise kind(f"cell {SECRET} in row 17")

    return broken


DEEP = (
    "understudy.private.sums.encode_batch",
    "understudy.private.sums.to_lattice",
    "understudy.readers.delimited.DelimitedFiles.batches",
    "understudy.private.noise.ExactNoise.add_noise",
    "understudy.private.release.Release",
    "understudy.private.spending.write_directory",
    "understudy.released.product.render_html",
    "understudy.cli.release.outcome",
)


@pytest.mark.parametrize("place", DEEP)
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["plain", "json"])
def test_an_error_that_nobody_foresaw_never_shows_its_words(
    run: Any, office: Any, quick: Any, monkeypatch: pytest.MonkeyPatch, place: str, flags: Any
) -> None:
    before = office.files()
    monkeypatch.setattr(place, _raise(ValueError))
    found = run("release", office.csv, "-s", office.schema, "-e", 1, "-o", office.path("out"), *quick, *flags)
    assert (found.code, found.out) == (1, "")
    assert len(found.err.splitlines()) == 1
    assert "row 17" not in found.err
    assert SECRET not in found.err
    written = {name: content for name, content in office.files().items() if name not in before}
    assert not any(SECRET.encode() in content for content in written.values())


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, KeyError, OSError, KeyboardInterrupt])
def test_an_error_of_any_type_keeps_its_words_to_itself(
    run: Any, office: Any, quick: Any, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    monkeypatch.setattr("understudy.private.sums.encode_batch", _raise(kind))
    found = run("release", office.csv, "-s", office.schema, "-e", 1, "-o", office.path("out"), *quick)
    assert found.code != 0
    assert SECRET not in found.out + found.err
    assert "Traceback" not in found.err
    assert not office.path("out").exists()


def test_an_internal_error_is_reported_by_type_and_place(
    run: Any, office: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.cli.plan.plan_document", _raise(ZeroDivisionError))
    found = run("plan", "-s", office.schema, "-e", 1, "--json")
    fields = found.refusal
    assert fields["rule"].startswith("internal error: ZeroDivisionError at understudy.cli.plan:")
    assert "report this line" in fields["remedy"]
    assert json.loads(found.err)["error"]["where"].startswith("understudy.cli.plan:")


def test_usage_errors_are_json_too_if_asked_for(run: Any) -> None:
    result = run("plan", "--epsilon", "one", "--json")
    assert result.code == 2
    assert json.loads(result.err)["error"]["rule"]


def test_an_interrupted_command_says_what_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        return 130  # as the parser tells of Ctrl-C

    monkeypatch.setattr(program, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 130
    assert "stays charged" in capsys.readouterr().err


def test_a_pattern_that_the_shell_has_expanded_is_told_of(run: Any) -> None:
    done = run("release", "a.csv", "b.csv", "-s", "s.yaml", "-e", "1", "-o", "out", "--json")
    assert done.code == 2
    assert "in quotes" in done.refusal["remedy"]
