"""The public report: right about noise, quick to see a wrong generator, and made without a real row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import LAPLACE, Budget, Neighbours
from understudy.methods import make_plan
from understudy.private.noise import SeededNoise
from understudy.private.release import release_table
from understudy.released import Release
from understudy.reports import agreement
from understudy.reports.agreement import is_missed
from understudy.reports.internal import BANNER
from understudy.reports.public import PublicReport, examine, render_public
from understudy.schema import Schema, load_schema

ROWS = 6_000
ATTACK = '<script>alert("x")</script>'
SCHEMA = {
    "name": "people",
    "columns": [
        {"name": "age", "kind": "integer", "bounds": [0, 99], "bounds_from": "definition"},
        {"name": "height", "kind": "continuous", "bounds": [100, 220], "nullable": True, "bounds_from": "convention"},
        {"name": "born", "kind": "datetime", "bounds": ["1900-01-01", "2030-12-31"], "bounds_from": "definition"},
        {"name": "job", "kind": "categorical", "categories": ["none", "some", ATTACK], "bounds_from": "codebook"},
        {"name": "ill", "kind": "binary", "role": "label", "categories": ["no", "yes"], "bounds_from": "codebook"},
    ],
}


def people(num_rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, num_rows)
    ill = rng.random(num_rows) < age / 120
    job = np.where(rng.random(num_rows) < 0.2 + 0.5 * ill, "none", "some")
    job[rng.random(num_rows) < 0.1] = ATTACK
    height = np.clip(rng.normal(170, 10, num_rows), 100, 220)
    return pa.table(
        {
            "age": age,
            "height": pa.array(height, mask=rng.random(num_rows) < 0.1),
            "born": pa.array(45_000 - 365 * age.astype(np.int32) % 40_000, pa.int32()).cast(pa.date32()),
            "job": job,
            "ill": np.where(ill, "yes", "no"),
        }
    )


@dataclass(frozen=True)
class Truth:
    """A generator that draws from the very law of the private rows; with ``is_shuffled``, without ties."""

    schema: Schema
    is_shuffled: bool = False

    def sample(self, num_rows: int, *, seed: int = 0) -> pa.Table:
        rows = people(num_rows, 1000 + seed)
        if not self.is_shuffled:
            return rows
        rng = np.random.default_rng(seed)
        mixed = [column.take(pa.array(rng.permutation(num_rows))) for column in rows.columns]
        return pa.table(mixed, names=rows.column_names)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "MOST_ROWS", 20_000)


def released(method: str, *, noise: SeededNoise | None = None, delta: float = 1e-5, **options: Any) -> Release:
    plan = make_plan(load_schema(SCHEMA), Budget(1.0, delta), method=method, options={"num_rows": ROWS, **options})
    return release_table(people(ROWS, 0), plan, noise=noise)


METHODS = [("dp-anova", {}), ("dp-merf", {"num_features": 500}), ("dp-hp", {})]


@pytest.mark.parametrize(("method", "options"), METHODS, ids=[name for name, _ in METHODS])
def test_rows_of_the_right_law_have_standard_normal_residuals(method: str, options: dict[str, Any]) -> None:
    # The same noise in every run: at random, one draw in some thousands lies outside these bands.
    release = released(method, noise=SeededNoise(0), **options)
    report = examine(release, Truth(release.plan.schema))
    residuals = np.concatenate([each.fit.residuals.ravel() for each in report.agreements])
    # The private rows are themselves a draw of that law, which the noise does not count in.
    assert 0.93 < np.sqrt(np.mean(residuals**2)) < 1.35
    assert 0.86 < report.whole.inside < 0.97


@pytest.mark.parametrize(("method", "options"), METHODS, ids=[name for name, _ in METHODS])
def test_at_delta_zero_residuals_have_the_law_of_laplace_noise(method: str, options: dict[str, Any]) -> None:
    release = released(method, delta=0.0, **options)
    report = examine(release, Truth(release.plan.schema))
    residuals = np.concatenate([each.fit.residuals.ravel() for each in report.agreements])
    assert 0.9 < np.sqrt(np.mean(residuals**2)) < 1.2
    assert 0.92 < report.whole.inside < 0.98
    assert np.mean(np.abs(residuals) < 1.96) < report.whole.inside, "its 95 % reach further"
    page = render_public(report, version="0.1.0")
    assert '<span class="keep">without any delta</span>' in page
    assert "between -2.12 and 2.12" in page


def test_rows_without_ties_are_found_out_by_pairs_and_not_by_columns() -> None:
    # The same noise in every run: a margin of two numbers is called missed once in fifty draws.
    release = released("dp-anova", noise=SeededNoise(0))
    report = examine(release, Truth(release.plan.schema, is_shuffled=True))
    assert {fit.names: fit for fit in report.pairs}["age", "born"].is_missed
    assert report.pairs[0].rms > 3
    assert "they differ most in" in report.headline
    assert not any(margin.fit.is_missed for margin in report.margins)


@pytest.fixture(scope="module")
def report() -> PublicReport:
    release = released("dp-anova")
    return examine(release, Truth(release.plan.schema))


def test_the_page_is_public_whole_and_fetches_nothing(report: PublicReport) -> None:
    page = render_public(report, version="0.1.0")
    assert BANNER not in page
    assert "INTERNAL" not in page
    assert "DIFFERENTIALLY PRIVATE" in page
    assert 'epsilon 1.0 at <span class="keep">delta 1e-05</span>' in page
    assert len(page.encode()) < 2 * 1024**2
    assert not re.search(r"https?:|url\(|@import|<link|<script|<iframe", page, re.I)
    for picture in re.findall(r"<svg[^>]*>", page):
        assert 'aria-hidden="true"' in picture or 'role="img" aria-label="' in picture


def test_every_column_is_drawn_with_its_noise(report: PublicReport) -> None:
    page = render_public(report, version="0.1.0")
    assert {margin.column.name for margin in report.margins} == {"age", "height", "born", "job", "ill"}
    for name in ("age", "height", "born", "job", "ill"):
        assert f"<strong>{name}</strong>" in page
    assert "95 % interval" in page
    for margin in report.margins:
        series = margin.series(float(report.release.label_counts.sum()))
        assert series.doubt > 0
        assert len(series.given) == len(series.synthetic) <= 20
        assert sum(series.synthetic) == pytest.approx(1, abs=0.15)  # nulls have no bin
        assert not series.ticks or len(series.ticks) == len(series.given) + 1


def test_noise_on_the_page_is_the_noise_of_the_release(report: PublicReport) -> None:
    (margin,) = (margin for margin in report.margins if margin.column.name == "job")
    measurement = report.release.measurement_of("columns")
    assert margin.doubt == pytest.approx(1.96 * measurement.noise_of_count("columns"))
    table = measurement.tables("columns")[3][0]
    assert margin.measured == pytest.approx(table)


def test_the_exact_row_count_is_nowhere_in_the_public_numbers(report: PublicReport) -> None:
    plan_free = render_public(report, version="0.1.0").replace("planned for about 6000", "")
    exact = people(ROWS, 0)["ill"].to_pylist().count("yes")
    assert f"{exact:,}" not in plan_free


def test_a_page_over_a_release_that_is_not_private_says_not_to_publish_it(report: PublicReport) -> None:
    words = "may be published with the release"
    assert words in render_public(report, version="0.1.0")
    assert report.to_json()["is_private"] is True
    release = released("dp-anova", noise=SeededNoise(1))
    made = examine(release, Truth(release.plan.schema))
    page = render_public(made, version="0.1.0")
    assert words not in page
    assert "publish neither of them" in page
    assert "NOT PRIVATE" in page
    assert made.to_json()["is_private"] is False


def test_a_public_row_count_is_shown_as_it_is_and_a_private_one_with_its_noise(report: PublicReport) -> None:
    assert "a noisy count, give or take" in render_public(report, version="0.1.0")
    release = released("dp-anova", neighbours=Neighbours.REPLACE_ONE)
    page = render_public(examine(release, Truth(release.plan.schema)), version="0.1.0")
    assert "<dd>6,000<small>public under replace-one</small>" in page
    assert "a noisy count" not in page


def test_residuals_are_missed_only_beyond_chance_and_size() -> None:
    assert not is_missed(1.1, 10**6)
    assert is_missed(1.25, 10**4)
    assert not is_missed(1.5, 8)
    assert is_missed(3.0, 8)
    assert is_missed(1.9, 8)
    assert not is_missed(2.5, 2), "a square of two residuals is often large"
    assert not is_missed(1.9, 8, LAPLACE), "heavy tails make large residuals likelier"


def test_the_comparison_says_how_far_it_is(report: PublicReport) -> None:
    told: list[tuple[str, int, int]] = []
    examine(report.release, Truth(report.release.plan.schema), progress=lambda *step: told.append(step))
    assert [stage for stage, _, _ in told[:3]] == ["drawing rows", "drawing rows", "comparing"]
    done = [step for stage, step, _ in told if stage == "comparing"]
    assert done == sorted(set(done))
    assert 0.5 * agreement.MOST_ROWS < done[-1] < agreement.MOST_ROWS


def test_fewer_rows_are_drawn_where_their_features_cost_more(
    report: PublicReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert agreement.rows_to_draw(report.release) == agreement.MOST_ROWS
    monkeypatch.setattr(agreement, "MOST_FEATURES", 10_000)
    assert agreement.rows_to_draw(report.release) == 10_000
    monkeypatch.setattr(agreement, "MOST_CELLS", 1)
    assert agreement.rows_to_draw(report.release) == agreement.FEWEST_ROWS


def test_columns_without_counts_are_named() -> None:
    """Waves over numbers are compared as a block; that no single value was counted is said, not passed over."""
    release = released("dp-merf", noise=SeededNoise(0), num_features=40)
    page = render_public(examine(release, Truth(release.plan.schema)), version="1")
    assert "This release holds no counts of single values of" in page
    whole = released("dp-anova", noise=SeededNoise(0))
    assert "holds no counts" not in render_public(examine(whole, Truth(whole.plan.schema)), version="1")
