"""Recorded form of the command line: options with defaults, help, exit codes, and the fields of --json.

Options and help are recorded apart: help may be shortened without an option being lost.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
import typer

from understudy.cli import main
from understudy.cli.app import app
from understudy.private.noise import ExactNoise, LongNoise
from understudy.private.spending import Receipt
from understudy.reports import agreement

SCHEMA = """\
name: patients
columns:
- {name: bmi, kind: continuous, bounds: [10, 80], nullable: true, bounds_from: convention}
- {name: age, kind: integer, bounds: [0, 120], bounds_from: definition}
- {name: sex, kind: categorical, categories: [f, m], bounds_from: codebook}
- {name: seen, kind: datetime, bounds: [2000-01-01, 2030-12-31], nullable: true, bounds_from: definition}
- {name: ill, kind: binary, role: label, categories: [no, yes], bounds_from: codebook}
rules:
- age >= 1
"""
IMAGES = """\
name: squares
rows: 80
image: {height: 6, width: 6}
columns:
- {name: label, kind: categorical, role: label, categories: [0, 1], bounds_from: definition}
"""
KEYS = {"a": "11" * 32, "b": "22" * 32}


# Options and help


def commands(command: Any, name: str = "understudy") -> Iterator[tuple[str, Any]]:
    """Every verb and group of verbs, with its whole name."""
    yield name, command
    for child, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {child}")


VERBS = dict(commands(typer.main.get_command(app)))


def name_of(parameter: Any) -> str:
    return " ".join([*parameter.opts, *parameter.secondary_opts])


def form_of(parameter: Any) -> dict[str, Any]:
    """What a parameter takes, and what it is if it is not given."""
    taken = parameter.type_descriptor.annotation
    (item,) = get_args(taken) or (taken,)  # many of them are a list
    found = {
        "kind": parameter.param_type_name,
        "type": item.__name__,
        "least": parameter.min,
        "most": parameter.max,
        "default": None if parameter.default is None else str(parameter.default),
        "metavar": parameter.metavar,
        "multiple": parameter.multiple,
        "number": parameter.nargs,
        "required": parameter.required,
        "variable": parameter.envvar,
        "flag": bool(getattr(parameter, "is_flag", False)),
    }
    return {name: value for name, value in found.items() if value is not None}


def help_of(described: Any) -> dict[str, Any]:
    """What help says of a parameter or of a verb, and where."""
    panel = getattr(described, "rich_help_panel", None)
    return {
        "help": described.help,
        "panel": panel if isinstance(panel, str) else None,
        "hidden": bool(getattr(described, "hidden", False)),
    }


def test_all_verbs_are_known(golden: Any) -> None:
    found = {name: sorted(getattr(each, "commands", ())) for name, each in VERBS.items()}
    golden.check("verbs", found, portable=True)


@pytest.mark.parametrize("verb", VERBS)
def test_options(golden: Any, verb: str) -> None:
    found = {name_of(each): form_of(each) for each in VERBS[verb].params}
    golden.check(f"options of {verb}", found, portable=True)


@pytest.mark.parametrize("verb", VERBS)
def test_help(golden: Any, verb: str) -> None:
    command = VERBS[verb]
    found = {name_of(each): help_of(each) for each in command.params}
    found["the verb itself"] = help_of(command)
    golden.check(f"help of {verb}", found, portable=True)


# The whole program on small files, with noise from a seed


@dataclass(frozen=True)
class Outcome:
    """How a run ended and what it said."""

    code: int
    out: str
    err: str


Run = Callable[[str], Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "100")

    def run(words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["understudy", *shlex.split(words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture(autouse=True)
def known_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise from a seed: which fields there are may hang on what it does. Rows of reports are few."""
    rng = np.random.default_rng(19)

    def add_noise(_: object, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        return sums + np.rint(rng.normal(0.0, noise_std, len(sums))).astype(np.int64)

    def add_laplace_noise(_: object, sums: Any, scale: int, receipt: Receipt) -> Any:
        return sums + np.rint(rng.laplace(0.0, scale, len(sums))).astype(np.int64)

    for source in (ExactNoise, LongNoise):
        monkeypatch.setattr(source, "add_noise", add_noise)
        monkeypatch.setattr(source, "add_laplace_noise", add_laplace_noise)
    monkeypatch.setattr(os, "urandom", rng.bytes)
    monkeypatch.setattr(agreement, "MOST_ROWS", 2_000)


def patients(num_rows: int, shift: int = 0) -> pa.Table:
    places = range(shift, num_rows + shift)
    days = [None if i % 5 == 0 else 11_000 + i for i in places]
    return pa.table(
        {
            "bmi": pa.array([None if i % 7 == 0 else 20.0 + i % 30 for i in places]),
            "age": pa.array([1 + i % 90 for i in places]),
            "sex": pa.array(["f" if i % 3 else "m" for i in places]),
            "seen": pa.array(days, pa.int32()).cast(pa.date32()),
            "ill": pa.array(["yes" if i % 4 == 0 else "no" for i in places]),
        }
    )


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, new rows, an image set with two public ones, keys, and their schemas."""
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    csv.write_csv(patients(300), tmp_path / "rows.csv")
    pq.write_table(patients(60, 7), tmp_path / "new.parquet")
    (tmp_path / "images.yaml").write_text(IMAGES)
    rng = np.random.default_rng(0)
    for name, count in (("private", 80), ("letters", 40)):
        pixels = rng.integers(0, 256, (count, 6, 6), dtype=np.uint8)
        np.savez_compressed(tmp_path / f"{name}.npz", x=pixels, y=rng.integers(0, 2, count))
    for name, digits in KEYS.items():
        (tmp_path / f"{name}.key").write_text(digits)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paths_in(document: Any, before: str = "") -> set[str]:
    """The names of all fields of a document, each with those it lies in."""
    if isinstance(document, dict):
        found = [paths_in(value, f"{before}.{name}") for name, value in document.items()]
        return {before}.union(*found)
    if isinstance(document, list):
        inner = [paths_in(value, f"{before}[]") for value in document if isinstance(value, dict | list)]
        return {before}.union(*inner)
    return {before}


SMALL = "-s schema.yaml -e 1 --steps 3"
FORM = "--depths 3,4 --strides 2,1 --kernels 3,3 --components 4 --steps 4"
PARTIAL = "partial rows.csv -r request.json --max-epsilon 1"

WAYS = {
    "a table": {
        "ledger init": "ledger init ledger.db -e 9 --reserve 0.1",
        "ledger show, empty": "ledger show ledger.db",
        "schema draft": "schema draft rows.csv",
        "schema draft -o": "schema draft rows.csv -o draft.yaml",
        "schema check": "schema check schema.yaml",
        "schema check --cells": "schema check schema.yaml rows.csv --cells",
        "methods": "methods",
        "methods show": "methods show dp-hp",
        "plan": f"plan {SMALL}",
        "plan, dp-merf": f"plan {SMALL} -m dp-merf",
        "plan, dp-hp": f"plan {SMALL} -m dp-hp",
        "plan, balog-features": f"plan {SMALL} -m balog-features",
        "plan, pure, horizon": f"plan {SMALL} --delta 0 --horizon 3",
        "release": f"release rows.csv {SMALL} --pairs -o rel --ledger ledger.db --key k",
        "release, the same key": f"release rows.csv {SMALL} --pairs -o rel2 --ledger ledger.db --key k",
        "release, no ledger": f"release new.parquet {SMALL} -o other",
        "fit": "fit rel -o model",
        "sample": "sample model -n 80 --seed 7 -o drawn.csv",
        "sample, given": "sample model -n 9 --given sex=f --balance equal -o f.parquet",
        "synth": f"synth rows.csv {SMALL} -n 30 -o rows.parquet --release-dir kept",
        "query": "query rel 'count by sex, ill' 'mean(age)' \"share where ill = 'yes'\" 'median(bmi)'",
        "query, nothing asked": "query rel",
        "query, of a generator": "query rel 'mean(age) by ill' -g model --population --clip",
        "compare, rows": "compare rel new.parquet",
        "compare, exact": "compare rel new.parquet --exact",
        "compare, releases": "compare rel other -g model",
        "verify": "verify rel",
        "evaluate": "evaluate drawn.csv -r rows.csv -s schema.yaml --quick -o in.html",
        "evaluate, --release": (
            "evaluate drawn.csv -r rows.csv --release rel --test new.parquet --quick --protocol papers"
        ),
        "report": "report rel -g model -o public.html",
        "append": "append rel new.parquet -o both --ledger ledger.db",
        "verify, appended": "verify both",
        "classify": f"classify rows.csv {SMALL} -o clf --ledger ledger.db --sampling 0.5",
        "verify, classifier": "verify clf",
        "predict": "predict clf new.parquet -o predicted.csv",
        "explain": "explain clf -o maps.html",
        "explain, rows": "explain clf -o one.html --rows new.parquet --row 3",
        "ledger show": "ledger show ledger.db",
    },
    "weighted points": {
        "release, balog-subspace": (
            "release rows.csv -s schema.yaml -e 1 -m balog-subspace --public-points new.parquet -o rel"
        ),
        "fit, balog-subspace": "fit rel -o model",
        "export": "export model -o weighted.parquet",
        "query, weighted points": "query rel count -g model",
    },
    "pure": {
        "ledger init, pure": "ledger init pure.db -e 3 --delta 0",
        "release, pure": f"release rows.csv {SMALL} --delta 0 -o rel --ledger pure.db",
        "verify, pure": "verify rel",
        "ledger show, pure": "ledger show pure.db",
    },
    "parties": {
        "plan --parties": f"plan {SMALL} -m dp-anova --parties 2 -o request.json",
        "partial": f"{PARTIAL} --party a -o a1 --key-file a.key",
        "partial, another": f"{PARTIAL} --party b -o b1 --key-file b.key",
        "merge, a next round": "merge request.json a1 b1 --key-file a.key --key-file b.key -o out",
        "plan of one round": f"plan {SMALL} -m dp-merf -o one.json",
        "partial, exact": "partial rows.csv -r one.json --party a -o a2 --key-file a.key",
        "merge, a release": "merge one.json a2 --key-file a.key -o merged",
        "verify, merged": "verify merged",
    },
    "images": {
        "schema draft, images": "schema draft private.npz",
        "schema check, images": "schema check images.yaml private.npz",
        "grid": "grid private.npz -s images.yaml -o grid.png --per-class 3",
        "encoder train": f"encoder train letters.npz -o encoder {FORM}",
        "encoder show": "encoder show encoder",
        "ledger init, images": "ledger init ledger.db -e 9 --reserve 0.1",
        "encoder private": (
            "encoder private private.npz -s images.yaml -e 2 -o own --steps 2 --batch 40 --ledger ledger.db"
        ),
        "encoder show, private": "encoder show own",
        "verify, encoder": "verify own",
        "plan, dp-mepf": "plan -s images.yaml -e 1 -m dp-mepf --encoder encoder",
        "plan, dp-mepf, private": "plan -s images.yaml -e 1 -m dp-mepf --encoder own",
        "plan, dp-spectrum": "plan -s images.yaml -e 1 -m dp-spectrum",
        "plan, dp-merf-ae": "plan -s images.yaml -e 1 -m dp-merf-ae --descent-steps 2",
        "release, dp-mepf": "release private.npz -s images.yaml -e 5 -m dp-mepf --encoder own --steps 2 -o rel",
        "fit, dp-mepf": "fit rel -o model --encoder own",
        "sample, images": "sample model -n 7 -o drawn.npz",
    },
}
"""Command lines by what they show, in the order in which they are run."""


@pytest.mark.parametrize("way", WAYS)
def test_fields_of_json(golden: Any, run: Run, office: Path, way: str) -> None:
    for name, words in WAYS[way].items():
        found = run(f"{words} --json")
        assert (found.code, found.err) == (0, ""), f"{name}: {found}"
        fields = sorted(paths_in(json.loads(found.out)))
        golden.check(f"fields of {name}", dict.fromkeys(fields, True), portable=True)


def test_every_verb_with_json_has_its_fields_recorded() -> None:
    """But for the demo, whose table takes long."""
    ran = [words for way in WAYS.values() for words in way.values()]
    for name, command in VERBS.items():
        verb = name.removeprefix("understudy ")
        if any("--json" in each.opts for each in command.params) and verb != "demo":
            assert any(words.startswith(f"{verb} ") for words in ran), verb


# How runs end that are refused


REFUSALS = {
    "no verb": "",
    "an unknown verb": "relase",
    "an unknown option": f"plan {SMALL} --epsilom 1",
    "a missing option": "plan -s schema.yaml",
    "an option without its value": "plan -s schema.yaml -e",
    "no number": "plan -s schema.yaml -e much",
    "epsilon 0": "plan -s schema.yaml -e 0",
    "delta 1": f"plan {SMALL} --delta 1",
    "an unknown method": f"plan {SMALL} -m dp-magic",
    "an option of another method": f"plan {SMALL} --kernel laplace",
    "unknown neighbours": f"plan {SMALL} --neighbours far",
    "a limit of the parser": f"plan {SMALL} --moments 3",
    "rows of a unit that is not given": f"plan {SMALL} --max-rows 3",
    "a file too many": "schema check schema.yaml rows.csv new.parquet",
    "no schema": "plan -s absent.yaml -e 1",
    "a schema with a hole": "plan -s hole.yaml -e 1",
    "no data": f"release absent.csv {SMALL} -o x",
    "an output that is there": f"release rows.csv {SMALL} -o taken",
    "a key without a ledger": f"release rows.csv {SMALL} -o x --key k",
    "no ledger": f"release rows.csv {SMALL} -o x --ledger absent.db",
    "more than is left": f"release rows.csv {SMALL} -o x --ledger small.db",
    "more than is left, synth": f"synth rows.csv {SMALL} -o x.csv --ledger small.db",
    "more than is left, classify": f"classify rows.csv {SMALL} -o x --ledger small.db",
    "more than a party allows": "partial rows.csv -r own.json --party a -o x --key-file a.key --max-epsilon 0.5",
    "nothing allowed by a party": "partial rows.csv -r own.json --party a -o x --key-file a.key",
    "no release": "fit taken -o x",
    "no generator": "sample taken -o x.csv",
    "nothing to verify": "verify taken",
    "nothing to ask": "query taken count",
    "no ledger to show": "ledger show rows.csv",
    "a ledger that is there": "ledger init small.db -e 1",
    "an encoder that is missing": "plan -s images.yaml -e 1 -m dp-mepf",
    "an output of another kind": f"synth rows.csv {SMALL} -o x.docx",
    "a page that is no page": "report taken -o x.pdf",
    "cells that do not fit": "schema check schema.yaml odd.csv --cells",
}


@pytest.fixture
def refusing(office: Path, run: Run) -> Path:
    """An office whose ledger is nearly empty, with a request of parties' own noise."""
    (office / "taken").mkdir()
    (office / "hole.yaml").write_text(SCHEMA.replace("[0, 120]", "???"))
    (office / "odd.csv").write_text((office / "rows.csv").read_text() + "9,999,f,,no\n")
    assert run("ledger init small.db -e 0.5").code == 0
    assert run(f"plan {SMALL} --parties 2 -o own.json").code == 0
    return office


def test_exit_codes(golden: Any, run: Run, refusing: Path) -> None:
    """Each refusal ends with its code and says where and by which rule; nothing is left behind."""
    before = sorted(path.name for path in refusing.iterdir())
    found = {}
    for name, words in REFUSALS.items():
        ended = run(f"{words} --json" if words else words)
        lines = ended.err.splitlines()
        fields = sorted(json.loads(lines[-1])["error"]) if ended.err.startswith("{") else []
        found[name] = {"code": ended.code, "fields": fields, "is silent": not ended.out}
    golden.check("exit codes", found, portable=True)
    assert sorted(path.name for path in refusing.iterdir()) == before


def test_the_version_and_help_end_well(golden: Any, run: Run) -> None:
    codes = {name: run(f"{name.removeprefix('understudy')} --help").code for name in VERBS}
    golden.check("codes of help", codes | {"--version": run("--version").code}, portable=True)
