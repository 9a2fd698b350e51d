"""The verb that draws the first images of every class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.files import INTERNAL, PICTURES, check_output, write_page
from understudy.cli.output import Outcome, facts, verbatim, waiting
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from understudy.arrays import Bytes
    from understudy.schema import Column
    from understudy.schema.images import ImageShape

LOOKED_AT_ONCE = 2_000
"""Rows at a time: a few images are found without decoding thousands."""


def grid(
    file: Annotated[Path, typer.Argument(help="Any image set: .npz, folder, Parquet or CSV.")],
    schema: opt.SchemaPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="New .png file.")],
    per_class: Annotated[int, typer.Option(min=1, max=100, help="Images of each class.")] = 10,
) -> Outcome:
    """Draw the first images of every class of a set. It shows what it is given: of PRIVATE images it is private."""
    from understudy.reports.pictures import draw_grid, named_classes
    from understudy.schema import load_schema
    from understudy.schema.images import require_pillow

    check_output(output, kinds=PICTURES)
    require_pillow()
    loaded = load_schema(schema)
    if loaded.image is None:
        raise UsageError(f"schema '{schema}'", "declares no images", "Add image: {height: 28, width: 28}")
    label = named_classes(loaded)
    with waiting("looking at images"):
        rows = first_images(file, loaded.image, label, per_class=per_class)
        if not any(len(images) for images in rows):
            raise InputError(f"'{file}'", "has no image of any class", "Check file and schema")
        write_page(draw_grid(rows, columns=per_class), output, mode=INTERNAL)
    classes = [str(category) for category in label.categories] if label is not None else []
    lines = [
        f"[bold green]Drew[/bold green] {verbatim(output)}, which its owner alone may read",
        *facts({"rows": ", ".join(classes) or None}),
    ]
    return {"output": output, "classes": classes, "per_class": per_class}, lines


def first_images(file: Path, shape: ImageShape, label: Column | None, *, per_class: int) -> list[Bytes]:
    """The first images of every class, in the order of the file.

    Returns:
        An array of images per class; without classes, as many rows of a grid as it has columns.
    """
    import numpy as np

    from understudy.readers import open_source
    from understudy.reports.pictures import images_by_class, in_rows

    wanted = per_class if label is not None else per_class**2
    num_classes = len(label.categories) if label is not None else 1
    found = [np.empty((0, *shape.axes), dtype=np.uint8)] * num_classes
    columns = [*shape.names, *([label.name] if label is not None else [])]
    with open_source(str(file), columns=columns) as stream:
        for batch in _pieces(stream):
            for code, images in enumerate(images_by_class(batch, shape, label)):
                found[code] = np.concatenate([found[code], images])[:wanted]
            if all(len(images) == wanted for images in found):
                break
    return found if label is not None else in_rows(found[0], per_class)


def _pieces(stream: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches short enough for a few images to be found without decoding thousands."""
    for batch in stream:
        for start in range(0, batch.num_rows, LOOKED_AT_ONCE):
            yield batch.slice(start, LOOKED_AT_ONCE)
