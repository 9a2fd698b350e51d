"""The ledger's verbs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import Outcome, facts, table, verbatim

if TYPE_CHECKING:
    from understudy.private.ledger import LedgerRow

File = Annotated[Path, typer.Argument(help="Ledger file.")]


def init(
    file: File,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Cap for all releases together.")],
    delta: Annotated[float, typer.Option(help="Chance that the guarantee fails. 0: a pure ledger.")] = 1e-5,
    neighbours: opt.NeighboursName = "add-remove",
    reserve: Annotated[
        float, typer.Option(help="Part of delta set aside for training on samples of rows; 0.1 is for ten classifiers.")
    ] = 0.0,
) -> Outcome:
    """Make a ledger with a cap; every release is charged for the ledger's own neighbours.

    With --delta 0 it is a pure ledger: epsilons add up, and only releases with --delta 0 are taken.
    """
    from understudy.accounting.mechanisms import Budget, neighbours_by_name
    from understudy.private.ledger import create_ledger

    budget, notion = Budget(epsilon, delta), neighbours_by_name(neighbours)
    create_ledger(file, budget, neighbours=notion, reserve=reserve)
    lines = [f"[bold green]Made[/bold green] {verbatim(file)} with a cap of epsilon {epsilon} at delta {delta}"]
    return {"ledger": file, "epsilon": epsilon, "delta": delta}, lines


def show(file: File) -> Outcome:
    """Show what was spent and what is left."""
    from understudy.private.ledger import read_ledger

    state = read_ledger(file)
    spent, remaining = state.epsilon_of(state.spent_units), state.epsilon_of(state.remaining_units)
    rows = [_document(row) | {"epsilon": state.epsilon_of(row.units)} for row in state.rows]
    document = {
        "neighbours": state.neighbours.value,
        "cap": {"epsilon": state.epsilon, "delta": state.delta, "units": state.cap_units},
        "spent": {"epsilon": spent, "units": state.spent_units},
        "remaining": {"epsilon": remaining, "units": state.remaining_units},
        "rows": rows,
    }
    shown = [
        [
            str(row["number"]),
            row["description"],
            row["key"],
            row["state"],
            f"{row['epsilon']:.4f}",
            row["spent_at"][:16].replace("T", " "),
        ]
        for row in rows
    ]
    headings = ["row", "what", "key", "state", "epsilon alone", "when"]
    units = " and ".join(sorted(set(state.units)))  # one, but perhaps in older ledgers
    adding = "epsilons add up" if state.is_pure else "mu squared adds up, epsilons do not"
    named = {
        "protects": f"every {units}" if units else None,
        "spent": f"epsilon {spent:.4f} of {state.epsilon} at delta {state.delta} ({state.neighbours.value})",
        "remaining": f"one release of epsilon {remaining:.4f} ({adding})",
    }
    return document, [table("Releases", headings, shown) if rows else "No releases yet.", *facts(named)]


def _document(row: LedgerRow) -> dict[str, Any]:
    """What is told of a row: all but where its release lies, and what it took of the reserve."""
    told = asdict(row)
    del told["directory"], told["slack_units"]
    return {"plan": told.pop("plan_id"), **told}
