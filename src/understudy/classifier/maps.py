"""Locally linear maps: several linear maps per class, weighted by how strongly each answers.

    g_m^k(x) = <w_m^k, P_m x>            the answer of map m of class k
    s_m^k    = softmax over m of beta g  how much it counts for this input
    f_k(x)   = sum_m s_m^k g_m^k(x)      the score of the class (Harder, Bauer & Park 2020, Eq. 3)

P_m is a public random projection that all classes share, or nothing. One map per class is logistic
regression. Inputs have a constant coordinate, so maps have no bias of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import softmax

from understudy.arrays import Floats, Integers

FIRST_DEVIATION = 0.3
"""Of the first weights, if a class has several maps."""

PROJECTION_ROOM = 1.25
"""Projections are shortened by this, because a random one makes some inputs longer."""


@dataclass(frozen=True)
class MapShape:
    """Everything about maps that is decided before a row is read.

    Args:
        num_features: coordinates of an input.
        num_classes: values of the label.
        num_maps: maps per class, M.
        inverse_temperature: beta; a large one lets a single map decide.
        projected: coordinates after the random projection of each map; None leaves inputs as they are.
        seed: public seed of projections and first weights.
    """

    num_features: int
    num_classes: int
    num_maps: int = 1
    inverse_temperature: float = 1.0
    projected: int | None = None
    seed: int = 0

    @property
    def map_dim(self) -> int:
        """Weights of a map."""
        return self.num_features if self.projected is None else self.projected

    @cached_property
    def projections(self) -> Floats | None:
        """A projection for each map, which leaves most inputs inside the unit ball.  # (maps, features, map_dim)"""
        if self.projected is None:
            return None
        rng = np.random.default_rng([self.seed, 1])
        shape = (self.num_maps, self.num_features, self.projected)
        return rng.normal(0.0, 1 / (PROJECTION_ROOM * np.sqrt(self.projected)), shape)

    def first_weights(self) -> Floats:
        """Where a descent starts: small and different, for equal maps would stay equal.  # (maps, classes, map_dim)"""
        shape = (self.num_maps, self.num_classes, self.map_dim)
        if self.num_maps == 1:
            return np.zeros(shape)
        rng = np.random.default_rng([self.seed, 2])
        return rng.normal(0.0, FIRST_DEVIATION, shape)


@dataclass(frozen=True)
class LocallyLinearMaps:
    """Trained maps."""

    shape: MapShape
    weights: Floats  # (maps, classes, map_dim)

    def answers(self, inputs: Floats) -> Floats:
        """What every map says to every input.  # (rows, maps, classes)"""
        projections = self.shape.projections
        seen = inputs[None] if projections is None else np.matmul(inputs[None], projections)  # one for all, or by map
        return np.moveaxis(np.matmul(seen, np.swapaxes(self.weights, 1, 2)), 0, 1)

    def scores(self, inputs: Floats) -> Floats:
        """Scores of the classes.  # (rows, classes)"""
        return class_scores(self.answers(inputs), self.shape.inverse_temperature)[0]

    def probabilities(self, inputs: Floats) -> Floats:
        """Chances of the classes, by a softmax of scores.  # (rows, classes)"""
        return np.asarray(softmax(self.scores(inputs), axis=1))

    def importances(self, inputs: Floats) -> Floats:
        """How much each map counts in its class.  # (rows, maps, classes)"""
        return class_scores(self.answers(inputs), self.shape.inverse_temperature)[1]

    @property
    def filters(self) -> Floats:
        """Weights of the maps on the inputs themselves.  # (maps, classes, features)"""
        if self.shape.projections is None:
            return self.weights
        return np.asarray(np.matmul(self.weights, np.swapaxes(self.shape.projections, 1, 2)))


def class_scores(answers: Floats, inverse_temperature: float) -> tuple[Floats, Floats]:
    """Scores of classes, and the importance of maps.  # (rows, classes), (rows, maps, classes)"""
    importances = softmax(inverse_temperature * answers, axis=1)
    return (importances * answers).sum(axis=1), importances


def answer_gradients(answers: Floats, labels: Integers, inverse_temperature: float) -> Floats:
    """Derivative of each row's cross-entropy by each map's answer.  # (rows, maps, classes)

    The derivative by the weights of a map is this times what the map sees, so that its norm is
    known without forming it.
    """
    scores, importances = class_scores(answers, inverse_temperature)
    errors: Floats = softmax(scores, axis=1)
    errors[np.arange(len(labels)), labels] -= 1
    share = importances * (1 + inverse_temperature * (answers - scores[:, None, :]))
    return share * errors[:, None, :]
