"""The verbs of the private classifier."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import INTERNAL, PAGES, PUBLIC, check_output, write_page, write_rows
from understudy.cli.output import Outcome, facts, stage_bar, verbatim
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.arrays import Integers
    from understudy.classifier.model import Classifier

Directory = Annotated[Path, typer.Argument(help="Directory of a classifier, made by classify.")]
Maps = partial(typer.Option, rich_help_panel="Maps")
Descent = partial(typer.Option, rich_help_panel="Descent")


def classify(
    data: opt.Data,
    schema: opt.SchemaPath,
    epsilon: opt.Epsilon,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the classifier.")],
    delta: opt.DescentDelta = 1e-5,
    rows: opt.Rows = None,
    inputs: Annotated[
        str, Maps(help="auto, table; for images: cosines (filters can be drawn) or strokes (more accurate).")
    ] = "auto",
    maps: Annotated[int, Maps(min=1, help="Linear maps per class.")] = 1,
    beta: Annotated[float, Maps(help="How strongly the best map is preferred.")] = 1.0,
    projected: Annotated[int | None, Maps(help="Coordinates after a random projection.")] = None,
    look: Annotated[
        float, Descent(help="Part of the budget for second moments, which make descent short; 0 for none.")
    ] = 0.3,
    steps: Annotated[int | None, Descent(min=1, help="Steps of descent (default: by the budget).")] = None,
    sampling: Annotated[float, Descent(help="Chance of a row in a step. Below 1 a ledger needs a reserve.")] = 1.0,
    seed: opt.Seed = 0,
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
) -> Outcome:
    """Read private rows and publish a classifier of their label, with its certificate."""
    from understudy.accounting.mechanisms import Budget, round_up
    from understudy.classifier.plan import ClassifierPlan, Training
    from understudy.private.dpsgd.classifier import train_classifier
    from understudy.schema import load_schema

    training = Training(
        inputs=inputs,
        num_maps=maps,
        inverse_temperature=beta,
        projected=projected,
        look=look,
        steps=steps,
        sampling_rate=sampling,
        seed=seed,
    )
    plan = ClassifierPlan(load_schema(schema), Budget(epsilon, delta), training, rows)
    with stage_bar() as bar:
        progress = bar and partial(bar, "training")
        made = train_classifier(data, plan, directory=output, ledger=ledger, key=key, query=query, progress=progress)
    spent = plan.descent.epsilon()
    lines = [
        f"[bold green]Trained[/bold green] with epsilon {round_up(spent)} at delta {delta:g} (add-remove)",
        *facts({"classifier": output, "certificate": output / "certificate.html", "fingerprint": made.fingerprint}),
        f"Next, at no cost: [bold]understudy predict {verbatim(output)} ROWS -o predicted.csv[/bold]",
    ]
    document = {
        "classifier": output,
        "epsilon": spent,
        "delta": delta,
        "noise_multiplier": plan.descent.cost.noise_multiplier,
        "fingerprint": made.fingerprint,
        "ledger": dict(made.facts)["ledger"],
    }
    return document, lines


def predict(
    classifier: Directory,
    rows: opt.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="New .csv or .parquet file.")],
) -> Outcome:
    """Predict the label of rows, with the chance of every class."""
    import pyarrow as pa

    from understudy.classifier.model import load_classifier

    check_output(output)
    loaded = load_classifier(classifier)
    chances = loaded.probabilities(_codes(loaded, rows))
    label = loaded.plan.label.name
    columns: dict[str, Any] = {f"predicted_{label}": [loaded.classes[i] for i in chances.argmax(axis=1)]}
    columns |= {f"chance_{name}": chances[:, place].round(6) for place, name in enumerate(loaded.classes)}
    write_rows(pa.table(columns), output)
    lines = [f"[bold green]Predicted[/bold green] {len(chances)} rows into {verbatim(output)}"]
    return {"output": output, "num_rows": len(chances)}, lines


def explain(
    classifier: Directory,
    output: Annotated[Path, typer.Option("--output", "-o", help="New .html file.")],
    rows: Annotated[str | None, typer.Option(help="Rows to explain; the page then shows them.")] = None,
    row: Annotated[
        list[int] | None, typer.Option(min=0, help="Which of them, from 0 (default: 0). Repeatable.")
    ] = None,
) -> Outcome:
    """Show what a classifier looks at: all its maps, and why single rows are predicted as they are."""
    from understudy.classifier.model import load_classifier
    from understudy.reports.explanation import render_explanation

    check_output(output, kinds=PAGES)
    loaded = load_classifier(classifier)
    if row and rows is None:
        raise UsageError("row", "says which of some rows, and none were given", "Add --rows FILE")
    codes = None
    if rows is not None:
        known = _codes(loaded, rows)
        wanted = row or [0]
        if not len(known) or max(wanted) >= len(known):
            raise UsageError("row", "is beyond the last of the rows", "Rows are counted from 0")
        codes = known[wanted]
    page = render_explanation(loaded, codes)
    write_page(page, output, mode=PUBLIC if codes is None else INTERNAL)
    return {"output": output, "rows": row or []}, [f"[bold green]Explained[/bold green] in {verbatim(output)}"]


def _codes(loaded: Classifier, rows: str) -> Integers:
    """Rows that are to be predicted: the schema's features, whatever else a file holds."""
    from understudy.readers import open_source

    with open_source(rows, columns=loaded.plan.features.file_names) as batches:
        return loaded.codes(batches)
