r"""Public encoders for DP-MEPF, and CIFAR-10 at a size that a CPU trains on.

    python benchmarks/public_encoders.py --data DIR --output FOLDER [--sets letters photos colours]

DIR/public holds notmnist_10k.npz, omniglot_small.npz, cifar10_labels.npz and the sheets cifar10_train_1.webp ...
cifar10_test.webp (10,000 images of 32 x 32 each, 20 in a row). FOLDER gets

  letters   an encoder that saw notMNIST (letters A to J) and Omniglot (characters of 8 alphabets): no digits
  photos    an encoder that saw 30,000 training images of CIFAR-10, in grey and at 28 x 28: no clothes
  colours   an encoder that saw the 10,000 test images of CIFAR-10 at 16 x 16, and cifar10_16.npz with other images
            of CIFAR-10 at that size: x_train, y_train (25,000) and x_test, y_test (5,000), all from its training part

Encoders are made by `understudy encoder train`. Then, for instance,

    python benchmarks/image_prediction.py --sets mnist --methods dp-mepf --epsilons 10 1 \\
        --models "logistic regression" mlp --most-rows 60000 --options --encoder FOLDER/letters
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from command_line import COMMAND, add_data_argument

PER_ROW, SIDE = 20, 32
TRAINED, HELD_OUT = 25_000, 5_000
TOLD = {
    "letters": "notMNIST letters A to J and Omniglot characters",
    "photos": "CIFAR-10 training images in grey, 28 x 28",
    "colours": "CIFAR-10 test images, 16 x 16",
}
Pair = tuple[np.ndarray, np.ndarray]


def main() -> None:
    """Make what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sets", nargs="+", default=list(TOLD), choices=list(TOLD))
    parser.add_argument("--steps", type=int, default=1200)
    arguments = parser.parse_args()
    arguments.output.mkdir(exist_ok=True)
    for name in arguments.sets:
        sets = public_sets(name, arguments.data / "public", arguments.output)
        train(name, sets, arguments.output / name, arguments.steps)


def public_sets(name: str, public: Path, output: Path) -> list[Pair]:
    """The image sets that an encoder learns from."""
    if name == "letters":
        with np.load(public / "notmnist_10k.npz") as archive:
            letters = archive["x"], archive["y"]
        with np.load(public / "omniglot_small.npz") as archive:
            return [letters, (archive["x28"], archive["y"])]
    with np.load(public / "cifar10_labels.npz") as archive:
        train_labels, test_labels = archive["y_train"], archive["y_test"]
    sheets = [public / f"cifar10_train_{number}.webp" for number in (1, 2, 3)]
    images = np.concatenate([photographs(sheet) for sheet in sheets])
    labels = train_labels[: len(images)]
    if name == "photos":
        return [(resized(images, 28, grey=True), labels)]
    small = resized(images, 16)
    parts = {"train": slice(0, TRAINED), "test": slice(TRAINED, TRAINED + HELD_OUT)}
    arrays = {f"x_{part}": small[span] for part, span in parts.items()}
    arrays |= {f"y_{part}": labels[span] for part, span in parts.items()}
    np.savez(output / "cifar10_16.npz", **arrays)
    return [(resized(photographs(public / "cifar10_test.webp"), 16), test_labels)]


def photographs(sheet: Path) -> np.ndarray:
    """The images of a sheet.  # (10,000, 32, 32, 3)"""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    with Image.open(sheet) as picture:
        pixels = np.asarray(picture)
    rows = len(pixels) // SIDE
    tiles = pixels.reshape(rows, SIDE, PER_ROW, SIDE, 3).transpose(0, 2, 1, 3, 4)
    return tiles.reshape(rows * PER_ROW, SIDE, SIDE, 3)


def resized(images: np.ndarray, side: int, *, grey: bool = False) -> np.ndarray:
    """Images at another size."""
    from PIL import Image

    pictures = (Image.fromarray(image) for image in images)
    small = (
        (picture.convert("L") if grey else picture).resize((side, side), Image.Resampling.BOX) for picture in pictures
    )
    return np.stack([np.asarray(picture) for picture in small])


def train(name: str, sets: list[Pair], directory: Path, steps: int) -> None:
    """An encoder of some image sets, by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"set{number}.npz" for number in range(len(sets))]
        for file, (images, labels) in zip(files, sets, strict=True):
            np.savez(file, x=images, y=labels)
        mirrored = [] if name == "letters" else ["--mirrored"]
        subprocess.run(
            [
                COMMAND,
                "encoder",
                "train",
                *files,
                "-o",
                directory,
                "--told",
                TOLD[name],
                "--steps",
                str(steps),
                *mirrored,
            ],
            check=True,
        )


if __name__ == "__main__":
    main()
