"""The private classifier: accuracy by epsilon, maps, projections and inputs, beside what 003 prints.

    python benchmarks/classifier.py [--data DIR] [--parts headline epsilons maps projections adult] [--seeds 0 1 2 3 4]

DIR holds mnist.npz and fashion_mnist.npz (x_train, y_train, x_test, y_test) and adult.parquet with its schema. All
training rows are used, and all test rows. Prints CSV; `--figure FILE` draws what a CSV from before (`--from FILE`)
holds. A seed fixes projections and first weights; noise has none, so that a second run comes out a little different.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from command_line import add_data_argument
from labelled_rows import Rows, adult_rows, image_rows
from receipts import unrecorded

from understudy.accounting.mechanisms import Budget
from understudy.classifier.maps import LocallyLinearMaps
from understudy.classifier.model import Classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.private.dpsgd.classifier import noisy_maps
from understudy.private.noise import LongNoise

SETS = ("mnist", "fashion_mnist")
PRINTED = {("mnist", 2.0): 0.942, ("mnist", 0.5): 0.918, ("fashion_mnist", 2.0): 0.832, ("fashion_mnist", 0.5): 0.807}
HEADER = ("part", "set", "inputs", "epsilon", "maps", "projected", "seed", "accuracy", "roc_auc", "printed", "seconds")
PAPER = {"inputs": "cosines", "num_coefficients": 784, "look": 0.0, "sampling_rate": 0.05, "steps": 120}


def measured(rows: Rows, epsilon: float, seed: int, **settings: Any) -> dict[str, Any]:
    """Train once, and test."""
    num_rows = rows.train.num_rows if settings.get("look") == 0 else None
    plan = ClassifierPlan(rows.schema, Budget(epsilon), Training(seed=seed, **settings), num_rows)
    integers = rows.integers(plan)
    start = time.process_time()
    maps, whitening = noisy_maps(integers, plan, noise=LongNoise(), receipt=unrecorded(plan_id=plan.fingerprint))
    seconds = time.process_time() - start
    trained = Classifier(plan, maps, whitening, ())
    return score(rows, trained.probabilities(trained.codes(rows.test))) | {
        "set": rows.name,
        "inputs": plan.training.inputs,
        "epsilon": epsilon,
        "seed": seed,
        "maps": plan.training.num_maps,
        "projected": plan.training.projected or "",
        "printed": PRINTED.get((rows.name, epsilon), ""),
        "seconds": round(seconds, 1),
    }


def score(rows: Rows, chances: np.ndarray) -> dict[str, Any]:
    """Accuracy, and the area under the curve where there are two classes."""
    from sklearn.metrics import roc_auc_score

    found: dict[str, Any] = {"accuracy": round(float((chances.argmax(1) == rows.labels).mean()), 4)}
    if chances.shape[1] == 2:
        found["roc_auc"] = round(float(roc_auc_score(rows.labels, chances[:, 1])), 4)
    return found


def without_privacy(rows: Rows) -> dict[str, Any]:
    """Logistic regression on the same inputs, without noise."""
    from sklearn.linear_model import LogisticRegression

    plan = ClassifierPlan(rows.schema, Budget(1.0))
    integers = rows.integers(plan)
    start = time.process_time()
    model = LogisticRegression(C=1e3, max_iter=2000).fit(integers.inputs / 2.0**14, integers.labels)
    weights = np.concatenate([model.coef_, model.intercept_[:, None] / 0.1], axis=1)
    plain = np.zeros((1, 2, plan.inputs.dim))
    plain[0, 1] = weights[0, :-1]
    plain[0, 1, -1] += weights[0, -1]
    trained = Classifier(plan, LocallyLinearMaps(plan.shape, plain), None, ())
    chances = trained.probabilities(trained.codes(rows.test))
    return score(rows, chances) | {
        "set": rows.name,
        "inputs": "logistic regression without privacy",
        "epsilon": "inf",
        "maps": 1,
        "seed": "",
        "seconds": round(time.process_time() - start, 1),
    }


def lines(arguments: argparse.Namespace) -> Any:
    """Every line of every part that was asked for."""
    folder, seeds = arguments.data, arguments.seeds
    if "headline" in arguments.parts:
        for name in SETS:
            rows = image_rows(folder, name)
            for inputs in arguments.inputs:
                for epsilon in (2.0, 0.5):
                    for seed in seeds:
                        yield "headline", measured(rows, epsilon, seed, inputs=inputs)
    figures = {"epsilons", "maps", "projections"} & set(arguments.parts)
    rows = image_rows(folder, "mnist") if figures else None
    if rows is not None and "epsilons" in figures:
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0, 4.0):
            yield "epsilons", measured(rows, epsilon, 0, inputs="strokes", sampling_rate=0.25)
    if rows is not None and "maps" in figures:
        for maps in (1, 3, 10):
            for epsilon in (0.5, 2.0):
                wish = {"inputs": "cosines", "num_maps": maps, "sampling_rate": 0.1}
                yield "maps", measured(rows, epsilon, 0, **wish)
    if rows is not None and "projections" in figures:
        for projected in (30, 100, 300):
            yield "projections", measured(rows, 2.0, 0, num_maps=4, projected=projected, **PAPER)
    if "adult" in arguments.parts:
        adult = adult_rows(folder)
        yield "adult", without_privacy(adult)
        for epsilon in (1.0, 0.2):
            for seed in seeds:
                yield "adult", measured(adult, epsilon, seed, inputs="table")


def draw(found: list[dict[str, str]], path: Path) -> None:
    """Accuracy by epsilon, maps and projection size (003 Fig. 5)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for axis, part, key, title in (
        (axes[0], "epsilons", "epsilon", "epsilon"),
        (axes[1], "maps", "maps", "linear maps per class"),
        (axes[2], "projections", "projected", "coordinates after projection, epsilon 2"),
    ):
        curves: defaultdict[str, defaultdict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        for line in found:
            also = part == "epsilons" and line["part"] == "headline" and line["set"] == "mnist"
            if line["part"] == part or also:
                name = line["inputs"] + (f", epsilon {line['epsilon']}" if part == "maps" else "")
                curves[name][float(line[key])].append(100 * float(line["accuracy"]))
        for name, points in curves.items():
            places = sorted(points)
            axis.plot(places, [np.mean(points[x]) for x in places], marker="o", label=name)
        axis.set_xlabel(title)
        axis.grid(alpha=0.3)
        if part != "projections":
            axis.set_xscale("log")
            ticks = sorted({x for points in curves.values() for x in points})
            axis.set_xticks(ticks, [f"{x:g}" for x in ticks])
            axis.minorticks_off()
        if curves:
            axis.legend(frameon=False, fontsize=8)
    axes[0].plot([0.5, 2.0], [91.8, 94.2], "k^", label="printed (DP-LLM)")
    axes[0].legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("accuracy on MNIST, %")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--parts", nargs="+", default=["headline", "epsilons", "maps", "projections", "adult"])
    parser.add_argument("--inputs", nargs="+", default=["strokes", "cosines"], help="of the headline")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--from", dest="source", type=Path, help="CSV to draw")
    parser.add_argument("--figure", type=Path, help="picture to draw, from --from")
    arguments = parser.parse_args()
    if arguments.figure is not None and arguments.source is not None:
        with arguments.source.open() as file:
            draw(list(csv.DictReader(file)), arguments.figure)
        return
    writer = csv.DictWriter(sys.stdout, HEADER, restval="")
    writer.writeheader()
    for part, line in lines(arguments):
        writer.writerow({"part": part} | line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
