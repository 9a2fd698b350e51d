"""What a release says can be asked, can be asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.errors import MissingExtraError, UsageError
from understudy.private.noise import SeededNoise
from understudy.queries import Asker, catalogue
from understudy.queries.answers import draw_answer


def test_every_column_that_is_listed_answers_what_is_listed(noisy):
    asker = Asker(noisy)
    found = catalogue(asker.sources)
    assert [column.name for column in found.columns] == [c.name for c in noisy.plan.schema.used]
    for column in found.columns:
        for each in column.can:
            query = {
                "count": f"count by {column.name}",
                "share": f"share by {column.name}",
                "quantile": f"quantile({column.name}, 0.5)",
            }.get(each, f"{each}({column.name})")
            assert asker.ask(query).rows


def test_stated_errors_are_those_of_answers(noisy):
    asker = Asker(noisy)
    stated = {column.name: column.count_error for column in catalogue(asker.sources).columns}
    for name in ("sex", "stage"):
        found = sorted(row.std_error for row in asker.ask(f"count by {name}").rows)
        assert found[0] - 1e-9 <= stated[name] <= found[-1] + 1e-9


def test_columns_that_are_listed_together_can_be_crossed(noisy):
    asker = Asker(noisy)
    together = catalogue(asker.sources).together
    assert any(len(each.names) == 3 for each in together)
    for each in together[:6]:
        assert asker.ask(f"count by {', '.join(each.names)}").rows


def test_a_method_without_counts_of_numbers_says_so(world):
    release = world.release(SeededNoise(1), method="dp-merf", num_features=60)
    found = {c.name: c for c in catalogue(Asker(release).sources).columns}
    assert (found["age"].resolution, found["age"].can) == ("not counted", ())
    assert found["visits"].resolution == "nulls only"
    assert found["sex"].can[0] == "count"


def test_a_picture_is_drawn_for_answers_that_fit_one(noisy, tmp_path):
    asker = Asker(noisy)
    draw_answer(asker.ask("mean(age) by ill"), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    answer = asker.ask("count by age, ill")
    long = replace(answer, rows=answer.rows * 10)
    with pytest.raises(UsageError, match="bars"):
        draw_answer(long, tmp_path / "b.png")


def test_without_matplotlib_the_extra_is_named(noisy, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        draw_answer(Asker(noisy).ask("count by sex"), tmp_path / "a.png")
