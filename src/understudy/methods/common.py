"""What methods share: options of the command line, labels, planned noise, public rows, subsets of columns, generators.

A method is a function from schema and budget to a plan. An argument annotated with an ``Option`` can be set on the
command line. The signature is the only place where an option is written: the command line, ``understudy methods
show`` and the reference of commands are made from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from typing import Annotated, Any, Literal, get_args

import pyarrow as pa

from understudy.accounting.mechanisms import Budget, Neighbours, mechanism_for, neighbours_by_name
from understudy.errors import InputError, UsageError
from understudy.features import Block, Constant, Embedding, FeatureMap, Norm, Sign
from understudy.features.points import MOST_POINTS, Points, points_of_codes, uniform_stream
from understudy.generators.image_architectures import ARCHITECTURES, DECODED
from understudy.plan.plan import Plan, Stage
from understudy.schema import Layout, Schema
from understudy.schema.columns import Role
from understudy.schema.encode import encode_batch
from understudy.schema.images import ImageShape


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of rows that are public already.

    ``columns`` are those that are read of it; ``remedy`` tells what to do if the file is the private table itself.
    """

    columns: Callable[[Schema], Sequence[str]]
    remedy: str


@dataclass(frozen=True, slots=True)
class Option:
    """How an argument of a method is set on the command line.

    ``flag`` is its name there if it is not the argument's own; ``takes`` its type if it is not the annotated one, and
    ``read`` then turns what was given into the argument. ``default`` is stated there if it is not None.
    """

    help: str
    flag: str = ""
    takes: Any = None
    read: Callable[[Any], Any] | None = None
    file: PublicFile | None = None
    least: int | None = None
    most: int | None = None
    default: str | None = None


def names_in(text: str) -> tuple[str, ...]:
    """Names parted by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def numbers_by_column(name: str, words: Sequence[str]) -> dict[str, float]:
    """Words such as ``age=40`` as numbers by column."""
    found = {}
    for word in words:
        column, _, value = word.rpartition("=")
        try:
            found[column] = float(value)
        except ValueError:
            column = ""
        if not column:
            raise UsageError(name, "must be COLUMN=VALUE, with a number") from None
    return found


def scale_in(text: str) -> float | str:
    """A length scale, or the word ``private``."""
    try:
        return text if text == "private" else float(text)
    except ValueError:
        raise UsageError("length scale", "must be a number or 'private'") from None


LabelTreatment = Literal["auto", "none", "balanced", "imbalanced"]
Labels = Annotated[
    LabelTreatment,
    Option(
        "auto, none (the label is a column like others; dp-mepf, dp-merf-ae: images alone), balanced (classes are "
        "taken as equally frequent) or imbalanced (noisy class counts).",
        default="auto",
    ),
]
LengthScale = Annotated[
    float | Mapping[str, float] | None,
    Option("Of the kernel, a number in units of each column's range.", takes=str, read=scale_in),
]
Steps = Annotated[int | None, Option("Training steps of the generator.", least=1)]

ROWS_IF_UNSAID = 10_000
"""The row count that sizes are planned for when nobody has stated one."""

COUNT_SHARE = 0.01
"""The row count's share of the squared norm."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What every method is given: schema, budget, neighbours, the public row count or a guess; and the label set apart.

    ``classes`` is the span of a categorical label; ``target`` the name of a numeric one, which
    stays among the numbers; ``spans`` are the spans of all other choices. If the label
    ``may_be_unlisted``, a row may have a label outside ``classes``: it has no class for nulls.
    """

    schema: Schema
    budget: Budget
    neighbours: Neighbours
    num_rows: int | None
    classes: tuple[int, int] | None
    target: str | None
    spans: tuple[tuple[int, int], ...]
    is_counted: bool
    may_be_unlisted: bool

    @property
    def layout(self) -> Layout:
        return Layout(self.schema)

    @property
    def num_labels(self) -> int:
        """Number of label values, or 1 without a label."""
        return self.classes[1] - self.classes[0] if self.classes else 1

    @property
    def planned_rows(self) -> int:
        """The row count that sizes are planned for."""
        return self.num_rows or ROWS_IF_UNSAID

    @property
    def norm(self) -> Norm:
        """The norm that the budget's noise is paid for by."""
        return Norm(mechanism_for(self.budget).norm)

    def noise(self, share: float, *, nonzeros: float = 1, sign: Sign = Sign.SIGNED) -> float:
        """Deviation of the noise on a mean feature of a map that has this share of the budget.

        For the planned row count. Laplace noise grows with the number of features of a row that are not zero,
        Gaussian noise does not.
        """
        total = float(mechanism_for(self.budget).total(self.budget))
        is_replaced = self.neighbours is Neighbours.REPLACE_ONE
        part, rows = max(share, 1e-18), self.planned_rows / self.schema.privacy.max_rows
        if self.norm is Norm.L1:
            return (2 if is_replaced else 1) * math.sqrt(2 * nonzeros) / (total * part) / rows
        reach = math.sqrt(sign.replace_factor_squared) if is_replaced else 1.0
        return reach / math.sqrt(total) / math.sqrt(part) / rows

    def count_block(self, weight: float, norm: Norm = Norm.L2) -> Block:
        """The number of rows, or of rows per class."""
        by_class = bool(self.classes) and self.is_counted
        return Block("count", Constant(), weight, by_class, norm, with_unlisted=by_class and self.may_be_unlisted)

    def embedding(
        self, maps: Mapping[str, FeatureMap], weights: Mapping[str, float], *, separate: bool = False
    ) -> Embedding:
        """The row count, then features by class; counts of choices are kept of rows without a listed class too.

        The count's weight is ``weights["count"]``, by default the root of its usual share.
        """
        blocks, by_class = [self.count_block(weights.get("count", math.sqrt(COUNT_SHARE)))], self.classes is not None
        for name, map_ in maps.items():
            unlisted = by_class and self.may_be_unlisted and map_.is_linear
            blocks.append(Block(name, map_, weights[name], by_class, with_unlisted=unlisted))
        return Embedding(tuple(blocks), self.classes, separate)

    def plan(self, method: str, stages: Iterable[Stage], settings: Mapping[str, Any]) -> Plan:
        """The plan of a method that has settled its stages."""
        return Plan(
            schema=self.schema,
            method=method,
            budget=self.budget,
            neighbours=self.neighbours,
            stages=tuple(stages),
            num_rows=self.num_rows,
            settings=tuple(settings.items()),
        )


