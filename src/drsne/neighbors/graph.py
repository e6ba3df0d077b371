"""The nearest neighbours of every row, as a pair of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class KnnGraph(NamedTuple):
    """The ``k`` nearest neighbours of every row, nearest first; ties are sorted by index."""

    indices: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)

    def first(self, k: int) -> KnnGraph:
        """Return only the ``k`` nearest neighbours."""
        return KnnGraph(self.indices[:, :k], self.distances[:, :k])


def looks_like_similarities(X: sp.csr_matrix) -> bool:
    """Return whether a sparse graph has the form of similarities.

    This is the case if no value is above 1 and the largest value of nearly every row is exactly 1, as in graphs of
    connectivities. Rows of equal values are not counted, because the neighbours on a lattice all have the same
    distance.
    """
    if not X.nnz or X.data.max() > 1.0 + 1e-6 or X.data.min() < 0.0:
        return False
    filled = np.flatnonzero(np.diff(X.indptr))
    largest, smallest = (extreme.reduceat(X.data, X.indptr[filled]) for extreme in (np.maximum, np.minimum))
    differ = smallest < largest
    return bool(differ.mean() > 0.5 and (np.abs(largest[differ] - 1.0) < 1e-6).mean() > 0.9)
