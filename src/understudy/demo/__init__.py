"""The whole pipeline on a real table that ships inside statsmodels."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from understudy import __version__
from understudy.accounting import Budget
from understudy.arrays import LossProgress, StageProgress
from understudy.errors import InputError, MissingExtraError
from understudy.generators.anova_training import AnovaTraining
from understudy.generators.base import save_generator
from understudy.methods import fit_release, make_plan
from understudy.private.release import release_table
from understudy.published import build_certificate
from understudy.schema import Schema, load_schema


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

    from understudy.demo.picture import draw_comparison
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
