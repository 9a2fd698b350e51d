"""Tables as public sources give them become what the schemas expect, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import fetch
import pandas as pd
import pytest
from command_line import schema_of
from convert import ATTACKS, CONVERSIONS, convert

from understudy import Schema, load_schema

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
    "2174, 0, 40, United-States, <=50K\n\n"
)
ADULT_TEST = (
    "|1x3 Cross validator\n"
    "18, ?, 103497, Some-college, 10, Never-married, ?, Own-child, White, Female, 0, 0, 30, "
    "United-States, >50K.\n"
)
CARD = [*(f"V{i}" for i in range(1, 29)), "Amount", "Class"]
EPILEPTIC = """
name: epileptic
columns:
- {name: x178, kind: integer, bounds: [-2048, 2047]}
- {name: seizure, kind: binary, role: label, categories: [0, 1]}
"""
ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
    "split",
]


def schema_with(choices: dict[str, list[object]], numbers: list[str], order: list[str]) -> Schema:
    """A schema whose numbers lie between -1,000 and 1,000,000."""
    columns: dict[str, dict[str, object]] = {
        name: {"kind": "continuous", "bounds": [-1000, 1_000_000]} for name in numbers
    } | {name: {"kind": "categorical", "categories": of} for name, of in choices.items()}
    entries = [{"name": name, "nullable": True, **columns[name]} for name in order]
    return load_schema({"name": "test", "columns": entries})


def plain(names: list[str], **choices: list[object]) -> Schema:
    return schema_with(choices, [name for name in names if name not in choices], names)


def test_adult_keeps_its_split_and_its_nulls(tmp_path: Path):
    (tmp_path / "adult.data").write_text(ADULT)
    (tmp_path / "adult.test").write_text(ADULT_TEST)
    words = {
        name: sorted({line.split(", ")[place] for line in (ADULT, ADULT_TEST.split("\n")[1])} - {"?"})
        for place, name in enumerate(ADULT_COLUMNS[:14])
        if not ADULT.split(", ")[place].isdigit()
    }
    schema = plain(ADULT_COLUMNS, **words, income=["<=50K", ">50K"], split=["train", "test"])
    found = convert("adult", fetch.SOURCES["adult"](tmp_path), schema)
    assert list(found.columns) == ADULT_COLUMNS
    assert found["split"].tolist() == ["train", "test"]
    assert found["income"].tolist() == ["<=50K", ">50K"]
    assert found["age"].tolist() == [39, 18]
    assert found["workclass"].isna().tolist() == [False, True]


def test_covtype_is_taken_by_position():
    cells = [2596.0, 51, 3, 258, 0, 510, 221, 232, 148, 6279, 1, *[0] * 43, 5]
    raw = pd.DataFrame([cells], columns=[f"c{i}" for i in range(55)])
    names = ["elevation", *(f"n{i}" for i in range(53)), "cover_type"]
    found = convert("covtype", raw, plain(names))
    assert list(found.columns) == names
    assert found[["elevation", "cover_type"]].to_numpy().tolist() == [[2596, 5]]


def test_creditcard_loses_its_time_and_the_quotes_of_its_class():
    raw = pd.DataFrame([dict.fromkeys(["Time", *CARD], 0.5) | {"Class": "'1'"}])
    found = convert("creditcard", raw, plain(CARD, Class=[0, 1]))
    assert list(found.columns) == CARD
    assert found["Class"].tolist() == [1]


def test_only_class_1_of_epileptic_is_a_seizure():
    raw = pd.DataFrame(
        [[f"X{y}.V1", *range(178), y] for y in (1, 4)], columns=["name", *(f"X{i}" for i in range(1, 179)), "y"]
    )
    names = [f"x{i}" for i in range(1, 179)]
    found = convert("epileptic", raw, plain([*names, "seizure"], seizure=[0, 1]))
    assert found["seizure"].tolist() == [1, 0]
    assert found["x178"].tolist() == [177, 177]


def test_vowels_of_isolet_are_five_letters():
    raw = pd.DataFrame([[0.25] * 617 + [f"'{place}'"] for place in range(1, 27)])
    names, letters = [f"f{i}" for i in range(1, 618)], list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    schema = plain([*names, "letter", "vowel"], letter=letters, vowel=[0, 1])
    found = convert("isolet", raw, schema)
    assert "".join(found["letter"][found["vowel"] == 1]) == "AEIOU"


def test_attacks_of_kddcup99_are_put_into_groups():
    attacks = {attack: group for group, each in ATTACKS.items() for attack in each}
    features = [0, b"tcp", b"http", b"SF", *[0] * 37]
    raw = pd.DataFrame([[*features, f"{attack}.".encode()] for attack in attacks], dtype=object)
    words = {"protocol_type": ["tcp"], "service": ["http"], "flag": ["SF"], "attack": list(attacks)}
    names = ["duration", *list(words)[:3], *(f"n{i}" for i in range(37)), "attack", "attack_group"]
    found = convert("kddcup99", raw, plain(names, **words, attack_group=list(ATTACKS)))
    assert found["attack_group"].tolist() == list(attacks.values())
    assert len(attacks) == 23
    assert found["service"].tolist()[0] == "http"


def test_a_cell_that_does_not_fit_the_schema_is_refused():
    raw = pd.DataFrame([dict.fromkeys(CARD, 1e7) | {"Class": 0}])
    with pytest.raises(ValueError, match="29 cells do not fit"):
        convert("creditcard", raw, plain(CARD, Class=[0, 1]))


def test_every_conversion_has_a_source():
    assert {*fetch.SOURCES, fetch.MANUAL} == set(CONVERSIONS)


def test_a_file_downloaded_by_hand_becomes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    by_hand = tmp_path / "by_hand.csv"
    columns = ["", *(f"X{i}" for i in range(1, 179)), "y"]
    pd.DataFrame([["a", *[0] * 178, 1]], columns=columns).to_csv(by_hand, index=False)
    words = ["--tables", "epileptic", "--file", str(by_hand), "--data", str(tmp_path / "tables")]
    monkeypatch.setattr(sys, "argv", ["fetch.py", *words])
    schema_path = schema_of(tmp_path / "tables", "epileptic")
    schema_path.parent.mkdir(parents=True)
    schema_path.write_text(EPILEPTIC)
    fetch.main()
    assert pd.read_parquet(tmp_path / "tables" / "epileptic.parquet")["seizure"].tolist() == [1]


def test_a_table_that_is_there_already_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name in fetch.SOURCES:
        (tmp_path / f"{name}.parquet").touch()
    monkeypatch.setattr(sys, "argv", ["fetch.py", "--data", str(tmp_path)])
    fetch.main()
    assert capsys.readouterr().out.count("already") == len(fetch.SOURCES)


def test_the_file_by_hand_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["fetch.py", "--tables", "epileptic", "--data", str(tmp_path)])
    with pytest.raises(SystemExit):
        fetch.main()
    assert "by hand" in capsys.readouterr().err