def terms_of(
    schema: Schema, budget: Budget, neighbours: Neighbours, num_rows: int | None, *, labels: Labels = "none"
) -> Terms:
    """What a method is given; the row count is by default what the schema says, the label as ``labels`` says."""
    check_choice("labels", labels, LabelTreatment)
    label = schema.label if labels != "none" else None
    spans = {choice.column: (choice.start, choice.stop) for choice in Layout(schema).choices}
    classes = spans.pop(label.name) if label is not None and label.is_choice else None
    return Terms(
        schema,
        budget,
        neighbours_by_name(neighbours),
        num_rows if num_rows is not None else schema.rows,
        classes=classes,
        target=label.name if label is not None and classes is None else None,
        spans=tuple(spans.values()),
        is_counted=labels != "balanced",
        may_be_unlisted=label is not None and not label.nullable,
    )


def check_choice(name: str, value: str, kind: Any) -> None:
    """Refuse what is not among the values of a ``Literal``."""
    if value not in get_args(kind):
        raise UsageError(name, "must be one of " + ", ".join(get_args(kind)))


def length_scales(names: tuple[str, ...], given: object) -> tuple[float, ...]:
    """A length scale for every numeric column, given as one number or as a number per column, or a refusal."""
    if isinstance(given, Mapping):
        stray = sorted(set(given) ^ set(names))
        if stray:
            raise UsageError("length scale", f"must name every numeric column and no other; see '{stray[0]}'")
        return tuple(checked_scale(float(given[name])) for name in names)
    if not isinstance(given, int | float):
        raise UsageError("length scale", "must be a number, or a number per column")
    return (checked_scale(float(given)),) * len(names)


def checked_scale(scale: float) -> float:
    """A length scale in units of a column's range, or a refusal."""
    if 1e-4 <= scale <= 1e4:
        return scale
    raise UsageError("length scale", "must lie between 0.0001 and 10000", "Common choices: 0.05 to 1")


