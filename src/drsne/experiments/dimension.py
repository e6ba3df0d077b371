"""The local dimension of data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def dimension(distances: NDArray[Any]) -> float:
    """Estimate the dimension by maximum likelihood (Levina and Bickel, 2004) from sorted distances to neighbours."""
    distances = distances[distances[:, 0] > 0]
    inverse = np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1)
    return float(1.0 / inverse[inverse > 0].mean())
