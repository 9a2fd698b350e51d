"""The verbs that release: release and synth, append for tables that grow, and partial and merge for several parties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import Output, check_sample_output, write_sample
from understudy.cli.output import AS_JSON, Outcome, emit, facts, reading_bar, training_bar, verbatim
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from understudy.plan.plan import Plan
    from understudy.plan.request import Request
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

    opt.check_key(spending.key, spending.ledger)
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


# Several parties: each sums its own rows, and the sums are merged.


def partial(
    data: opt.Data,
    request: Annotated[Path, typer.Option("--request", "-r", help="Request file, the same for all parties.")],
    party: Annotated[str, typer.Option(help="This party's name.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New encrypted file.")],
    key_file: opt.KeyFile = None,
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    max_epsilon: Annotated[
        float | None,
        typer.Option(help="Most that all rounds may cost. Parties with noise of their own give this or a ledger."),
    ] = None,
    engine: opt.Engine = "auto",
    threads: opt.Threads = None,
) -> Outcome:
    """Sum one party's rows into an encrypted file for the merger.

    The file holds an exact sum, which is private, unless the request is for parties that add noise of their own. What
    is asked for is shown before a row is read.
    """
    from understudy.plan.request import load_request
    from understudy.private.parties import write_partial
    from understudy.private.secret_files import read_key

    asked = load_request(request)
    document, lines = _asked_for(asked)
    if not AS_JSON.get():
        emit(document, lines)
    spending = opt.Spending(query=query, ledger=ledger, engine=engine, threads=threads)
    with reading(spending) as how:
        how |= {"key": read_key(key_file), "max_epsilon": max_epsilon}
        header = write_partial(data, asked, party=party, path=output, **how)
    held = "this party's own noisy sum" if header["own_noise"] else "an exact sum, encrypted"
    lines = [
        f"[bold green]Wrote[/bold green] {verbatim(output)}: {held}",
        *facts({"query": f"{query} (the certificate will print it)" if query else None}),
        "Next: give it to whoever runs [bold]understudy merge[/bold]",
    ]
    return header | document | {"output": output}, lines


def _asked_for(asked: Request) -> Outcome:
    """What answering a request costs a party's people, computed anew from its plan."""
    from understudy.accounting.mechanisms import round_up

    plan, unit = asked.plan, asked.plan.schema.privacy
    document = {
        "epsilon": plan.epsilon(),
        "epsilon_of_round": asked.epsilon_of_round,
        "delta": plan.budget.delta,
        "neighbours": plan.neighbours.value,
        "unit": unit.unit,
        "max_rows": unit.max_rows,
        "rounds": len(plan.stages),
    }
    rows = "one row" if unit.is_row else f"all rows of one '{unit.unit}', at most {unit.max_rows} count"
    noise = (
        "this party's own, in the file"
        if plan.parties > 1
        else "added by whoever merges, who can read the exact sum in the file"
    )
    epsilon, of_round = round_up(plan.epsilon()), round_up(asked.epsilon_of_round)
    named = {
        "epsilon": f"{epsilon} {delta_words(plan)} over all rounds; {of_round} in this one",
        "protects": f"{rows} ({plan.neighbours.value})",
        "noise": noise,
    }
    round_words = f"round {asked.round + 1} of {len(plan.stages)}"
    what = f"{verbatim(plan.method)} on {verbatim(plan.schema.name)}"
    return document, [f"[bold]Asked for[/bold] {round_words}, {what}", *facts(named)]


def merge(
    request: Annotated[Path, typer.Argument(metavar="REQUEST", help="Request file, made by plan -o or by merge.")],
    files: Annotated[list[Path], typer.Argument(help="One encrypted file of each party.")],
    output: opt.NewRelease,
    key_file: Annotated[
        list[Path] | None, typer.Option(help="Key of a party; repeat it if parties have keys of their own.")
    ] = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
) -> Outcome:
    """Add the parties' sums and the noise, and publish; or write the request of the next round.

    Plans that look at the table in several stages have a round for each.
    """
    from understudy.plan.request import Request, load_request
    from understudy.private.parties import merge_partials
    from understudy.private.secret_files import read_key

    asked = load_request(request)
    keys = [read_key(path) for path in key_file] if key_file else [read_key(None)]
    following = _next_request(output, asked.round + 1)
    if asked.round + 1 < len(asked.plan.stages) and following.exists():  # or noise would be paid for and thrown away
        raise InputError(f"request '{following}'", "exists already or cannot be written", "Choose another name")
    made = merge_partials(asked, files, keys=keys, directory=output, ledger=ledger, key=key)
    if isinstance(made, Request):
        return _save_next(made, output)
    headline = f"[bold green]Released[/bold green] the rows of {len(files)} parties {guarantee_words(made.plan)}"
    return published(made, output, [headline, *told_of(made, ledger)])


def _next_request(output: Path, round_: int) -> Path:
    return Path(f"{output}.round-{round_ + 1}.json")


def _save_next(made: Request, output: Path) -> Outcome:
    path, charged = _next_request(output, made.round), made.ledger
    made.save(path)
    lines = [
        f"[bold green]Merged[/bold green] round {made.round} of {len(made.plan.stages)}",
        *facts({"ledger": f"row {charged['row']}; merged again, it would be charged again" if charged else None}),
        f"Next: each party answers [bold]{verbatim(path)}[/bold], and merge gets it as its request",
    ]
    return {"request": path, "round": made.round, "ledger": charged}, lines
