"""Fit, sample, verify and demo: what a release can be turned into, again and again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from understudy.schema import NULL, load_schema
from understudy.schema.encode import encode_column


@pytest.fixture
def release(run: Any, office: Any, quick: Any) -> Path:
    made = office.path("release")
    assert run("release", office.csv, "-s", office.schema, "-e", 1, "-o", made, *quick).code == 0
    return Path(made)


@pytest.fixture
def model(run: Any, office: Any, release: Path) -> Path:
    made = office.path("model")
    assert run("fit", release, "-o", made).code == 0
    return Path(made)


@pytest.fixture
def clear_model(run: Any, office: Any, quick: Any) -> Path:
    """Made of so many rows that noise leaves none of what they have out."""
    table, release, made = (office.path(name) for name in ("many.parquet", "clear", "clear-model"))
    office.write(3000, table)
    assert run("release", table, "-s", office.schema, "-e", 3, "-o", release, *quick).code == 0
    assert run("fit", release, "-o", made).code == 0
    return Path(made)


def test_a_release_is_verified_from_its_own_files(run: Any, release: Path) -> None:
    found = run("verify", release, "--json").document
    assert found["is_private"] is True
    assert found["epsilon"] <= 1.0
    assert set(found["checks"]) == {"noise", *(path.name for path in release.iterdir())}
    assert {test["test"] for test in found["noise_tests"]} == {"residues", "agreement"}
    shown = run("verify", release).out
    assert "Consistent" in shown
    assert "Verified" not in shown
    for words in (shown, found["meaning"]):
        assert "cannot show that noise was really drawn" in " ".join(words.split())
        assert "who made" in words


@pytest.mark.parametrize(
    "name", ["certificate.json", "certificate.html", "schema.yaml", "release.json", "embedding.safetensors"]
)
def test_a_release_with_a_changed_byte_is_refused(run: Any, release: Path, name: str) -> None:
    content = bytearray((release / name).read_bytes())
    content[-3] ^= 1
    (release / name).write_bytes(bytes(content))
    found = run("verify", release, "--json")
    assert found.code == 1
    assert str(release) in found.refusal["where"]


@pytest.mark.parametrize("name", ["certificate.html", "release.json", "embedding.safetensors"])
def test_a_release_without_one_of_its_files_is_refused(run: Any, release: Path, name: str) -> None:
    (release / name).unlink()
    assert run("verify", release, "--json").code == 1


def test_a_release_with_a_stray_file_is_refused(run: Any, release: Path) -> None:
    (release / "notes.txt").touch()
    assert run("verify", release, "--json").refusal["rule"] == "does not belong to a release"


def test_a_release_is_not_what_any_directory_is(run: Any, office: Any) -> None:
    for verb in (("verify", office.folder), ("fit", office.folder, "-o", office.path("model"))):
        found = run(*verb, "--json")
        assert (found.code, found.refusal["rule"]) == (1, "is not the directory of a release")
    assert not office.path("model").exists()


def test_fitting_and_sampling_need_neither_data_nor_schema(run: Any, office: Any, release: Path) -> None:
    for path in (office.csv, office.parquet, office.schema):
        path.unlink()
    fitted = run("fit", release, "-o", office.path("model"), "--json").document
    assert fitted["release"] == run("verify", release, "--json").document["fingerprint"]
    drawn = run("sample", office.path("model"), "-o", office.path("rows.parquet"), "-n", 33, "--json")
    assert drawn.document["num_rows"] == 33
    assert pq.read_table(office.path("rows.parquet")).num_rows == 33


def test_a_generator_draws_the_same_rows_from_the_same_seed(run: Any, office: Any, model: Path) -> None:
    def draw(name: str, seed: int) -> bytes:
        assert run("sample", model, "-o", office.path(name), "-n", 50, "--seed", seed).code == 0
        return bytes(office.path(name).read_bytes())

    assert draw("a.csv", 1) == draw("b.csv", 1) != draw("c.csv", 2)


def test_the_same_release_gives_the_same_generator(run: Any, office: Any, release: Path, model: Path) -> None:
    again = office.path("again")
    run("fit", release, "-o", again)
    for path in model.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_every_cell_that_is_drawn_obeys_the_schema(run: Any, office: Any, model: Path) -> None:
    run("sample", model, "-o", office.path("drawn.parquet"), "-n", 300)
    rows = pq.read_table(office.path("drawn.parquet"))
    for column in load_schema(office.schema).used:
        cells = rows[column.name]
        if not column.nullable:
            assert cells.null_count == 0
        known = cells.drop_null()
        assert NULL not in encode_column(column, known)
        if not column.is_choice:
            low, high = column.to_dict()["bounds"]
            for cell in known.to_pylist():
                assert (str(low) <= str(cell) <= str(high)) if column.resolution else low <= cell <= high


def test_without_a_number_the_noisy_count_is_drawn(run: Any, office: Any, model: Path) -> None:
    found = run("sample", model, "-o", office.path("drawn.csv"), "--json").document
    assert found["num_rows"] >= 1


def test_only_rows_that_were_asked_for_are_drawn(run: Any, office: Any, clear_model: Path) -> None:
    wishes = ("--given", "age=0..119", "--given", "sex=f|m", "--given", "seen=..2015-12-31|null")
    out = office.path("drawn.parquet")
    found = run("sample", clear_model, "-o", out, "-n", 40, *wishes, "--balance", "equal")
    assert found.code == 0, found.err
    rows = pq.read_table(out).to_pandas()
    assert rows["age"].max() <= 119
    assert rows["ill"].value_counts().to_dict() == {"yes": 20, "no": 20}
    assert (rows["seen"].dropna().astype(str) <= "2015-12-31").all()


def test_classes_come_in_the_shares_that_were_asked_for(run: Any, office: Any, model: Path) -> None:
    out = office.path("drawn.parquet")
    assert run("sample", model, "-o", out, "-n", 40, "--balance", "yes=1|no=3").code == 0
    assert pq.read_table(out)["ill"].to_pylist().count("yes") == 10


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (("--given", "age"), "needs an equals sign"),
        (("--given", "years=3"), "is not a column"),
        (("--given", "age=old"), "holds numbers, and 'old' is none"),
        (("--given", "age=1", "--given", "age=2"), "was given twice"),
        (("--given", "sex=x"), "has no category 'x'"),
        (("--given", "age=500..600"), "the column has no such value"),
        (("--balance", "even"), "must be kept, equal, or a share for each class"),
        (("--balance", "yes=much"), "'much' is no share"),
        (("--balance", "maybe=1"), "has no category 'maybe'"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(
    run: Any, office: Any, model: Path, wish: tuple[str, ...], words: str
) -> None:
    found = run("sample", model, "-o", office.path("drawn.csv"), *wish, "--json")
    assert found.code == 2
    assert words in found.refusal["rule"]
    assert not office.path("drawn.csv").exists()


def test_outputs_that_exist_are_refused(run: Any, office: Any, release: Path, model: Path) -> None:
    before = office.files()
    assert run("fit", release, "-o", model, "--json").refusal["rule"] == "exists already"
    assert run("sample", model, "-o", office.csv, "--json").refusal["rule"] == "exists already"
    assert office.files() == before


def test_a_generator_that_is_missing_or_damaged_is_refused(run: Any, office: Any, model: Path) -> None:
    (model / "generator.json").write_text("{}")
    for place in (model, office.path("none")):
        found = run("sample", place, "-o", office.path("drawn.csv"), "--json")
        assert (found.code, found.refusal["rule"]) == (1, "is missing or damaged")
        assert "understudy fit" in found.refusal["remedy"]
    assert not office.path("drawn.csv").exists()


def test_a_release_that_was_moved_is_still_a_release(run: Any, office: Any, release: Path) -> None:
    moved = office.path("else[where]")
    shutil.move(release, moved)
    assert run("verify", moved).code == 0
    office.path("models[").mkdir()
    model = office.path("models[/x]")  # a closing tag, if it were markup
    found = run("fit", moved, "-o", model)
    assert found.code == 0
    assert f"understudy sample {model} -o rows.csv" in found.out


def test_the_demo_says_where_its_results_are(run: Any, office: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def short_demo(output: Path, **_: object) -> dict[str, Path]:
        return {"rows": output / "synthetic.csv", "picture": output / "comparison.png"}

    monkeypatch.setattr("understudy.demo.run_demo", short_demo)
    found = run("demo", "-o", office.path("demo"), "--json").document
    assert found["picture"] == str(office.path("demo") / "comparison.png")
    assert str(office.path("demo") / "synthetic.csv") in run("demo", "-o", office.path("demo")).out
