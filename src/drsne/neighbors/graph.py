"""The nearest neighbours of every row, as a pair of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class KnnGraph(NamedTuple):
    """The ``k`` nearest neighbours of every row, nearest first; ties are sorted by index."""

    indices: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)

    def first(self, k: int) -> KnnGraph:
        """Return only the ``k`` nearest neighbours."""
        return KnnGraph(self.indices[:, :k], self.distances[:, :k])
