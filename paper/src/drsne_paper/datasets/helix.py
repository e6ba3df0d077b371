"""The paper's Concentration-Gradient Helix: a curve in three dimensions that is denser at one end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper.datasets._data import Generated

_DECAY = 3.0  # the parameter a of the density a exp(-a u) / (1 - exp(-a)) of the position u in [0, 1]
_TURNS, _PITCH, _NOISE = 4, 0.35, 0.025
_INTERVALS = 10


def _make(n_samples: int, rng: np.random.RandomState) -> tuple[NDArray[Any], NDArray[Any]]:
    v = rng.uniform(size=n_samples)
    u = -np.log(1 - v * (1 - np.exp(-_DECAY))) / _DECAY
    t = 2 * np.pi * _TURNS * u
    X = np.column_stack([np.cos(t), np.sin(t), _PITCH * t]) + _NOISE * rng.randn(n_samples, 3)
    return X, np.minimum(np.floor(_INTERVALS * u), _INTERVALS - 1).astype(np.int64)


DATASET = Generated(
    make=_make,
    n_features=3,
    description="A noisy helix with four turns, 20 times as dense at one end; y is the position in tenths, 0 to 9.",
    source="The text of the DR-SNE paper, which does not state a seed or labels.",
)
