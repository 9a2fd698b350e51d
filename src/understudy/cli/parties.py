"""The verbs of several parties: each sums its own rows, and the sums are merged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, printable, verbatim
from understudy.cli.release import delta_words, guarantee_words, outcome, running, told_of
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.plan.request import Request

Asked = Annotated[Path, typer.Argument(metavar="REQUEST", help="Request file, made by plan -o or by merge.")]


def partial(
    data: opt.Data,
    request: Annotated[Path, typer.Option("--request", "-r", help="Request file, the same for all parties.")],
    party: Annotated[str, typer.Option("--party", help="This party's name.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New encrypted file.")],
    key_file: opt.KeyFile = None,
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    max_epsilon: Annotated[
        float | None,
        typer.Option(
            "--max-epsilon",
            help="Most that all rounds may cost. Parties with noise of their own give this or a ledger.",
        ),
    ] = None,
    engine: opt.Engine = "auto",
    threads: opt.Threads = None,
    as_json: opt.AsJson = False,
) -> None:
    """Sum one party's rows into an encrypted file for the merger.

    The file holds an exact sum, which is private, unless the request is for parties that add noise of their own. What
    is asked for is shown before a row is read.
    """
    from understudy.plan.request import load_request
    from understudy.private.parties import write_partial
    from understudy.private.secret_files import read_key

    asked = load_request(request)
    document, lines = _asked_for(asked)
    if not as_json:
        emit(document, lines, as_json=False)
    key = read_key(key_file)
    with running(engine=engine, threads=threads, checkpoint=None, key_file=None, as_json=as_json) as run:
        header = write_partial(
            data, asked, party=party, path=output, key=key, query=query, ledger=ledger, max_epsilon=max_epsilon, run=run
        )
    held = "this party's own noisy sum" if header["own_noise"] else "an exact sum, encrypted"
    lines = [
        f"[bold green]Wrote[/bold green] {verbatim(output)}: {held}",
        *([f"  query        {printable(query)} (the certificate will print it)"] if query else []),
        "Next: give it to whoever runs [bold]understudy merge[/bold]",
    ]
    emit(header | document | {"output": str(output)}, lines, as_json=as_json)


def _asked_for(asked: Request) -> tuple[dict[str, Any], list[str]]:
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
    return document, [
        f"[bold]Asked for[/bold] round {asked.round + 1} of {len(plan.stages)}, {printable(plan.method)} on "
        f"{printable(plan.schema.name)}",
        f"  epsilon      {round_up(plan.epsilon())} {delta_words(plan)} over all rounds; "
        f"{round_up(asked.epsilon_of_round)} in this one",
        f"  protects     {printable(rows)} ({plan.neighbours.value})",
        f"  noise        {noise}",
    ]


def merge(
    request: Asked,
    files: Annotated[list[Path], typer.Argument(help="One encrypted file of each party.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the release.")],
    key_file: Annotated[
        list[Path] | None,
        typer.Option("--key-file", help="Key of a party; repeat it if parties have keys of their own."),
    ] = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
    as_json: opt.AsJson = False,
) -> None:
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
        _emit_next(made, output, as_json=as_json)
        return
    lines = [
        f"[bold green]Released[/bold green] the rows of {len(files)} parties {guarantee_words(made.plan)}",
        *told_of(made, ledger),
        f"  release      {verbatim(output)}",
        f"  certificate  {verbatim(output / 'certificate.html')}",
        f"Next, at no cost: [bold]understudy fit {verbatim(output)} -o MODEL[/bold]",
    ]
    emit(outcome(made) | {"release": str(output)}, lines, as_json=as_json)


def _next_request(output: Path, round_: int) -> Path:
    return Path(f"{output}.round-{round_ + 1}.json")


def _emit_next(made: Request, output: Path, *, as_json: bool) -> None:
    path = _next_request(output, made.round)
    made.save(path)
    lines = [
        f"[bold green]Merged[/bold green] round {made.round} of {len(made.plan.stages)}",
        *(
            [f"  ledger       row {verbatim(made.ledger['row'])}; merged again, it would be charged again"]
            if made.ledger
            else []
        ),
        f"Next: each party answers [bold]{verbatim(path)}[/bold], and merge gets it as its request",
    ]
    document: dict[str, Any] = {"request": str(path), "round": made.round, "ledger": made.ledger}
    emit(document, lines, as_json=as_json)
