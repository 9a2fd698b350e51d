"""A plain install starts: what src imports is declared, and only extras are loaded lazily."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "array_api_compat": "array-api-compat",
    "dp_accounting": "dp-accounting",
    "jinja2": "jinja2",
    "numpy": "numpy",
    "opendp": "opendp",
    "pyarrow": "pyarrow",
    "rich": "rich",
    "scipy": "scipy",
    "safetensors": "safetensors",
    "threadpoolctl": "threadpoolctl",
    "typer": "typer",
    "yaml": "pyyaml",
}
EXTRAS = {
    "PIL",
    "cryptography",
    "duckdb",
    "linearmodels",
    "llvmlite",
    "matplotlib",
    "numba",
    "pandas",
    "polars",
    "pyspark",
    "ray",
    "sklearn",
    "torch",
    "torchvision",
    "xgboost",
}

LAZY = {"compiled"}
"""Modules that exist for numba; what it compiles must stand at the top of a module to be kept on disk."""


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"understudy"}


def test_every_import_of_the_package_is_a_declared_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {wish.split(">=")[0].split("==")[0] for wish in project["dependencies"]}
    for path in (ROOT / "src").rglob("*.py"):
        for name in imported(path) - EXTRAS:
            assert PACKAGES.get(name) in declared, f"{path.name} imports {name}"


def test_extras_are_imported_inside_functions_or_in_modules_that_are_only():
    for path in (ROOT / "src").rglob("*.py"):
        if path.stem in LAZY:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                whole = getattr(node, "module", None) or ""
                names = {alias.name.split(".")[0] for alias in node.names}
                assert not (names | {whole.split(".")[0]}) & EXTRAS, path.name
                assert not {whole.split(".")[-1], *names} & LAZY, path.name
