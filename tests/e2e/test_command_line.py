"""The real command, in processes of its own, on real files: from private rows to synthetic ones."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

SECRET = "SECRET-7f3a"
COMMAND = Path(sys.executable).parent / "understudy"
QUICK = ("--steps", "5")
DECIDED = {
    "visit_cost": {"bounds": [0, 100_000], "scale_hint": "log1p", "nullable": False},
    "age": {"bounds": [0, 120], "nullable": False},
    "bmi": {"bounds": [10, 80], "nullable": True},
    "ward": {"categories": ["east", "west", "north side"], "nullable": False},
    "admitted": {"bounds": ["2000-01-01", "2030-12-31"], "nullable": True},
    "ill": {"role": "label", "nullable": False},
}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        assert self.code == 0, self.err
        assert self.err == ""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def understudy(*arguments: object) -> Ended:
    done = subprocess.run([COMMAND, *(str(each) for each in arguments)], capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def hospital_table(num_rows: int = 500) -> pa.Table:
    rng = np.random.default_rng(0)
    missing = rng.random((2, num_rows)) < 0.1
    return pa.table(
        {
            "patient_id": pa.array([f"{SECRET}-{i}" for i in range(num_rows)]),
            "visit_cost": pa.array(np.round(rng.lognormal(5, 2, num_rows), 2)),
            "age": pa.array(rng.integers(0, 100, num_rows)),
            "bmi": pa.array(rng.normal(26, 5, num_rows), mask=missing[0]),
            "ward": pa.array(rng.choice(["east", "west", "north side"], num_rows)),
            "admitted": pa.array(
                rng.integers(11_000, 19_000, num_rows).astype(np.int32), pa.int32(), mask=missing[1]
            ).cast(pa.date32()),
            "ill": pa.array(rng.random(num_rows) < 0.3),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data office: the table in two formats, and a schema that a person finished."""
    made = tmp_path_factory.mktemp("office")
    table = hospital_table()
    pq.write_table(table, made / "hospital.parquet")
    pa.csv.write_csv(table, made / "hospital.csv")
    drafted = understudy("schema", "draft", made / "hospital.parquet")
    assert (drafted.code, drafted.err) == (0, "")
    (made / "schema.yaml").write_text(decide(drafted.out))
    return made


def decide(draft: str) -> str:
    """What a person does with a draft: replace every mark from public knowledge."""
    document = yaml.safe_load(draft)
    for entry in document["columns"]:
        if entry["kind"] != "id":
            entry |= DECIDED[entry["name"]] | {"bounds_from": "codebook"}
    return str(yaml.safe_dump(document))


