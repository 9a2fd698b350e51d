"""Release and synth: what they say and write, and that neither tells how many rows there were."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from understudy import load_release

FILES = {"embedding.safetensors", "release.json", "schema.yaml", "certificate.json", "certificate.html"}


def write_table(path: Path, num_rows: int) -> Path:
    ages = [30] * num_rows
    table = {
        "bmi": [22.5] * num_rows,
        "age": ages,
        "sex": ["f"] * num_rows,
        "seen": ["2020-01-01"] * num_rows,
        "ill": ["no"] * num_rows,
    }
    pa.csv.write_csv(pa.table(table), path)
    return path


def test_a_release_is_a_directory_of_inert_files(run: Any, office: Any, quick: Any) -> None:
    out = office.path("out")
    found = run("release", office.csv, "-s", office.schema, "-e", 1, "-o", out, *quick, "--json")
    assert (found.code, found.err) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES
    document = found.document
    assert document["release"] == str(out)
    assert document["epsilon"] <= 1.0
    assert (document["delta"], document["neighbours"], document["ledger"]) == (1e-5, "add-remove", None)
    certificate = json.loads((out / "certificate.json").read_text())
    assert certificate["release"] == document["fingerprint"]
    assert certificate["status"] == "PRIVATE"


def test_a_release_for_people_names_the_odds_the_certificate_and_the_next_step(
    run: Any, office: Any, quick: Any
) -> None:
    out = office.path("out[bold]")
    text = run("release", office.csv, "-s", office.schema, "-e", 1, "-o", out, *quick).out
    assert "an attacker's best guess about one row is right at most" in text
    assert f"  certificate  {out / 'certificate.html'}\n" in text
    assert f"Next, at no cost: understudy fit {out} -o MODEL" in text


@pytest.mark.parametrize("method", ["dp-anova", "dp-merf", "dp-hp"])
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["plain", "json"])
def test_one_row_more_changes_nothing_that_is_said_and_no_file_size(
    run: Any, office: Any, quick: Any, flags: Any, method: str
) -> None:
    said, sizes = [], []
    for name, num_rows in (("table-a", 500), ("table-b", 501)):
        data = write_table(office.path(f"{name}.csv"), num_rows)
        out = office.path(name)
        base = ("-s", office.schema, "-e", 1, "-m", method, "-o", out, *quick, *flags)
        found = run("release", data, *base)
        assert (found.code, found.err) == (0, "")
        text = found.out.replace(str(out), "TABLE")  # a folder's number may be any
        said.append(re.sub(r"[0-9a-f]{64}", "FINGERPRINT", text))
        sizes.append({path.name: path.stat().st_size for path in out.iterdir()})
        if method == "dp-anova":
            # Earlier stages' noisy vectors say how many cells a later one has; nothing else does.
            made = load_release(out)
            told = [made.plan.embeddings(made.vectors[:i])[-1].dim for i in range(len(made.vectors))]
            assert [len(vector) for vector in made.vectors] == told
            del sizes[-1]["embedding.safetensors"]
    assert said[0] == said[1]
    assert sizes[0] == sizes[1]
    assert not re.search(r"\b50[01]\b", said[0])


def test_the_files_of_two_neighbours_differ_in_noise_and_fingerprints_alone(run: Any, office: Any, quick: Any) -> None:
    texts = []
    for name, num_rows in (("table-a", 500), ("table-b", 501)):
        data = write_table(office.path(f"{name}.csv"), num_rows)
        out = office.path(name)
        run("release", data, "-s", office.schema, "-e", 1, "-o", out, *quick)
        texts.append(
            {
                path.name: re.sub(r"[0-9a-f]{64}|\d{4}-\d\d-\d\d \d\d:\d\d UTC", "#", path.read_text(encoding="utf-8"))
                for path in out.iterdir()
                if path.suffix != ".safetensors"
            }
        )
    assert texts[0] == texts[1]


def test_noise_is_fresh_although_the_seed_is_the_same(run: Any, office: Any, quick: Any) -> None:
    vectors = []
    for name in ("one", "two"):
        run("release", office.csv, "-s", office.schema, "-e", 1, "-o", office.path(name), *quick, "--seed", 5)
        vectors.append((office.path(name) / "embedding.safetensors").read_bytes())
    assert vectors[0] != vectors[1]


def test_synth_goes_from_private_rows_to_synthetic_rows_and_keeps_the_release(
    run: Any, office: Any, quick: Any
) -> None:
    out, kept = office.path("out.parquet"), office.path("kept")
    found = run(
        "synth",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-o",
        out,
        *quick,
        "-n",
        25,
        "--release-dir",
        kept,
        "--ledger",
        office.ledger,
        "--json",
    )
    assert (found.code, found.err) == (0, "")
    assert found.document["num_rows"] == 25
    assert found.document["ledger"]["row"] == 1
    rows = pq.read_table(out)
    assert rows.num_rows == 25
    assert rows.schema.names == ["bmi", "age", "sex", "seen", "ill"]
    assert [str(kind) for kind in rows.schema.types] == ["double", "int64", "string", "date32[day]", "string"]
    verified = run("verify", kept, "--json").document
    assert verified["fingerprint"] == found.document["fingerprint"]


def test_synth_for_people_says_where_the_rows_are_and_how_to_keep_the_release(
    run: Any, office: Any, quick: Any
) -> None:
    out = office.path("out.csv")
    found = run("synth", office.parquet, "-s", office.schema, "-e", 1, "-o", out, *quick, "-n", 5)
    assert found.code == 0
    assert f"  rows         {out} (5 synthetic rows)" in found.out
    assert "--release-dir keeps it" in found.out
    assert len(out.read_text().splitlines()) == 6


def test_a_query_selects_the_rows_and_stands_in_the_certificate(run: Any, office: Any, quick: Any) -> None:
    query = "SELECT * FROM data WHERE sex = 'f'"
    out = office.path("out")
    base = ("release", office.parquet, "-s", office.schema, "-e", 1, "-o", out, *quick)
    assert run(*base, "--query", query).code == 0
    assert json.loads((out / "certificate.json").read_text())["public"]["query"] == query
    assert run("verify", out).code == 0


def test_replace_one_takes_the_public_row_count(run: Any, office: Any, quick: Any) -> None:
    base = ("release", office.csv, "-s", office.schema, "-e", 1, *quick, "--neighbours", "replace-one")
    assert run(*base, "--rows", 60, "-o", office.path("right")).code == 0
    wrong = run(*base, "--rows", 61, "-o", office.path("wrong"))
    assert wrong.code == 1
    assert "60" not in wrong.err
    assert not office.path("wrong").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--labels", "none"),
        ("--labels", "balanced"),
        ("-m", "dp-merf", "--features", "20", "--length-scale", "private"),
        ("-m", "dp-merf", "--features", "20", "--separate-releases"),
        ("-m", "dp-hp", "--products", "2"),
    ],
    ids=str,
)
def test_every_variant_can_be_released_and_verified(
    run: Any, office: Any, quick: Any, options: tuple[str, ...]
) -> None:
    out = office.path("out")
    base = ("release", office.csv, "-s", office.schema, "-e", 1, "-o", out, *quick)
    assert run(*base, *options).code == 0
    assert run("verify", out, "--json").document["epsilon"] <= 1.0


def test_the_id_column_is_never_read(run: Any, office: Any, quick: Any) -> None:
    schema = office.schema.read_text() + "- {name: nr, kind: id}\n"
    office.put("schema.yaml", schema)
    data = office.put("odd.csv", "bmi,age,sex,seen,ill\n20,30,f,2020-01-01,no\n")  # has no such column
    assert run("release", data, "-s", office.schema, "-e", 1, "-o", office.path("out"), *quick).code == 0


def test_a_key_with_another_query_is_refused_and_nothing_is_given_back(run: Any, office: Any, quick: Any) -> None:
    words = ("-s", office.schema, "-e", 0.5, *quick, "--ledger", office.ledger, "--key", "spring", "--json")
    one, other = "SELECT * FROM data WHERE age > 30", "SELECT * FROM data WHERE age < 30"
    first = run("release", office.parquet, *words, "--query", one, "-o", office.path("first"))
    assert first.code == 0
    spent = office.spent()
    for query in (("--query", other), ()):
        refused = run("release", "no-such-file.csv", *words, *query, "-o", office.path("other"))
        assert refused.code == 1
        assert refused.refusal == {
            "where": "key 'spring'",
            "rule": "was used with another query",
            "remedy": "Choose a new key",
        }
    again = run("release", "no-such-file.csv", *words, "--query", one, "-o", office.path("again"))
    assert again.document["fingerprint"] == first.document["fingerprint"]
    assert office.spent() == spent
    assert not office.path("other").exists()
