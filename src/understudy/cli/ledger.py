"""The ledger's verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, table, verbatim

app = typer.Typer(help="A budget for all releases from one table.", no_args_is_help=True)
File = Annotated[Path, typer.Argument(help="Ledger file.")]


@app.command("init")
def init(
    file: File,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Cap for all releases together.")],
    delta: Annotated[float, typer.Option("--delta", help="Chance that the guarantee fails. 0: a pure ledger.")] = 1e-5,
    neighbours: opt.NeighboursName = "add-remove",
    reserve: Annotated[
        float,
        typer.Option(
            "--reserve", help="Part of delta set aside for training on samples of rows; 0.1 is for ten classifiers."
        ),
    ] = 0.0,
    as_json: opt.AsJson = False,
) -> None:
    """Make a ledger with a cap; every release is charged for the ledger's own neighbours.

    With --delta 0 it is a pure ledger: epsilons add up, and only releases with --delta 0 are taken.
    """
    from understudy.accounting import Budget, neighbours_by_name
    from understudy.private.ledger import create_ledger

    budget, notion = Budget(epsilon, delta), neighbours_by_name(neighbours)
    create_ledger(file, budget, neighbours=notion, reserve=reserve)
    lines = [f"[bold green]Made[/bold green] {verbatim(file)} with a cap of epsilon {epsilon} at delta {delta}"]
    emit({"ledger": str(file), "epsilon": epsilon, "delta": delta}, lines, as_json=as_json)


@app.command("show")
def show(file: File, as_json: opt.AsJson = False) -> None:
    """Show what was spent and what is left."""
    from understudy.private.ledger import read_ledger

    state = read_ledger(file)
    epsilon = state.epsilon_of
    rows = [
        [
            str(row.number),
            row.description,
            row.key,
            row.state,
            f"{epsilon(row.units):.4f}",
            row.spent_at[:16].replace("T", " "),
        ]
        for row in state.rows
    ]
    units = sorted(set(state.units))  # one, but perhaps in older ledgers
    spent, remaining = epsilon(state.spent_units), epsilon(state.remaining_units)
    document = {
        "neighbours": state.neighbours.value,
        "cap": {"epsilon": state.epsilon, "delta": state.delta, "units": state.cap_units},
        "spent": {"epsilon": spent, "units": state.spent_units},
        "remaining": {"epsilon": remaining, "units": state.remaining_units},
        "rows": [
            {
                "number": row.number,
                "key": row.key,
                "plan": row.plan_id,
                "description": row.description,
                "unit": row.unit,
                "units": row.units,
                "epsilon": epsilon(row.units),
                "state": row.state,
                "fingerprint": row.fingerprint,
                "spent_at": row.spent_at,
            }
            for row in state.rows
        ],
    }
    adding = "epsilons add up" if state.is_pure else "mu squared adds up, epsilons do not"
    lines = [
        table("Releases", ["row", "what", "key", "state", "epsilon alone", "when"], rows)
        if rows
        else "No releases yet.",
        *([f"  protects   every {verbatim(' and '.join(units))}"] if units else []),
        f"  spent      epsilon {spent:.4f} of {state.epsilon} at delta {state.delta} ({state.neighbours.value})",
        f"  remaining  one release of epsilon {remaining:.4f} ({adding})",
    ]
    emit(document, lines, as_json=as_json)
