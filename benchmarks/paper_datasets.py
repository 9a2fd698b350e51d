"""The tables themselves: Table 1 of 002 and Table 3 of 001, beside the rows that lie in --data.

    python benchmarks/paper_datasets.py [--data DIR] [--table 002.1]

Prints CSV: rows, classes, numeric columns (ordinal ones among them) and categorical columns (binary
ones among them), ours and the printed ones. A table that is not in the folder is left blank.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import pyarrow.parquet as pq
from command_line import add_data_argument, schema_of
from paper_numbers import read_table, table_names

from understudy import load_schema

HEADER = ("paper", "table", "dataset", "count", "ours", "published", "caveat")


def main() -> None:
    """Print a line for every count of every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--table", default="002.1", choices=table_names(metrics=("rows",)))
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for each in read_table(arguments.table):
        path = arguments.data / f"{each.dataset}.parquet"
        ours = counts(path)[each.metric] if path.exists() else ""
        writer.writerow([each.paper, each.table, each.dataset, each.metric, ours, int(each.value), each.caveat])


def counts(path: Path) -> dict[str, int]:
    """What the papers count, of one table."""
    schema = load_schema(schema_of(path.parent, path.stem))
    features = [each for each in schema.used if each.name != schema.label.name]
    categorical = sum(each.is_choice for each in features)
    return {
        "rows": pq.read_metadata(path).num_rows,
        "classes": len(schema.label.categories),
        "numeric": len(features) - categorical,
        "categorical": categorical,
    }


if __name__ == "__main__":
    main()
