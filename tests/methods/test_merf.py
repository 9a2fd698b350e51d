"""DP-MERF's plans: every variant of the papers, sized by public facts alone."""

from __future__ import annotations

import math

import pytest

from understudy import Budget, Neighbours, dp_merf, load_schema, make_plan
from understudy.errors import UsageError
from understudy.features import Fourier, Grid, OneHot, Tensors
from understudy.methods.merf import MOST_FEATURES, best_num_features, error_bound
from understudy.schema import Schema

NUMBERS = [
    {"name": "age", "kind": "integer", "bounds": [0, 100]},
    {"name": "dose", "kind": "continuous", "bounds": [0, 1], "nullable": True},
]
CHOICES = [{"name": "sex", "kind": "binary", "categories": ["f", "m"]}]


def schema_with(*columns: dict[str, object], **extra: object) -> Schema:
    return load_schema({"columns": list(columns), **extra})


def labelled(kind: str = "class") -> Schema:
    label: dict[str, object] = {"name": "label", "role": "label"}
    if kind == "class":
        label |= {"kind": "categorical", "categories": ["a", "b", "c"]}
    else:
        label |= {"kind": "continuous", "bounds": [0, 10]}
    return schema_with(*NUMBERS, *CHOICES, label, rows=5000)


def blocks_of(plan: object) -> dict[str, object]:
    return {block.name: block for block in plan.stages[-1].embedding.blocks}


def test_a_class_label_multiplies_every_block():
    blocks = blocks_of(dp_merf(labelled(), Budget(1.0)))
    assert set(blocks) == {"count", "numbers", "choices"}
    assert all(block.per_label for block in blocks.values())


def test_choices_hold_null_flags_but_not_the_label():
    plan = dp_merf(labelled(), Budget(1.0))
    choices = blocks_of(plan)["choices"].map
    assert isinstance(choices, OneHot)
    assert choices.dim == 2 + 2  # sex, and whether dose is null
    assert plan.stages[0].embedding.num_labels == 3


def test_balanced_classes_share_one_count():
    embedding = dp_merf(labelled(), Budget(1.0), labels="balanced").stages[0].embedding
    assert embedding.copies(embedding.block("count")) == 1
    assert embedding.copies(embedding.block("numbers")) == 3


def test_without_labels_the_label_is_a_column_like_others():
    embedding = dp_merf(labelled(), Budget(1.0), labels="none").stages[0].embedding
    assert embedding.label is None
    assert embedding.block("choices").map.dim == 2 + 2 + 3


def test_a_numeric_label_gets_a_gaussian_kernel_times_the_choices():
    plan = dp_merf(labelled("number"), Budget(1.0))
    blocks = blocks_of(plan)
    choices = blocks["choices"].map
    assert isinstance(choices, Tensors)
    assert [type(factor) for factor in choices.factors] == [OneHot, Fourier]
    assert choices.factors[1].numbers == (2,)  # the label, after age and dose
    assert len(blocks["numbers"].map.numbers) == 3
    assert plan.stages[0].embedding.label is None


@pytest.mark.parametrize("columns", [NUMBERS, CHOICES])
def test_a_table_of_one_sort_only_has_no_empty_block(columns: list[dict[str, object]]):
    plan = dp_merf(schema_with(*columns), Budget(1.0))
    assert all(block.map.dim > 0 for block in plan.stages[0].embedding.blocks)
    squares = sum(block.weight**2 for block in plan.stages[0].embedding.blocks)
    assert squares <= 1 + 1e-12


def test_block_weights_fill_the_unit_ball():
    squares = sum(block.weight**2 for block in dp_merf(labelled(), Budget(1.0)).stages[0].embedding.blocks)
    assert squares == pytest.approx(1.0)


def test_a_stated_length_scale_gives_the_papers_kernel():
    numbers = blocks_of(dp_merf(labelled(), Budget(1.0), length_scale=0.3))["numbers"].map
    assert isinstance(numbers, Fourier)
    assert numbers.length_scales == (0.3, 0.3)
    assert [(part.size, part.shortest, part.longest) for part in numbers.parts] == [(2, 1.0, 1.0)]


def test_length_scales_can_be_given_per_column():
    scales = {"age": 0.1, "dose": 0.7}
    numbers = blocks_of(dp_merf(labelled(), Budget(1.0), length_scale=scales))["numbers"].map
    assert numbers.length_scales == (0.1, 0.7)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan, {"age": 0.1}, {"age": 1, "dose": 1, "sex": 1}])
def test_a_length_scale_outside_its_rules_is_refused(scale: object):
    with pytest.raises(UsageError, match="length scale"):
        dp_merf(labelled(), Budget(1.0), length_scale=scale)


def test_a_private_length_scale_is_a_stage_of_its_own_within_the_same_budget():
    plan = dp_merf(labelled(), Budget(1.0), length_scale="private")
    assert [stage.name for stage in plan.stages] == ["histograms", "embedding"]
    assert isinstance(plan.stages[0].embedding.blocks[0].map, Grid)
    assert sum(stage.share for stage in plan.stages) == pytest.approx(1.0)
    assert 0.999 < plan.epsilon() <= 1.0


def test_separate_releases_cost_what_the_first_paper_paid():
    one = dp_merf(labelled(), Budget(1.0))
    many = dp_merf(labelled(), Budget(1.0), separate_releases=True)
    assert len(many.cost()) == 3 + 1
    assert many.epsilon() <= 1.0
    noise_of_a_feature = [plan.noise_stds[0] / blocks_of(plan)["numbers"].weight for plan in (one, many)]
    assert noise_of_a_feature[1] > 1.5 * noise_of_a_feature[0]


def test_the_number_of_features_minimises_the_bound():
    noise = 4e-4
    best = best_num_features(lambda _: noise)
    assert best % 2 == 0
    assert all(
        error_bound(best, noise) <= error_bound(other, noise) for other in (best // 2, best - 200, best + 200, 2 * best)
    )


def test_the_bound_has_the_papers_terms():
    sigma, rows, features = 3.73, 48_842, 10_000
    private = 4 * features * sigma**2 / rows**2
    cross = 8 * math.sqrt(2) * sigma / rows * math.sqrt(features / 2)  # gamma ratio, large D
    random = 8 * math.sqrt(2 * math.pi / features)
    assert error_bound(features, 2 * sigma / rows) == pytest.approx(private + cross + random, rel=1e-4)


def test_more_budget_or_rows_buy_more_features_up_to_a_limit():
    counts = [
        blocks_of(dp_merf(labelled(), Budget(epsilon), num_rows=rows))["numbers"].map.dim
        for epsilon, rows in ((0.1, 1000), (1.0, 1000), (1.0, 5000), (10.0, 10**8))
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[2]
    assert counts[-1] == MOST_FEATURES


def test_replace_one_needs_a_public_row_count():
    with pytest.raises(UsageError, match="row count"):
        dp_merf(schema_with(*NUMBERS), Budget(1.0), neighbours=Neighbours.REPLACE_ONE)


def test_an_unknown_method_is_refused_with_the_list():
    with pytest.raises(UsageError, match="dp-merf"):
        make_plan(labelled(), Budget(1.0), method="gan")


@pytest.mark.parametrize("option", [{"labels": "some"}, {"num_features": 0}])
def test_an_unknown_variant_is_refused(option: dict[str, object]):
    with pytest.raises(UsageError):
        dp_merf(labelled(), Budget(1.0), **option)
