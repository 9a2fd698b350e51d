"""The verbs that never touch private data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.files import Output, check_sample_output, write_sample
from understudy.cli.output import emit, stage_bar, training_bar, verbatim, waiting
from understudy.cli.planning import plan_document, plan_lines
from understudy.cli.wishes import read_balance, read_given

if TYPE_CHECKING:
    from understudy.plan.plan import Plan
    from understudy.released import Verification


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


def fit(
    release: Annotated[Path, typer.Argument(help="Directory of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the generator.")],
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="dp-mepf: the public network that the release was planned with.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Train a generator on a release."""
    from understudy.files import check_new_directory
    from understudy.generators import WeightedDatabase, save_generator
    from understudy.methods import fit_release
    from understudy.methods.mepf import find_network
    from understudy.released import load_release

    check_new_directory(output)
    made = load_release(release)
    if encoder is not None:
        find_network(encoder)
    with training_bar(as_json=as_json) as progress:
        generator = fit_release(made, progress=progress)
    save_generator(generator, output, release=made.fingerprint)
    is_weighted = isinstance(generator, WeightedDatabase)
    verb, file = ("export", "weighted.parquet") if is_weighted else ("sample", "rows.csv")
    lines = [
        f"[bold green]Fitted[/bold green] a generator in {verbatim(output)}",
        f"Next: [bold]understudy {verb} {verbatim(output)} -o {file}[/bold]",
    ]
    emit({"generator": str(output), "release": made.fingerprint}, lines, as_json=as_json)


def sample(
    generator: Annotated[Path, typer.Argument(help="Directory of a generator, made by fit.")],
    output: Output,
    num_rows: Annotated[int | None, typer.Option("-n", "--num-rows", min=1, help="Rows to draw.")] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", help="Only such rows: COLUMN=VALUE, COLUMN=LOW..HIGH, values parted by |. Repeatable."),
    ] = None,
    balance: Annotated[
        str | None, typer.Option("--balance", help="Shares of the label's classes: kept, equal or 'yes=1|no=3'.")
    ] = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Draw synthetic rows from a generator."""
    from understudy.files import refusing_damage
    from understudy.generators import load_generator
    from understudy.generators.base import AGAIN

    loaded = load_generator(generator)
    check_sample_output(output, loaded.schema)
    wishes = read_given(loaded.schema, given or [])
    shares = read_balance(loaded.schema, balance)
    with waiting("drawing rows", as_json=as_json), refusing_damage(f"generator '{generator}'", AGAIN):
        count = num_rows or loaded.default_num_rows
        rows = loaded.sample(count, seed=seed, given=wishes, balance=shares)
        write_sample(rows, output, loaded.schema)
    lines = [f"[bold green]Drew[/bold green] {count} synthetic rows into {verbatim(output)}"]
    emit({"output": str(output), "num_rows": count}, lines, as_json=as_json)


def verify(
    release: Annotated[Path, typer.Argument(help="Directory of a release, of a classifier, or of a private encoder.")],
    as_json: opt.AsJson = False,
) -> None:
    """Check that the files of a release fit one another, the accounting and noise; not that noise was really drawn."""
    from understudy.classifier.model import is_classifier, verify_classifier
    from understudy.networks.files import is_encoder
    from understudy.released import verify_release
    from understudy.released.encoder import verify_encoder
    from understudy.released.verify import NOISE

    if is_classifier(release):
        found = verify_classifier(release)
    elif is_encoder(release):
        found = verify_encoder(release)
    else:
        found = verify_release(release)
    status = "[bold green]Consistent[/bold green]" if found.is_private else "[bold red]NOT PRIVATE[/bold red]"
    lines = [
        f"{status}: by its files epsilon {found.epsilon:.6g} at delta {found.delta:g} "
        f"({found.neighbours}), {found.mechanism} noise",
        *_alone(found),
        f"  sensitivity  {', '.join(f'{value:.6f}' for value in found.sensitivity)}",
        f"  noise        {', '.join(f'{value:.6f}' for value in found.noise_std)}",
        *_noise_lines(found),
        f"  fingerprint  {found.fingerprint}",
        f"  files        {', '.join(name for name in found.checks if name != NOISE)}",
        f"This says: {found.meaning}.",
        "Compare the fingerprint with the one that the owner gives you.",
    ]
    lines.append(f"It rests on what the certificate assumes: {'; '.join(found.assumptions)}.")
    emit(found.to_dict(), lines, as_json=as_json)


def _noise_lines(found: Verification) -> list[str]:
    """What was seen of noise, stage by stage."""
    lines = [
        f"  seen         stage '{verbatim(test.stage)}': {test.test} of {test.looked_at} of {test.of} numbers "
        "are as with noise"
        for test in found.noise_tests
        if test.is_able
    ]
    untested = ", ".join(f"'{verbatim(stage)}'" for stage in found.untested)
    if untested:
        lines.append(f"  not seen     stage {untested}: without noise its numbers would look alike")
    if not found.noise_tests and found.is_private:
        lines.append("  not seen     noise: what was learnt holds no sums that could be tested")
    return lines


def _alone(found: Verification) -> list[str]:
    """What a release costs beside a network that was learnt from the same rows before."""
    if found.epsilon == found.epsilon_alone:
        return []
    return [f"  of which     this release {found.epsilon_alone:.6g}, the rest the encoder that it was made with"]


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
