"""The verb demo: the whole pipeline on a public table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, stage_bar, verbatim


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the results.")] = Path(
        "demo-output"
    ),
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget.")] = 1.0,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Run the whole pipeline on a real table that ships with statsmodels."""
    from understudy.demo import run_demo

    with stage_bar(as_json=as_json) as progress:
        results = run_demo(output, epsilon=epsilon, seed=seed, progress=progress)
    lines = ["[bold green]Done.[/bold green] The results:"]
    lines += [f"  {name:<12} {verbatim(path)}" for name, path in results.items()]
    emit({name: str(path) for name, path in results.items()}, lines, as_json=as_json)
