"""The verbs of several parties: each sums its own rows, and the sums are merged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.output import AS_JSON, Outcome, emit, facts, verbatim
from understudy.cli.release import delta_words, guarantee_words, published, reading, told_of
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.plan.request import Request


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
