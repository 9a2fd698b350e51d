"""Bad input: one clear line, the right exit code, nothing written, nothing spent, no cell shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SECRET = "SECRET-7f3a"
HEADER = "bmi,age,sex,seen,ill\n"
GOOD = "21.5,30,f,2020-01-01,no\n"


@dataclass(frozen=True)
class Bad:
    """A run that must be refused: what is changed, and the words that must be said."""

    name: str
    where: str
    rule: str
    remedy: str
    code: int = 1
    data: Callable[[Any], Any] | None = None
    schema: str | None = None
    options: tuple[str, ...] = ()
    output: str | None = None

    def __str__(self) -> str:
        return self.name


def csv(content: str | bytes, name: str = "bad.csv") -> Callable[[Any], Any]:
    return lambda office: office.put(name, content)


def parquet(**columns: Any) -> Callable[[Any], Any]:
    def write(office: Any) -> Any:
        table = pq.read_table(office.parquet).slice(0, 2)
        for name, cells in columns.items():
            table = table.set_column(table.schema.get_field_index(name), name, cells)
        pq.write_table(table, office.path("bad.parquet"))
        return office.path("bad.parquet")

    return write


def truncated_parquet(office: Any) -> Any:
    table = pa.table({name: [SECRET] * 50 for name in ("bmi", "age", "sex", "seen", "ill")})
    pq.write_table(table, office.path("whole.parquet"), compression="none", use_dictionary=False)
    content = office.path("whole.parquet").read_bytes()
    office.path("whole.parquet").unlink()
    return office.put("bad.parquet", content[: len(content) // 2])


ONE_COLUMN = "columns: [{name: bmi, kind: continuous, bounds: [10, 80]}]"
BAD = (
    Bad(
        "missing file",
        "file 'none.csv'",
        "there is no such file",
        "Check the path",
        data=lambda office: office.path("none.csv"),
    ),
    Bad("zero bytes", "file 'bad.csv'", "the file is empty (zero bytes)", "Write it again", data=csv(b"")),
    Bad(
        "zero bytes of Parquet",
        "file 'bad.parquet'",
        "the file is empty (zero bytes)",
        "Write it again",
        data=csv(b"", "bad.parquet"),
    ),
    Bad("unknown kind of file", "file 'bad.xlsx'", "its kind is not known", "Use .csv", data=csv(SECRET, "bad.xlsx")),
    Bad(
        "missing column",
        "file 'bad.csv'",
        "it has no column 'bmi'",
        "Spell the name",
        data=csv(f"age,sex,seen,ill\n1,{SECRET},,no\n"),
    ),
    Bad(
        "no header",
        "file 'bad.csv'",
        "it names none of the columns asked for",
        "first line",
        data=csv(f"{SECRET},1,2,3,4\n5,6,7,8,9\n"),
    ),
    Bad(
        "header that is no text",
        "file 'bad.csv'",
        "first line must hold the column names",
        "Add a header",
        data=csv(b"\xff\xfe," + SECRET.encode() + b"\n1,2\n"),
    ),
    Bad(
        "date column for numbers",
        "column 'age'",
        "holds cells of type date32[day]",
        "Mend the column",
        data=parquet(age=pa.array([1, 2], pa.int32()).cast(pa.date32())),
    ),
    Bad(
        "number column for dates",
        "column 'seen'",
        "must hold dates, but holds cells of type int64",
        "Mend the column",
        data=parquet(seen=pa.array([1, 2])),
    ),
    Bad(
        "nested column",
        "column 'sex'",
        "must hold categories, but holds a nested type",
        "Mend the column",
        data=parquet(sex=pa.array([[SECRET], []])),
    ),
    Bad(
        "truncated Parquet",
        "file 'bad.parquet'",
        "it is damaged, or not a Parquet file",
        "Write it again",
        data=truncated_parquet,
    ),
    Bad(
        "text called Parquet",
        "file 'bad.parquet'",
        "it is damaged, or not a Parquet file",
        "Write it again",
        data=csv(HEADER + SECRET, "bad.parquet"),
    ),
    Bad(
        "row too short",
        "file 'bad.csv'",
        "every row must have as many cells as the header",
        "in quotes",
        data=csv(HEADER + GOOD + f"{SECRET},1\n"),
    ),
    Bad(
        "row too long",
        "file 'bad.csv'",
        "every row must have as many cells as the header",
        "in quotes",
        data=csv(HEADER + GOOD * 3000 + f"1,2,f,,no,{SECRET}\n" + GOOD),
    ),
    Bad("open quote", "file 'bad.csv'", "", "", data=csv(HEADER + GOOD + f'"{SECRET},1,f,,no\n' + GOOD)),
    Bad(
        "database without query",
        "file 'rows.sqlite'",
        "a database needs a query",
        "SELECT",
        data=csv(b"SQLite format 3\x00" + bytes(100), "rows.sqlite"),
    ),
    Bad(
        "query that does not fit",
        "file 'rows.csv'",
        "the query does not fit",
        "Check its names",
        options=("--query", "SELECT nothing FROM data"),
    ),
    Bad("missing schema", "schema ", "no such file", "understudy schema draft", schema=""),
    Bad("schema that is no YAML", "schema 'schema'", "is not valid YAML near line 1", "", schema="columns: [{"),
    Bad("schema without columns", "schema 'schema'", "needs a list called 'columns'", "draft", schema="rows: 3"),
    Bad(
        "schema without bounds",
        "column 'bmi'",
        "bounds must be public, got none",
        "not from the data",
        schema="columns: [{name: bmi, kind: continuous}]",
    ),
    Bad(
        "schema without categories",
        "column 'sex'",
        "categories must be public, got none",
        "not from the data",
        schema="columns: [{name: sex, kind: categorical}]",
    ),
    Bad(
        "schema that is a draft",
        "schema 'schema'",
        "still ???: bounds of 'bmi'",
        "A person must decide them",
        schema="columns: [{name: bmi, kind: continuous, bounds: ???}]",
    ),
    Bad(
        "rows of nobody",
        "schema 'schema'",
        "does not say whose rows",
        "privacy: {unit: COLUMN",
        schema="privacy: {unit: row, max_rows: 5}\n" + ONE_COLUMN,
    ),
    *(
        Bad(
            f"epsilon {value}",
            "epsilon",
            "must be a finite number above 0",
            "Common choices",
            code=2,
            options=("--epsilon", value),
        )
        for value in ("0", "-1", "nan", "inf", "-inf", "1e309")
    ),
    *(
        Bad(
            f"delta {value}",
            "delta",
            "must be 0, or lie between",
            "for example 1e-5",
            code=2,
            options=("--delta", value),
        )
        for value in ("1e-16", "1", "1.5", "-0.1", "nan")
    ),
    Bad(
        "unknown method",
        "method",
        "'magic' is unknown",
        "Methods are auto, dp-anova, dp-merf, dp-hp",
        code=2,
        options=("--method", "magic"),
    ),
    Bad(
        "unknown neighbours",
        "neighbours",
        "'next-door' is unknown",
        "add-remove or replace-one",
        code=2,
        options=("--neighbours", "next-door"),
    ),
    Bad("rows of no unit", "max rows", "none was given", "--unit COLUMN", code=2, options=("--max-rows", "3")),
    Bad(
        "unknown labels",
        "labels",
        "must be one of auto, none, balanced, imbalanced",
        "",
        code=2,
        options=("--labels", "some"),
    ),
    Bad(
        "length scale that is no number",
        "length scale",
        "must be a number or 'private'",
        "",
        code=2,
        options=("--length-scale", "short"),
    ),
    Bad(
        "length scale below zero", "length scale", "must", "", code=2, options=("-m", "dp-merf", "--length-scale", "-1")
    ),
    Bad("rows below one", "command line", "--rows", "--help", code=2, options=("--rows", "0")),
    Bad("steps below one", "command line", "--steps", "--help", code=2, options=("--steps", "0")),
    Bad(
        "features below two", "features", "must be at least 2", "", code=2, options=("-m", "dp-merf", "--features", "1")
    ),
    Bad(
        "an option of another method",
        "num features",
        "is not an option of dp-anova",
        "Its options are",
        code=2,
        options=("--features", "20"),
    ),
    Bad(
        "replace-one without a row count",
        "rows",
        "replace-one needs the public row count",
        "--rows N",
        code=2,
        options=("--neighbours", "replace-one"),
    ),
    Bad(
        "a release that tells the row count its ledger hides",
        "ledger",
        "hides the row count",
        "--neighbours",
        options=("--neighbours", "replace-one", "--rows", "59"),
    ),
    Bad("output that exists", "'{folder}/rows.parquet'", "exists already", "Choose another", output="rows.parquet"),
    Bad(
        "output in no directory",
        "'{folder}/none/out.csv'",
        "does not exist or cannot be written",
        "Choose another",
        output="none/out.csv",
    ),
    Bad(
        "output below a file",
        "'{folder}/rows.csv/out.csv'",
        "does not exist or cannot be written",
        "Choose another",
        output="rows.csv/out.csv",
    ),
    Bad(
        "missing ledger",
        "ledger '{folder}/none.db'",
        "it does not exist",
        "understudy ledger init",
        options=("--ledger", "{folder}/none.db"),
    ),
    Bad(
        "ledger that is none",
        "ledger '{folder}/rows.csv'",
        "is not a ledger",
        "restore a copy",
        options=("--ledger", "{folder}/rows.csv"),
    ),
    Bad("blank key", "key", "must be text in UTF-8, not blank", "Use plain letters", code=2, options=("--key", " ")),
    Bad(
        "cap exceeded",
        "ledger '{folder}/ledger.db'",
        "cap of epsilon 3 allows 2.9999",
        "reuse a published release",
        code=3,
        options=("--epsilon", "3.1"),
    ),
)


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("verb", ["release", "synth"])
def test_bad_input_is_refused_clearly_and_leaves_no_trace(
    run: Any, office: Any, quick: Any, bad: Bad, verb: str
) -> None:
    data = bad.data(office) if bad.data else office.csv
    if bad.schema is not None:
        office.put("schema.yaml", bad.schema) if bad.schema else office.schema.unlink()
    output = office.path(bad.output or "out.csv")
    options = [each.format(folder=office.folder) for each in bad.options]
    base = (verb, data, "-s", office.schema, "-e", 1, "-o", output, "--ledger", office.ledger)
    before, spent = office.files(), office.spent()

    plain = run(*base, *quick, *options)
    as_json = run(*base, *quick, *options, "--json")

    assert (plain.code, as_json.code) == (bad.code, bad.code)
    assert plain.out == ""
    (line,) = plain.err.splitlines()
    fields = as_json.refusal
    assert bad.where.format(folder=office.folder) in fields["where"]
    assert bad.rule in fields["rule"]
    assert bad.remedy in fields["remedy"]
    assert line.startswith(f"refused: {fields['where']}: {fields['rule']}.")
    assert fields["remedy"] in line
    assert SECRET not in plain.err + as_json.err
    assert office.files() == before
    assert office.spent() == spent


def test_a_directory_that_may_not_be_written_is_refused(run: Any, office: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # A test that runs as root may write anywhere, so the system's answer is replaced.
    monkeypatch.setattr("os.access", lambda path, *_: path != office.folder)
    for verb in ("release", "synth"):
        found = run(verb, office.csv, "-s", office.schema, "-e", 1, "-o", office.path("out.csv"), "--json")
        assert found.code == 1
        assert "does not exist or cannot be written" in found.refusal["rule"]


def test_a_release_directory_that_exists_is_refused_before_anything_is_spent(run: Any, office: Any, quick: Any) -> None:
    office.path("kept").mkdir()
    found = run(
        "synth",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-o",
        office.path("out.csv"),
        *quick,
        "--release-dir",
        office.path("kept"),
        "--ledger",
        office.ledger,
        "--json",
    )
    assert found.code == 1
    assert found.refusal["rule"] == "exists already"
    assert office.spent() == (0, ())


def test_rows_and_release_in_one_place_are_refused(run: Any, office: Any, quick: Any) -> None:
    out = office.path("out.csv")
    found = run("synth", office.csv, "-s", office.schema, "-e", 1, "-o", out, "--release-dir", out, *quick, "--json")
    assert found.code == 2
    assert found.refusal["rule"] == "must differ from the output"
    assert not out.exists()


def test_rows_of_an_unknown_type_are_refused(run: Any, office: Any, quick: Any) -> None:
    out = office.path("out.xlsx")
    found = run("synth", office.csv, "-s", office.schema, "-e", 1, "-o", out, *quick, "--json")
    assert found.code == 2
    assert found.refusal["rule"] == "must end in .csv or .parquet"


def test_synth_without_torch_is_refused_before_anything_is_spent(
    run: Any, office: Any, quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    found = run(
        "synth",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-o",
        office.path("out.csv"),
        *quick,
        "--ledger",
        office.ledger,
        "--json",
    )
    assert found.code == 1
    assert found.refusal["where"] == "package 'torch'"
    assert "extra 'network'" in found.refusal["remedy"]
    assert office.spent() == (0, ())


def test_a_key_that_names_another_plan_is_refused(run: Any, office: Any, quick: Any) -> None:
    base = ("release", office.csv, "-s", office.schema, "--ledger", office.ledger, "--key", "spring", *quick)
    assert run(*base, "-e", 1, "-o", office.path("one")).code == 0
    spent = office.spent()
    found = run(*base, "-e", 0.5, "-o", office.path("two"), "--json")
    assert found.code == 1
    assert found.refusal["rule"] == "was used for another plan"
    assert office.spent() == spent
    assert not office.path("two").exists()


# What looks bad and is not.


ODD_ROWS = """\
bmi,age,sex,seen,ill
1e309,-1e309,f,2020-01-01,no
-5,999,m,1800-01-01,yes
nan,NaN,q,9999-12-31,maybe
inf,-Infinity,SECRET-7f3a,2020-01-01T10:00:00Z,
,,,,
 21.5 , 30 , f , 2020-01-01 , yes
