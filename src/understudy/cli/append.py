"""The verb for tables that grow: rows of other people are added to a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import options as opt
from understudy.cli import passes
from understudy.cli.output import emit, verbatim
from understudy.cli.reading import Data, guarantee_words, outcome, told_of


def append(
    release: Annotated[Path, typer.Argument(help="Directory of the release so far.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for both.")],
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
    engine: passes.Engine = "auto",
    threads: passes.Threads = None,
    checkpoint: passes.CheckpointPath = None,
    key_file: passes.KeyFile = None,
    as_json: opt.AsJson = False,
) -> None:
    """Add rows of other people to a release, reading these rows alone.

    Nobody may have rows in both: then each is protected by the release's epsilon, once, and the ledger is that of the
    new rows. The noise of the parts adds up. For people who have rows in both, release the whole table again.
    """
    from understudy.private.append import append_rows
    from understudy.released import load_release

    with passes.running(
        engine=engine, threads=threads, checkpoint=checkpoint, key_file=key_file, as_json=as_json
    ) as run:
        made = append_rows(data, load_release(release), directory=output, query=query, ledger=ledger, key=key, run=run)
    lines = [
        f"[bold green]Appended[/bold green] to {verbatim(release)}, {guarantee_words(made.plan)}",
        *told_of(made, ledger),
        f"  release      {verbatim(output)}, with the noise of {made.plan.parties} parts",
        f"  certificate  {verbatim(output / 'certificate.html')}",
        f"Next, at no cost: [bold]understudy fit {verbatim(output)} -o MODEL[/bold]",
    ]
    emit(outcome(made) | {"release": str(output)}, lines, as_json=as_json)
