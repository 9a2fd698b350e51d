"""How often 95 % intervals of query answers hold the truth, over many releases of one table.

The table is simulated here from a fixed seed; noise has none. Every release is answered with the
same queries, whose truth is known from the rows. ``--schemas`` does so with schemas that do not fit the
rows, in the ways in which schemas go wrong: there an interval must hold, or the answer must say what is
wrong (``warned``), or be refused.

    python benchmarks/query_coverage.py --releases 500 --output coverage.csv
    python benchmarks/query_coverage.py --releases 500 --schemas unlisted blanks encoding clipped shuffled
"""

from __future__ import annotations

import argparse
import csv
import math
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

from understudy.accounting.mechanisms import Budget
from understudy.methods import make_plan
from understudy.private.release import release_table
from understudy.queries import Asker, QueryError
from understudy.schema import Schema, load_schema

NUM_ROWS = 3000
REGIONS, SEXES, GROUPS = ["north", "south", "east", "west"], ["Female", "Male"], ["young", "old"]
SCHEMA = {
    "name": "simulated",
    "columns": [
        {"name": "sex", "kind": "binary", "categories": SEXES},
        {"name": "region", "kind": "categorical", "categories": REGIONS, "nullable": True},
        {"name": "children", "kind": "integer", "bounds": [0, 4]},
        {"name": "score", "kind": "integer", "bounds": [0, 200]},
        {"name": "amount", "kind": "continuous", "bounds": [0, 1000]},
        {"name": "group", "kind": "binary", "categories": GROUPS, "role": "label"},
    ],
}

MISFITS = ("unlisted", "blanks", "encoding", "clipped", "shuffled")

Rows = dict[str, np.ndarray]


