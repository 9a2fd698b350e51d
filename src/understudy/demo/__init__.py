"""The whole pipeline on a real table that ships inside linearmodels."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from understudy import __version__
from understudy.accounting.mechanisms import Budget
from understudy.arrays import LossProgress, StageProgress
from understudy.errors import InputError, MissingExtraError
from understudy.evaluation.evaluate import evaluate
from understudy.evaluation.metrics import ColumnView
from understudy.fits.anova import AnovaTraining
from understudy.generators.base import save_generator
from understudy.methods import fit_release, make_plan
from understudy.private.release import release_table
from understudy.released import build_certificate
from understudy.reports.internal import edge_words, render_report
from understudy.schema import Schema, load_schema


def demo_schema() -> Schema:
    """The schema that we wrote for the Medical Expenditure Panel Survey."""
    with as_file(files("understudy.demo") / "meps.yaml") as path:
        return load_schema(path)


def demo_table() -> Any:
    """10,391 people of the Medical Expenditure Panel Survey as a pandas data frame (public domain)."""
    try:
        from linearmodels.datasets import meps
    except ModuleNotFoundError:
        raise MissingExtraError("linearmodels", "demo") from None
    return meps.load()[[column.name for column in demo_schema().columns]]


def run_demo(
    output: str | Path,
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    training: AnovaTraining | None = None,
    progress: StageProgress | None = None,
) -> dict[str, Path]:
    """Plan, release, certify, fit, sample, draw and evaluate; returns where each result lies."""
    import pyarrow.csv as csv

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
    found = evaluate(rows.to_pandas(), real, schema, quick=True, seed=seed, progress=progress)
    title = f"{schema.name}: real and synthetic rows at epsilon {epsilon:g}"
    draw_comparison(found.columns, folder / "comparison.png", title=title)
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


REAL_COLOUR = "#7a8794"
SYNTHETIC_COLOUR = "#0b6e4f"


def draw_comparison(views: Sequence[ColumnView], path: Path, *, title: str) -> None:
    """Small multiples of every column's distribution, real beside synthetic, with its total variation distance.

    It shows real rows, which is fine for a public table only.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    across = min(5, len(views))
    down = -(-len(views) // across)
    figure = Figure(figsize=(2.6 * across, 2.2 * down + 0.7), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for axis in axes.flat[len(views) :]:
        axis.axis("off")
    for axis, view in zip(axes.flat, views, strict=False):
        edges, words = np.arange(len(view.bins) + 1) - 0.5, edge_words(view.bins)
        axis.stairs(view.real, edges, fill=True, color=REAL_COLOUR, alpha=0.55, label="real")
        axis.stairs(view.synthetic, edges, color=SYNTHETIC_COLOUR, linewidth=1.8, label="synthetic")
        axis.set_title(f"{view.name}  (distance {view.distance:.2f})", fontsize=9)
        axis.set_xticks(edges[[0, -1]], [words[0], words[-1]], fontsize=8)
        axis.set_yticks([])
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes.flat[0].legend(fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=110)
