"""The whole pipeline on a real table that ships inside statsmodels."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from understudy import __version__
from understudy.accounting import Budget
from understudy.arrays import LossProgress, StageProgress
from understudy.errors import InputError, MissingExtraError
from understudy.fits.anova import AnovaTraining
from understudy.generators.base import save_generator
from understudy.methods import fit_release, make_plan
from understudy.private.release import release_table
from understudy.released import build_certificate
from understudy.schema import Column, Schema, load_schema


def demo_schema() -> Schema:
    """The schema that we wrote for the RAND Health Insurance Experiment."""
    with as_file(files("understudy.demo") / "randhie.yaml") as path:
        return load_schema(path)


def demo_table() -> Any:
    """The RAND Health Insurance Experiment as a pandas data frame (20,190 rows, public domain)."""
    try:
        from statsmodels.datasets import randhie
    except ModuleNotFoundError:
        raise MissingExtraError("statsmodels", "demo") from None
    return randhie.load_pandas().data


def run_demo(
    output: str | Path,
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    training: AnovaTraining | None = None,
    progress: StageProgress | None = None,
) -> dict[str, Path]:
    """Plan, release, certify, fit, sample, draw and judge; returns where each result lies."""
    import pyarrow.csv as csv

    from understudy.evaluation.evaluate import evaluate
    from understudy.reports.internal import render_report

    schema, real, folder = demo_schema(), demo_table(), Path(output)
    plan = make_plan(schema, Budget(epsilon), options={"seed": seed, "training": training})
    try:
        folder.mkdir()
    except OSError:
        raise InputError(
            f"directory '{folder}'", "exists already or cannot be made", "Choose another with -o"
        ) from None
    release = release_table(real, plan, directory=folder / "release")
    generator = fit_release(release, progress=_training(progress))
    save_generator(generator, folder / "generator", release=release.fingerprint)
    rows = generator.sample(generator.default_num_rows, seed=seed)
    csv.write_csv(rows, folder / "synthetic.csv")
    draw_comparison(schema, real, rows.to_pandas(), folder / "comparison.png", epsilon=epsilon)
    found = evaluate(rows.to_pandas(), real, schema, quick=True, seed=seed, progress=progress)
    certificate = build_certificate(plan, dict(release.facts), fingerprint=release.fingerprint)
    page = render_report(
        found, name=schema.name, version=__version__, reference="all rows of the demo table", certificate=certificate
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    return {
        "rows": folder / "synthetic.csv",
        "picture": folder / "comparison.png",
        "certificate": folder / "release" / "certificate.html",
        "release": folder / "release",
        "generator": folder / "generator",
        "report": folder / "report.html",
    }


def _training(progress: StageProgress | None) -> LossProgress | None:
    return None if progress is None else lambda done, steps, _: progress("training", done, steps)


# Real beside synthetic, column by column. It shows real rows: fine for a public table only.

REAL = "#7a8794"
SYNTHETIC = "#0b6e4f"
NUM_BINS = 20


def draw_comparison(schema: Schema, real: Any, synthetic: Any, path: Path, *, epsilon: float) -> None:
    """Small multiples of every column's distribution, with its total variation distance."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    across = min(5, len(schema.used))
    down = -(-len(schema.used) // across)
    figure = Figure(figsize=(2.6 * across, 2.2 * down + 0.7), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for axis in axes.flat[len(schema.used) :]:
        axis.axis("off")
    for axis, column in zip(axes.flat, schema.used, strict=False):
        names, shares = _shares(column, real[column.name], synthetic[column.name])
        places = np.arange(len(names))
        axis.bar(places, shares[0], width=0.9, color=REAL, alpha=0.55, label="real")
        axis.step(
            np.append(places - 0.5, places[-1] + 0.5),
            np.append(shares[1], shares[1][-1]),
            where="post",
            color=SYNTHETIC,
            linewidth=1.8,
            label="synthetic",
        )
        distance = 0.5 * np.abs(shares[0] - shares[1]).sum()
        axis.set_title(f"{column.name}  (distance {distance:.2f})", fontsize=9)
        axis.set_xticks(places[[0, -1]], [names[0], names[-1]], fontsize=8)
        axis.set_yticks([])
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes.flat[0].legend(fontsize=8, frameon=False)
    figure.suptitle(f"{schema.name}: real and synthetic rows at epsilon {epsilon:g}", fontsize=12)
    figure.savefig(path, dpi=110)


def _shares(column: Column, real: Any, synthetic: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Shares of the same bins or categories in both tables.  # (2, bins)"""
    if column.is_choice:
        counts = [
            np.asarray([np.sum(np.asarray(values) == category) for category in column.categories])
            for values in (real, synthetic)
        ]
        names = [str(category) for category in column.categories]
    else:
        low, high = column.low_high
        edges = np.linspace(low, high, NUM_BINS + 1)
        counts = [np.histogram(np.clip(values, low, high), edges)[0] for values in (real, synthetic)]
        names = [f"{edge:g}" for edge in edges[:-1]]
    shares = np.asarray(counts, dtype=float)
    return names, shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