def simulate(seed: int = 0) -> Rows:
    """A small table in which columns depend on one another."""
    rng = np.random.default_rng(seed)
    old = rng.random(NUM_ROWS) < 0.35
    sex = rng.random(NUM_ROWS) < 0.45 + 0.1 * old
    region = rng.choice(5, NUM_ROWS, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    region = np.where((region == 0) & sex & (rng.random(NUM_ROWS) < 0.3), 1, region)
    children = np.clip(rng.poisson(1.0 + 0.8 * old + 0.3 * (region == 1)), 0, 4)
    score = np.clip(np.rint(rng.normal(90 + 25 * old, 35)), 0, 200).astype(int)
    amount = np.clip(rng.gamma(2.0, 90.0, NUM_ROWS) + 80 * old, 0, 1000)
    names = np.array([*REGIONS, None], dtype=object)
    return {
        "sex": np.array(SEXES, dtype=object)[1 - sex.astype(int)],
        "region": names[region],
        "children": children,
        "score": score,
        "amount": amount,
        "group": np.array(GROUPS, dtype=object)[old.astype(int)],
    }


def _level(values: np.ndarray, level: float) -> float:
    """The least value with at least that part of the rows at or below it."""
    return float(np.sort(values)[math.ceil(level * len(values)) - 1])


QUERIES = [
    ("count", "count"),
    ("one-way count", "count where sex = 'Female'"),
    ("one-way count", "count where score >= 50 and score < 100"),
    ("one-way count", "count where region is null"),
    ("one-way table", "count by children"),
    ("two-way count", "count where sex = 'Male' and region = 'north'"),
    ("two-way count", "count where region = 'south' and children >= 2"),
    ("two-way count", "count where score >= 100 and group = 'old'"),
    ("cross-table", "count by sex, group"),
    ("cross-table", "count by sex, region"),
    ("share", "share where children = 0"),
    ("share by group", "share where sex = 'Female' by group"),
    ("sum", "sum(children)"),
    ("mean", "mean(score)"),
    ("mean", "mean(children) where children >= 1"),
    ("mean by group", "mean(children) by group"),
    ("mean by group", "mean(children) by sex"),
    ("variance", "var(children)"),
    ("deviation", "std(score)"),
    ("quantile", "median(score)"),
    ("quantile", "quantile(score, 0.9)"),
    ("cells cut", "mean(amount)"),
    ("cells cut", "count where amount >= 123.4"),
    ("cells cut", "median(amount)"),
    ("cells cut", "mean(score) by sex"),
]


def truths_of(rows: Rows) -> list[np.ndarray]:
    """What the queries ask for, computed from the rows; a blank number is NaN and is left out of means."""
    sex, region, children, score, amount, group = rows.values()
    in_sex, in_group = ([column == name for name in names] for column, names in ((sex, SEXES), (group, GROUPS)))
    in_region = [region == name for name in [*REGIONS, None]]
    known = score[~np.isnan(score)]
    found = [
        len(sex),
        in_sex[0].sum(),
        ((score >= 50) & (score < 100)).sum(),
        in_region[-1].sum(),
        [(children == number).sum() for number in range(5)],
        (in_sex[1] & in_region[0]).sum(),
        (in_region[1] & (children >= 2)).sum(),
        (in_group[1] & (score >= 100)).sum(),
        [(s & g).sum() for s in in_sex for g in in_group],
        [(s & g).sum() for s in in_sex for g in in_region],
        (children == 0).mean(),
        [in_sex[0][g].mean() for g in in_group],
        children.sum(),
        known.mean(),
        children[children >= 1].mean(),
        [children[g].mean() for g in in_group],
        [children[s].mean() for s in in_sex],
        children.var(),
        known.std(),
        _level(known, 0.5),
        _level(known, 0.9),
        amount.mean(),
        (amount >= 123.4).sum(),
        _level(amount, 0.5),
        [np.nanmean(score[s]) for s in in_sex],
    ]
    return [np.atleast_1d(np.asarray(each, dtype=float)) for each in found]


def broken(name: str, rows: Rows) -> tuple[Rows, dict[str, object]]:
    """Rows, and a schema that does not fit them in one of the ways in which schemas go wrong."""
    rng, rows = np.random.default_rng(1), dict(rows)
    columns = {str(column["name"]): dict(column) for column in SCHEMA["columns"]}  # type: ignore[attr-defined]
    if name == "unlisted":  # values that came up after the codebook was written, in the label too
        rows["region"] = np.where(rng.random(NUM_ROWS) < 0.1, "centre", rows["region"])
        rows["group"] = np.where(rng.random(NUM_ROWS) < 0.05, "middle", rows["group"])
    elif name == "blanks":  # where the schema says that there are none
        rows["sex"] = np.where(rng.random(NUM_ROWS) < 0.05, None, rows["sex"])
        rows["score"] = np.where(rng.random(NUM_ROWS) < 0.05, np.nan, rows["score"])
    elif name == "encoding":  # Latin-1, where UTF-8 is read
        names = {"Female": "weiblich ♀".replace("♀", "ü"), "Male": "männlich"}
        rows["sex"] = np.array([names[str(cell)] for cell in rows["sex"]], dtype=object)
        columns["sex"]["categories"] = list(names.values())
    elif name == "clipped":
        columns["score"]["bounds"], columns["amount"]["bounds"] = [30, 120], [0, 400]
    elif name == "shuffled":  # lists of categories beside the wrong columns, one in another order
        columns["sex"]["categories"], columns["group"]["categories"] = GROUPS, SEXES
        columns["region"]["categories"] = REGIONS[::-1]
    return rows, {"name": "simulated", "columns": list(columns.values())}


def table_of(rows: Rows, *, encoding: str = "utf-8") -> pa.Table:
    """The rows as a file of this encoding would hold them."""
    cells = {
        name: [cell.encode(encoding) if isinstance(cell, str) else cell for cell in values.tolist()]
        for name, values in rows.items()
    }
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in cells.items()})


def table_and_schema() -> tuple[Rows, pa.Table, Schema]:
    """The rows, as arrays and as a table, and their schema."""
    rows = simulate()
    return rows, table_of(rows), load_schema(SCHEMA)


def _groups(query: str) -> list[tuple[str, ...]]:
    """The groups of a query in the order of its truths."""
    names = {"sex": SEXES, "group": GROUPS, "children": list("01234"), "region": [*REGIONS, "null"]}
    _, _, by = query.partition(" by ")
    return list(product(*(names[column] for column in by.split(", ")))) if by else [()]


