"""Four Gaussians in 50 dimensions. The paper's code uses these data, not MNIST, for the row "MNIST" of its table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper.datasets._data import Generated

_DIMENSIONS = 50
_VARIANCES = np.linspace(0.2, 2.0, 4)


def _make(n_samples: int, rng: np.random.RandomState) -> tuple[NDArray[Any], NDArray[Any]]:
    groups = len(_VARIANCES)
    sizes = [n_samples // groups + (c < n_samples % groups) for c in range(groups)]
    parts = []
    for variance, size in zip(_VARIANCES, sizes, strict=True):
        centre = 5 * rng.randn(_DIMENSIONS)
        parts.append(rng.multivariate_normal(centre, variance * np.eye(_DIMENSIONS), size=size))
    order = rng.permutation(n_samples)
    return np.vstack(parts)[order], np.repeat(np.arange(groups), sizes)[order]


DATASET = Generated(
    make=_make,
    n_features=_DIMENSIONS,
    description="Four Gaussians of equal size, with variance 0.2, 0.8, 1.4 or 2 and centres 5 N(0, I); y is the group.",
    source="The code of the DR-SNE paper, where these data are called MNIST.",
)
