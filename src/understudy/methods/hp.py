"""DP-HP: Hermite mean embeddings under a sum and a product kernel (Vinaroz et al., ICML 2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from itertools import combinations

import numpy as np

from understudy.accounting import Budget, Neighbours, mu_squared_of_budget, neighbours_by_name
from understudy.features import Block, Embedding, FeatureMap, Hermite, OneHot, Tensors
from understudy.features.hermite import best_half_range
from understudy.generators.training import Training
from understudy.generators.mixture_training import MixtureTraining
from understudy.methods.labels import Labels, labelled_columns
from understudy.plan import Plan, Stage
from understudy.schema import Layout, Schema

COUNT_SHARE = 0.01


def dp_hp(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    length_scale: float = 0.03,
    product_length_scale: float = 0.12,
    order: int = 60,
    product_order: int = 10,
    product_dim: int = 2,
    num_products: int | None = None,
    product_share: float | None = None,
    power: float = 0.5,
    gamma: float | None = None,
    seed: int = 0,
    training: Training | None = None,
) -> Plan:
    num_rows = num_rows if num_rows is not None else schema.rows
    neighbours = neighbours_by_name(neighbours)
    layout = Layout(schema)
    columns = labelled_columns(schema, labels)
    numbers = tuple(range(len(layout.numbers)))
    factors = [Hermite((j,), (product_length_scale,), product_order, best_half_range(product_length_scale)) for j in numbers]
    factors += [OneHot((span,)) for span in columns.spans]
    k = len(factors)
    maps = {}
    if numbers:
        maps["numbers"] = Hermite(numbers, (length_scale,) * len(numbers), order, best_half_range(length_scale))
    if columns.spans:
        maps["choices"] = OneHot(columns.spans)
    subsets = list(combinations(range(k), product_dim))
    if num_products is not None and num_products < len(subsets):
        rng = np.random.default_rng(seed)
        pick = rng.choice(len(subsets), num_products, replace=False)
        subsets = [subsets[i] for i in pick]
    sizes = np.array([math.prod(factors[j].dim for j in s) for s in subsets], dtype=float)
    squares = sizes**power
    squares /= squares.sum()
    maps["products"] = Tensors(tuple(factors), tuple(subsets))
    sum_dim = sum(m.dim for n, m in maps.items() if n != "products")
    a = sum_dim**0.5
    g = gamma if gamma is not None else 1.0
    b = math.sqrt(g) * (sizes**0.5 / math.sqrt(len(sizes))).sum()
    share = product_share if product_share is not None else b / (a + b)
    rest = 1 - COUNT_SHARE
    w = {"numbers": rest * (1 - share) * len(numbers) / k, "choices": rest * (1 - share) * len(columns.spans) / k,
         "products": rest * share}
    blocks = [Block(name, map_, math.sqrt(w[name]), per_label=bool(columns.classes)) for name, map_ in maps.items()]
    embedding = Embedding((columns.count_block(math.sqrt(COUNT_SHARE)), *blocks), label=columns.classes)
    settings = {"labels": labels, "generator": "mixture", "training": asdict(training or MixtureTraining(seed=seed))}
    if gamma is not None:
        settings["loss_weights"] = {"numbers": len(numbers) / k, "choices": len(columns.spans) / k, "products": gamma}
    return Plan(
        schema=schema, method="dp-hp", budget=budget, neighbours=neighbours,
        stages=(Stage("embedding", embedding),), num_rows=num_rows, settings=tuple(settings.items()),
    )  # fmt: skip
