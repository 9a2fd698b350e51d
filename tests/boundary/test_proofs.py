"""Guarantees and proofs are tied both ways: a docstring names its page, and the page names what it proves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "understudy"
PAGES = {page.stem: page for page in sorted((ROOT / "proofs").glob("*.md")) if page.stem != "README"}
NAMED = re.compile(r"`([\w/]+\.py): ([\w., \n]+)`")
"""A module and what it defines, as pages write them."""


def definitions(file: Path) -> dict[str, str]:
    """Everything that a module defines, by its name in full and in short, with its docstring."""

    def found(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                yield prefix + child.name, ast.get_docstring(child) or ""
                yield from found(child, f"{prefix}{child.name}.")

    return dict(found(ast.parse(file.read_text()), ""))


def guarantees() -> dict[tuple[str, str], set[str]]:
    """Each function or class that states a guarantee, with the pages that it names."""
    return {
        (str(file.relative_to(SOURCE)), name): set(re.findall(r"proofs/(\w+)\.md", words.split("Guarantee:", 1)[1]))
        for file in sorted(SOURCE.rglob("*.py"))
        for name, words in definitions(file).items()
        if "Guarantee:" in words
    }


def named_on(page: str) -> set[tuple[str, str]]:
    """What a page says that it proves or relies on."""
    listed = NAMED.findall(PAGES[page].read_text())
    return {(file, name.strip()) for file, names in listed for name in names.split(",") if name.strip()}


GUARANTEES = guarantees()


@pytest.mark.parametrize(("file", "name"), GUARANTEES, ids=[": ".join(each) for each in GUARANTEES])
def test_every_guarantee_names_a_page_that_names_it(file: str, name: str) -> None:
    pages = GUARANTEES[file, name]
    assert pages, "a guarantee names its page: proofs/x.md"
    for page in pages:
        assert page in PAGES, f"there is no proofs/{page}.md"
        assert (file, name) in named_on(page), f"proofs/{page}.md does not name `{file}: {name}`"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_names_functions_that_there_are(page: str) -> None:
    named = named_on(page)
    assert named, "a page names what it proves, as `module.py: function`"
    for file, name in named:
        assert (SOURCE / file).is_file(), f"there is no {file}"
        known = definitions(SOURCE / file)
        defined = set(known) | {full.rpartition(".")[2] for full in known}
        assert name in defined or re.search(rf"^\s*{re.escape(name)}\b.* =", (SOURCE / file).read_text(), re.M), (
            f"{file} defines no {name}"
        )


@pytest.mark.parametrize("page", PAGES)
def test_what_the_guarantees_of_a_page_are_name_that_page(page: str) -> None:
    """The line that begins with Guarantees lists just the docstrings that name the page."""
    text = PAGES[page].read_text()
    lines = [line for line in text.splitlines() if line.startswith("**Guarantees** ")]
    listed = {
        (file, name.strip()) for line in lines for file, names in NAMED.findall(line) for name in names.split(",")
    }
    assert listed == {each for each, pages in GUARANTEES.items() if page in pages}
