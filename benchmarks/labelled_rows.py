"""Rows that classifiers learn from and are tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.classifier.plan import ClassifierPlan
from understudy.private.dpsgd.classifier import integer_rows
from understudy.schema import Schema, load_schema
from understudy.schema.encode import pixel_columns


class Rows:
    """Training and test rows of a set, and what inputs were made of them."""

    def __init__(self, name: str, schema: Schema, train: pa.Table, test: pa.Table) -> None:
        self.name, self.schema, self.train, self.test = name, schema, train, test
        label = schema.label
        assert label is not None
        self.labels = np.array([label.categories.index(each) for each in test[label.name].to_pylist()])
        self._kept: dict[Any, Any] = {}

    def integers(self, plan: ClassifierPlan) -> Any:
        """Integer inputs, made once for each kind."""
        kind = (plan.training.inputs, plan.inputs.dim)
        if kind not in self._kept:
            self._kept = {kind: integer_rows(self.train, plan, query=None)}
        return self._kept[kind]


def image_rows(folder: Path, name: str) -> Rows:
    """An image set with ten classes."""
    label = {"name": "label", "kind": "categorical", "role": "label", "categories": list(range(10))}
    schema = load_schema({"name": name, "image": {"height": 28, "width": 28}, "columns": [label]})
    assert schema.image is not None
    with np.load(folder / f"{name}.npz") as archive:
        parts = [
            pa.table(
                pixel_columns(archive[f"x_{part}"], schema.image, schema.image.names)
                | {"label": archive[f"y_{part}"].astype(np.int64)}
            )
            for part in ("train", "test")
        ]
    return Rows(name, schema, *parts)


def adult_rows(folder: Path) -> Rows:
    """Adult, in its own split."""
    schema = load_schema(folder / "schemas" / "adult.yaml")
    table = pq.read_table(folder / "adult.parquet")
    split = pc.cast(table["split"], pa.string())
    return Rows("adult", schema, *(table.filter(pc.equal(split, part)) for part in ("train", "test")))
