"""The verbs of networks that features of images are taken from."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.output import Outcome, facts, stage_bar, training_bar, verbatim, waiting
from understudy.cli.release import reused_words, rows_charged
from understudy.codec import encode
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from understudy.arrays import Bytes
    from understudy.schema.images import ImageShape

EncoderOutput = Annotated[Path, typer.Option("--output", "-o", help="New directory for the encoder.")]


def train(
    files: Annotated[
        list[str],
        typer.Argument(help="PUBLIC image sets (.npz, folders, Parquet) of one size; classes of each are its own."),
    ],
    output: EncoderOutput,
    told: Annotated[str, typer.Option(help="What the images are, for certificates (default: the files' names).")] = "",
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1200,
    depths: Annotated[str, typer.Option(help="Channels of the convolutions, parted by commas.")] = "16,32,64",
    strides: Annotated[str, typer.Option(help="Strides of the convolutions.")] = "2,2,2",
    kernels: Annotated[str, typer.Option(help="Widths of the convolutions, which are odd.")] = "5,3,3",
    components: Annotated[int, typer.Option(min=1, help="Principal components of the images.")] = 100,
    mirrored: Annotated[
        bool, typer.Option("--mirrored", help="Half of all images are seen in a mirror: not for letters.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Public seed.")] = 0,
) -> Outcome:
    """Train a small network to tell the classes of PUBLIC images apart, or how they are turned if they have none."""
    from understudy.files import check_new_directory
    from understudy.networks import EncoderTraining, save_encoder, train_encoder

    check_new_directory(output)
    with waiting("reading public images"):
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
    with training_bar() as progress:
        encoder, share = train_encoder(images, labels, training, trained_on=told, progress=progress)
    save_encoder(encoder, output)
    task = "quarters that images are turned by" if labels is None else "classes"
    told_apart = f"{share:.1%} of the {task}, on changed images that it learnt from"
    lines = [
        f"[bold green]Trained[/bold green] an encoder in {verbatim(output)}",
        *facts({"images": len(images), "told apart": told_apart, "SHA-256": encoder.sha256}),
        f"Next: [bold]understudy synth PRIVATE --method dp-mepf --encoder {verbatim(output)}[/bold] ...",
    ]
    return {"encoder": output, "images": len(images), "accuracy": share, "sha256": encoder.sha256}, lines


def private(
    data: Annotated[str, typer.Argument(help="PRIVATE image set with labels (.npz, folder, Parquet).")],
    schema: Annotated[Path, typer.Option("--schema", "-s", help="Public schema of the images (YAML).")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget of the encoder alone.")],
    output: EncoderOutput,
    delta: opt.DescentDelta = 1e-5,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Public guess of the number of images (default: the schema's).")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of noisy descent.")] = 400,
    batch: Annotated[int, typer.Option(min=1, help="Images that a step expects.")] = 500,
    clip: Annotated[float, typer.Option(help="Norm that each image's gradient is shortened to.")] = 1.0,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge, now and for releases made with the encoder.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Name in the ledger; the same one again gives the stored encoder back.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Public seed. Noise has none.")] = 0,
) -> Outcome:
    """Spend budget on an encoder: learn it from PRIVATE images by noisy descent, where no public ones are to be had."""
    from understudy.accounting.mechanisms import Budget, round_up
    from understudy.networks import EncoderTraining
    from understudy.plan.encoder import ExtractorPlan
    from understudy.private.dpsgd.encoder import train_private_encoder
    from understudy.schema import load_schema

    training = EncoderTraining(steps=steps, batch=batch, seed=seed)
    plan = ExtractorPlan(load_schema(schema), Budget(epsilon, delta), training, clip, rows)
    charged_before = rows_charged(ledger)
    with stage_bar() as bar:
        progress = bar and partial(bar, "training")
        made = train_private_encoder(data, plan, directory=output, ledger=ledger, key=key, progress=progress)
    encoder, charged = made.encoder, dict(made.facts)["ledger"]
    cost = encoder.private_cost or {}
    headline = reused_words(charged, charged_before, what="encoder") or "[bold green]Learnt[/bold green] an encoder"
    named = {
        "encoder": output,
        "certificate": output / "certificate.html",
        "SHA-256": encoder.sha256,
        "fingerprint": made.fingerprint,
    }
    lines = [
        f"{headline} with epsilon {round_up(cost['epsilon'])} at delta {delta:g} (add-remove); a release made with it "
        "is charged besides, and its certificate states both together",
        *facts(named),
    ]
    document = {
        "encoder": output,
        "sha256": encoder.sha256,
        "cost": cost,
        "is_private": made.is_private,
        "fingerprint": made.fingerprint,
        "ledger": charged,
    }
    return document, lines


def show(directory: Annotated[Path, typer.Argument(help="Directory of an encoder.")]) -> Outcome:
    """Show what an encoder was trained on, its layers and its hash."""
    from understudy.accounting.mechanisms import round_up
    from understudy.networks import load_encoder

    encoder = load_encoder(directory)
    form, cost = encoder.form, encoder.private_cost
    document: dict[str, Any] = {"told": encoder.trained_on, "sha256": encoder.sha256, "private_cost": cost}
    named = {
        "images": f"{form.image.height} x {form.image.width} x {form.image.channels}",
        "layers": f"components ({form.components}), {', '.join(form.convolutions)}",
        "SHA-256": encoder.sha256,
        "cost": f"epsilon {round_up(cost['epsilon'])} at delta {cost['delta']:g} (add-remove)" if cost else None,
    }
    lines = [f"[bold]{verbatim(directory)}[/bold], trained on {verbatim(encoder.trained_on)}", *facts(named)]
    if cost is not None and not cost.get("is_private", True):
        lines.append(f"[bold red]NOT PRIVATE[/bold red]: its noise came from {verbatim(cost['noise'])}")
    return document | encode(form), lines


def public_images(files: list[str]) -> tuple[Bytes, Any]:
    """Images of several sets, with classes of each its own; labels only if all sets have them."""
    import numpy as np

    from understudy.readers import open_source, source_columns
    from understudy.schema.encode import pixel_array
    from understudy.schema.images import LABEL, shape_of

    images: list[Bytes] = []
    labels: list[list[str]] = []
    shapes: set[ImageShape | None] = set()
    for place, file in enumerate(files):
        names = [name for name, _ in source_columns(file)]
        shape = shape_of(names)
        shapes.add(shape)
        if shape is None or len(shapes) > 1:
            rule = "holds no images, or images of another size than the first set"
            raise InputError(f"'{file}'", rule, "Give image sets of one size")
        columns = [*shape.names, *([LABEL] if LABEL in names else [])]
        found: list[str] = []
        with open_source(file, columns=columns) as stream:
            for batch in stream:
                images.append(pixel_array(batch, shape))
                cells = batch.column(LABEL).to_pylist() if LABEL in columns else []
                found += [f"{place:06d} {cell}" for cell in cells]
        labels.append(found)
    if not images:
        raise InputError("public images", "there are none", "Give other files")
    codes = None
    if all(labels):
        _, codes = np.unique(np.concatenate(labels), return_inverse=True)
    return np.concatenate(images), codes


def _whole(text: str, name: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(name, "must be whole numbers parted by commas") from None
