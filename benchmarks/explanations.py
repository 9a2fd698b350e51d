"""Maps beside attributions: what locally linear maps show, and integrated gradients and SmoothGrad of a network.

    python benchmarks/explanations.py [--data DIR] [--set fashion_mnist] [--epsilon 2] [--steps 150] --figure FILE

Trains a small convolutional network without privacy and by noisy descent (the baseline of 003), and locally linear
maps at the same epsilon, both with inputs that can be drawn (cosines). Prints CSV with their test accuracies and how
much explanations of one class agree: the mean correlation between those of two test images of the class that are
predicted right. Draws, for a few test images, what each shows (003 Figs. 2 and 4). Needs captum, which is
no dependency of the package.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from command_line import add_data_argument
from labelled_rows import image_rows
from receipts import unrecorded

from understudy.accounting.dpsgd import calibrated_descent
from understudy.accounting.mechanisms import Budget
from understudy.classifier.model import Classifier, contrast, drawn, explain_row, patterns
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.plan.descent import DescentPlan
from understudy.private.dpsgd.classifier import integer_rows, noisy_maps
from understudy.private.dpsgd.networks import noisy_descent
from understudy.private.dpsgd.steps import Descent
from understudy.private.noise import LongNoise

Tensors = dict[str, Any]
HEADER = ("model", "epsilon", "accuracy", "explained_by", "agreement_within_class", "seconds")
SHOWN = 4


def first_parameters(seed: int) -> Tensors:
    """Two convolutions and two dense layers: 26,010 numbers."""
    rng = torch.Generator().manual_seed(seed)
    shapes = {
        "first": (16, 1, 8, 8),
        "first_bias": (16,),
        "second": (32, 16, 4, 4),
        "second_bias": (32,),
        "dense": (32, 512),
        "dense_bias": (32,),
        "last": (10, 32),
        "last_bias": (10,),
    }
    return {
        name: torch.zeros(shape)
        if len(shape) == 1
        else torch.randn(shape, generator=rng) * np.sqrt(2 / np.prod(shape[1:]))
        for name, shape in shapes.items()
    }


def scores(parameters: Tensors, images: Any) -> Any:
    """Scores of the classes.  # (images, 1, 28, 28) -> (images, 10)"""
    functional = torch.nn.functional
    hidden = functional.conv2d(images, parameters["first"], parameters["first_bias"], stride=2, padding=3)
    hidden = functional.max_pool2d(functional.relu(hidden), 2, 1)
    hidden = functional.conv2d(hidden, parameters["second"], parameters["second_bias"], stride=2)
    hidden = functional.max_pool2d(functional.relu(hidden), 2, 1).flatten(1)
    hidden = functional.relu(hidden @ parameters["dense"].T + parameters["dense_bias"])
    return hidden @ parameters["last"].T + parameters["last_bias"]


def row_loss(parameters: Tensors, image: Any, label: Any) -> Any:
    """Cross-entropy of one image."""
    found = scores(parameters, image[None, None].float() / 255)
    return torch.nn.functional.cross_entropy(found, label[None])


def without_privacy(images: np.ndarray, labels: np.ndarray, epochs: int = 2) -> Tensors:
    """The network by plain Adam."""
    parameters = {name: each.requires_grad_() for name, each in first_parameters(0).items()}
    optimiser = torch.optim.Adam(list(parameters.values()), lr=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(labels)), len(labels) // 128):
            batch = torch.from_numpy(images[part])[:, None].float() / 255
            loss = torch.nn.functional.cross_entropy(scores(parameters, batch), torch.from_numpy(labels[part]))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return {name: each.detach() for name, each in parameters.items()}


def with_privacy(images: np.ndarray, labels: np.ndarray, epsilon: float, steps: int) -> Tensors:
    """The network by noisy descent."""
    cost = calibrated_descent(Budget(epsilon), sampling_rate=512 / len(labels), steps=steps)
    plan = DescentPlan(Budget(epsilon), cost, clip=1.0, learning_rate=1.5, expected_rows=len(labels))
    return noisy_descent(first_parameters(0), row_loss, (images, labels), Descent(plan, unrecorded(), averaged=0.2))


def attributions(parameters: Tensors, images: np.ndarray, classes: np.ndarray) -> dict[str, np.ndarray]:
    """Integrated gradients and SmoothGrad of the predicted class.  # (images, 28, 28)"""
    from captum.attr import IntegratedGradients, NoiseTunnel, Saliency

    def forward(batch: Any) -> Any:
        return scores(parameters, batch)

    batch = torch.from_numpy(images)[:, None].float() / 255
    target = torch.from_numpy(classes)
    generator = IntegratedGradients(forward, multiply_by_inputs=False)
    integrated = generator.attribute(batch, target=target, n_steps=32)
    smooth = NoiseTunnel(Saliency(forward)).attribute(
        batch, nt_type="smoothgrad", nt_samples=24, stdevs=0.15, target=target, abs=False
    )
    named = {"integrated gradients": integrated, "SmoothGrad": smooth}
    return {name: each.detach().numpy()[:, 0] for name, each in named.items()}


