"""Hermite against random Fourier features: how well a number of them carries a Gaussian kernel.

    python benchmarks/kernel_error.py [--picture FILE.png]

Fig. 1 and Prop. B.1 of the DP-HP paper: rho = 1/3, independent standard normal points. Prints CSV:
the order, the mean |k(x, y) - phi(x).phi(y)| of Hermite features (by quadrature) beside the
proposition's bound (1/3)^C / (3 sqrt 2), and that of as many random Fourier features (mean and
root mean square of 200 draws) beside its floor 1 / (8 C) and the predicted root mean square.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np

from understudy.features.hermite import mehler_features

RHO, HIGHEST, DRAWS, NODES = 1 / 3, 20, 200, 120


def main() -> None:
    """Print a row per order and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()  # of the standard normal distribution
    exact = np.exp(-RHO / (1 - RHO**2) * (nodes[:, None] - nodes) ** 2)
    features = mehler_features(nodes[:, None], (RHO,), HIGHEST)[:, 0]
    fourier = fourier_errors(nodes, weights, exact)
    spread = math.sqrt(weights @ (np.exp(-3 / 4 * (nodes[:, None] - nodes) ** 2) - 1) ** 2 @ weights)
    rows = []
    for order in range(1, HIGHEST + 1):
        kept = features[:, : order + 1]
        error = float(weights @ np.abs(exact - kept @ kept.T) @ weights)
        mean, root = fourier[order]
        bound = (1 / 3) ** order / (3 * math.sqrt(2))
        length = order + 1
        rows.append((order, error, bound, mean, 1 / (8 * length), root, spread / math.sqrt(length + length % 2)))
    writer = csv.writer(sys.stdout)
    writer.writerow(["order", "hermite", "bound", "fourier_mean", "floor", "fourier_rms", "predicted_rms"])
    for row in rows:
        writer.writerow([row[0], *(f"{value:.3e}" for value in row[1:])])
    if arguments.picture:
        draw_picture(np.array(rows), arguments.picture)


def fourier_errors(nodes: np.ndarray, weights: np.ndarray, exact: np.ndarray) -> dict[int, tuple[float, float]]:
    """Mean absolute and root mean square error of order + 1 features (one more if that is odd)."""
    rng = np.random.default_rng(0)
    found = {}
    for order in range(1, HIGHEST + 1):
        count = (order + 2) // 2
        means, squares = [], []
        for _ in range(DRAWS):
            phases = np.outer(nodes, rng.standard_normal(count) * math.sqrt(2 * RHO / (1 - RHO**2)))
            kept = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(count)
            errors = exact - kept @ kept.T
            means.append(weights @ np.abs(errors) @ weights)
            squares.append(weights @ errors**2 @ weights)
        found[order] = (float(np.mean(means)), math.sqrt(float(np.mean(squares))))
    return found


def draw_picture(rows: np.ndarray, path: Path) -> None:
    """Both errors over the order."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axis = figure.subplots()
    axis.semilogy(rows[:, 0], rows[:, 3], "s-", color="tab:orange", label="random Fourier features")
    axis.semilogy(rows[:, 0], rows[:, 4], ":", color="tab:orange", label="their floor, 1 / (8 C)")
    axis.semilogy(rows[:, 0], rows[:, 1], "o-", color="tab:blue", label="Hermite features")
    axis.semilogy(rows[:, 0], rows[:, 2], ":", color="tab:blue", label="their bound, eq. 17")
    axis.set(
        xlabel="order C (number of features less one)",
        ylabel="mean error of the kernel",
        title="A Gaussian kernel in C + 1 features (rho = 1/3, standard normal points)",
    )
    axis.set_xticks(range(2, HIGHEST + 1, 2))
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
