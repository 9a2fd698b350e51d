"""What the scripts share: where tables lie, their splits, and `understudy synth`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from understudy import Schema, load_schema

COMMAND = Path(sys.executable).with_name("understudy")
REAL = "real"  # stands for a method that hands out its training rows
DATA_VARIABLE = "UNDERSTUDY_DATA"


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """``--data DIR``, with a default from the environment."""
    given = os.environ.get(DATA_VARIABLE)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=given and Path(given),
        required=not given,
        help=f"folder of NAME.parquet and schemas/NAME.yaml (default: ${DATA_VARIABLE})",
    )


def add_options_argument(parser: argparse.ArgumentParser) -> None:
    """``--options ...``, which takes the rest of the line."""
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="passed on to synth; comes last")


@dataclass(frozen=True)
class Table:
    """Rows and their schema."""

    frame: pd.DataFrame
    schema: Schema
    schema_path: Path

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """80 % of the rows to learn from, the others to test on."""
        is_train = np.random.default_rng(seed).random(len(self.frame)) < 0.8
        return self.frame[is_train], self.frame[~is_train]


@dataclass(frozen=True)
class Synthesis:
    """Synthetic rows and the time they took."""

    rows: pd.DataFrame
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


def schema_of(data: Path, name: str) -> Path:
    """Where the schema of a table lies."""
    return data / "schemas" / f"{name}.yaml"


def load_table(data: Path, name: str) -> Table:
    """``name`` from NAME.parquet and schemas/NAME.yaml."""
    schema_path = schema_of(data, name)
    return Table(
        frame=pd.read_parquet(data / f"{name}.parquet"), schema=load_schema(schema_path), schema_path=schema_path
    )


def some(frame: pd.DataFrame, most_rows: int) -> pd.DataFrame:
    """At most ``most_rows`` of the rows."""
    return frame if len(frame) <= most_rows else frame.sample(most_rows, random_state=0)


def synthesise(
    train: pd.DataFrame, schema: Path, *, method: str, epsilon: str, seed: int, options: list[str]
) -> Synthesis:
    """As many synthetic rows as ``train`` has, by the command line."""
    if method == REAL:
        return Synthesis(train)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_parquet(folder / "train.parquet")
        command = [
            COMMAND,
            "synth",
            folder / "train.parquet",
            "--schema",
            schema,
            "--epsilon",
            epsilon,
            "--method",
            method,
            "--seed",
            str(seed),
            "--rows",
            str(len(train)),
            "-o",
            folder / "rows.parquet",
            "--json",
            *options,
        ]
        wall, cpu = timed(command)
        rows = pd.read_parquet(folder / "rows.parquet")
    return Synthesis(rows, wall, cpu)


def timed(command: Sequence[str | Path]) -> tuple[float, float]:
    """Run a command; its wall and CPU seconds."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    # wait4 counts this process and its children only; RUSAGE_CHILDREN would also count a worker of
    # the classifiers that happens to end meanwhile.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_utime + usage.ru_stime
