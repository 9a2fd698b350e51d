"""The internal report: one file that needs nothing else, says what it is, and escapes every name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from understudy.evaluation.metrics import Evaluation
from understudy.reports.charts import MOST_COLUMNS
from understudy.reports.internal import BANNER, COLUMNS_DRAWN, edge_words, render_report

Make = Callable[..., Evaluation]
LARGEST = 2 * 1024**2
VOID = {"meta", "br", "hr", "img", "input", "link"}
ATTACK = '<script>alert("x")</script>'
CERTIFICATE = {
    "status": "PRIVATE",
    "method": "dp-anova",
    "created": "today",
    "release": "abcdef" * 10,
    "guarantee": {"epsilon": 1.0, "delta": 1e-5, "neighbours": "add-remove", "unit": "row"},
    "odds": {"best_guess_percent": 55.34},
}


class Page(HTMLParser):
    """Every start tag with its attributes, the text, and whether tags close as they opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def rendered(evaluation: Evaluation) -> str:
    return render_report(evaluation, name="adult", version="0.1.0")


def test_a_page_of_six_hundred_columns_stays_below_two_megabytes(make: Make) -> None:
    def long_name(i: int) -> str:
        return f"a_rather_long_column_name_that_people_do_give_{i}"

    many = tuple(f"category number {i} of a long list" for i in range(200))
    page = rendered(make(600, categories=many, names=long_name))
    assert len(page.encode()) < LARGEST
    assert len(Page(page).all("figure")) < COLUMNS_DRAWN + 6
    assert all(long_name(i) in page for i in range(600))


def test_the_page_fetches_nothing_and_runs_nothing(make: Make) -> None:
    page = rendered(make(30))
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<link|<script|<iframe|<object", page, re.I)
    for _, attributes in Page(page).tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]


def test_every_picture_says_in_words_what_it_shows(make: Make) -> None:
    pictures = Page(rendered(make())).all("svg")
    assert len(pictures) > 10
    for picture in pictures:
        hidden = picture.get("aria-hidden") == "true"
        assert hidden or (picture.get("role") == "img" and len(picture.get("aria-label") or "") > 15)


def test_every_heading_cell_of_a_table_says_what_it_heads(make: Make) -> None:
    page = Page(rendered(make()))
    assert len(page.all("table")) == len(page.all("thead")) == 3
    assert all(cell.get("scope") in {"col", "row", "colgroup"} for cell in page.all("th"))


def test_tags_close_in_the_order_in_which_they_opened(make: Make) -> None:
    assert Page(rendered(make(30))).open == []


def test_names_from_a_schema_never_become_markup(make: Make) -> None:
    evaluation = make(30, categories=(ATTACK, '"quoted" & <b>'), names=lambda i: f"{ATTACK}{i}")
    assert evaluation.prediction is not None
    hostile = replace(evaluation, prediction=replace(evaluation.prediction, label=ATTACK), notes=(ATTACK,))
    page = render_report(hostile, name=ATTACK, version="0.1.0", reference=ATTACK)
    assert "<script" not in page
    assert "<b>" not in page
    assert Page(page).open == []
    assert ATTACK in Page(page).words  # it is shown, as text


def test_the_page_says_on_screen_and_on_every_printed_sheet_that_it_is_internal(make: Make) -> None:
    page = rendered(make())
    assert BANNER in Page(page).words
    assert f'@top-center {{ content: "{BANNER}"' in page
    assert "position: fixed" in page.split(".watermark { display: block;")[1][:60]
    assert 'class="watermark"' in page


def test_the_worst_columns_are_drawn_and_the_others_listed(make: Make) -> None:
    page = rendered(make(40))
    drawn, listed = page.split("The other 16 columns")
    assert all(f"<strong>column_{i}</strong>" in drawn for i in range(COLUMNS_DRAWN))
    assert all(f"<span>column_{i}</span>" in listed for i in range(COLUMNS_DRAWN, 40))


