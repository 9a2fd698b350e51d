"""A whole table's public description, read from and written to YAML."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from understudy.codec import OMIT_DEFAULT, encode
from understudy.errors import InputError, column_error
from understudy.files import DEEPEST, MOST_YAML_BYTES, canonical_sha256, read_file
from understudy.schema.columns import Column, Role
from understudy.schema.entries import UNDECIDED, parse_column, undecided_keys
from understudy.schema.images import ImageShape, without_pixels
from understudy.schema.onehot import OneHotGroup, parse_groups, with_groups
from understudy.schema.rules import Rule, parse_rules

UNDECIDED_SHOWN = 12  # open questions of a draft that a refusal lists


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whose contribution the guarantee hides: a row, or all rows with one id.

    ``unit`` is ``row`` or the name of the column of ids; at most ``max_rows`` rows of an id count.
    """

    unit: str = "row"
    max_rows: int = 1

    @property
    def is_row(self) -> bool:
        """Whether every row stands for itself."""
        return self.unit == "row"


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a table. Nothing in it may come from private rows.

    With ``image``, the first columns are the pixels of an image, and are not listed in files.
    """

    name: str = "table"
    rows: int | None = field(default=None, metadata=OMIT_DEFAULT)
    notes: str = field(default="", metadata=OMIT_DEFAULT)
    privacy: PrivacyUnit = PrivacyUnit()
    image: ImageShape | None = field(default=None, metadata=OMIT_DEFAULT)
    columns: tuple[Column, ...]
    onehot_groups: tuple[OneHotGroup, ...] = field(default=(), metadata=OMIT_DEFAULT)
    rules: tuple[Rule, ...] = field(default=(), metadata=OMIT_DEFAULT)
    unread: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def used(self) -> tuple[Column, ...]:
        """The columns that are measured and synthesised, in file order; those of a one-hot group are one."""
        return with_groups(self.in_files, self.onehot_groups)

    @cached_property
    def in_files(self) -> tuple[Column, ...]:
        """The columns that rows are read and written with."""
        return tuple(column for column in self.columns if column.is_used)

    @cached_property
    def file_names(self) -> list[str]:
        """Names of these columns."""
        return [column.name for column in self.in_files]

    @cached_property
    def label(self) -> Column | None:
        """The column with role ``label``, if there is one."""
        return next((column for column in self.used if column.role is Role.LABEL), None)

    def to_dict(self) -> dict[str, Any]:
        """The schema in its canonical form."""
        written = self.columns if self.image is None else tuple(without_pixels(self.image, self.columns))
        document = encode(replace(self, columns=written))
        if self.onehot_groups:
            document["onehot_groups"] = {group.name: group.listed() for group in self.onehot_groups}
        return document

    @classmethod
    def from_dict(cls, document: Any) -> Schema:
        """The schema that ``to_dict`` described, checked as one that a person wrote."""
        return parse_schema(document, name="table")

    def to_yaml(self) -> str:
        """The schema as a YAML document that ``load_schema`` reads back."""
        document = self.to_dict()
        lists = {key: document.pop(key) for key in ("columns", "rules") if key in document}
        lines = [_dump(document)]
        for key, entries in lists.items():
            lines += [f"{key}:", *("- " + _dump(entry, flow=True) for entry in entries)]
        return "\n".join(lines) + "\n"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form."""
        return canonical_sha256(self.to_dict())


OTHER_KEYS = frozenset({"file", "label", "positive", "task", "split_column", "label_names"})
KNOWN_KEYS = OTHER_KEYS.union(each.name for each in fields(Schema) if each.compare)


class _Unbounded(yaml.MarkedYAMLError):
    """YAML that is valid, and more than a schema may be."""


class _Loader(yaml.SafeLoader):
    """YAML in which ``no``, ``=``, ``12:30``, ``0123`` and dates stay the words that a person wrote.

    Nothing stands for something written elsewhere, so that a document is as large as it looks.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """A part of the document, if it is written out and not too deep inside others."""
        if self.check_event(yaml.AliasEvent):
            raise _Unbounded(None, None, "has an alias (*name); write out what it stands for", self.get_mark())
        if self.depth >= DEEPEST:
            raise _Unbounded(None, None, "has lists nested too deeply", self.get_mark())
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A table in which every key stands once."""
        found: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(found) < len(node.value):
            raise _Unbounded(None, None, "has a key twice in one entry", node.start_mark)
        return found


