"""The verbs of encoders: networks that features of images are taken from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, training_bar, verbatim, waiting
from understudy.codec import encode
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from understudy.arrays import Bytes
    from understudy.schema.images import ImageShape

app = typer.Typer(help="Public networks that features of images are taken from.", no_args_is_help=True)


@app.command("train")
def train(
    files: Annotated[
        list[str],
        typer.Argument(help="PUBLIC image sets (.npz, folders, Parquet) of one size; classes of each are its own."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the encoder.")],
    told: Annotated[
        str, typer.Option("--told", help="What the images are, for certificates (default: the files' names).")
    ] = "",
    steps: Annotated[int, typer.Option("--steps", min=1, help="Training steps.")] = 1200,
    depths: Annotated[
        str, typer.Option("--depths", help="Channels of the convolutions, parted by commas.")
    ] = "16,32,64",
    strides: Annotated[str, typer.Option("--strides", help="Strides of the convolutions.")] = "2,2,2",
    kernels: Annotated[str, typer.Option("--kernels", help="Widths of the convolutions, which are odd.")] = "5,3,3",
    components: Annotated[int, typer.Option("--components", min=1, help="Principal components of the images.")] = 100,
    mirrored: Annotated[
        bool, typer.Option("--mirrored", help="Half of all images are seen in a mirror: not for letters.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Public seed.")] = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Train a small network to tell the classes of PUBLIC images apart, or how they are turned if they have none."""
    from understudy.files import check_new_directory
    from understudy.networks import EncoderTraining, save_encoder, train_encoder

    check_new_directory(output)
    with waiting("reading public images", as_json=as_json):
        images, labels = public_images(files)
    training = EncoderTraining(
        depths=_whole(depths, "depths"),
        strides=_whole(strides, "strides"),
        kernels=_whole(kernels, "kernels"),
        components=components,
        steps=steps,
        mirrored=mirrored,
        seed=seed,
    )
    told = told or ", ".join(Path(file).stem for file in files)
    with training_bar(as_json=as_json) as progress:
        encoder, share = train_encoder(images, labels, training, trained_on=told, progress=progress)
    save_encoder(encoder, output)
    task = "quarters that images are turned by" if labels is None else "classes"
    lines = [
        f"[bold green]Trained[/bold green] an encoder in {verbatim(output)}",
        f"  images       {len(images)}",
        f"  told apart   {share:.1%} of the {task}, on changed images that it learnt from",
        f"  SHA-256      {encoder.sha256}",
        f"Next: [bold]understudy synth PRIVATE --method dp-mepf --encoder {verbatim(output)}[/bold] ...",
    ]
    document = {"encoder": str(output), "images": len(images), "accuracy": share, "sha256": encoder.sha256}
    emit(document, lines, as_json=as_json)


@app.command("private")
def private(
    data: Annotated[str, typer.Argument(help="PRIVATE image set with labels (.npz, folder, Parquet).")],
    schema: Annotated[Path, typer.Option("--schema", "-s", help="Public schema of the images (YAML).")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget of the encoder alone.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the encoder.")],
    delta: Annotated[
        float, typer.Option("--delta", help="Chance that the guarantee fails; above 0, far below 1 / rows.")
    ] = 1e-5,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="Public guess of the number of images (default: the schema's).")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of noisy descent.")] = 400,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Images that a step expects.")] = 500,
    clip: Annotated[float, typer.Option("--clip", help="Norm that each image's gradient is shortened to.")] = 1.0,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger to charge, now and for releases made with the encoder.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Name in the ledger; the same one again gives the stored encoder back.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Public seed. Noise has none.")] = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Spend budget on an encoder: learn it from PRIVATE images by noisy descent, where no public ones are to be had."""
    from understudy.accounting import Budget
    from understudy.accounting.mechanisms import round_up
    from understudy.networks import EncoderTraining
    from understudy.plan.encoder import ExtractorPlan
    from understudy.private.dpsgd.encoder import train_private_encoder
    from understudy.private.ledger import read_ledger
    from understudy.schema import load_schema

    if key is not None and ledger is None:
        raise UsageError("key", "names an encoder in a ledger, and none was given", "Add --ledger FILE")
    training = EncoderTraining(steps=steps, batch=batch, seed=seed)
    plan = ExtractorPlan(load_schema(schema), Budget(epsilon, delta), training, clip, rows)
    rows_before = len(read_ledger(ledger).rows) if ledger is not None else 0
    with training_bar(as_json=as_json) as bar:
        made = train_private_encoder(
            data,
            plan,
            directory=output,
            ledger=ledger,
            key=key,
            progress=lambda done, total: bar(done, total, 0.0) if bar is not None else None,
        )
    encoder, charged = made.encoder, dict(made.facts)["ledger"]
    cost = encoder.private_cost or {}
    reused = charged is not None and charged["row"] <= rows_before
    headline = (
        "[bold yellow]Reused[/bold yellow] the encoder made before under this key, without reading the data or "
        "charging the ledger,"
        if reused
        else "[bold green]Learnt[/bold green] an encoder"
    )
    lines = [
        f"{headline} with epsilon {round_up(cost['epsilon'])} at delta {delta:g} (add-remove); a release made with it "
        "is charged besides, and its certificate states both together",
        f"  encoder      {verbatim(output)}",
        f"  certificate  {verbatim(output / 'certificate.html')}",
        f"  SHA-256      {encoder.sha256}",
        f"  fingerprint  {made.fingerprint}",
    ]
    document = {
        "encoder": str(output),
        "sha256": encoder.sha256,
        "cost": cost,
        "is_private": made.is_private,
        "fingerprint": made.fingerprint,
        "ledger": charged,
    }
    emit(document, lines, as_json=as_json)


