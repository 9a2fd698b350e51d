"""Options that several verbs share, and the verbs that plan a release: they take the options of every method.

Options of methods are read from the methods' own signatures, and only when a verb runs: help loads nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from understudy.cli.files import read_rows
from understudy.cli.output import AS_JSON, Outcome, emit
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.methods.common import Option
    from understudy.plan.plan import Plan
    from understudy.schema import Schema

Running = partial(typer.Option, rich_help_panel="How rows are read (changes no number)")

SchemaPath = Annotated[Path, typer.Option("--schema", "-s", help="Public schema of the table (YAML).")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget, above 0.")]
Delta = Annotated[float, typer.Option(help="Chance of failure, far below 1 / rows; 0: pure, with Laplace noise.")]
DescentDelta = Annotated[float, typer.Option(help="Chance that the guarantee fails; above 0, far below 1 / rows.")]
MethodName = Annotated[str, typer.Option("--method", "-m", help="Of those that 'understudy methods' lists.")]
Unit = Annotated[str | None, typer.Option(help="Who is hidden: 'row', or a column of ids.")]
MaxRows = Annotated[int | None, typer.Option(min=1, help="Rows of an id that count.")]
NeighboursName = Annotated[str, typer.Option(help="add-remove, or replace-one (row count public).")]
Rows = Annotated[
    int | None, typer.Option(min=1, help="Public row count, or a public guess to plan for (default: the schema's).")
]
Horizon = Annotated[int, typer.Option(min=1, help="Releases that share the budget.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Public seed of all but the noise, which has none.")]
Query = Annotated[
    str | None, typer.Option(help="SQL that selects the rows; a file is called 'data'. Printed in the certificate.")
]
LedgerPath = Annotated[Path | None, typer.Option(help="Ledger to charge before noise is drawn.")]
Key = Annotated[str | None, typer.Option(help="Name of this release in the ledger.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Data = Annotated[
    str, typer.Argument(help="CSV, Parquet, Arrow, DuckDB or SQLite file; folder or pattern of files; image set.")
]
Engine = Annotated[str, Running(help="auto, local, spark or ray.")]
Threads = Annotated[int | None, Running(min=1, help="Threads (default: cores).")]
CheckpointPath = Annotated[Path | None, Running(help="Encrypted file to resume from.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="Key of encrypted files, 64 hexadecimal digits (default: the variable UNDERSTUDY_KEY)."),
]

NewRelease = Annotated[Path, typer.Option("--output", "-o", help="New directory for the release.")]
ReleaseDirectory = Annotated[Path, typer.Argument(help="Directory of a release.")]


@dataclass(frozen=True)
class Planning:
    """Options of the verbs that plan a release, beside those of its method."""

    schema: SchemaPath
    epsilon: Epsilon
    delta: Delta = 1e-5
    method: MethodName = "auto"
    unit: Unit = None
    max_rows: MaxRows = None
    neighbours: NeighboursName = "add-remove"
    rows: Rows = None
    horizon: Horizon = 1
    seed: Seed = 0


@dataclass(frozen=True)
class Spending:
    """Options of the verbs that make releases of private rows: which rows, what is charged, and how they are read."""

    query: Query = None
    ledger: LedgerPath = None
    key: Key = None
    engine: Engine = "auto"
    threads: Threads = None
    checkpoint: CheckpointPath = None
    key_file: KeyFile = None


USUAL = Spending()
"""Rows as they stand in the data, read on this machine, and no ledger."""

METHOD_OPTIONS = "understudy.method_options"
"""Where a command leaves the options of methods that it was given, for its verb."""


class PlanningCommand(TyperCommand):
    """A verb that takes, beside its own options, those of every method; its help shows its own alone."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._is_for_help = False
        self._has_method_options = False
        settings["epilog"] = "Methods have options of their own: understudy methods show NAME."
        settings["rich_markup_mode"] = None  # plain lines: half as long as frames
        super().__init__(*arguments, **settings)

    @property
    def params(self) -> list[Any]:
        """All parameters; those of methods are added when they are first asked for."""
        if not self._has_method_options and not self._is_for_help:
            self._has_method_options = True
            self._params += _parameters(tuple(all_method_options().values()))
        return self._params

    @params.setter
    def params(self, own: list[Any]) -> None:
        self._params = own

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, without the options of methods where help is asked for."""
        self._is_for_help = "--help" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; options of methods are set apart for ``plan_of``."""
        ctx.meta[METHOD_OPTIONS] = {name: ctx.params.pop(name) for name in all_method_options()}
        return super().invoke(ctx)


