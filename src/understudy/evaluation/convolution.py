"""A small convolutional network: the thirteenth classifier, for images, and a measure of what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, one_thread
from understudy.generators.image_architectures import initialise

IMAGES_AT_ONCE = 512  # in a batch of prediction, which keeps memory below 100 MB


@dataclass
class SmallNetwork:
    """Two convolutions and a hidden layer, trained by Adam on a fixed number of batches.

    It is used as scikit-learn's classifiers are. A row of inputs is an image of ``height``, ``width`` and
    ``channels``; what the ``hidden`` units of the last layer make of it are its ``features``.
    """

    height: int
    width: int
    channels: int = 1
    hidden: int = 64
    num_batches: int = 600
    batch_size: int = 64
    seed: int = 0

    def __sklearn_clone__(self) -> SmallNetwork:
        """The same settings, and nothing learnt."""
        return replace(self)

    def fit(self, inputs: Floats, target: npt.NDArray[Any]) -> SmallNetwork:
        """Learn classes from rows of pixels."""
        self.classes_, codes = np.unique(target, return_inverse=True)
        rng, rows = np.random.default_rng(self.seed), np.asarray(inputs, dtype=np.float32)
        with one_thread() as torch:
            self.body_, self.head_ = self._layers(torch, len(self.classes_))
            parameters = [*self.body_.parameters(), *self.head_.parameters()]
            adam, labels = torch.optim.Adam(parameters, lr=2e-3), torch.from_numpy(codes)
            for _ in range(self.num_batches):
                chosen = rng.integers(0, len(rows), self.batch_size)
                guesses = self.head_(self.body_(self._images(torch, rows[chosen])))
                loss = torch.nn.functional.cross_entropy(guesses, labels[torch.from_numpy(chosen)])
                adam.zero_grad()
                loss.backward()
                adam.step()
        return self

    def features(self, inputs: Floats) -> Floats:
        """What the last hidden layer makes of images.  # (num_images, hidden)"""
        return self._run(inputs, self.body_)

    def predict_proba(self, inputs: Floats) -> Floats:
        """Probabilities of the classes.  # (num_images, num_classes)"""
        return self._run(inputs, lambda images: self.head_(self.body_(images)).softmax(dim=1))

    def predict(self, inputs: Floats) -> npt.NDArray[Any]:
        """The likeliest classes."""
        return np.asarray(self.classes_[self.predict_proba(inputs).argmax(axis=1)])

    def _run(self, inputs: Floats, layers: Callable[[Any], Any]) -> Floats:
        rows = np.asarray(inputs, dtype=np.float32)
        with one_thread() as torch, torch.no_grad():
            parts = [
                layers(self._images(torch, rows[start : start + IMAGES_AT_ONCE])).double().numpy()
                for start in range(0, len(rows), IMAGES_AT_ONCE)
            ]
        return np.concatenate(parts)

    def _images(self, torch: Any, rows: npt.NDArray[np.float32]) -> Any:
        shaped = rows.reshape(len(rows), self.height, self.width, self.channels)
        return torch.from_numpy(np.ascontiguousarray(shaped.transpose(0, 3, 1, 2)))

    def _layers(self, torch: Any, num_classes: int) -> tuple[Any, Any]:
        nn = torch.nn
        with torch.random.fork_rng(devices=[]):
            body = nn.Sequential(
                nn.Conv2d(self.channels, 16, 5, stride=2, padding=2),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, stride=2, padding=1),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(4),
                nn.Flatten(),
                nn.Linear(32 * 16, self.hidden),
                nn.ReLU(),
            )
            head = nn.Linear(self.hidden, num_classes)
        initialise(torch, nn.Sequential(body, head), self.seed)
        return body, head
