from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import understudy
from understudy import Budget, fit_release, load_schema, make_plan, release_table, save_generator
from understudy.fits.anova import AnovaTraining
from understudy.fits.network import Training

SCHEMA = load_schema(
    {
        "name": "tiny",
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
OPTIONS: dict[str, dict[str, Any]] = {
    "dp-anova": {},
    "dp-merf": {"num_features": 4},
    "balog-subspace": {"num_candidates": 20},
    "balog-features": {"num_features": 4, "num_points": 4, "num_candidates": 8, "steps": 2},
}
TRAINING = {"dp-anova": AnovaTraining(num_components=4, steps=2), "dp-merf": Training(hidden=(4,), steps=2, batch=16)}
each_method = pytest.mark.parametrize("method", OPTIONS)
PRIVATE_PASS = """
import json
import sys
from pathlib import Path
from understudy import Budget, load_schema, make_plan, release_table, verify_release

folder = Path(sys.argv[1])
schema, options = load_schema(folder / "schema.yaml"), json.loads(sys.argv[3])
plan = make_plan(schema, Budget(1.0), method=sys.argv[2], options=options)
release_table(folder / "rows.csv", plan, directory=folder / "out")
assert verify_release(folder / "out").is_private
print("torch" in sys.modules)
"""
SAMPLING = """
import sys
from understudy import load_generator

assert load_generator(sys.argv[1]).sample(5, seed=1).num_rows == 5
print("torch" in sys.modules)
"""


WEIGHING = """
import sys
from pathlib import Path
from understudy import Budget, fit_release, load_schema, make_plan, release_table, save_generator
from understudy.cli import main

folder = Path(sys.argv[1])
plan = make_plan(load_schema(folder / "schema.yaml"), Budget(1.0), method="balog-subspace")
generator = fit_release(release_table(folder / "rows.csv", plan))
save_generator(generator, folder / "model", release="f" * 64)
sys.argv = ["understudy", "export", str(folder / "model"), "-o", str(folder / "out.parquet")]
try:
    main()
except SystemExit as ended:
    assert not ended.code
print("torch" in sys.modules)
"""


def test_below_the_fits_torch_comes_in_by_one_door() -> None:
    """Maps of public networks are the only ones that need it, and get it from there."""
    root = Path(understudy.__file__).parent
    folders = ("features", "accounting", "schema", "published", "queries", "comparing")
    for path in (path for folder in folders for path in (root / folder).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        if path != root / "features" / "torch_runtime.py":
            assert not any(name.split(".")[0] == "torch" for name in names), path.name


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.yaml").write_text(SCHEMA.to_yaml())
    (tmp_path / "rows.csv").write_text("x,y\n0.5,no\n0.25,yes\n")
    return tmp_path


@each_method
def test_reading_private_rows_and_verifying_load_no_torch(folder: Path, method: str) -> None:
    assert run(PRIVATE_PASS, folder, method, json.dumps(OPTIONS[method])) == "False"


@each_method
def test_sampling_from_a_saved_generator_loads_no_torch(folder: Path, method: str) -> None:
    training = {"training": TRAINING[method]} if method in TRAINING else {}
    options = OPTIONS[method] | training
    plan = make_plan(SCHEMA, Budget(1.0), method=method, options=options)
    generator = fit_release(release_table(folder / "rows.csv", plan))
    save_generator(generator, folder / "model", release="f" * 64)
    assert run(SAMPLING, folder / "model") == "False"


def test_weighing_public_points_and_exporting_them_loads_no_torch(folder: Path) -> None:
    assert run(WEIGHING, folder).splitlines()[-1] == "False"
    assert (folder / "out.parquet").is_file()


CLASSIFYING = """
import sys
from pathlib import Path
from understudy import Budget, load_schema
from understudy.classifier.model import explain_row
from understudy.classifier.model import load_classifier, verify_classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.private.dpsgd.classifier import train_classifier

folder = Path(sys.argv[1])
plan = ClassifierPlan(load_schema(folder / "schema.yaml"), Budget(1.0), Training(steps=2))
train_classifier(folder / "rows.csv", plan, directory=folder / "out")
loaded = load_classifier(folder / "out")
explain_row(loaded, loaded.codes(__import__("pyarrow").table({"x": [0.5]}))[0])
assert verify_classifier(folder / "out").is_private
print("torch" in sys.modules)
"""


def test_training_and_asking_a_classifier_loads_no_torch(folder: Path) -> None:
    assert run(CLASSIFYING, folder) == "False"