NA,null,F,NA,NO
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_cells_out_of_range_and_unknown_words_are_encoded_and_never_refused(
    run: Any, office: Any, quick: Any, suffix: str
) -> None:
    if suffix == "csv":
        data = office.put("odd.csv", ODD_ROWS)
    else:
        data = office.path("odd.parquet")
        odd = {
            "bmi": pa.array([1e308, float("nan"), float("inf"), None, 5e-324]),
            "age": pa.array([2**63, 0, 1, None, 2**64 - 1], pa.uint64()),
            "sex": pa.array([b"\xff\xfe", b"f", b"", None, SECRET.encode()]),
            "seen": pa.array([-(2**62), 0, 2**62, None, 1], pa.int64()).cast(pa.timestamp("ns")),
            "ill": pa.array([True, False, None, True, False]),
        }
        pq.write_table(pa.table(odd), data)
    found = run("release", data, "-s", office.schema, "-e", 1, "-o", office.path("out"), *quick, "--json")
    assert (found.code, found.err) == (0, "")
    for path in office.path("out").iterdir():
        assert SECRET.encode() not in path.read_bytes()


def test_a_table_without_rows_is_a_table(run: Any, office: Any, quick: Any) -> None:
    data = office.put("none.csv", HEADER)
    found = run("release", data, "-s", office.schema, "-e", 1, "-o", office.path("out"), *quick, "--json")
    assert (found.code, found.err) == (0, "")
    assert run("verify", office.path("out")).code == 0
