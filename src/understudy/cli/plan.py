"""The verb plan: a plan in words and numbers, before any data is opened."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import Outcome, facts, table, verbatim
from understudy.cli.release import delta_words

if TYPE_CHECKING:
    from understudy.features import Block
    from understudy.plan.plan import Plan
    from understudy.schema import Schema

HIGH_EPSILON = 10
"""Above it people are warned: the odds of a guess may change by a factor of e^10, about 22,000."""

NOISE_WORDS = {
    "gaussian": "discrete Gaussian; costs add up in mu squared",
    "laplace": "discrete Laplace, as delta is 0; costs add up in epsilon",
}


def plan(
    ctx: typer.Context,
    planning: opt.Planning,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it as a request that several parties answer.")
    ] = None,
    parties: Annotated[int, typer.Option(min=1, help="With -o: so many parties each add their own noise.")] = 1,
) -> Outcome:
    """Print noise, expected error, size, memory and cost of a release, without opening data."""
    from understudy.plan.request import Request

    made = replace(opt.plan_of(ctx, planning), parties=parties)
    if output is not None:
        Request(made).save(output)
    document = plan_document(made)
    return document, plan_lines(made, document)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Everything that ``understudy plan`` prints."""
    from understudy.accounting.mechanisms import Neighbours
    from understudy.methods.common import ROWS_IF_UNSAID
    from understudy.methods.merf import error_bound
    from understudy.private.sums import TABLE_BLOCK_ROWS

    rows = plan.num_rows or ROWS_IF_UNSAID
    blocks: list[dict[str, Any]] = [
        {
            "stage": stage.name,
            "block": block.name,
            "features": block.map.dim,
            "copies": stage.embedding.copies(block),
            "weight": block.weight,
            "noise_std_of_a_sum": (noise := _noise_std(plan, index, block)),
            "noise_std_of_a_mean": noise / rows,
            "expected_error_of_embedding": noise / rows * math.sqrt(block.map.dim * stage.embedding.copies(block)),
        }
        for index, stage in enumerate(plan.stages)
        for block in stage.embedding.blocks
    ]
    numbers = next((b for b in blocks if b["block"] == "numbers"), None)
    dim = sum(stage.embedding.dim for stage in plan.stages)
    gram = max(block.map.gram_size for stage in plan.stages for block in stage.embedding.blocks)
    return {
        "plan": plan.fingerprint,
        "method": plan.method,
        "epsilon": plan.epsilon(),
        "epsilon_alone": plan.own_epsilon(),
        "delta": plan.budget.delta,
        "neighbours": plan.neighbours.value,
        "epsilon_add_remove": plan.epsilon(Neighbours.ADD_REMOVE),
        "epsilon_replace_one": plan.epsilon(Neighbours.REPLACE_ONE),
        "mechanism": plan.mechanism.name,
        "best_guess": plan.best_guess,
        "costs": [float(cost) for cost in plan.cost()],
        "mu_squared": [float(cost) for cost in plan.mechanism.mu_squared(plan.cost())],
        "noise_std": [noise / plan.lattice for noise in plan.noise_stds],
        "sensitivity": [plan.mechanism.length(sum(parts)) / plan.lattice for parts in plan.mechanism_sensitivities],
        "planned_for_rows": rows,
        "rows_stated": plan.num_rows is not None,
        "blocks": blocks,
        "error_bound_of_squared_mmd": error_bound(numbers["features"], numbers["noise_std_of_a_mean"])
        if numbers and plan.method == "dp-merf"
        else None,
        "explanation": list(plan.setting("explanation", ())),
        "numbers_released": dim,
        "release_bytes": 8 * dim,
        "memory_bytes": 2**28 + 8 * (TABLE_BLOCK_ROWS * plan.layout.width + 4 * dim + gram),
    }


