"""Image sets side by side, a panel each: the figure of docs/images.md.

    python benchmarks/image_grids.py OUT.png "real=mnist.npz" "DP-MERF=merf.npz,merf-0.2.npz" ...

A panel is NAME=FILE, or NAME=FILE,FILE,... for one below the other, as `--rows` names them. Files hold x and y (or
x_train and y_train); the first `--per-class` images of every class are drawn. A file that is absent leaves a gap.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np


def main() -> None:
    """Draw the panels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("panels", nargs="+", help="NAME=FILE[,FILE...]")
    parser.add_argument("--rows", nargs="+", default=["epsilon 1", "epsilon 0.2"])
    parser.add_argument("--per-class", type=int, default=6)
    arguments = parser.parse_args()
    panels = [panel.partition("=")[::2] for panel in arguments.panels]
    figure, axes = plt.subplots(
        len(arguments.rows), len(panels), squeeze=False, figsize=(2.1 * len(panels), 3.3 * len(arguments.rows))
    )
    for column, (name, files) in enumerate(panels):
        paths = [Path(file) for file in files.split(",")]
        for row, words in enumerate(arguments.rows):
            axis = axes[row, column]
            axis.set_axis_off()
            path = paths[min(row, len(paths) - 1)]
            if row >= len(paths) or not path.is_file():
                continue
            axis.imshow(grid(path, arguments.per_class), cmap="gray_r", vmin=0, vmax=255)
            axis.set_title(name if len(paths) == 1 else f"{name}, {words}", fontsize=8)
    figure.tight_layout(pad=0.4)
    figure.savefig(arguments.output, dpi=130)


def grid(path: Path, per_class: int) -> np.ndarray:
    """The first images of every class, a row each."""
    with np.load(path) as archive:
        suffix = "" if "x" in archive.files else "_train"
        images, labels = archive[f"x{suffix}"], archive[f"y{suffix}"]
    rows = [np.concatenate(list(images[labels == label][:per_class]), axis=1) for label in np.unique(labels)]
    return np.concatenate(rows, axis=0)


if __name__ == "__main__":
    main()