def holds_secret(folder: Path) -> bool:
    return any(SECRET.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def assert_valid(rows: pa.Table) -> None:
    assert rows.schema.names == ["visit_cost", "age", "bmi", "ward", "admitted", "ill"]
    cells = rows.to_pydict()
    assert all(0 <= cost <= 100_000 for cost in cells["visit_cost"])
    assert all(0 <= age <= 120 and isinstance(age, int) for age in cells["age"])
    assert all(bmi is None or 10 <= bmi <= 80 for bmi in cells["bmi"])
    assert set(cells["ward"]) <= {"east", "west", "north side"}
    assert all(day is None or 2000 <= day.year <= 2030 for day in cells["admitted"])


@pytest.fixture(scope="module")
def release(folder: Path) -> Path:
    base = ("release", folder / "hospital.parquet", "-s", folder / "schema.yaml", "-e", 1, *QUICK)
    made = understudy(*base, "-o", folder / "release", "--json").document
    assert made["epsilon"] <= 1
    return folder / "release"


@pytest.fixture(scope="module")
def model(folder: Path, release: Path) -> Path:
    made = understudy("fit", release, "-o", folder / "model", "--json").document
    assert made["generator"] == str(folder / "model")
    return folder / "model"


def test_the_short_way_from_csv_to_parquet_charges_the_ledger_and_keeps_the_release(folder: Path) -> None:
    ledger = folder / "ledger.db"
    assert understudy("ledger", "init", ledger, "-e", 1.5, "--json").document["epsilon"] == 1.5
    base = (folder / "hospital.csv", "-s", folder / "schema.yaml", *QUICK, "--ledger", ledger)

    made = understudy(
        "synth", *base, "-e", 1, "-n", 40, "-o", folder / "rows.parquet", "--release-dir", folder / "kept", "--json"
    ).document

    assert made["num_rows"] == 40
    rows = pq.read_table(folder / "rows.parquet")
    assert rows.num_rows == 40
    assert_valid(rows)
    assert rows.schema.field("age").type == pa.int64()
    assert rows.schema.field("admitted").type == pa.date32()
    assert rows.schema.field("ill").type == pa.bool_()
    assert not holds_secret(folder / "kept")

    refused = understudy("release", *base, "-e", 1.2, "-o", folder / "more", "--json")
    assert (refused.code, refused.out) == (3, "")
    assert json.loads(refused.err)["error"]["where"] == f"ledger '{ledger}'"
    assert not (folder / "more").exists()
    (row,) = understudy("ledger", "show", ledger, "--json").document["rows"]
    assert row["fingerprint"] == made["fingerprint"]


def test_the_explicit_way_from_parquet_to_csv(folder: Path, release: Path, model: Path) -> None:
    assert not holds_secret(release)
    assert not holds_secret(model)
    assert understudy("verify", release, "--json").document["is_private"] is True
    for name in ("a.csv", "b.csv"):
        drawn = understudy("sample", model, "-n", 60, "--seed", 7, "-o", folder / name, "--json")
        assert drawn.document["num_rows"] == 60
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    nulls = pa.csv.ConvertOptions(strings_can_be_null=True)
    rows = pa.csv.read_csv(folder / "a.csv", convert_options=nulls)
    assert rows.num_rows == 60
    assert_valid(rows)


@pytest.mark.parametrize("method", ["dp-anova", "dp-merf", "dp-hp"])
def test_every_method_goes_the_explicit_way_in_processes_of_its_own(folder: Path, tmp_path: Path, method: str) -> None:
    base = (folder / "hospital.parquet", "-s", folder / "schema.yaml", "-e", 1, "-m", method)
    released = understudy("release", *base, "--steps", 5, "-o", tmp_path / "release", "--json")
    assert released.document["epsilon"] <= 1
    fitted = understudy("fit", tmp_path / "release", "-o", tmp_path / "model", "--json")
    assert fitted.document["generator"] == str(tmp_path / "model")
    drawn = understudy("sample", tmp_path / "model", "-n", 60, "-o", tmp_path / "rows.parquet")
    assert (drawn.code, drawn.err) == (0, "")
    assert_valid(pq.read_table(tmp_path / "rows.parquet"))


def test_a_bad_type_is_refused_by_column_in_a_process_of_its_own(folder: Path) -> None:
    bad = hospital_table(3).set_column(2, "age", pa.array([[SECRET], [], None]))
    pq.write_table(bad, folder / "bad.parquet")
    base = ("release", folder / "bad.parquet", "-s", folder / "schema.yaml", "-e", 1, *QUICK)
    assert understudy(*base, "-o", folder / "bad") == Ended(
        1,
        "",
        "refused: column 'age': is integer and must hold numbers, but holds a nested type. "
        "Mend the column, or change its kind in the schema.\n",
    )
    assert not (folder / "bad").exists()


def test_bad_cells_are_null_and_never_shown(folder: Path) -> None:
    bad = hospital_table(3).set_column(2, "age", pa.array(["31", SECRET, "33"]))
    pa.csv.write_csv(bad, folder / "odd.csv")
    base = ("release", folder / "odd.csv", "-s", folder / "schema.yaml", "-e", 1, *QUICK)
    ended = understudy(*base, "-o", folder / "odd")
    assert ended.code == 0
    assert SECRET not in ended.out + ended.err


def test_an_argument_outside_its_rules_ends_with_code_2(folder: Path) -> None:
    ended = understudy("plan", "-s", folder / "schema.yaml", "-e", 0, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert json.loads(ended.err)["error"]["where"] == "epsilon"


def test_planning_releasing_verifying_and_sampling_never_load_torch(folder: Path, model: Path, tmp_path: Path) -> None:
    program = f"""
import sys
from understudy.cli import main
def run(*arguments):
    sys.argv = ["understudy", *arguments, "--json"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, arguments
    assert "torch" not in sys.modules, arguments
folder, model, place = {str(folder)!r}, {str(model)!r}, {str(tmp_path)!r}
plan = ("-s", folder + "/schema.yaml", "-e", "1")
run("schema", "check", folder + "/schema.yaml", folder + "/hospital.csv")
run("plan", *plan)
run("release", folder + "/hospital.csv", *plan, "-o", place + "/release")
run("verify", place + "/release")
run("sample", model, "-n", "9", "-o", place + "/rows.csv")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