@app.command("show")
def show(
    directory: Annotated[Path, typer.Argument(help="Directory of an encoder.")], as_json: opt.AsJson = False
) -> None:
    """Show what an encoder was trained on, its layers and its hash."""
    from understudy.networks import load_encoder

    encoder = load_encoder(directory)
    form = encoder.form
    cost: dict[str, Any] = {"private_cost": encoder.private_cost}
    document = {"told": encoder.trained_on, "sha256": encoder.sha256, **cost, **encode(form)}
    lines = [
        f"[bold]{verbatim(directory)}[/bold], trained on {verbatim(encoder.trained_on)}",
        f"  images       {form.image.height} x {form.image.width} x {form.image.channels}",
        f"  layers       components ({form.components}), {', '.join(form.convolutions)}",
        f"  SHA-256      {encoder.sha256}",
        *_cost_lines(encoder.private_cost),
    ]
    emit(document, lines, as_json=as_json)


def _cost_lines(cost: dict[str, Any] | None) -> list[str]:
    """What learning an encoder from private rows cost, and whether its noise was real."""
    from understudy.accounting.mechanisms import round_up

    if cost is None:
        return []
    lines = [f"  cost         epsilon {round_up(cost['epsilon'])} at delta {cost['delta']:g} (add-remove)"]
    if not cost.get("is_private", True):
        lines.append(f"[bold red]NOT PRIVATE[/bold red]: its noise came from {verbatim(cost['noise'])}")
    return lines


def public_images(files: list[str]) -> tuple[Bytes, Any]:
    """Images of several sets, with classes counted on from set to set; labels only if all sets have them."""
    import numpy as np

    from understudy.readers import open_source, source_columns
    from understudy.schema.encode import pixel_array
    from understudy.schema.images import LABEL, shape_of

    images: list[Bytes] = []
    labels: list[list[Any]] = []
    shapes: list[ImageShape] = []
    for file in files:
        names = [name for name, _ in source_columns(file)]
        shape = shape_of(names)
        if shape is None or (shapes and shape != shapes[0]):
            raise InputError(
                f"'{file}'",
                "holds no images, or images of another size than the first set",
                "Give image sets of one size",
            )
        shapes.append(shape)
        columns = [*shape.names, *([LABEL] if LABEL in names else [])]
        found: list[Any] = []
        with open_source(file, columns=columns) as stream:
            for batch in stream:
                images.append(pixel_array(batch, shape))
                found += batch.column(LABEL).to_pylist() if LABEL in columns else []
        labels.append(found)
    if not images:
        raise InputError("public images", "there are none", "Give other files")
    if not all(labels):
        return np.concatenate(images), None
    start, codes = 0, []
    for found in labels:
        values, places = np.unique(np.array([str(value) for value in found]), return_inverse=True)
        codes.append(places + start)
        start += len(values)
    return np.concatenate(images), np.concatenate(codes)


def _whole(text: str, name: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(name, "must be whole numbers parted by commas") from None
