"""Pages stay true: the command reference is the program's own, links lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from command_reference import write_reference

from understudy.schema.table import parse_yaml

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page for folder in (".", "docs", "docs/decisions", "proofs", "benchmarks") for page in (ROOT / folder).glob("*.md")
)


def test_the_command_reference_is_what_the_program_says():
    assert (ROOT / "docs" / "commands.md").read_text() == write_reference()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_file_that_a_proof_covers_exists():
    folders = "private|schema|features|accounting|readers|plan|released|rules|networks|cli"
    for page in (ROOT / "proofs").glob("*.md"):
        for name in re.findall(rf"`((?:{folders})/[\w/]+\.py)", page.read_text()):
            assert (ROOT / "src" / "understudy" / name).exists(), f"{page.name}: {name}"


def test_the_example_in_the_schema_page_is_a_schema():
    text = (ROOT / "docs" / "schema.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    assert example is not None
    assert len(parse_yaml(example.group(1), name="example").used) == 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_import_in_an_example_works(page: Path):
    pattern = r"^from (understudy[\w.]*) import (\w+(?:, \w+)*)$"
    for module, names in re.findall(pattern, page.read_text(), flags=re.MULTILINE):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
