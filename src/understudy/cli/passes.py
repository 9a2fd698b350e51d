"""How passes over rows are run: engine, threads, progress and checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.arrays import ReadProgress
    from understudy.private.engines.passes import Run

RUNNING = "How rows are read (changes no number)"

Engine = Annotated[str, typer.Option("--engine", rich_help_panel=RUNNING, help="auto, local, spark or ray.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, rich_help_panel=RUNNING, help="Threads (default: cores).")
]
CheckpointPath = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        rich_help_panel=RUNNING,
        help="Encrypted file from which a pass over many files goes on if it was cut short.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="Key of encrypted files, 64 hexadecimal digits (default: the variable UNDERSTUDY_KEY)."
    ),
]


@contextmanager
def running(
    *, engine: str, threads: int | None, checkpoint: Path | None, key_file: Path | None, as_json: bool
) -> Iterator[Run]:
    """A run as the options ask for it, with a bar on the operator's screen."""
    from understudy.private.checkpoints import Checkpoint
    from understudy.private.engines.passes import Run
    from understudy.private.secret_files import read_key

    if key_file is not None and checkpoint is None:
        raise UsageError("key file", "is for a checkpoint, and none was given", "Add --checkpoint FILE")
    kept = None if checkpoint is None else Checkpoint(checkpoint, read_key(key_file))
    with reading_bar(as_json=as_json) as progress:
        yield Run(engine=engine, threads=threads, progress=progress, checkpoint=kept)


@contextmanager
def reading_bar(*, as_json: bool) -> Iterator[ReadProgress | None]:
    """A bar with the share that is done and the time left, on a terminal that a person looks at and nowhere else.

    It shows no number of rows nor a speed, which times time would be one; it is wiped when the pass ends, and never
    shown where output is kept, in a file or a log.
    """
    if as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TextColumn("reading private rows"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def progress(share: float | None) -> None:
            bar.update(task, total=None if share is None else 1.0, completed=share or 0.0)

        yield progress
