"""The nearest neighbours of every row as a pair of arrays, and how many of them a fit uses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks

Array = NDArray[np.float64]
_PER_PERPLEXITY = 3.0  # smallest ratio of neighbours to perplexity; at lower ratios, affinities are similar
_LIGHT = 0.05  # quantile of the masses that determines how many neighbours are searched for


class KnnGraph(NamedTuple):
    """The ``k`` nearest neighbours of every row, nearest first; ties are sorted by index."""

    indices: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)

    @classmethod
    def empty(cls, n: int, k: int) -> KnnGraph:
        """Return a graph that is not filled yet."""
        return cls(np.empty((n, k), np.int32), np.empty((n, k)))

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


def available(graph: sp.csr_matrix) -> int:
    """Return the smallest number of neighbours in any row of a sparse neighbour graph, without the row itself."""
    graph = sp.csr_matrix(graph)
    counts, every = np.diff(graph.indptr), np.arange(graph.shape[0])
    row = np.repeat(every, counts)
    own = np.bincount(row[row == graph.indices], minlength=len(every))
    return int((counts - own).min())


class Sizes(NamedTuple):
    """Perplexity and numbers of neighbours."""

    perplexity: float
    affinity_neighbors: int
    density_neighbors: int

    def searched(self, masses: Array | None, most: int) -> int:
        """Return how many neighbours are searched for. Light neighbours fill less than one entry of a list."""
        k = max(self.affinity_neighbors, self.density_neighbors)
        if masses is None:
            return k
        return min(most, math.ceil(k / min(1.0, float(np.quantile(masses, _LIGHT)))))


def adjusted(
    perplexity: float,
    density_neighbors: int,
    calibration: Any,
    X: Any,
    *,
    precomputed: bool = False,
    supplied: int | None = None,
    masses: Array | None = None,
    landmarks: bool = False,
) -> Sizes:
    """Return the perplexity and k, lowered with a warning if there are too few samples or ``supplied`` neighbours.

    A perplexity can be at most a third of the number of neighbours. If the perplexity were near that number, all
    affinities would be similar and the map would show nothing.
    """
    most = X.shape[0] - 1 if supplied is None else supplied
    if precomputed and sp.issparse(X):
        most = min(most, available(X))
        if most < 1:
            raise ValueError(
                "X must list at least one neighbour for every sample with metric='precomputed'; got samples without "
                "neighbours. Build the graph with more neighbours."
            )
    n_samples = X.shape[0]
    if masses is not None:  # a row of mass m counts as m rows
        n_samples = max(3, math.floor(masses.sum() - masses.max()) + 1)
        most = n_samples - 1 if most == X.shape[0] - 1 else most
    lowest, k = float(perplexity), int(density_neighbors)
    lowered = []
    if lowest > max(1.0, most / _PER_PERPLEXITY):
        lowest = max(1.0, most / _PER_PERPLEXITY)
        lowered.append(f"perplexity from {perplexity:g} to {lowest:.4g}")
    if k > most:
        k = most
        lowered.append(f"density_neighbors from {density_neighbors} to {k}")
    if lowered:
        needed = int(max(np.ceil(_PER_PERPLEXITY * perplexity), density_neighbors))
        why = _why_lowered(needed, X.shape[0], most, supplied, masses is not None, landmarks)
        checks.warn(f"Lowered {' and '.join(lowered)}, because {why}")
    return Sizes(lowest, min(most, calibration.n_neighbors(lowest, n_samples)), k)


def _why_lowered(needed: int, n_samples: int, most: int, supplied: int | None, weighted: bool, landmarks: bool) -> str:
    """Return the reason why there are too few neighbours, and what to do about it."""
    if landmarks or weighted:
        what = "weights of the other landmarks add" if landmarks else "sample_weight of the other rows adds"
        larger = "a larger n_landmarks" if landmarks else "larger weights"
        return f"the {what} up to only about {most}. Pass {larger}, or smaller values."
    if supplied is None and most == n_samples - 1:
        return f"X has only {n_samples} samples. Pass smaller values to avoid this warning."
    found = f"the graph has only {most} neighbours for each"
    if needed >= n_samples:
        return f"{found} of {n_samples} samples. Pass smaller values to avoid this warning."
    return (
        f"{found} sample. Build it with n_neighbors={needed + 1} (the sample itself included), or pass smaller values "
        "to avoid this warning."
    )
