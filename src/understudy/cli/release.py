"""The verbs that release: release, synth, and append for tables that grow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import Output, check_sample_output, write_sample
from understudy.cli.output import emit, printable, reading_bar, training_bar, verbatim
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.plan.plan import Plan
    from understudy.private.passes import Run
    from understudy.released import Release

NumRows = Annotated[
    int | None, typer.Option("-n", "--num-rows", min=1, help="Rows to draw (default: the noisy count).")
]


@opt.takes_plan
def release(
    *,
    data: opt.Data,
    plan: Plan,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the release.")],
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
    engine: opt.Engine = "auto",
    threads: opt.Threads = None,
    checkpoint: opt.CheckpointPath = None,
    key_file: opt.KeyFile = None,
    as_json: opt.AsJson = False,
) -> None:
    """Read private rows and publish a noisy embedding with its certificate."""
    how = {"engine": engine, "threads": threads, "checkpoint": checkpoint, "key_file": key_file}
    made, lines = _release(data, plan, directory=output, query=query, ledger=ledger, key=key, how=how, as_json=as_json)
    lines += [
        f"  release      {verbatim(output)}",
        f"  certificate  {verbatim(output / 'certificate.html')}",
        f"Next, at no cost: [bold]understudy fit {verbatim(output)} -o MODEL[/bold]",
    ]
    emit(outcome(made) | {"release": str(output)}, lines, as_json=as_json)


@opt.takes_plan
def synth(
    *,
    data: opt.Data,
    plan: Plan,
    output: Output,
    num_rows: NumRows = None,
    release_dir: Annotated[Path | None, typer.Option("--release-dir", help="Keep the release here.")] = None,
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
    engine: opt.Engine = "auto",
    threads: opt.Threads = None,
    checkpoint: opt.CheckpointPath = None,
    key_file: opt.KeyFile = None,
    as_json: opt.AsJson = False,
) -> None:
    """From private rows to synthetic rows in one go: plan, release, fit and sample."""
    from understudy.generators.base import check_num_rows
    from understudy.methods import fit_release

    check_sample_output(output, plan.schema)
    if num_rows is not None:
        check_num_rows(plan.schema, num_rows)
    if release_dir is not None and release_dir.resolve() == output.resolve():
        raise UsageError("release directory", "must differ from the output", "Choose another name")
    how = {"engine": engine, "threads": threads, "checkpoint": checkpoint, "key_file": key_file}
    made, lines = _release(
        data, plan, directory=release_dir, query=query, ledger=ledger, key=key, how=how, as_json=as_json, is_fitted=True
    )
    with training_bar(as_json=as_json) as progress:
        generator = fit_release(made, progress=progress)
    count = num_rows or generator.default_num_rows
    rows = generator.sample(count, seed=plan.setting("training")["seed"])
    write_sample(rows, output, plan.schema)
    lines += [f"  rows         {verbatim(output)} ({count} synthetic rows)"]
    if release_dir is not None:
        lines.append(f"  certificate  {verbatim(release_dir / 'certificate.html')}")
    else:
        lines.append("  The release was not kept; --release-dir keeps it, with its certificate.")
    document = {"output": str(output), "num_rows": count, "release": str(release_dir) if release_dir else None}
    emit(outcome(made) | document, lines, as_json=as_json)


def append(
    release: Annotated[Path, typer.Argument(help="Directory of the release so far.")],
    data: opt.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for both.")],
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
    engine: opt.Engine = "auto",
    threads: opt.Threads = None,
    checkpoint: opt.CheckpointPath = None,
    key_file: opt.KeyFile = None,
    as_json: opt.AsJson = False,
) -> None:
    """Add rows of other people to a release, reading these rows alone.

    Nobody may have rows in both: then each is protected by the release's epsilon, once, and the ledger is that of the
    new rows. The noise of the parts adds up. For people who have rows in both, release the whole table again.
    """
    from understudy.private.append import append_rows
    from understudy.released import load_release

    with running(engine=engine, threads=threads, checkpoint=checkpoint, key_file=key_file, as_json=as_json) as run:
        made = append_rows(data, load_release(release), directory=output, query=query, ledger=ledger, key=key, run=run)
    lines = [
        f"[bold green]Appended[/bold green] to {verbatim(release)}, {guarantee_words(made.plan)}",
        *told_of(made, ledger),
        f"  release      {verbatim(output)}, with the noise of {made.plan.parties} parts",
        f"  certificate  {verbatim(output / 'certificate.html')}",
        f"Next, at no cost: [bold]understudy fit {verbatim(output)} -o MODEL[/bold]",
    ]
    emit(outcome(made) | {"release": str(output)}, lines, as_json=as_json)


def _release(
    data: str,
    plan: Plan,
    *,
    directory: Path | None,
    query: str | None,
    ledger: Path | None,
    key: str | None,
    how: dict[str, Any],
    as_json: bool,
    is_fitted: bool = False,
) -> tuple[Release, list[str]]:
    """Make the release, and say what it guarantees and what it was charged; refuse one that cannot be fitted here."""
    from understudy.arrays import load_torch
    from understudy.methods import needs_torch
    from understudy.private.ledger import read_ledger
    from understudy.private.release import release_table

    if key is not None and ledger is None:
        raise UsageError("key", "names a release in a ledger, and none was given", "Add --ledger FILE")
    guarantee = guarantee_words(plan)
    if is_fitted and needs_torch(plan):
        load_torch()
    rows_before = len(read_ledger(ledger).rows) if ledger is not None else 0
    with running(**how, as_json=as_json) as run:
        made = release_table(data, plan, directory=directory, query=query, ledger=ledger, key=key, run=run)
    charged = dict(made.facts)["ledger"]
    reused = charged is not None and charged["row"] <= rows_before
    headline = (
        "[bold yellow]Reused[/bold yellow] the release made before under this key, without "
        "reading the data or charging the ledger,"
        if reused
        else "[bold green]Released[/bold green]"
    )
    return made, [f"{headline} {guarantee}", *told_of(made, ledger)]


def guarantee_words(plan: Plan) -> str:
    """What a release guarantees, in odds."""
    from understudy.accounting.mechanisms import round_up

    parts = ""
    if plan.network_cost is not None:
        alone, before = round_up(plan.own_epsilon()), round_up(plan.network_cost["epsilon"])
        parts = f", of which {alone} are this release's and {before} the encoder's"
    return (
        f"with epsilon {round_up(plan.epsilon())} {delta_words(plan)} "
        f"({plan.neighbours.value}{parts}): an attacker's best guess about one {verbatim(plan.schema.privacy.unit)} "
        f"is right at most {round_up(100 * plan.best_guess)} % of the time (a coin: 50 %)."
    )


def delta_words(plan: Plan) -> str:
    """At which delta a guarantee holds."""
    return "without any delta (pure)" if plan.budget.is_pure else f"at delta {plan.budget.delta}"


def told_of(made: Release, ledger: Path | None) -> list[str]:
    """Its fingerprint, what it was charged and for how many more there is room, and warnings."""
    from understudy.private.ledger import read_ledger
    from understudy.released.assumptions import queries_in
    from understudy.released.certificate import status
    from understudy.released.diagnostics import release_warnings

    lines, charged = [f"  fingerprint  {made.fingerprint}"], dict(made.facts)["ledger"]
    lines += [f"  query        {printable(query)}" for query in queries_in(dict(made.facts))]
    if not made.is_private:
        reason = status(dict(made.facts), made.plan)["status_reason"]
        lines.insert(0, f"[bold red]NOT PRIVATE[/bold red]: {verbatim(reason)}")
    if charged is not None and ledger is not None:
        state = read_ledger(ledger)
        units = sum(row.units for row in state.rows if row.key == charged["key"])  # of all rounds
        room = state.remaining_units // max(1, units)
        more = f"room for {room} more such release{'' if room == 1 else 's'}"
        lines.append(f"  ledger       row {charged['row']}, key {verbatim(charged['key'])}; {more}")
    return lines + [f"[yellow]Warning:[/yellow] {verbatim(words)}" for words in release_warnings(made)]


def outcome(made: Release) -> dict[str, Any]:
    """What programs are told of a release."""
    from understudy.released.diagnostics import release_warnings

    return {
        "epsilon": made.plan.epsilon(),
        "epsilon_alone": made.plan.own_epsilon(),
        "is_private": made.is_private,
        "delta": made.plan.budget.delta,
        "neighbours": made.plan.neighbours.value,
        "fingerprint": made.fingerprint,
        "ledger": dict(made.facts)["ledger"],
        "query": dict(made.facts).get("query"),
        "warnings": release_warnings(made),
    }


@contextmanager
def running(
    *, engine: str, threads: int | None, checkpoint: Path | None, key_file: Path | None, as_json: bool
) -> Iterator[Run]:
    """A run as the options ask for it, with a bar on the operator's screen."""
    from understudy.private.checkpoints import Checkpoint
    from understudy.private.passes import Run
    from understudy.private.secret_files import read_key

    if key_file is not None and checkpoint is None:
        raise UsageError("key file", "is for a checkpoint, and none was given", "Add --checkpoint FILE")
    kept = None if checkpoint is None else Checkpoint(checkpoint, read_key(key_file))
    with reading_bar(as_json=as_json) as progress:
        yield Run(engine=engine, threads=threads, progress=progress, checkpoint=kept)
