"""The verb that runs the whole pipeline on a public table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.output import Outcome, facts, stage_bar


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the results.")] = Path(
        "demo-output"
    ),
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget.")] = 1.0,
    seed: opt.Seed = 0,
) -> Outcome:
    """Run the whole pipeline on a real table that ships with linearmodels."""
    from understudy.demo import run_demo

    with stage_bar() as progress:
        results = run_demo(output, epsilon=epsilon, seed=seed, progress=progress)
    return {**results}, ["[bold green]Done.[/bold green] The results:", *facts(results)]
