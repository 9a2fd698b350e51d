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
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa

from understudy.accounting import Budget, Neighbours, mechanism_for, neighbours_by_name
from understudy.errors import InputError, UsageError
from understudy.features import Block, Constant, FeatureMap, Norm, Sign
from understudy.features.points import MOST_POINTS, Points, points_of_codes, uniform_stream
from understudy.fits.images import DECODED, ImageTraining
from understudy.fits.perceptual import PerceptualTraining
from understudy.generators.image_architectures import ARCHITECTURES
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


LABELS = ("auto", "none", "balanced", "imbalanced")
Labels = Annotated[
    Literal["auto", "none", "balanced", "imbalanced"],
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
class LabelledColumns:
    """The columns of a table, with the label set apart.

    ``classes`` is the span of a categorical label; ``target`` the name of a numeric one, which
    stays among the numbers; ``spans`` are the spans of all other choices. If the label
    ``may_be_unlisted``, a row may have a label outside ``classes``: it has no class for nulls.
    """

    classes: tuple[int, int] | None
    target: str | None
    spans: tuple[tuple[int, int], ...]
    is_counted: bool
    may_be_unlisted: bool = False

    @property
    def num_labels(self) -> int:
        """Number of label values, or 1 without a label."""
        return self.classes[1] - self.classes[0] if self.classes else 1

    def count_block(self, weight: float, norm: Norm = Norm.L2) -> Block:
        """The number of rows, or of rows per class."""
        by_class = bool(self.classes) and self.is_counted
        unlisted = by_class and self.may_be_unlisted
        return Block("count", Constant(), weight, by_class, norm, with_unlisted=unlisted)

    def feature_block(self, name: str, map_: FeatureMap, weight: float) -> Block:
        """Features by class; counts of choices are kept of rows without a listed class too."""
        by_class = self.classes is not None
        unlisted = by_class and self.may_be_unlisted and map_.is_linear
        return Block(name, map_, weight, by_class, with_unlisted=unlisted)


def labelled_columns(schema: Schema, labels: Labels) -> LabelledColumns:
    """Set the label apart as ``labels`` says."""
    if labels not in LABELS:
        raise UsageError("labels", "must be one of " + ", ".join(LABELS))
    layout = Layout(schema)
    label = schema.label if labels != "none" else None
    spans = {choice.column: (choice.start, choice.stop) for choice in layout.choices}
    classes = spans.pop(label.name) if label is not None and label.is_choice else None
    target = label.name if label is not None and classes is None else None
    is_open = label is not None and not label.nullable
    return LabelledColumns(classes, target, tuple(spans.values()), labels != "balanced", is_open)


def norm_for(budget: Budget) -> Norm:
    """The norm that a budget's noise is paid for by."""
    return Norm(mechanism_for(budget).norm)


def noise_of_mean(
    budget: Budget,
    neighbours: Neighbours,
    *,
    share: float,
    num_rows: int | None,
    nonzeros: float = 1,
    sign: Sign = Sign.SIGNED,
    max_rows: int = 1,
) -> float:
    """Deviation of the noise on a mean feature of a map that has this share of the budget.

    For the planned row count, and at most ``max_rows`` rows of a person. Laplace noise grows with the
    number of features of a row that are not zero, Gaussian noise does not.
    """
    total = float(mechanism_for(budget).total(budget))
    is_replaced = neighbours is Neighbours.REPLACE_ONE
    part, rows = max(share, 1e-18), (num_rows or ROWS_IF_UNSAID) / max_rows
    if norm_for(budget) is Norm.L1:
        return (2 if is_replaced else 1) * math.sqrt(2 * nonzeros) / (total * part) / rows
    reach = math.sqrt(sign.replace_factor_squared) if is_replaced else 1.0
    return reach / math.sqrt(total) / math.sqrt(part) / rows


@dataclass(frozen=True, slots=True)
class Terms:
    """What every method is given: a schema, a budget, neighbours, and the public row count or a guess of it."""

    schema: Schema
    budget: Budget
    neighbours: Neighbours
    num_rows: int | None

    def noise(self, share: float, *, nonzeros: float = 1) -> float:
        """Deviation of the noise on a mean feature that has this share of the budget, as ``noise_of_mean`` has it."""
        return noise_of_mean(
            self.budget,
            self.neighbours,
            share=share,
            num_rows=self.num_rows,
            nonzeros=nonzeros,
            max_rows=self.schema.privacy.max_rows,
        )

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


def terms_of(schema: Schema, budget: Budget, neighbours: Neighbours, num_rows: int | None) -> Terms:
    """What a method is given; the row count is by default what the schema says."""
    return Terms(schema, budget, neighbours_by_name(neighbours), num_rows if num_rows is not None else schema.rows)


def scales_by_name(names: tuple[str, ...], scales: Mapping[str, float]) -> tuple[float, ...]:
    """A length scale for every numeric column, or a refusal."""
    stray = sorted(set(scales) ^ set(names))
    if stray:
        raise UsageError("length scale", f"must name every numeric column and no other; see '{stray[0]}'")
    return tuple(checked_scale(float(scales[name])) for name in names)


def checked_scale(scale: float) -> float:
    """A length scale in units of a column's range, or a refusal."""
    if 1e-4 <= scale <= 1e4:
        return scale
    raise UsageError("length scale", "must lie between 0.0001 and 10000", "Common choices: 0.05 to 1")


def given_points(schema: Schema, table: object) -> Points:
    """Rows of a public table (Arrow, pandas, or a mapping of columns) as points."""
    rows = public_table(table)
    missing = [column.name for column in schema.used if column.name not in rows.column_names]
    if missing:
        raise InputError("public points", f"have no column '{missing[0]}'", "Give every column of the schema")
    if not 1 <= rows.num_rows <= MOST_POINTS:
        raise InputError(
            "public points",
            f"must be between 1 and {MOST_POINTS} rows, and are {rows.num_rows}",
            "Take a random part of them",
        )
    names = [column.name for column in schema.used]
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
        pass
    raise UsageError(
        "public rows",
        "must be an Arrow table, a pandas data frame or a mapping of columns",
        "Read the file first; the command line does it for a FILE",
    )


TRIES_PER_SUBSET = 200
"""Draws at public random for each subset asked for; what they have not found by then is left out."""

Subset = tuple[int, ...]


def num_subsets(num_columns: int, size: int) -> int:
    """How many subsets of a size there are."""
    return math.comb(num_columns, size)


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
    if count < num_subsets(len(widths), size):
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


AnyTraining = TypeVar("AnyTraining", ImageTraining, PerceptualTraining)

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


def image_length_scale(image: ImageShape) -> float:
    """The public length scale: the root of the mean squared distance of two images of pure chance.

    Two pixels that are uniform between 0 and 1 are 1 / sqrt(6) apart in the root mean square. The paper
    takes the median distance of private images instead.
    """
    return math.sqrt(image.num_pixels / 6)


def image_generator(
    planned: ImageTraining, *, generator: str | None, training: object, steps: int | None
) -> dict[str, Any]:
    """What a plan says of an image network: what is ``planned``, but for what was asked for."""
    found = _checked(planned if training is None else training, ImageTraining)
    found = with_architecture(found, generator)
    found = found if steps is None else replace(found, steps=steps)
    return {"generator": IMAGE_NETWORK, "training": asdict(found)}


def with_architecture(training: AnyTraining, generator: str | None) -> AnyTraining:
    """The same settings for a kind of image network, or a refusal that lists the kinds."""
    names = [name for name in ARCHITECTURES if name != DECODED]
    if generator is not None and generator not in names:
        raise UsageError("generator", "must be one of " + ", ".join(names) + " for images")
    return training if generator is None else replace(training, architecture=generator)


def table_generator(
    kinds: Mapping[str, type[Any]], *, generator: str | None, training: object, steps: int | None, seed: int
) -> dict[str, Any]:
    """What a plan says of a table's generator, by default the first of several kinds."""
    name = generator or next(iter(kinds))
    if name not in kinds:
        raise UsageError("generator", "must be one of " + ", ".join(kinds))
    found = _checked(kinds[name](seed=seed) if training is None else training, kinds[name])
    found = found if steps is None else replace(found, steps=steps)
    return {"generator": name, "training": asdict(found)}


def _checked(training: Any, kind: type[Any]) -> Any:
    if not isinstance(training, kind):
        raise UsageError("training", "is that of another kind of generator")
    return training