_WORDS = (":bool", ":timestamp", ":value", ":int", ":float")
_NUMBERS = {
    "tag:yaml.org,2002:int": r"[-+]?(0|[1-9][0-9]*)",
    "tag:yaml.org,2002:float": r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(0|[1-9][0-9]*)[eE][-+]?[0-9]+"
    r"|\.(inf|Inf|INF)|\.(nan|NaN|NAN))",
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(_WORDS)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_TRUTH = {"true": True, "True": True, "false": False, "False": False}


def _construct_word(loader: _Loader, node: yaml.ScalarNode) -> str | bool:
    word = str(loader.construct_scalar(node))
    word.encode()  # a lone surrogate, which no file can hold, is a ValueError here
    return _TRUTH.get(word, word) if node.style is None else word


_Loader.add_constructor("tag:yaml.org,2002:str", _construct_word)


class _Dumper(yaml.SafeDumper):
    """Writes text so that every YAML reader takes it for the same text."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Unquoted or in single quotes, line breaks such as U+0085 would come back as spaces.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)

for _tag, _pattern in _NUMBERS.items():
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(_tag, re.compile(f"^({_pattern})$"), list("-+.0123456789"))


def _dump(value: Any, *, flow: bool = False) -> str:
    text = str(
        yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=flow)
    ).strip()
    return text.removesuffix("\n...")  # which ends a document that is one word


def load_schema(source: str | Path | dict[str, Any] | Schema) -> Schema:
    """Read a schema from a YAML file, or take one that is already in memory.

    Raises:
        InputError: it names the column, the rule and the remedy.
    """
    if isinstance(source, Schema):
        return source
    if isinstance(source, dict):
        return Schema.from_dict(source)
    path = Path(source)
    try:
        text = read_file(path, most=MOST_YAML_BYTES, follow=True).decode()
    except InputError as refusal:
        if path.exists():
            raise InputError(f"schema '{path}'", refusal.rule) from None
        raise InputError(f"schema '{path}'", "no such file", "Draft one: understudy schema draft DATA") from None
    except UnicodeDecodeError:
        raise InputError(f"schema '{path}'", "cannot be read as UTF-8 text") from None
    return parse_yaml(text, name=path.stem)


def parse_yaml(text: str, *, name: str) -> Schema:
    """Read a schema from YAML text."""
    try:
        document = _read(text)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" near line {mark.line + 1}" if mark is not None else ""
        rule = str(error.problem) if isinstance(error, _Unbounded) else "is not valid YAML"
        raise InputError(f"schema '{name}'", rule + place) from None
    return parse_schema(document, name=name)


def _read(text: str) -> Any:
    try:
        return _Loader(text).get_single_data()
    except yaml.YAMLError:  # a bare ??? is no YAML inside [ ] and { }
        quoted = re.sub(r"(?<![^\s\[{,])\?\?\?(?![^\s\]},])", f'"{UNDECIDED}"', text)
        return _Loader(quoted).get_single_data()


def parse_schema(document: Any, *, name: str) -> Schema:
    """Check a schema document and give it its types."""
    where = f"schema '{name}'"
    image = None
    if isinstance(document, dict) and document.get("image") is not None:
        image = ImageShape.from_dict(document["image"], where=where)
        document = {"columns": [], **document}
    if not isinstance(document, dict) or not isinstance(document.get("columns"), list):
        raise InputError(where, "needs a list called 'columns'", "See: understudy schema draft --help")
    undecided = [key for entry in document["columns"] for key in undecided_keys(entry)]
    if undecided:
        raise InputError(
            where,
            f"{len(undecided)} thing(s) are still {UNDECIDED}: {', '.join(undecided[:UNDECIDED_SHOWN])}"
            + (", ..." if len(undecided) > UNDECIDED_SHOWN else ""),
            "A person must decide them, from public knowledge only",
        )
    columns = (*(image.columns if image is not None else ()), *map(parse_column, document["columns"]))
    _check_names(columns, document.get("label"), where=where)
    groups = parse_groups(document.get("onehot_groups", {}), columns, where=where)
    rows = document.get("rows")
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise InputError(where, "rows must be a whole number above zero", "Remove it if the count is private")
    schema = Schema(
        columns=columns,
        name=str(document.get("name", name)),
        rows=rows,
        privacy=_privacy(document.get("privacy", {}), where=where),
        notes=str(document.get("notes", "")),
        onehot_groups=groups,
        rules=parse_rules(document.get("rules", []), with_groups(columns, groups)),
        image=image,
        unread=tuple(str(key) for key in document if key not in KNOWN_KEYS),
    )
    if not schema.used:
        raise InputError(where, "has no column with role feature or label", "Add at least one")
    if sum(column.role is Role.LABEL for column in schema.used) > 1:
        raise InputError(where, "has more than one column with role label", "Keep one")
    return schema


def _check_names(columns: tuple[Column, ...], label: Any, *, where: str) -> None:
    named = next((column for column in columns if column.name == label), None)
    if label is not None and named is None:
        raise InputError(where, f"label names '{label}', which is not a column", "Mend label: or columns:")
    if named is not None and named.role is not Role.LABEL:
        raise column_error(named.name, "is named as label but has another role", "Set role: label")
    counts = Counter(column.name for column in columns)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise column_error(repeated, "is listed twice", "Remove one of the two")


def _privacy(document: Any, *, where: str) -> PrivacyUnit:
    if not isinstance(document, dict) or set(document) - {"unit", "max_rows"}:
        raise InputError(where, "privacy must hold unit and max_rows only", "Set privacy: {unit: row}")
    unit, max_rows = document.get("unit", "row"), document.get("max_rows", 1)
    if not isinstance(unit, str) or isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        raise InputError(where, "privacy needs a unit and a whole max_rows", "Set privacy: {unit: row}")
    return PrivacyUnit(unit=unit, max_rows=max_rows)
