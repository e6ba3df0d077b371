"""The paper's Spiral: a spiral of uneven density in 50 dimensions. Its sparsest points are the anomalies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper.datasets._data import Generated

_DIMENSIONS = 50
_NOISE = 0.05
_RARE = 5  # percentage of anomalies


def _make(n_samples: int, rng: np.random.RandomState) -> tuple[NDArray[Any], NDArray[Any]]:
    t = np.linspace(0, 4 * np.pi, n_samples)
    density = 1 + 0.8 * np.sin(3 * t)
    rows = rng.choice(n_samples, n_samples, replace=True, p=density / density.sum())
    t, density = t[rows], density[rows]
    curve = np.column_stack([t * np.cos(t), t * np.sin(t)]) + _NOISE * rng.randn(n_samples, 2)
    rare = density <= np.percentile(density, _RARE)
    return curve @ rng.randn(2, _DIMENSIONS), rare.astype(np.int64)


DATASET = Generated(
    make=_make,
    n_features=_DIMENSIONS,
    description="A noisy spiral of uneven density, mapped linearly to 50 dimensions; y is 1 for the sparsest 5 %.",
    source="The code of the DR-SNE paper's anomaly study.",
)
