"""The verb plan: a plan in words and numbers, before any data is opened."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, table, verbatim
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


@opt.takes_plan
def plan(
    *,
    plan: Plan,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it as a request that several parties answer.")
    ] = None,
    parties: Annotated[
        int, typer.Option("--parties", min=1, help="With -o: so many parties each add their own noise.")
    ] = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Print noise, expected error, size, memory and cost of a release, without opening data."""
    from understudy.plan.request import Request

    plan = replace(plan, parties=parties)
    if output is not None:
        Request(plan).save(output)
    emit(plan_document(plan), plan_lines(plan), as_json=as_json)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Everything that ``understudy plan`` prints."""
    from understudy.accounting import Neighbours
    from understudy.methods.common import ROWS_IF_UNSAID
    from understudy.methods.merf import error_bound
    from understudy.private.sums import TABLE_BLOCK_ROWS

    rows, replaced = plan.num_rows or ROWS_IF_UNSAID, plan.epsilon(Neighbours.REPLACE_ONE)
    blocks: list[dict[str, Any]] = [
        {
            "stage": stage.name,
            "block": block.name,
            "features": block.map.dim,
            "copies": stage.embedding.copies(block),
            "weight": block.weight,
            "noise_std_of_a_sum": (noise := plan.noise_std_of_sum(index, block) * _tables(block) ** 0.5),
            "noise_std_of_a_mean": noise / rows,
            "expected_error_of_embedding": noise / rows * math.sqrt(block.map.dim * stage.embedding.copies(block)),
        }
        for index, stage in enumerate(plan.stages)
        for block in stage.embedding.blocks
    ]
    numbers = next((b for b in blocks if b["block"] == "numbers"), None)
    dim = sum(stage.embedding.dim for stage in plan.stages)
    return {
        "plan": plan.fingerprint,
        "method": plan.method,
        "epsilon": plan.epsilon(),
        "epsilon_alone": plan.own_epsilon(),
        "delta": plan.budget.delta,
        "neighbours": plan.neighbours.value,
        "epsilon_add_remove": plan.epsilon(Neighbours.ADD_REMOVE),
        "epsilon_replace_one": replaced if math.isfinite(replaced) else None,
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
        "memory_bytes": 2**28 + 8 * (TABLE_BLOCK_ROWS * plan.layout.width + 4 * dim + _gram(plan)),
    }


def _tables(block: Block) -> int:
    """Tables of a block, whose sums are then told as counts; else 1."""
    return len(block.map.count_tables) if block.map.reads_codes else 1


def _gram(plan: Plan) -> int:
    """Values in the largest Gram matrix that sums of products go through."""
    return max(block.map.gram_size for stage in plan.stages for block in stage.embedding.blocks)


def plan_lines(plan: Plan) -> list[str]:
    """The same for people."""
    from understudy.accounting.mechanisms import round_up

    document = plan_document(plan)
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
    replaced = document["epsilon_replace_one"]
    guess, costs = round_up(100 * document["best_guess"]), document["costs"]
    lines = [
        f"[bold]{verbatim(plan.method)}[/bold] on {verbatim(plan.schema.name)}: {_what(plan.schema)}; "
        "no data was opened",
        f"  guarantee     epsilon {round_up(plan.epsilon())} {delta_words(plan)} ({plan.neighbours.value})",
        f"                add-remove {round_up(document['epsilon_add_remove'])}, "
        f"replace-one {'not stated' if replaced is None else round_up(replaced)}",
        *_network(plan),
        *_unit(plan.schema),
        *_horizon(plan),
        f"  in odds       an attacker's best guess is right at most {guess} % of the time (a coin: 50 %)",
        f"  noise         {NOISE_WORDS[plan.mechanism.name]}",
        f"  cost          {plan.mechanism.cost_name} {sum(costs):.6f} in {len(costs)} charge(s)",
        f"  planned for   {document['planned_for_rows']} rows ({stated})",
        f"  release       {document['numbers_released']} numbers, {document['release_bytes'] / 1e6:.2f} MB",
        f"  memory        about {document['memory_bytes'] / 1e6:.0f} MB, whatever the number of rows",
        *(f"  chosen        {verbatim(sentence)}" for sentence in document["explanation"]),
        table("Noise", ["block", "size", "weight", "noise of a sum", "error of the mean"], rows),
    ]
    bound = document["error_bound_of_squared_mmd"]
    if bound is not None:
        lines.append(f"  Error bound of the squared MMD (DP-MERF, Prop. 3.1): {bound:.4f}")
    if plan.epsilon() > HIGH_EPSILON:
        lines.append("  [yellow]An epsilon above 10 protects little; see the odds above.[/yellow]")
    return lines


def _unit(schema: Schema) -> list[str]:
    unit = schema.privacy
    if unit.is_row:
        return []
    return [f"                for all rows of one {verbatim(unit.unit)}, of which at most {unit.max_rows} count"]


def _network(plan: Plan) -> list[str]:
    """What a network adds that was learnt from the same rows, and whether it was private."""
    from understudy.accounting.mechanisms import round_up

    if plan.network_cost is None:
        return []
    lines = [
        f"                of which this release {round_up(plan.own_epsilon())}, the encoder before it "
        f"{round_up(plan.network_cost['epsilon'])}"
    ]
    if plan.network_has_test_noise:
        lines.append(
            "  [bold red]NOT PRIVATE[/bold red]   the encoder was learnt with noise for tests, so nothing made "
            "with it is private"
        )
    return lines


def _horizon(plan: Plan) -> list[str]:
    """What several releases of this kind add up to, if they were planned together."""
    whole = plan.setting("horizon")
    if whole is None:
        return []
    return [
        f"                one of {whole['releases']} releases, together epsilon {whole['epsilon']:g}"
        f"{'' if plan.network_cost is None else ' without the encoder'}"
    ]


def _what(schema: Schema) -> str:
    """What a schema has, in a few words."""
    image = schema.image
    if image is None:
        return f"{len(schema.used)} columns"
    beside = len(schema.used) - image.num_pixels
    size = f"images of {image.height} x {image.width} x {image.channels}"
    return size + (f" and {beside} column(s)" if beside else "")