def given_points(schema: Schema, table: object) -> Points:
    """Rows of a public table (Arrow, pandas, or a mapping of columns) as points."""
    rows = public_table(table)
    missing = [column.name for column in schema.in_files if column.name not in rows.column_names]
    if missing:
        raise InputError("public points", f"have no column '{missing[0]}'", "Give every column of the schema")
    if not 1 <= rows.num_rows <= MOST_POINTS:
        raise InputError(
            "public points",
            f"must be between 1 and {MOST_POINTS} rows, and are {rows.num_rows}",
            "Take a random part of them",
        )
    names = schema.file_names
    batch = rows.select(names).combine_chunks().to_batches()[0]
    return points_of_codes(Layout(schema), encode_batch(schema, batch))


def public_table(table: object) -> pa.Table:
    """A public table in any of the usual forms."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        return pa.table(dict(table))
    try:
        return pa.Table.from_pandas(table, preserve_index=False)
    except (AttributeError, TypeError, pa.ArrowException):
        raise UsageError(
            "public rows",
            "must be an Arrow table, a pandas data frame or a mapping of columns",
            "Read the file first; the command line does it for a FILE",
        ) from None


TRIES_PER_SUBSET = 200
"""Draws at public random for each subset asked for; what they have not found by then is left out."""

Subset = tuple[int, ...]


def draw_subsets(
    widths: Sequence[int], size: int, count: int, *, apart: set[frozenset[int]], largest: int, seed: int
) -> tuple[Subset, ...]:
    """Different subsets of ``size`` columns, in increasing order of their columns.

    Args:
        widths: number of features of each column.
        size: columns in a subset.
        count: how many subsets; if that is all of them, none is drawn.
        apart: pairs of columns that may not be in one subset.
        largest: products of features that a subset may have.
        seed: public seed.
    """
    tries: Iterable[Subset] = combinations(range(len(widths)), size)
    if count < math.comb(len(widths), size):
        draws = islice(uniform_stream(seed, len(widths)), TRIES_PER_SUBSET * count)
        tries = (tuple(sorted(draw.argsort()[:size].tolist())) for draw in draws)
    found: set[Subset] = set()
    too_large = False
    for subset in tries:
        if len(found) == count:
            break
        if any(frozenset(pair) in apart for pair in combinations(subset, 2)):
            continue
        if math.prod(widths[j] for j in subset) <= largest:
            found.add(subset)
        else:
            too_large = True
    if too_large and not found:
        raise UsageError(
            "products",
            f"every set of {size} columns has more than {largest} features",
            "Lower the product dimension or the product order",
        )
    return tuple(sorted(found))


IMAGE_NETWORK = "image-network"
"""The name that plans give image networks, of whatever architecture."""


def image_set(schema: Schema) -> ImageShape | None:
    """The shape of images with at most one label of named classes; None for any other table."""
    image, label = schema.image, schema.label
    others = len(schema.used) - (image.num_pixels if image else 0) - (label is not None)
    return None if others or (label is not None and not label.is_choice) else image


def images_alone(schema: Schema) -> Schema:
    """The same images without their label, which is then neither read nor made."""
    columns = (replace(column, role=Role.AUX) if column.role is Role.LABEL else column for column in schema.columns)
    return replace(schema, columns=tuple(columns))


def images_of(schema: Schema, method: str, *, others: str = "the default method") -> ImageShape:
    """The shape of images with at most one label of named classes, or a refusal of any other table."""
    image = image_set(schema)
    if image is not None:
        return image
    raise UsageError(
        "method",
        f"{method} is for images with at most one label of named classes",
        f"Use {others} for other tables, or drop the other columns",
    )


def generator_settings(
    planned: Mapping[str, Any], *, generator: str | None, training: object, steps: int | None
) -> dict[str, Any]:
    """What a plan says of its generator: the first that is ``planned``, but for what was asked for.

    ``planned`` are settings by the name that plans give a generator. Image networks have one name, and what is asked
    for is their architecture.
    """
    name, has_architecture = next(iter(planned)), any(hasattr(each, "architecture") for each in planned.values())
    known = [each for each in ARCHITECTURES if each != DECODED] if has_architecture else list(planned)
    if generator is not None and generator not in known:
        where = " for images" if has_architecture else ""
        raise UsageError("generator", "must be one of " + ", ".join(known) + where)
    if generator is not None and not has_architecture:
        name = generator
    found = planned[name] if training is None else training
    if not isinstance(found, type(planned[name])):
        raise UsageError("training", "is that of another kind of generator")
    asked = {"steps": steps, "architecture": generator}
    found = replace(found, **{key: value for key, value in asked.items() if value is not None and hasattr(found, key)})
    return {"generator": name, "training": asdict(found)}
