"""Differentially private synthetic data from one certified release.

    schema ──► plan ──► RELEASE ──► fit ──► sample
    (public)  (public)  (the only    (free, repeatable, no private rows)
                         step that
                         sees rows)

The short way, in scikit-learn's manner::

    from understudy import Synthesizer
    rows = Synthesizer("schema.yaml", epsilon=1.0).fit("patients.parquet").sample(1000)

The explicit way::

    from understudy import Budget, fit_release, load_schema, make_plan, release_table
    plan = make_plan(load_schema("schema.yaml"), Budget(epsilon=1.0))
    release = release_table("patients.parquet", plan, directory="release")
    rows = fit_release(release).sample(1000, seed=0)

Questions, without synthetic rows and at no cost::

    from understudy import ask
    ask("release", "mean(age) by sex").rows
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.accounting.mechanisms import Budget as Budget
    from understudy.accounting.mechanisms import Neighbours as Neighbours
    from understudy.errors import UnderstudyError as UnderstudyError
    from understudy.estimator import LocallyLinearClassifier as LocallyLinearClassifier
    from understudy.generators import load_generator as load_generator
    from understudy.generators import save_generator as save_generator
    from understudy.methods import balog_features as balog_features
    from understudy.methods import balog_subspace as balog_subspace
    from understudy.methods import dp_anova as dp_anova
    from understudy.methods import dp_hp as dp_hp
    from understudy.methods import dp_merf as dp_merf
    from understudy.methods import fit_release as fit_release
    from understudy.methods import make_plan as make_plan
    from understudy.private.ledger import create_ledger as create_ledger
    from understudy.private.ledger import read_ledger as read_ledger
    from understudy.private.release import append_rows as append_rows
    from understudy.private.release import release_table as release_table
    from understudy.queries import ask as ask
    from understudy.released import load_release as load_release
    from understudy.released import verify_release as verify_release
    from understudy.schema import Schema as Schema
    from understudy.schema import load_schema as load_schema
    from understudy.synthesizer import Synthesizer as Synthesizer
    from understudy.two_sample.compare import compare_releases as compare_releases
    from understudy.two_sample.compare import compare_with_rows as compare_with_rows

__version__ = "0.1.0"

_HOMES = {
    "Budget": "accounting",
    "LocallyLinearClassifier": "estimator",
    "Neighbours": "accounting",
    "Schema": "schema",
    "Synthesizer": "synthesizer",
    "UnderstudyError": "errors",
    "append_rows": "private.release",
    "ask": "queries",
    "balog_features": "methods",
    "balog_subspace": "methods",
    "compare_releases": "two_sample.compare",
    "compare_with_rows": "two_sample.compare",
    "create_ledger": "private.ledger",
    "dp_anova": "methods",
    "dp_hp": "methods",
    "dp_merf": "methods",
    "fit_release": "methods",
    "load_generator": "generators",
    "load_release": "released",
    "load_schema": "schema",
    "make_plan": "methods",
    "read_ledger": "private.ledger",
    "release_table": "private.release",
    "save_generator": "generators",
    "verify_release": "released",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import each name when it is first used, so that starting up costs nothing."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"understudy.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'understudy' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