def misfit(name: str, *, releases: int, epsilon: float) -> list[dict[str, object]]:
    """A line for each query to a release whose schema does not fit: did intervals hold, or answers say why not?"""
    rows, document = broken(name, simulate())
    table = table_of(rows, encoding="latin-1" if name == "encoding" else "utf-8")
    schema = load_schema(document)
    plan = make_plan(schema, Budget(epsilon, 1e-6), options={"num_rows": NUM_ROWS})
    truths = truths_of(rows)
    counts = {kind: np.zeros(len(QUERIES)) for kind in ("held", "warned", "refused", "silent")}
    for _ in range(releases):
        asker = Asker(release_table(table, plan))
        for i, (_, query) in enumerate(QUERIES):
            try:
                answer = asker.ask(query)
            except QueryError:
                counts["refused"][i] += 1
                continue
            found = {tuple(dict(row.group).values()): row for row in answer.rows}
            held = np.mean(
                [
                    key in found and found[key].low <= truth <= found[key].high
                    for key, truth in zip(_groups(query), truths[i], strict=True)
                ]
            )
            is_told = any("listed" in note or "blank" in note or "beyond it" in note for note in answer.notes)
            counts["warned"][i] += is_told
            counts["held"][i] += held
            counts["silent"][i] += 0.0 if is_told else 1.0 - held
    return [
        {"schema": name, "kind": kind, "query": query}
        | {key: round(float(count[i]) / releases, 4) for key, count in counts.items()}
        for i, (kind, query) in enumerate(QUERIES)
    ]


def coverage(neighbours: str, *, releases: int, epsilon: float) -> list[dict[str, object]]:
    """A line for each query: how often intervals held, how wide they were, how often exact."""
    rows, table, schema = table_and_schema()
    options = {"num_rows": NUM_ROWS, "neighbours": neighbours}
    plan = make_plan(schema, Budget(epsilon, 1e-6), options=options)
    truths = truths_of(rows)
    held = [np.zeros(len(truth)) for truth in truths]
    scores: list[list[np.ndarray]] = [[] for _ in QUERIES]
    widths, exact = np.zeros(len(QUERIES)), np.zeros(len(QUERIES))
    for _ in range(releases):
        asker = Asker(release_table(table, plan))
        for i, (_, query) in enumerate(QUERIES):
            answer = asker.ask(query)
            low, high, middle, error = np.array(
                [(row.low, row.high, row.estimate, row.std_error) for row in answer.rows]
            ).T
            held[i] += (low <= truths[i]) & (truths[i] <= high)
            scores[i].append((middle - truths[i]) / np.maximum(error, 1e-300))
            widths[i] += float((high - low).mean()) / 2
            exact[i] += float(np.mean([row.is_exact for row in answer.rows]))
    found = []
    for i, (kind, query) in enumerate(QUERIES):
        share = held[i] / releases
        found.append(
            {
                "neighbours": neighbours,
                "kind": kind,
                "query": query,
                "intervals": len(truths[i]),
                "coverage": round(float(share.mean()), 4),
                "standard_error": round(math.sqrt(0.95 * 0.05 / releases), 4),
                "least": round(float(share.min()), 4),
                "half_width": float(f"{widths[i] / releases:.4g}"),
                "error_in_deviations": round(float(np.concatenate(scores[i]).std()), 3),
                "bias_in_deviations": round(float(np.concatenate(scores[i]).mean()), 3),
                "exact": round(float(exact[i]) / releases, 3),
            }
        )
    return found


def show_misfits(schemas: list[str], *, releases: int, epsilon: float) -> list[dict[str, object]]:
    """Run the schemas that do not fit, and print how often an interval was wrong and nothing said so."""
    lines = []
    for name in schemas:
        found = misfit(name, releases=releases, epsilon=epsilon)
        lines += found
        for line in found:
            print(
                f"{name:<10} {line['query']:<50} held {line['held']:6.3f}  warned {line['warned']:6.3f}  "
                f"refused {line['refused']:6.3f}  wrong and silent {line['silent']:6.3f}"
            )
        worst = max(float(str(line["silent"])) for line in found)
        print(f"{name:<10} most often wrong without a word: {100 * worst:.1f} % of releases\n")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=500)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--schemas", nargs="*", default=[], choices=MISFITS)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    lines = show_misfits(asked.schemas, releases=asked.releases, epsilon=asked.epsilon)
    for neighbours in () if asked.schemas else ("add-remove", "replace-one"):
        found = coverage(neighbours, releases=asked.releases, epsilon=asked.epsilon)
        lines += found
        for line in found:
            print(
                f"{neighbours:<12} {line['kind']:<15} {line['query']:<50} {100 * line['coverage']:5.1f} %"
                f"  z {line['bias_in_deviations']:+.2f} ({line['error_in_deviations']:.2f})"
                f"  +-{line['half_width']:<8} exact {line['exact']}"
            )
        noisy = [each for each in found if each["exact"] == 1 and each["half_width"] > 0]
        number = sum(each["intervals"] for each in noisy)
        pooled = sum(each["coverage"] * each["intervals"] for each in noisy) / number
        print(f"{neighbours:<12} all exact intervals together: {100 * pooled:.2f} %\n")
    if asked.output is not None:
        with asked.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
