"""Rows stay inside: what the import linter cannot see, the syntax tree can."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy

ROOT = Path(understudy.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
FRONT_DOOR = ROOT / "__init__.py"
FACADES = {"Synthesizer": ROOT / "synthesizer.py", "LocallyLinearClassifier": ROOT / "estimator.py"}
MAY_REACH_PRIVATE = (ROOT / "private", ROOT / "readers", ROOT / "cli", ROOT / "demo", *FACADES.values())
PRIVATE_NAMES = {name for name, home in understudy._HOMES.items() if home.startswith("private")} | set(FACADES)
PICKLES = {"pickle", "cPickle", "_pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
DYNAMIC = {"__import__", "import_module", "exec", "eval", "compile", "run_module", "run_path"}
GLOBAL_SEEDS = {"random.seed", "np.random.seed", "numpy.random.seed", "torch.manual_seed"}
SAFE_NUMPY_RANDOM = {"default_rng", "Generator", "PCG64", "SeedSequence", "BitGenerator"}


def is_under(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


def package_of(path: Path) -> list[str]:
    return ["understudy", *path.relative_to(ROOT).parent.parts]


def imported(tree: ast.AST, package: list[str]) -> Iterator[str]:
    """Absolute names of everything imported, relative imports resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def reaches_private(tree: ast.AST, package: list[str]) -> list[str]:
    """Every way to the private side: by import, attribute, front door, string or dynamic import."""
    found = [
        name
        for name in imported(tree, package)
        if f"{name}.".startswith("understudy.private.")
        or name in {f"understudy.{each}" for each in PRIVATE_NAMES}
        or name == "understudy.*"
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):  # the whole package has the front door's names
            found += [alias.name for alias in node.names if alias.name == "understudy"]
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if name in {"understudy.private", *(f"understudy.{each}" for each in PRIVATE_NAMES)}:
                found.append(name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.replace("/", ".")
            # Prose may say "private"; a module path in one piece may not be spelt out.
            if "understudy.private" in text or text.startswith((".private", "private.")):
                found.append(repr(node.value))
        if isinstance(node, ast.Call):
            name = dotted(node.func).rsplit(".", 1)[-1]
            if name in DYNAMIC and not dotted(node.func).startswith("re."):
                found.append(f"{name}()")
        if isinstance(node, ast.Subscript | ast.Attribute) and dotted(node) == "sys.modules":
            found.append("sys.modules")
    return found


def forbidden(tree: ast.AST, package: list[str]) -> list[str]:
    """Pickles, code that unpickles, and seeds that would reach other people's generators."""
    found = [name for name in imported(tree, package) if name.split(".")[0] in PICKLES]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            legacy = name.startswith(("np.random.", "numpy.random."))
            if name in {"torch.load", "np.load", "numpy.load"} | GLOBAL_SEEDS or (
                legacy and node.attr not in SAFE_NUMPY_RANDOM
            ):
                found.append(name)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    imports = set(imported(tree, package))
    return found + [name for name in ("random", "random.seed") if name in imports]


@pytest.mark.parametrize(
    "path",
    [p for p in MODULES if not is_under(p, (*MAY_REACH_PRIVATE, FRONT_DOOR))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_public_module_can_reach_the_private_side(path: Path) -> None:
    assert reaches_private(ast.parse(path.read_text()), package_of(path)) == []


def test_the_front_door_opens_only_the_names_it_lists() -> None:
    tree = ast.parse(FRONT_DOOR.read_text())
    dynamic = [found for found in reaches_private(tree, ["understudy"]) if found.endswith("()")]
    assert dynamic == ["import_module()"]
    assert set(understudy._HOMES) == set(understudy.__all__)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_unpickles_or_seeds_a_global_generator(path: Path) -> None:
    assert forbidden(ast.parse(path.read_text()), package_of(path)) == []


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if is_under(path, (ROOT / "private", ROOT / "readers"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_private_side_prints_and_logs_nothing(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = {dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    told = {"print", "warnings.warn", "sys.stdout.write", "sys.stderr.write", "breakpoint"}
    assert not names & told
    loud = {"logging", "warnings", "rich", "typer"}
    if path.name == "sealed.py":
        loud -= {"warnings"}  # it silences those of libraries
    assert not loud & {name.split(".")[0] for name in imported(tree, package_of(path))}


def test_torch_comes_to_the_private_side_by_one_door_and_only_inside_a_function() -> None:
    """Gradients of single rows are torch's; all else on the private side does without."""
    doors, opening = {"load_torch", "one_thread"}, []
    for path in (path for path in MODULES if is_under(path, (ROOT / "private",))):
        tree = ast.parse(path.read_text())
        assert "torch" not in {name.split(".")[0] for name in imported(tree, package_of(path))}
        if doors & {dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}:
            opening.append(path.relative_to(ROOT / "private").as_posix())
        outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        calls = {dotted(each.func) for node in outside for each in ast.walk(node) if isinstance(each, ast.Call)}
        assert not doors & calls
    assert sorted(opening) == ["dpsgd/encoder.py", "dpsgd/networks.py"]


ESCAPES = [
    "import understudy.private.sums",
    "import understudy.private.sums as s",
    "from understudy.private import sums",
    "from understudy import private",
    "from understudy import release_table",
    "from understudy import Synthesizer",
    "from understudy import *",
    "from ..private.sums import Work",
    "from .. import private",
    "from ...understudy import private",
    "import understudy as u\ngetattr(u, 'release' + '_table')",
    "import understudy\nunderstudy.private.sums",
    "import understudy\nunderstudy.release_table(1, 2)",
    "import importlib\nimportlib.import_module('understudy.private.sums')",
    "import importlib as i\ni.import_module('under' + 'study.pri' + 'vate')",
    "__import__('understudy.private')",
    "exec('import x')",
    "eval('x')",
    "import sys\nsys.modules['x']",
    "name = 'understudy.private.sums'",
    "name = 'private.release'",
    "def f():\n    from understudy.private.release import release_table",
    "if TYPE_CHECKING:\n    from understudy.private import ledger",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_the_check_sees_every_known_way_around_it(source: str) -> None:
    assert reaches_private(ast.parse(source), ["understudy", "generators"])


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import torch\ntorch.load('x')",
        "import numpy as np\nnp.random.seed(0)",
        "import numpy as np\nnp.random.normal()",
        "import random",
        "from random import seed",
        "import torch\ntorch.manual_seed(0)",
        "import numpy as np\nnp.load('x')",
        "f(allow_pickle=True)",
    ],
)
def test_the_check_sees_pickles_and_global_seeds(source: str) -> None:
    assert forbidden(ast.parse(source), ["understudy"])


def test_ordinary_code_raises_no_alarm() -> None:
    source = "import re\nimport numpy as np\nre.compile('a')\nnp.random.default_rng(0)\n'private rows'"
    assert not reaches_private(ast.parse(source), ["understudy"])
    assert not forbidden(ast.parse(source), ["understudy"])


def test_importing_every_public_module_loads_no_private_one() -> None:
    names = [
        ".".join([*package_of(path), path.stem]).removesuffix(".__init__")
        for path in MODULES
        if not is_under(path, (*MAY_REACH_PRIVATE, FRONT_DOOR))
    ]
    script = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print([m for m in sys.modules if m.startswith('understudy.private')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
