"""The verbs of generators: fit one to a release, sample rows from it, export a weighted database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import options as opt
from understudy.cli.files import Output, check_output, check_sample_output, write_rows, write_sample
from understudy.cli.output import Outcome, facts, training_bar, verbatim, waiting
from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    from understudy.generators import Generator
    from understudy.generators.conditioning import Balance
    from understudy.released import Release
    from understudy.schema import Column, Schema

NULL_WORD = "null"


def fit(
    release: opt.ReleaseDirectory,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the generator.")],
    encoder: Annotated[
        str | None, typer.Option(help="dp-mepf: the public network that the release was planned with.")
    ] = None,
) -> Outcome:
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
    with training_bar() as progress:
        generator = fit_release(made, progress=progress)
    save_generator(generator, output, release=made.fingerprint)
    is_weighted = isinstance(generator, WeightedDatabase)
    verb, file = ("export", "weighted.parquet") if is_weighted else ("sample", "rows.csv")
    lines = [
        f"[bold green]Fitted[/bold green] a generator in {verbatim(output)}",
        f"Next: [bold]understudy {verb} {verbatim(output)} -o {file}[/bold]",
    ]
    return {"generator": output, "release": made.fingerprint}, lines


def sample(
    generator: Annotated[Path, typer.Argument(help="Directory of a generator, made by fit.")],
    output: Output,
    num_rows: Annotated[int | None, typer.Option("-n", "--num-rows", min=1, help="Rows to draw.")] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(help="Only such rows: COLUMN=VALUE, COLUMN=LOW..HIGH, values parted by |. Repeatable."),
    ] = None,
    balance: Annotated[
        str | None, typer.Option(help="Shares of the label's classes: kept, equal or 'yes=1|no=3'.")
    ] = None,
    seed: opt.Seed = 0,
) -> Outcome:
    """Draw synthetic rows from a generator."""
    from understudy.files import refusing_damage
    from understudy.generators import load_generator
    from understudy.generators.base import AGAIN

    loaded = load_generator(generator)
    check_sample_output(output, loaded.schema)
    wishes = read_given(loaded.schema, given or [])
    shares = read_balance(loaded.schema, balance)
    with waiting("drawing rows"), refusing_damage(f"generator '{generator}'", AGAIN):
        count = num_rows or loaded.default_num_rows
        rows = loaded.sample(count, seed=seed, given=wishes, balance=shares)
        write_sample(rows, output, loaded.schema)
    lines = [f"[bold green]Drew[/bold green] {count} synthetic rows into {verbatim(output)}"]
    return {"output": output, "num_rows": count}, lines


def export(
    generator: Annotated[Path, typer.Argument(help="Directory of a weighted database, made by fit.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New .csv or .parquet file.")],
) -> Outcome:
    """Write a weighted database: every row with its weight, exactly."""
    from understudy.files import refusing_damage
    from understudy.generators import WeightedDatabase, load_generator
    from understudy.generators.base import AGAIN

    check_output(output)
    loaded = load_generator(generator)
    if not isinstance(loaded, WeightedDatabase):
        raise UsageError(
            f"generator '{generator}'",
            "draws rows and has none of its own",
            "Draw some: understudy sample; weighted rows come from --method balog-subspace",
        )
    with refusing_damage(f"generator '{generator}'", AGAIN):
        rows, breaking = loaded.weighted_rows(), loaded.num_breaking_rules
    write_rows(rows, output)
    total, positive = float(loaded.weights.sum()), float(loaded.weights.clip(min=0).sum())
    remark = "of the points break one: weights are for all points together; understudy sample draws rows that obey"
    named = {
        "weights": f"column {loaded.weight_column}: they sum to {total:.6g}, positive ones to {positive:.6g}",
        "rules": f"{breaking} {remark}" if breaking else None,
    }
    headline = f"[bold green]Wrote[/bold green] {len(loaded.weights)} weighted rows into {verbatim(output)}"
    document = {
        "points_that_break_rules": breaking,
        "output": output,
        "num_rows": len(loaded.weights),
        "weight_column": loaded.weight_column,
        "sum_of_weights": total,
        "sum_of_positive_weights": positive,
    }
    return document, [headline, *facts(named)]


def sampler_of(made: Release, directory: Path | None) -> Generator:
    """A generator of a release: the given one, or a new one."""
    from understudy.methods import fit_release

    if directory is not None:
        return generator_of(made, directory)
    with training_bar() as progress:
        return fit_release(made, progress=progress)


def generator_of(made: Release, directory: Path) -> Generator:
    """A stored generator, which must be of this release."""
    from understudy.generators import load_generator
    from understudy.generators.base import release_of

    loaded = load_generator(directory)
    is_of_release = release_of(directory) == made.fingerprint
    if not is_of_release or loaded.schema.fingerprint != made.plan.schema.fingerprint:
        raise InputError(f"generator '{directory}'", "was fitted to another release", "Fit one to this release")
    return loaded


def read_given(schema: Schema, words: list[str]) -> dict[str, Any]:
    """Conditions such as ``age=30..40`` and ``sex=Female|Male``, as ``sample`` takes them."""
    given: dict[str, Any] = {}
    for each in words:
        name, value = _parted(each, [column.name for column in schema.used], where="given")
        if name in given:
            raise UsageError(f"given '{name}'", "was given twice", "Put | between values")
        column = next((column for column in schema.used if column.name == name), None)
        given[name] = value if column is None else _values(column, value)
    return given


def read_balance(schema: Schema, words: str | None) -> Balance | None:
    """A balance such as ``equal`` or ``yes=1|no=3``, as ``sample`` takes it."""
    if words is None or "=" not in words:
        return words
    classes = [str(category) for category in schema.label.categories] if schema.label else []
    shares: dict[Any, float] = {}
    for each in words.split("|"):
        name, share = _parted(each, classes, where="balance")
        try:
            shares[None if name == NULL_WORD and name not in classes else name] = float(share)
        except ValueError:
            raise UsageError("balance", f"'{share}' is no share", "Write yes=1|no=3") from None
    return shares


def _parted(words: str, known: list[str], *, where: str) -> tuple[str, str]:
    """Name and value around an equals sign; known names may hold such signs themselves."""
    longest = max((name for name in known if words.startswith(f"{name}=")), key=len, default=None)
    name, sign, value = words.partition("=")
    if not sign:
        raise UsageError(f"{where} '{words}'", "needs an equals sign", "Such as age=30..40")
    return (name, value) if longest is None else (longest, words[len(longest) + 1 :])


def _values(column: Column, words: str) -> list[Any]:
    if words in [str(category) for category in column.categories]:
        return [words]
    return [_value(column, each) for each in words.split("|")]


def _value(column: Column, words: str) -> Any:
    if words == NULL_WORD and words not in column.categories:
        return None
    if column.is_choice or ".." not in words:
        return words
    low, _, high = words.partition("..")
    return (low or None, high or None)
