"""The schema's verbs."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.files import PUBLIC, check_output, write_page
from understudy.cli.output import Outcome, emit, table, unmarked, verbatim
from understudy.codec import encode
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from understudy.schema import Schema
    from understudy.schema.images import ImageShape

DATA_NOT_NAME = r"^([+-]?[\d.,]+([eE][+-]?\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|)$"


def draft(
    file: Annotated[
        str, typer.Argument(help="Data file or image set; only column names, types and the size of images are read.")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="New YAML file (default: print).")] = None,
    query: opt.Query = None,
) -> Outcome:
    """Write a schema with names and types, and ??? where a person must decide."""
    from understudy.readers import source_columns
    from understudy.schema.entries import draft_schema

    columns = source_columns(file, query=query)
    if any(re.match(DATA_NOT_NAME, name) for name, _ in columns):
        rule = "its first line looks like a row and not like column names"
        raise InputError(f"'{file}'", rule, "Add a header line; the first line of a file is copied into the draft")
    text = draft_schema(columns, name=Path(file).stem)
    document = {"schema": text, "output": output}
    if output is None:
        return document, [unmarked(text.rstrip("\n"))]
    check_output(output, kinds=None)
    write_page(text, output, mode=PUBLIC)
    headline = f"[bold green]Drafted[/bold green] {verbatim(output)}. Replace every ??? from public knowledge, then:"
    return document, [f"{headline} [bold]understudy schema check {verbatim(output)}[/bold]"]


def check(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    data: Annotated[str | None, typer.Argument(help="Data file whose column names are compared.")] = None,
    query: opt.Query = None,
    cells: Annotated[
        bool,
        typer.Option(
            "--cells",
            help="Read the rows, and count by column the cells that do not fit. The counts are exact and PRIVATE: "
            "for those only who may see the rows.",
        ),
    ] = False,
) -> Outcome:
    """Check a schema, and that a data file has its columns; rows are not read, unless --cells asks for it."""
    from understudy.private.passes import misfits_of
    from understudy.readers import source_columns
    from understudy.schema import load_schema

    if cells and data is None:
        raise UsageError("--cells", "reads the rows of a data file, and none is named", "Name it")
    loaded = load_schema(schema)
    names = [name for name, _ in source_columns(data, query=query)] if data is not None else []
    if data is not None:
        _compare(loaded, names, data)
    left_out = [name for name in names if name not in {column.name for column in loaded.columns}]
    document = {
        "schema": loaded.to_dict(),
        "fingerprint": loaded.fingerprint,
        "unread_keys": list(loaded.unread),
        "columns_left_out": left_out,
    }
    lines = [
        table(
            f"{loaded.name}: {len(loaded.in_files)} columns",
            ["column", "kind", "role", "domain", "source"],
            _column_rows(loaded),
        ),
        "[bold green]The schema is complete.[/bold green]",
    ]
    for group in loaded.onehot_groups:
        lines.append(f"{len(group.columns)} columns are measured as one choice: {verbatim(group.name)}")
    if loaded.rules:
        lines.append(f"Rules that every synthetic row obeys: {len(loaded.rules)}")
    if loaded.unread:
        lines.append(f"[yellow]Keys that nothing reads: {verbatim(', '.join(loaded.unread))}[/yellow]")
    if left_out:
        lines.append(f"Columns of the file that are left out: {verbatim(', '.join(left_out))}")
    if not cells:
        return document, lines
    counts = {name: asdict(each) for name, each in misfits_of(data, loaded, query=query).items()}
    document["private_cells"] = counts
    # Blanks fit where the column may be null.
    looked_at = {column.name: column for column in (*loaded.in_files, *loaded.used)}
    wrong = [c.name for c in looked_at.values() if sum(counts[c.name].values()) > c.nullable * counts[c.name]["blank"]]
    rows = [[name, *(f"{count:,}" for count in counts[name].values())] for name in wrong]
    headings = ["column", "blank", "unreadable", "out of bounds", "unlisted"]
    lines += [
        table("Cells that do not fit", headings, rows)
        if rows
        else "[bold green]Every cell fits the schema.[/bold green]",
        "[yellow]Exact counts of private rows: not to be published or passed on.[/yellow]",
    ]
    if not wrong:
        return document, lines
    emit(document, lines)
    raise typer.Exit(1)


def _compare(schema: Schema, names: list[str], data: str) -> None:
    """Refuse a file that has not all columns of a schema, or images of another shape."""
    from understudy.schema.images import shape_of

    found = shape_of(names)
    if schema.image is not None and found not in (None, schema.image):
        raise InputError(
            f"'{data}'",
            f"its images are {_sizes(found)}, and those of the schema {_sizes(schema.image)}",
            "Mend image: in the schema, or the images",
        )
    missing = [column.name for column in schema.in_files if column.name not in names]
    if missing:
        # The first line of a file without a header is a row: its "names" are not repeated.
        known = len(missing) < len(schema.in_files)
        raise InputError(
            f"column '{missing[0]}'",
            f"is in the schema but not in '{data}'",
            "Mend one of the two" + (f"; the file has {', '.join(names)}" if known else ""),
        )


def _column_rows(schema: Schema) -> list[list[str]]:
    """A row for every column, and one for all pixels."""
    from understudy.released.assumptions import domain_words
    from understudy.schema.images import without_pixels

    listed = [(column.name, column) for column in without_pixels(schema.image, schema.in_files)]
    if schema.image is not None:
        listed.insert(0, (f"image, {_sizes(schema.image)}", schema.image.columns[0]))
    return [
        [name, column.kind.value, column.role.value, domain_words(column), column.bounds_from]
        for name, column in listed
    ]


def _sizes(shape: ImageShape | None) -> str:
    return " x ".join(str(size) for size in encode(shape).values()) if shape is not None else ""
