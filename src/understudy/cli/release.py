"""The verbs that release: release, synth, and append for tables that grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import Output, check_sample_output, write_sample
from understudy.cli.output import Outcome, facts, reading_bar, training_bar, verbatim
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.plan.plan import Plan
    from understudy.released import Release

NumRows = Annotated[
    int | None, typer.Option("-n", "--num-rows", min=1, help="Rows to draw (default: the noisy count).")
]


def release(
    ctx: typer.Context,
    planning: opt.Planning,
    data: opt.Data,
    output: opt.NewRelease,
    spending: opt.Spending = opt.USUAL,
) -> Outcome:
    """Read private rows and publish a noisy embedding with its certificate."""
    made, lines = _release(data, opt.plan_of(ctx, planning, data), directory=output, spending=spending)
    return published(made, output, lines)


def synth(
    ctx: typer.Context,
    planning: opt.Planning,
    data: opt.Data,
    output: Output,
    num_rows: NumRows = None,
    release_dir: Annotated[Path | None, typer.Option(help="Keep the release here.")] = None,
    spending: opt.Spending = opt.USUAL,
) -> Outcome:
    """From private rows to synthetic rows in one go: plan, release, fit and sample."""
    from understudy.generators.base import check_num_rows
    from understudy.methods import fit_release

    plan = opt.plan_of(ctx, planning, data)
    check_sample_output(output, plan.schema)
    if num_rows is not None:
        check_num_rows(plan.schema, num_rows)
    if release_dir is not None and release_dir.resolve() == output.resolve():
        raise UsageError("release directory", "must differ from the output", "Choose another name")
    made, lines = _release(data, plan, directory=release_dir, spending=spending, is_fitted=True)
    with training_bar() as progress:
        generator = fit_release(made, progress=progress)
    count = num_rows or generator.default_num_rows
    rows = generator.sample(count, seed=plan.setting("training")["seed"])
    write_sample(rows, output, plan.schema)
    document = outcome(made) | {"output": output, "num_rows": count, "release": release_dir}
    lines += facts({"rows": f"{output} ({count} synthetic rows)"})
    if release_dir is None:
        return document, [*lines, "  The release was not kept; --release-dir keeps it, with its certificate."]
    return document, [*lines, *facts({"certificate": release_dir / "certificate.html"})]


def append(
    release: Annotated[Path, typer.Argument(help="Directory of the release so far.")],
    data: opt.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for both.")],
    spending: opt.Spending = opt.USUAL,
) -> Outcome:
    """Add rows of other people to a release, reading these rows alone.

    Nobody may have rows in both: then each is protected by the release's epsilon, once, and the ledger is that of the
    new rows. The noise of the parts adds up. For people who have rows in both, release the whole table again.
    """
    from understudy.private.release import append_rows
    from understudy.released import load_release

    with reading(spending) as how:
        made = append_rows(data, load_release(release), directory=output, **how)
    headline = f"[bold green]Appended[/bold green] to {verbatim(release)}, {guarantee_words(made.plan)}"
    parts = f", with the noise of {made.plan.parties} parts"
    return published(made, output, [headline, *told_of(made, spending.ledger)], parts=parts)


def _release(
    data: str, plan: Plan, *, directory: Path | None, spending: opt.Spending, is_fitted: bool = False
) -> tuple[Release, list[str]]:
    """Make the release, and say what it guarantees and what it was charged; refuse one that cannot be fitted here."""
    from understudy.arrays import load_torch
    from understudy.methods import needs_torch
    from understudy.private.release import release_table

    guarantee = guarantee_words(plan)
    if is_fitted and needs_torch(plan):
        load_torch()
    charged_before = rows_charged(spending.ledger)
    with reading(spending) as how:
        made = release_table(data, plan, directory=directory, **how)
    reused = reused_words(dict(made.facts)["ledger"], charged_before, what="release")
    headline = f"{reused or '[bold green]Released[/bold green]'} {guarantee}"
    return made, [headline, *told_of(made, spending.ledger)]


def rows_charged(ledger: Path | None) -> int:
    """How many rows a ledger has."""
    from understudy.private.ledger import read_ledger

    return len(read_ledger(ledger).rows) if ledger is not None else 0


def reused_words(charged: Mapping[str, Any] | None, charged_before: int, *, what: str) -> str | None:
    """That nothing was read or spent: what was made stands on a row that the ledger had before."""
    if charged is None or charged["row"] > charged_before:
        return None
    return (
        f"[bold yellow]Reused[/bold yellow] the {what} made before under this key, without reading the data or "
        "charging the ledger,"
    )


def published(made: Release, output: Path, lines: list[str], *, parts: str = "") -> Outcome:
    """What is told of a release, and of the directory that it has."""
    lines = [
        *lines,
        *facts({"release": f"{output}{parts}", "certificate": output / "certificate.html"}),
        f"Next, at no cost: [bold]understudy fit {verbatim(output)} -o MODEL[/bold]",
    ]
    return outcome(made) | {"release": output}, lines


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
    from understudy.released.certificate import status
    from understudy.released.diagnostics import release_warnings

    lines, kept, more = [], dict(made.facts), None
    if not made.is_private:
        lines.append(f"[bold red]NOT PRIVATE[/bold red]: {verbatim(status(kept, made.plan)['status_reason'])}")
    charged = kept["ledger"]
    if charged is not None and ledger is not None:
        state = read_ledger(ledger)
        units = sum(row.units for row in state.rows if row.key == charged["key"])  # of all rounds
        room = state.remaining_units // max(1, units)
        noun = "release" if room == 1 else "releases"
        more = f"row {charged['row']}, key {charged['key']}; room for {room} more such {noun}"
    lines += facts({"fingerprint": made.fingerprint, "query": kept.get("query"), "ledger": more})
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
def reading(spending: opt.Spending) -> Iterator[dict[str, Any]]:
    """Arguments of what reads and charges as the options ask for it, with a bar on the operator's screen."""
    from understudy.private.passes import Run
    from understudy.private.secret_files import Checkpoint, read_key

    if spending.key_file is not None and spending.checkpoint is None:
        raise UsageError("key file", "is for a checkpoint, and none was given", "Add --checkpoint FILE")
    kept = None if spending.checkpoint is None else Checkpoint(spending.checkpoint, read_key(spending.key_file))
    with reading_bar() as progress:
        run = Run(engine=spending.engine, threads=spending.threads, progress=progress, checkpoint=kept)
        yield {"query": spending.query, "ledger": spending.ledger, "key": spending.key, "run": run}
