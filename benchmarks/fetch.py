"""Download the papers' tables for the other scripts: NAME.parquet in the form of schemas/NAME.yaml.

    python benchmarks/fetch.py [--data DIR] [--tables adult census ...]
    python benchmarks/fetch.py [--data DIR] --tables epileptic --file DOWNLOADED.csv

DIR/schemas/NAME.yaml says what a table is to look like (`understudy schema draft` begins one). Downloads are
kept in DIR/cache; a table that is there already is left alone. `epileptic` is no longer
offered by its first source: get the CSV file by hand (11,500 rows, `X1` to `X178` and `y`) and name it
with --file. Census, Adult and Cervical come from the UCI repository, Isolet and Credit card (ids 300
and 1597) from OpenML, Covertype and KDD Cup 99 by scikit-learn. Not needed where tables lie ready.
"""

from __future__ import annotations

import argparse
import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from command_line import add_data_argument, schema_of
from convert import convert

from understudy import load_schema

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


def main() -> None:
    """Fetch, convert and write every table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*SOURCES, MANUAL], default=[*SOURCES])
    parser.add_argument("--file", type=Path, help="a CSV file that was downloaded by hand")
    add_data_argument(parser)
    arguments = parser.parse_args()
    if arguments.file is None and MANUAL in arguments.tables:
        parser.error(f"{MANUAL} needs --file: its CSV file has to be downloaded by hand")
    if arguments.file is not None and len(arguments.tables) != 1:
        parser.error("--file goes with one table")
    cache = arguments.data / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in arguments.tables:
        path = arguments.data / f"{name}.parquet"
        if path.exists():
            print(f"{path} is there already")
            continue
        raw = pd.read_csv(arguments.file) if arguments.file else SOURCES[name](cache)
        table = convert(name, raw, load_schema(schema_of(arguments.data, name)))
        table.to_parquet(path, index=False)
        print(f"{path}: {len(table):,} rows, {table.shape[1]} columns")


def _download(address: str, cache: Path) -> Path:
    path = cache / address.rpartition("/")[2]
    if not path.exists():
        part = path.with_name(path.name + ".part")
        with urllib.request.urlopen(address) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file)
        part.rename(path)
    return path


def _lines(address: str, cache: Path, *, skip: int = 0) -> pd.DataFrame:
    """A CSV file without names, as words; only a question mark is null ("NA" is an answer)."""
    return pd.read_csv(
        _download(f"{UCI}/{address}", cache),
        header=None,
        skiprows=skip,
        dtype=str,
        skipinitialspace=True,
        keep_default_na=False,
        na_values=["?"],
    )


def _adult(cache: Path) -> pd.DataFrame:
    parts = {"train": _lines("adult/adult.data", cache), "test": _lines("adult/adult.test", cache, skip=1)}
    return pd.concat([part.assign(split=name) for name, part in parts.items()])


def _census(cache: Path) -> pd.DataFrame:
    return _lines("census-income-mld/census-income.data.gz", cache)


def _cervical(cache: Path) -> pd.DataFrame:
    return _lines("00383/risk_factors_cervical_cancer.csv", cache, skip=1)


def _covtype(cache: Path) -> pd.DataFrame:
    from sklearn.datasets import fetch_covtype

    return fetch_covtype(data_home=cache, as_frame=True).frame


def _creditcard(cache: Path) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    return fetch_openml(data_id=1597, data_home=cache, as_frame=True).frame


def _isolet(cache: Path) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    return fetch_openml(data_id=300, data_home=cache, as_frame=True).frame


def _kddcup99(cache: Path) -> pd.DataFrame:
    from sklearn.datasets import fetch_kddcup99

    return fetch_kddcup99(data_home=cache, percent10=True, as_frame=True).frame


MANUAL = "epileptic"
SOURCES: dict[str, Callable[[Path], pd.DataFrame]] = {
    "adult": _adult,
    "census": _census,
    "cervical": _cervical,
    "covtype": _covtype,
    "creditcard": _creditcard,
    "isolet": _isolet,
    "kddcup99": _kddcup99,
}


if __name__ == "__main__":
    main()
