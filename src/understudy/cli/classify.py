"""The verbs of the private classifier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import INTERNAL, PAGES, PUBLIC, check_output, write_page, write_rows
from understudy.cli.output import emit, stage_bar, verbatim
from understudy.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.classifier.model import Classifier

Directory = Annotated[Path, typer.Argument(help="Directory of a classifier, made by classify.")]
MAPS = "Maps"
DESCENT = "Descent"


def classify(
    data: opt.Data,
    schema: opt.SchemaPath,
    epsilon: opt.Epsilon,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the classifier.")],
    delta: opt.DescentDelta = 1e-5,
    rows: opt.Rows = None,
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs",
            rich_help_panel=MAPS,
            help="auto, table; for images: cosines (filters can be drawn) or strokes (more accurate).",
        ),
    ] = "auto",
    maps: Annotated[int, typer.Option("--maps", min=1, rich_help_panel=MAPS, help="Linear maps per class.")] = 1,
    beta: Annotated[
        float, typer.Option("--beta", rich_help_panel=MAPS, help="How strongly the best map is preferred.")
    ] = 1.0,
    projected: Annotated[
        int | None, typer.Option("--projected", rich_help_panel=MAPS, help="Coordinates after a random projection.")
    ] = None,
    look: Annotated[
        float,
        typer.Option(
            "--look",
            rich_help_panel=DESCENT,
            help="Part of the budget for second moments, which make descent short; 0 for none.",
        ),
    ] = 0.3,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=1, rich_help_panel=DESCENT, help="Steps of descent (default: by the budget)."),
    ] = None,
    sampling: Annotated[
        float,
        typer.Option(
            "--sampling", rich_help_panel=DESCENT, help="Chance of a row in a step. Below 1 a ledger needs a reserve."
        ),
    ] = 1.0,
    seed: opt.Seed = 0,
    query: opt.Query = None,
    ledger: opt.LedgerPath = None,
    key: opt.Key = None,
    as_json: opt.AsJson = False,
) -> None:
    """Read private rows and publish a classifier of their label, with its certificate."""
    from understudy.accounting import Budget
    from understudy.accounting.mechanisms import round_up
    from understudy.classifier.plan import ClassifierPlan, Training
    from understudy.private.dpsgd.classifier import train_classifier
    from understudy.schema import load_schema

    if key is not None and ledger is None:
        raise UsageError("key", "names a release in a ledger, and none was given", "Add --ledger FILE")
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
    with stage_bar(as_json=as_json) as bar:
        made = train_classifier(
            data,
            plan,
            directory=output,
            ledger=ledger,
            key=key,
            query=query,
            progress=None if bar is None else lambda done, total: bar("training", done, total),
        )
    charged, spent = dict(made.facts)["ledger"], plan.descent.epsilon()
    lines = [
        f"[bold green]Trained[/bold green] with epsilon {round_up(spent)} at delta {delta:g} (add-remove)",
        f"  classifier   {verbatim(output)}",
        f"  certificate  {verbatim(output / 'certificate.html')}",
        f"  fingerprint  {made.fingerprint}",
        f"Next, at no cost: [bold]understudy predict {verbatim(output)} ROWS -o predicted.csv[/bold]",
    ]
    document = {
        "classifier": str(output),
        "epsilon": spent,
        "delta": delta,
        "noise_multiplier": plan.descent.cost.noise_multiplier,
        "fingerprint": made.fingerprint,
        "ledger": charged,
    }
    emit(document, lines, as_json=as_json)


def predict(
    classifier: Directory,
    rows: opt.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="New .csv or .parquet file.")],
    as_json: opt.AsJson = False,
) -> None:
    """Predict the label of rows, with the chance of every class."""
    import pyarrow as pa

    from understudy.classifier.model import load_classifier

    check_output(output)
    loaded = load_classifier(classifier)
    chances = loaded.probabilities(loaded.codes(_read(loaded, rows)))
    label = loaded.plan.label.name
    columns: dict[str, Any] = {f"predicted_{label}": [loaded.classes[i] for i in chances.argmax(axis=1)]}
    columns |= {f"chance_{name}": chances[:, place].round(6) for place, name in enumerate(loaded.classes)}
    write_rows(pa.table(columns), output)
    lines = [f"[bold green]Predicted[/bold green] {len(chances)} rows into {verbatim(output)}"]
    emit({"output": str(output), "num_rows": len(chances)}, lines, as_json=as_json)


def explain(
    classifier: Directory,
    output: Annotated[Path, typer.Option("--output", "-o", help="New .html file.")],
    rows: Annotated[str | None, typer.Option("--rows", help="Rows to explain; the page then shows them.")] = None,
    row: Annotated[
        list[int] | None, typer.Option("--row", min=0, help="Which of them, from 0 (default: 0). Repeatable.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a classifier looks at: all its maps, and why single rows are predicted as they are."""
    from understudy.classifier.model import load_classifier
    from understudy.reports.explanation import render_explanation

    check_output(output, kinds=PAGES)
    loaded = load_classifier(classifier)
    if row and rows is None:
        raise UsageError("row", "says which of some rows, and none were given", "Add --rows FILE")
    codes = None
    if rows is not None:
        known = loaded.codes(_read(loaded, rows))
        wanted = row or [0]
        if not len(known) or max(wanted) >= len(known):
            raise UsageError("row", "is beyond the last of the rows", "Rows are counted from 0")
        codes = known[wanted]
    page = render_explanation(loaded, codes)
    write_page(page, output, mode=PUBLIC if codes is None else INTERNAL)
    lines = [f"[bold green]Explained[/bold green] in {verbatim(output)}"]
    emit({"output": str(output), "rows": row or []}, lines, as_json=as_json)


def _read(loaded: Classifier, rows: str) -> pa.Table:
    """Rows that are to be predicted: the schema's features, whatever else a file holds."""
    import pyarrow as pa

    from understudy.readers import open_source

    names = [column.name for column in loaded.plan.inputs.schema.used]
    with open_source(rows, columns=names) as batches:
        found = list(batches)
    return pa.Table.from_batches(found) if found else pa.table({name: [] for name in names})
