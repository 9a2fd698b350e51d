"""The short way: an estimator in scikit-learn's manner."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.accounting.mechanisms import Budget
from understudy.arrays import LossProgress, load_torch
from understudy.errors import SchemaWarning, UsageError
from understudy.generators.base import Generator
from understudy.generators.conditioning import Balance, Given
from understudy.methods import fit_release, make_plan, needs_torch
from understudy.plan.plan import Plan
from understudy.private.release import release_table
from understudy.released import Release
from understudy.released.diagnostics import release_warnings
from understudy.schema import Schema, load_schema


@dataclass(eq=False, repr=False)
class Synthesizer:
    """Plan, release, fit and sample in one object.

    Args:
        schema: a schema, or the path of its YAML file.
        epsilon: the privacy budget; with ``delta`` it is the whole guarantee.
        delta: far below one over the number of rows; 0 for pure differential privacy, by Laplace
            noise.
        method: ``auto`` or a method by name.
        neighbours: ``add-remove`` (the row count is private) or ``replace-one`` (it is public).
        num_rows: the public row count, or a public guess to plan for.
        ledger: an SQLite ledger to charge.
        key: names the release in the ledger; the same key gives the stored release back.
        release_dir: where to keep the release and its certificate.
        seed: public seed of features and training; the noise has none.
        options: further keyword arguments of the method, such as ``{"labels": "none"}`` or
            ``{"training": Training(steps=1000)}`` for ``dp_merf``.

    Attributes:
        plan_: what was decided before a row was read.
        release_: the noisy vectors; the only thing that private rows ever reach.
        generator_: what draws rows.
    """

    schema: Schema | str | Path
    _: KW_ONLY
    epsilon: float
    delta: float = 1e-5
    method: str = "auto"
    neighbours: str = "add-remove"
    num_rows: int | None = None
    ledger: str | Path | None = None
    key: str | None = None
    release_dir: str | Path | None = None
    seed: int = 0
    options: dict[str, Any] | None = None
    plan_: Plan = field(init=False)
    release_: Release = field(init=False)
    generator_: Generator = field(init=False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn's ``clone`` wants them."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def plan(self) -> Plan:
        """Everything that ``fit`` will do, without data."""
        options = {"neighbours": self.neighbours, "num_rows": self.num_rows, "seed": self.seed}
        return make_plan(
            load_schema(self.schema),
            Budget(self.epsilon, self.delta),
            method=self.method,
            options=options | (self.options or {}),
        )

    def fit(self, data: object, *, query: str | None = None, progress: LossProgress | None = None) -> Synthesizer:
        """Release the table's embedding (this spends the budget) and fit a generator (free).

        A ``SchemaWarning`` says, from the release's noisy counts, that the schema does not fit the table.

        Args:
            data: a file, a directory or pattern of files, a frame of pandas, polars or pyarrow, a dictionary of
                columns, or a list of dictionaries. Cells without a declared type are read one by one.
            query: SQL that selects the rows; a file or frame is called ``data`` in it.
            progress: called as the generator is fitted.
        """
        self.plan_ = self.plan()
        if needs_torch(self.plan_):
            load_torch()
        self.release_ = release_table(
            data, self.plan_, directory=self.release_dir, ledger=self.ledger, key=self.key, query=query
        )
        for words in release_warnings(self.release_):
            warnings.warn(words, SchemaWarning, stacklevel=2)
        self.generator_ = fit_release(self.release_, progress=progress)
        return self

    def sample(
        self, n: int | None = None, *, seed: int = 0, given: Given | None = None, balance: Balance | None = None
    ) -> pa.Table:
        """Draw n rows as an Arrow table (``.to_pandas()`` for a data frame).

        Args:
            n: how many; by default as many as the private table has, by its noisy count.
            seed: the same seed gives the same rows.
            given: what rows must have, such as ``{"sex": "f", "age": (30, 40)}``.
            balance: shares of the label's classes: ``kept``, ``equal``, or a share for each.
        """
        if not hasattr(self, "generator_"):
            raise UsageError("sample", "nothing has been fitted yet", "Call fit(data) first")
        if n is not None and n < 1:
            raise UsageError("sample", "the number of rows must be at least 1")
        count = self.generator_.default_num_rows if n is None else n
        return self.generator_.sample(count, seed=seed, given=given, balance=balance)