def _noise_std(plan: Plan, stage: int, block: Block) -> float:
    """Noise of a block's sums; where it has tables, of a count, which is in all of them."""
    num_tables = len(block.map.count_tables) if block.map.reads_codes else 1
    noise_std: float = plan.noise_std_of_sum(stage, block) * num_tables**0.5
    return noise_std


def plan_lines(plan: Plan, document: dict[str, Any]) -> list[str]:
    """The same for people."""
    from understudy.accounting.mechanisms import round_up

    rows = [
        [
            b["block"],
            f"{b['features']} x {b['copies']}",
            f"{b['weight']:.3f}",
            f"{b['noise_std_of_a_sum']:.2f}",
            f"{b['expected_error_of_embedding']:.4f}",
        ]
        for b in document["blocks"]
    ]
    stated = "as stated" if document["rows_stated"] else "a guess; --rows states it"
    bound, costs = document["error_bound_of_squared_mmd"], document["costs"]
    named = {
        "guarantee": f"epsilon {round_up(plan.epsilon())} {delta_words(plan)} ({plan.neighbours.value})",
        "": _guarantee_details(plan, document),
        "in odds": f"an attacker's best guess is right at most {round_up(100 * document['best_guess'])} % of the time "
        "(a coin: 50 %)",
        "noise": NOISE_WORDS[plan.mechanism.name],
        "cost": f"{plan.mechanism.cost_name} {sum(costs):.6f} in {len(costs)} charge(s)",
        "planned for": f"{document['planned_for_rows']} rows ({stated})",
        "release": f"{document['numbers_released']} numbers, {document['release_bytes'] / 1e6:.2f} MB",
        "memory": f"about {document['memory_bytes'] / 1e6:.0f} MB, whatever the number of rows",
        "chosen": document["explanation"],
    }
    what = f"[bold]{verbatim(plan.method)}[/bold] on {verbatim(plan.schema.name)}: {_what(plan.schema)}"
    lines = [f"{what}; no data was opened"]
    if plan.network_has_test_noise:
        reason = "the encoder was learnt with noise for tests, so nothing made with it is private"
        lines.append(f"[bold red]NOT PRIVATE[/bold red]: {reason}")
    lines += facts(named)
    lines.append(table("Noise", ["block", "size", "weight", "noise of a sum", "error of the mean"], rows))
    if bound is not None:
        lines.append(f"  Error bound of the squared MMD (DP-MERF, Prop. 3.1): {bound:.4f}")
    if plan.epsilon() > HIGH_EPSILON:
        lines.append("  [yellow]An epsilon above 10 protects little; see the odds above.[/yellow]")
    return lines


def _guarantee_details(plan: Plan, document: dict[str, Any]) -> list[str]:
    """The guarantee for both notions of neighbours, its parts, and whom and how many releases it is for."""
    from understudy.accounting.mechanisms import round_up

    replaced, network = document["epsilon_replace_one"], plan.network_cost
    unit, whole = plan.schema.privacy, plan.setting("horizon")
    stated = round_up(replaced) if math.isfinite(replaced) else "not stated"
    lines = [f"add-remove {round_up(document['epsilon_add_remove'])}, replace-one {stated}"]
    if network is not None:
        own, before = round_up(plan.own_epsilon()), round_up(network["epsilon"])
        lines.append(f"of which this release {own}, the encoder before it {before}")
    if not unit.is_row:
        lines.append(f"for all rows of one {unit.unit}, of which at most {unit.max_rows} count")
    if whole is not None:
        without = "" if network is None else " without the encoder"
        lines.append(f"one of {whole['releases']} releases, together epsilon {whole['epsilon']:g}{without}")
    return lines


def _what(schema: Schema) -> str:
    """What a schema has, in a few words."""
    image = schema.image
    if image is None:
        return f"{len(schema.used)} columns"
    beside = len(schema.used) - image.num_pixels
    size = f"images of {image.height} x {image.width} x {image.channels}"
    return size + (f" and {beside} column(s)" if beside else "")