def agreement(explained: np.ndarray, classes: np.ndarray) -> float:
    """Mean correlation between explanations of two images of a class."""
    flat = explained.reshape(len(explained), -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True) + 1e-12
    found = []
    for each in np.unique(classes):
        own = flat[classes == each]
        if len(own) > 1:
            total = (own @ own.T).sum() - len(own)
            found.append(total / (len(own) * (len(own) - 1)))
    return float(np.mean(found))


def network_lines(
    name: str, epsilon: Any, parameters: Tensors, test: Any, chosen: np.ndarray, seconds: float
) -> tuple[list[list[Any]], dict[str, np.ndarray]]:
    """Accuracy and agreement of a network, and its explanations of the chosen images."""
    images, labels = test
    with torch.no_grad():
        predicted = scores(parameters, torch.from_numpy(images)[:, None].float() / 255).argmax(1).numpy()
    accuracy = float((predicted == labels).mean())
    found = attributions(parameters, images[chosen], predicted[chosen])
    right = predicted[chosen] == labels[chosen]
    lines = [
        [
            name,
            epsilon,
            round(accuracy, 4),
            how,
            round(agreement(each[right], labels[chosen][right]), 3),
            round(seconds),
        ]
        for how, each in found.items()
    ]
    return lines, {f"{name}: {how}": each for how, each in found.items()}


def maps_lines(
    rows: Any, epsilon: float, test: Any, chosen: np.ndarray
) -> tuple[list[list[Any]], dict[str, np.ndarray]]:
    """The same of locally linear maps: the filter of the predicted class, and what places add."""
    start = time.process_time()
    plan = ClassifierPlan(rows.schema, Budget(epsilon), Training(inputs="cosines"))
    maps, whitening = noisy_maps(
        integer_rows(rows.train, plan, query=None),
        plan,
        noise=LongNoise(),
        receipt=unrecorded(plan_id=plan.fingerprint),
    )
    trained = Classifier(plan, maps, whitening, ())
    images, labels = test
    codes = images.reshape(len(images), -1).astype(np.int64)
    predicted = trained.probabilities(codes).argmax(axis=1)
    right = predicted[chosen] == labels[chosen]
    filters = drawn(trained, contrast(patterns(trained)))[0, :, 0][predicted[chosen]]
    places = np.stack([explain_row(trained, codes[place]).by_place for place in chosen])
    named = {"pattern of the class": filters, "what places add": places}
    accuracy = round(float((predicted == labels).mean()), 4)
    lines = [
        [
            "locally linear maps",
            epsilon,
            accuracy,
            how,
            round(agreement(each[right], labels[chosen][right]), 3),
            round(time.process_time() - start),
        ]
        for how, each in named.items()
    ]
    return lines, {f"maps, epsilon {epsilon:g}: {how}": each for how, each in named.items()}


def draw(images: np.ndarray, shown: dict[str, np.ndarray], path: Path) -> None:
    """Test images and what every model shows of them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = 1 + len(shown)
    figure, axes = plt.subplots(SHOWN, columns, figsize=(1.7 * columns, 1.6 * SHOWN + 0.5), layout="constrained")
    for row in range(SHOWN):
        axes[row, 0].imshow(images[row], cmap="gray_r")
        for column, each in enumerate(shown.values(), start=1):
            largest = np.abs(each[row]).max() or 1.0
            axes[row, column].imshow(each[row], cmap="RdBu", vmin=-largest, vmax=largest)
    for axis, name in zip(axes[0], ("image", *shown), strict=True):
        axis.set_title(name.replace(": ", ":\n"), fontsize=7.5)
    for axis in axes.ravel():
        axis.set_xticks([])
        axis.set_yticks([])
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train, explain, measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--set", default="fashion_mnist")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--steps", type=int, default=150, help="of the network's noisy descent")
    parser.add_argument("--explained", type=int, default=200, help="test images")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = image_rows(arguments.data, arguments.set)
    with np.load(arguments.data / f"{arguments.set}.npz") as archive:
        images, labels = archive["x_train"], archive["y_train"].astype(np.int64)
        test = archive["x_test"], archive["y_test"].astype(np.int64)
    chosen = np.random.default_rng(3).permutation(len(test[1]))[: arguments.explained]
    writer, shown = csv.writer(sys.stdout), {}
    writer.writerow(HEADER)
    start = time.process_time()
    plain = without_privacy(images, labels)
    seconds = time.process_time() - start
    results = [network_lines("network without privacy", "", plain, test, chosen, seconds)]
    start = time.process_time()
    private = with_privacy(images, labels, arguments.epsilon, arguments.steps)
    seconds = time.process_time() - start
    name = f"network, epsilon {arguments.epsilon:g}"
    results.append(network_lines(name, arguments.epsilon, private, test, chosen, seconds))
    results.append(maps_lines(rows, arguments.epsilon, test, chosen))
    for lines, pictures in results:
        writer.writerows(lines)
        shown |= {each: found[:SHOWN] for each, found in pictures.items()}
    if arguments.figure is not None:
        draw(test[0][chosen[:SHOWN]], shown, arguments.figure)


if __name__ == "__main__":
    main()