def test_epsilon_and_certificate_stand_on_the_page_if_there_is_a_release(make: Make) -> None:
    with_release = render_report(make(), name="adult", version="0", certificate=CERTIFICATE)
    assert 'epsilon 1.0 at <span class="keep">delta 1e-05</span>' in with_release
    assert "At epsilon 1:" in with_release
    assert "abcdefabcdefabcd" in with_release
    assert "not stated here" in rendered(make())


def test_a_release_that_is_not_private_is_not_called_private(make: Make) -> None:
    page = render_report(make(), name="a", version="0", certificate=CERTIFICATE | {"status": "NOT PRIVATE"})
    assert 'badge bad">NOT PRIVATE' in page
    assert "release is differentially private" not in page


@pytest.mark.parametrize("num_columns", [1, 2, 24, 25])
def test_a_table_of_any_width_has_a_page(make: Make, num_columns: int) -> None:
    assert len(Page(rendered(make(num_columns))).all("figure")) == min(num_columns, 24) + 4


def test_a_wide_table_shows_the_columns_whose_ties_differ_most(make: Make) -> None:
    evaluation = make(40)
    ties = evaluation.associations
    far = tuple(tuple(0.9 if 35 in (i, j) else 0.5 for i in range(40)) for j in range(40))
    flat = tuple((0.5,) * 40 for _ in range(40))
    page = rendered(replace(evaluation, associations=replace(ties, real=flat, synthetic=far)))
    assert "The 24 columns whose ties differ most are drawn; 16 are not." in page
    drawn = re.findall(r'text-anchor="end" style="[^"]*">(column_\d+)<', page)[: 2 * MOST_COLUMNS : 2]
    assert drawn == [f"column_{i}" for i in (*range(23), 35)]


def test_an_evaluation_without_a_label_has_a_page_without_models(make: Make) -> None:
    page = rendered(replace(make(), prediction=None))
    assert "Train on synthetic" not in page
    assert "Train on synthetic" in rendered(make())


def test_scores_that_are_no_numbers_are_dashes(make: Make) -> None:
    evaluation = make()
    broken = tuple(replace(score, value=float("nan"), floor=float("nan")) for score in evaluation.scores)
    page = rendered(replace(evaluation, scores=broken))
    assert "nan" not in Page(page).words.lower().replace("finance", "")


def test_synthetic_stands_beside_real_and_baseline_for_every_model(make: Make) -> None:
    words = re.sub(r"\s+", " ", Page(rendered(make())).words)
    assert "Random forest 0.8800.8900.5000.7000.7100.240" in words
    assert "Mean 0.8800.8900.5000.7000.7100.240" in words


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_all_text_stands_out_from_its_ground_by_day_by_night_and_on_paper(make: Make) -> None:
    themes = re.findall(r":root \{([^}]*)\}", rendered(make()))
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme))
        grounds = [("page", word) for word in ("ink", "soft", "synthetic")]
        grounds += [("wash", word) for word in ("ink", "soft")]
        grounds += [(ground, "on") for ground in ("synthetic", "warn", "alarm", "soft")]
        for pair in grounds:
            light, dark = sorted((luminance(colours[name]) for name in pair), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, pair


def test_the_edges_of_bins_are_read_from_their_names() -> None:
    assert edge_words(("0 to 500", "500 to 1000")) == ("0", "500", "1,000")
    assert edge_words(("1", "2", "3")) == ("1", "2", "3")
    dates = ("2000-01-01 00:00 to 2010-01-01 00:00", "2010-01-01 00:00 to 2020-01-01 00:00")
    assert edge_words(dates) == ("2000-01-01", "2010-01-01", "2020-01-01")


def test_a_release_without_privacy_lends_its_epsilon_to_no_headline(make: Make) -> None:
    sides = [
        render_report(make(), name="t", version="1", certificate=CERTIFICATE | {"status": status})
        for status in ("PRIVATE", "NOT PRIVATE")
    ]
    assert ["At epsilon 1:" in page for page in sides] == [True, False]
    assert ["NONE; it would be epsilon 1.0" in page for page in sides] == [False, True]