@dataclass(frozen=True, slots=True)
class MethodOption:
    """An option with what its argument's name, type and default say."""

    argument: str
    option: Option
    takes: Any
    flag: str
    default: Any
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name on the command line, as a name in Python."""
        return self.flag.split("/")[0].removeprefix("--").replace("-", "_")


def options_of(method: Callable[..., Any]) -> dict[str, MethodOption]:
    """The options of a method by their names on the command line, in the order of its signature."""
    from understudy.methods.common import Option

    hints = get_type_hints(method, include_extras=True)
    found = {}
    for argument, parameter in signature(method).parameters.items():
        annotated = [each for each in getattr(hints[argument], "__metadata__", ()) if isinstance(each, Option)]
        for option in annotated:
            made = _method_option(argument, hints[argument].__origin__, parameter.default, option)
            found[made.name] = made
    return found


def _method_option(argument: str, annotation: Any, default: Any, option: Option) -> MethodOption:
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    values = tuple(value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind))
    takes = option.takes or (Path if option.file else str if values else kinds[0])
    flag = option.flag or "--" + argument.replace("_", "-")
    shown: Any = option.default
    if takes is bool and default is False:
        shown = False
    elif takes is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    return MethodOption(argument, option, takes, flag, shown, values)


@cache
def all_method_options() -> dict[str, MethodOption]:
    """The options of all methods by name; methods that share one agree on what it takes."""
    from understudy.methods import METHODS

    found: dict[str, MethodOption] = {}
    for method in METHODS.values():
        found = options_of(method) | found
    return found


def _parameters(options: tuple[MethodOption, ...]) -> list[Any]:
    """Parameters of the command line for options of methods, hidden from help."""

    def takes_options(**_: object) -> None:
        pass

    listed = []
    for each in options:
        option = each.option
        info = typer.Option(each.flag, help=option.help, hidden=True, min=option.least, max=option.most)
        takes = each.takes if each.default is not None else each.takes | None
        annotation = Annotated[takes, info]  # type: ignore[valid-type]
        listed.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=annotation))
    holder = typer.Typer(add_completion=False)
    holder.command()(_with_parameters(takes_options, listed))
    return list(typer.main.get_command(holder).params)


def _with_parameters(function: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
    """The function with a signature that the command line is made from."""
    parameters = sorted(parameters, key=lambda parameter: parameter.default is not Parameter.empty)
    vars(function)["__signature__"] = Signature(parameters)
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return function


def as_command(verb: Callable[..., Outcome | None]) -> Callable[..., None]:
    """A verb with the option --json, whose outcome is printed in the form that was asked for.

    A parameter that is a dataclass stands for an option per field.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(verb)
    def run(*, as_json: bool, **arguments: Any) -> None:
        AS_JSON.set(as_json)
        for name, kind in groups.items():
            arguments[name] = kind(**{field.name: arguments.pop(field.name) for field in fields(kind)})
        outcome = verb(**arguments)
        if outcome is not None:
            emit(*outcome)

    json = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    return _with_parameters(run, [*_options(verb), json])


def _options(verb: Callable[..., object]) -> list[Parameter]:
    """What a verb is called with, or a group of options made from."""
    hints, found = get_type_hints(verb, include_extras=True), []
    for name, parameter in signature(verb).parameters.items():
        plain = parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        found += _options(hints[name]) if is_dataclass(hints[name]) else [plain]
    return found


def plan_of(ctx: typer.Context, planning: Planning, data: str | None = None) -> Plan:
    """The plan that the command line describes, for a private table."""
    options = ctx.meta[METHOD_OPTIONS]
    check_public_files(options, data)
    return build_plan(planning, options)


def build_plan(planning: Planning, options: Mapping[str, Any]) -> Plan:
    """The plan that options describe; ``options`` are those of methods, by name."""
    from understudy.accounting.mechanisms import Budget, neighbours_by_name, share_of
    from understudy.methods import make_plan
    from understudy.schema import PrivacyUnit, load_schema

    epsilon, delta, horizon = planning.epsilon, planning.delta, planning.horizon
    budget = share_of(Budget(epsilon, delta), horizon)
    table = load_schema(planning.schema)
    if planning.max_rows is not None and planning.unit is None:
        raise UsageError("max rows", "is about a unit, and none was given", "Add --unit COLUMN")
    if planning.unit is not None:
        table = replace(table, privacy=PrivacyUnit(planning.unit, planning.max_rows or 1))
    wanted = method_arguments(options, table)
    neighbours = neighbours_by_name(planning.neighbours)
    wanted |= {"neighbours": neighbours, "num_rows": planning.rows, "seed": planning.seed}
    plan = make_plan(table, budget, method=planning.method, options=wanted)
    if horizon == 1:
        return plan
    whole = {"releases": horizon, "epsilon": epsilon, "delta": delta}
    return replace(plan, settings=(*plan.settings, ("horizon", whole)))


def method_arguments(options: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Options that were set, as arguments of a method: words are read, and public files opened."""
    known, found = all_method_options(), {}
    for name, value in options.items():
        each = known[name]
        if value == each.default or value in (None, ()):
            continue
        if each.option.file is not None:
            value = read_rows(value, each.option.file.columns(schema), what=name.replace("_", " "))
        elif each.option.read is not None:
            value = each.option.read(value)
        found[each.argument] = value
    return found


def check_public_files(options: Mapping[str, Any], data: str | None) -> None:
    """Refuse the private table where a file of public rows is asked for, which is published as it is or nearly."""
    for name, each in all_method_options().items():
        path = options.get(name)
        if each.option.file is None or path is None or data is None:
            continue
        try:
            is_same = path.samefile(data)
        except (OSError, ValueError):  # readers say what is wrong with a path
            continue
        if is_same:
            rule = "is the private table itself, and would be published as it is or nearly"
            raise UsageError(name.replace("_", " "), rule, each.option.file.remedy)
