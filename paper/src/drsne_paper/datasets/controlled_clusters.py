"""The paper's Controlled Clusters: three Gaussians in three dimensions, with standard deviations from 0.2 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper.datasets._data import Generated

_CENTRES = np.array([(-6.0, 0.0, 0.0), (0.0, 6.0, 0.0), (6.0, 0.0, 0.0)])
_SIGMAS = (0.2, 0.5, 1.0)


def _make(n_samples: int, rng: np.random.RandomState) -> tuple[NDArray[Any], NDArray[Any]]:
    sizes = [n_samples // 3 + (c < n_samples % 3) for c in range(3)]
    parts = zip(_CENTRES, _SIGMAS, sizes, strict=True)
    return np.vstack([centre + sigma * rng.randn(m, 3) for centre, sigma, m in parts]), np.repeat(np.arange(3), sizes)


DATASET = Generated(
    make=_make,
    n_features=3,
    description="Gaussians of equal size with standard deviation 0.2, 0.5 and 1, in this order; y is the cluster.",
    source="The text of the DR-SNE paper, which does not state the seed or how 5000 points are divided by three.",
)
