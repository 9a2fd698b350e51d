"""The ledger's verbs, and releases that are charged to it."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.private.ledger import read_ledger


def test_a_new_ledger_has_its_whole_cap_left(run: Any, office: Any) -> None:
    file = office.path("new.db")
    made = run("ledger", "init", file, "-e", 2, "--json").document
    assert made == {"ledger": str(file), "epsilon": 2.0, "delta": 1e-5}
    shown = run("ledger", "show", file, "--json").document
    assert shown["cap"]["epsilon"] == 2.0
    assert shown["remaining"]["epsilon"] == pytest.approx(2.0, abs=1e-4)
    assert (shown["spent"]["units"], shown["rows"], shown["neighbours"]) == (0, [], "add-remove")
    assert "No releases yet." in run("ledger", "show", file).out


def test_a_ledger_may_count_in_replace_one(run: Any, office: Any) -> None:
    file = office.path("new.db")
    assert run("ledger", "init", file, "-e", 2, "--neighbours", "replace-one").code == 0
    assert run("ledger", "show", file, "--json").document["neighbours"] == "replace-one"


def test_a_ledger_is_never_overwritten(run: Any, office: Any) -> None:
    found = run("ledger", "init", office.ledger, "-e", 9, "--json")
    assert (found.code, found.refusal["rule"]) == (1, "the file exists already")
    assert read_ledger(office.ledger).epsilon == 3.0


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (("-e", "0"), "epsilon"),
        (("-e", "nan"), "epsilon"),
        (("-e", "1", "--delta", "1"), "delta"),
        (("-e", "1", "--neighbours", "far"), "neighbours"),
    ],
)
def test_a_cap_outside_its_rules_makes_no_ledger(run: Any, office: Any, options: tuple[str, ...], where: str) -> None:
    found = run("ledger", "init", office.path("new.db"), *options, "--json")
    assert (found.code, found.refusal["where"]) == (2, where)
    assert not office.path("new.db").exists()


@pytest.mark.parametrize("name", ["none.db", "rows.csv"])
def test_a_file_that_is_no_ledger_is_not_shown(run: Any, office: Any, name: str) -> None:
    before = office.files()
    assert run("ledger", "show", office.path(name), "--json").code == 1
    assert office.files() == before


def test_a_release_is_charged_and_shown(run: Any, office: Any, quick: Any) -> None:
    made = run(
        "release",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-o",
        office.path("out"),
        *quick,
        "--ledger",
        office.ledger,
        "--key",
        "spring",
        "--json",
    ).document
    assert made["ledger"] == {"key": "spring", "row": 1}
    shown = run("ledger", "show", office.ledger, "--json").document
    (row,) = shown["rows"]
    assert (row["key"], row["state"], row["fingerprint"]) == ("spring", "published", made["fingerprint"])
    assert row["epsilon"] == pytest.approx(1.0, abs=1e-4)
    assert shown["spent"]["units"] == row["units"]
    assert "spring" in run("ledger", "show", office.ledger).out


def test_the_same_key_gives_the_stored_release_back_for_nothing(run: Any, office: Any, quick: Any) -> None:
    base = (
        "release",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        *quick,
        "--ledger",
        office.ledger,
        "--key",
        "spring",
        "--json",
    )
    first = run(*base, "-o", office.path("one")).document
    spent = office.spent()
    office.csv.write_text("the rows are gone")
    second = run(*base, "-o", office.path("two")).document
    assert second["fingerprint"] == first["fingerprint"]
    assert office.spent() == spent
    one, two = ({p.name: p.read_bytes() for p in office.path(n).iterdir()} for n in ("one", "two"))
    assert one == two


def test_a_spent_budget_ends_with_code_3_and_nothing_is_written(run: Any, office: Any, quick: Any) -> None:
    base = ("release", office.csv, "-s", office.schema, *quick, "--ledger", office.ledger, "--json")
    assert run(*base, "-e", 2, "-o", office.path("one")).code == 0
    spent, before = office.spent(), office.files()
    found = run(*base, "-e", 2.5, "-o", office.path("two"))
    assert found.code == 3
    assert found.refusal["where"] == f"ledger '{office.ledger}'"
    assert office.spent() == spent
    assert office.files() == before
    assert run(*base, "-e", 0.5, "-o", office.path("three")).code == 0


def test_a_ledger_charges_its_own_neighbours(run: Any, office: Any, quick: Any) -> None:
    file = office.path("other.db")
    run("ledger", "init", file, "-e", 1, "--neighbours", "replace-one")
    base = ("release", office.csv, "-s", office.schema, "-e", 1, *quick, "--ledger", file, "--json")
    assert run(*base, "-o", office.path("one")).code == 3
    assert not office.path("one").exists()
