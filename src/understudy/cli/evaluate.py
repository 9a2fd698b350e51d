"""The verbs that judge: synthetic rows against real ones, and a release against its generator."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import INTERNAL, PAGES, PUBLIC, check_output, read_frame, write_page
from understudy.cli.generator import sampler_of
from understudy.cli.output import Outcome, facts, stage_bar, table, verbatim
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from understudy.evaluation.image_features import ImageFeatures
    from understudy.evaluation.metrics import Evaluation
    from understudy.released import Release
    from understudy.schema import Schema


def evaluate(
    synthetic: Annotated[Path, typer.Argument(help="File of synthetic rows.")],
    reference: Annotated[Path, typer.Option("--reference", "-r", help="File of real rows to compare with.")],
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="Public schema (default: that of --release).")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Real rows that the release has not seen, to test models on.")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="Release of the rows: its epsilon and certificate are shown.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New .html file for the internal report.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: samples of rows, few models.")] = False,
    protocol: Annotated[
        str, typer.Option(help="How models are scored: probabilities, or papers (hard guesses, the papers' settings).")
    ] = "probabilities",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Network that images are compared in: a directory made by 'encoder train', or inception, vgg19 "
            "or resnet18 of torchvision (default: a small one, trained on the reference).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits and models.")] = 0,
) -> Outcome:
    """Score synthetic rows against real ones. The result is internal: it lies outside the certificate."""
    from understudy import __version__
    from understudy.evaluation.evaluate import evaluate as score_rows
    from understudy.released import build_certificate
    from understudy.reports.internal import BANNER, render_report, stated_epsilon
    from understudy.reports.verdict import judge

    if output is not None:
        check_output(output, kinds=PAGES)
    made, known = _described(release, schema)
    features = _image_features(encoder, known)
    with stage_bar() as progress:
        rows, real = read_frame(synthetic, known), read_frame(reference, known)
        held_out = read_frame(test, known) if test is not None else None
        found = score_rows(
            rows,
            real,
            known,
            test=held_out,
            quick=quick,
            seed=seed,
            protocol=protocol,
            features=features,
            progress=progress,
        )
    certificate = None
    if made is not None:
        certificate = build_certificate(made.plan, dict(made.facts), fingerprint=made.fingerprint)
    verdict = judge(found, epsilon=stated_epsilon(certificate))
    if output is not None:
        words = f"{reference.name}, {'all rows' if test is None else f'and {test.name} for tests'}"
        page = render_report(
            found,
            name=known.name,
            version=__version__,
            reference=words,
            certificate=certificate,
            pictures=_pictures(real, rows, known),
        )
        write_page(page, output, mode=INTERNAL)
    document = {
        "notice": BANNER,
        "report": output,
        "headline": verdict.headline,
        "trust": list(verdict.trust),
        "doubt": list(verdict.doubt),
        "uses": [asdict(use) | {"level": use.level.words} for use in verdict.uses],
        "evaluation": found.to_json(),
    }
    lines = [
        _score_table(found),
        f"[bold]{verbatim(verdict.headline)}[/bold]",
        *(f"  {verbatim(words)}" for words in (*verdict.copies, *found.notes)),
        BANNER,
        *facts({"report": output}),
    ]
    if output is None:
        lines.append("  Add [bold]-o report.html[/bold] for the page with pictures.")
    return document, lines


def report(
    release: opt.ReleaseDirectory,
    output: Annotated[Path, typer.Option("--output", "-o", help="New .html file for the public report.")],
    generator: Annotated[
        Path | None, typer.Option("--generator", "-g", help="Its generator, made by fit (default: fit one).")
    ] = None,
    seed: opt.Seed = 0,
) -> Outcome:
    """Compare a release's noisy numbers with rows of its generator; reads no row and may be published."""
    from understudy import __version__
    from understudy.released import load_release
    from understudy.reports.public import examine, render_public

    check_output(output, kinds=PAGES)
    made = load_release(release)
    sampler = sampler_of(made, generator)
    with stage_bar() as progress:
        found = examine(made, sampler, seed=seed, progress=progress)
    write_page(render_public(found, version=__version__), output, mode=PUBLIC)
    rows = [
        [each.block.name, f"{each.fit.size:,}", f"{each.fit.rms:.2f}", f"{100 * each.fit.inside:.1f} %"]
        for each in found.agreements
    ]
    use = (
        "which may be published with the release"
        if found.is_private
        else "NOT to be published: the release is not private"
    )
    lines = [
        table("Noisy numbers against synthetic rows", ["block", "numbers", "size of residuals", "inside 95 %"], rows),
        f"[bold]{verbatim(found.headline)}[/bold]",
        *facts({"report": f"{output}, {use}"}),
    ]
    return {"report": output} | found.to_json(), lines


def _image_features(encoder: str | None, schema: Schema) -> ImageFeatures | None:
    """What images are compared in, if a network is named for it."""
    if encoder is None:
        return None
    if schema.image is None:
        raise UsageError("encoder", "is for images, and the schema has none", "Leave --encoder out")
    from understudy.evaluation.image_features import network_features
    from understudy.methods.mepf import find_network

    return network_features(find_network(encoder), schema.image)


def _pictures(real: Any, synthetic: Any, schema: Schema) -> tuple[str, str] | None:
    """Real and synthetic images as a page shows them; none where there are none, or no Pillow."""
    import pyarrow as pa

    from understudy.reports.pictures import LOOKED_AT, picture_of

    first, second = (picture_of(pa.Table.from_pandas(frame.head(LOOKED_AT)), schema) for frame in (real, synthetic))
    return (first, second) if first is not None and second is not None else None


def _described(release: Path | None, schema: Path | None) -> tuple[Release | None, Schema]:
    """The release, if one is given, and the schema that it or the file describes."""
    from understudy.released import load_release
    from understudy.schema import load_schema

    made = load_release(release) if release is not None else None
    if schema is not None:
        known = load_schema(schema)
    elif made is not None:
        known = made.plan.schema
    else:
        raise UsageError("schema", "is needed", "Add --schema FILE, or --release DIR, which has one")
    if made is not None and {c.name for c in made.plan.schema.in_files} != {c.name for c in known.in_files}:
        raise InputError(f"release '{release}'", "has other columns than the schema", "Leave --schema out")
    return made, known


def _score_table(found: Evaluation) -> str:
    from understudy.reports.charts import decimal
    from understudy.reports.verdict import level_of

    rows = []
    for score in found.scores:
        level = level_of(score)
        numbers = [decimal(value) for value in (score.value, score.floor, score.baseline)]
        rows.append([score.metric.title, *numbers, level.words if level is not None else ""])
    title = f"{found.rows_synthetic:,} synthetic rows against {found.rows_real:,} real ones"
    return table(title, ["score", "synthetic", "real", "indep.", "in a word"], rows)
