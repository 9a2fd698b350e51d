"""Figures of the code itself: its size, how far one walks to follow a command, what is written more than once.

``python tools/house.py`` prints all of them; ``--trace`` also prints the files that a ``synth`` walks through.
"""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "understudy"
LEDGER = "ledger"

SCHEMA = """\
columns:
- {name: bmi, kind: continuous, bounds: [10, 80], nullable: true, bounds_from: convention}
- {name: age, kind: integer, bounds: [0, 120], bounds_from: definition}
- {name: sex, kind: categorical, categories: [f, m], bounds_from: codebook}
- {name: ill, kind: binary, role: label, categories: [no, yes], bounds_from: codebook}
"""

TRACER = """\
import json, sys, threading
from pathlib import Path
source, called, seen = sys.argv.pop(1) + "/", {}, set()
IS_FUNCTION = 0x1  # the flag CO_OPTIMIZED: set for functions, not for bodies of modules and classes

def is_importing(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith(source) and not frame.f_code.co_flags & IS_FUNCTION:
            return True
        frame = frame.f_back
    return False

def trace(frame, event, _):
    code = frame.f_code
    if event != "call" or code in seen or not code.co_filename.startswith(source) or is_importing(frame):
        return
    seen.add(code)
    called.setdefault(code.co_filename.removeprefix(source), set()).add(code.co_qualname)

sys.setprofile(trace)
threading.setprofile(trace)
from understudy.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended
finally:
    sys.setprofile(None)
Path("trace.json").write_text(json.dumps({name: sorted(each) for name, each in called.items()}))
"""


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


def lines_of_code(path: Path) -> int:
    """Lines that hold code: not blank, not a docstring, not a comment."""
    text = path.read_text("utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    empty = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            found |= set(range(token.start[0], token.end[0] + 1))
    return len(found - docstrings)


def trace_synth() -> dict[str, list[str]]:
    """The functions that one ``synth`` on a small made-up table calls, by file, in the order of first calls."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "schema.yaml").write_text(SCHEMA)
        rows = "".join(f"{20 + i % 30},{i % 90},{'fm'[i % 2]},{'yes' if i % 4 else 'no'}\n" for i in range(200))
        (place / "rows.csv").write_text("bmi,age,sex,ill\n" + rows)
        (place / "tracer.py").write_text(TRACER)
        words = ["synth", "rows.csv", "-s", "schema.yaml", "-e", "1", "--steps", "3", "-o", "drawn.csv"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "tracer.py", str(SOURCE), *words]
        subprocess.run(command, check=True, cwd=place, env=environment, stdout=subprocess.DEVNULL)
        found: dict[str, list[str]] = json.loads((place / "trace.json").read_text())
        return found


def folder_changes(files: list[str]) -> int:
    """How often the folder changes from one file to the next."""
    folders = [str(Path(file).parent) for file in files]
    return sum(before != after for before, after in pairwise(folders))


def feature_maps() -> set[str]:
    """Names of the classes that are feature maps: they state a dimension and a sign, and turn cells into features."""
    found = set()
    for path in (SOURCE / "features").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                names |= {getattr(each.target, "id", "") for each in node.body if isinstance(each, ast.AnnAssign)}
                if {"dim", "sign", "__call__"} <= names:
                    found.add(node.name)
    return found


def class_questions() -> dict[str, set[int]]:
    """Lines outside ``features/`` that ask a map for its class, by module."""
    maps, found = feature_maps(), {}
    for path in modules():
        if SOURCE / "features" in path.parents:
            continue
        lines = set(_asking_lines(ast.parse(path.read_text("utf-8")), maps))
        if lines:
            found[str(path.relative_to(SOURCE))] = lines
    return found


def _asking_lines(tree: ast.Module, maps: set[str]) -> Iterator[int]:
    for node in ast.walk(tree):
        asked: ast.expr | None = None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = node.args[1]
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
            is_type = isinstance(node.left.func, ast.Name) and node.left.func.id == "type"
            asked = node.comparators[0] if is_type else None
        names = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(asked)} if asked else set()
        if names & maps:
            yield node.lineno


def spend_protocols() -> list[str]:
    """Modules that charge a ledger themselves."""
    found = []
    for path in modules():
        tree = ast.parse(path.read_text("utf-8"))
        names = {getattr(n.func, "id", getattr(n.func, "attr", "")) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        if names & {"charge_ledger", "spend"} and LEDGER not in path.stem:
            found.append(str(path.relative_to(SOURCE)))
    return found


def help_lines() -> int:
    """Lines of ``synth --help`` on a terminal of 80 columns."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    command = [sys.executable, "-c", "from understudy.cli import main; main()", "synth", "--help"]
    shown = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return len(shown.stdout.splitlines())


def main() -> None:
    """Print every figure with what was asked for."""
    sizes = [lines_of_code(path) for path in modules()]
    trace = trace_synth()
    questions = class_questions()
    protocols = spend_protocols()
    words = len((ROOT / "ARCHITECTURE.md").read_text("utf-8").split())
    asking = sum(len(lines) for lines in questions.values())
    rows = [
        ("modules", len(sizes), "<= 200"),
        ("lines of code", sum(sizes), "<= 22,500"),
        ("files that one synth on a table walks through", len(trace), "<= 48"),
        ("functions that it calls", sum(map(len, trace.values())), ""),
        ("folder changes in order of first call, by file", folder_changes(list(trace)), "<= 20"),
        ("lines outside features/ that ask a map for its class", asking, "<= 8"),
        ("modules that they stand in", len(questions), "<= 2"),
        (f"modules that charge a ledger ({', '.join(protocols)})", len(protocols), "1"),
        ("lines of synth --help at 80 columns", help_lines(), "<= 45"),
        ("words of ARCHITECTURE.md", words, "<= 700"),
    ]
    for name, figure, asked in rows:
        print(f"{figure:>8,}  {asked:>9}  {name}")
    if "--trace" in sys.argv:
        print("\n".join(f"{len(functions):>4} {file}" for file, functions in trace.items()))
    if "--maps" in sys.argv:
        print("\n".join(f"{file}: {sorted(lines)}" for file, lines in questions.items()))


if __name__ == "__main__":
    main()
