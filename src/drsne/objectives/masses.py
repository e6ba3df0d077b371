"""Statistics of rows with masses. A row of mass m counts as m rows.

All functions take ``masses`` (n,) or None, which stands for masses of 1 and leaves the results of NumPy unchanged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drsne.neighbors.graph import KnnGraph

Array = NDArray[np.float64]


def mean(values: Array, masses: Array | None) -> float:
    """Return the mean of ``values``."""
    return float(values.mean()) if masses is None else float((masses * values).sum() / masses.sum())


def std(values: Array, masses: Array | None) -> float:
    """Return the standard deviation of ``values``."""
    return float(values.std()) if masses is None else float(np.sqrt(mean((values - mean(values, masses)) ** 2, masses)))


def quantiles(values: Array, levels: tuple[float, ...], masses: Array | None) -> Array:
    """Return quantiles of ``values``, with the interpolation of NumPy."""
    if masses is None:
        return np.asarray(np.quantile(values, levels))
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(masses[order])
    at = np.asarray(levels) * max(float(ends[-1]) - 1.0, 0.0)
    below, above = (
        values[order][np.minimum(np.searchsorted(ends, place, side="right"), len(values) - 1)]
        for place in (np.floor(at), np.ceil(at))
    )
    return np.asarray(below + (at - np.floor(at)) * (above - below))


def slots(graph: KnnGraph, masses: Array | None, k: int) -> KnnGraph:
    """Return the k nearest neighbours of each row, where a neighbour of mass m is listed m times.

    The neighbours in ``graph`` are in ascending order of distance. Masses that are not integers are rounded to whole
    entries. If the neighbours of a row have less mass than k, they share all entries in proportion to their masses.
    """
    if masses is None:
        return graph.first(k)
    n, listed = graph.indices.shape
    ends = np.cumsum(masses[graph.indices], axis=1)
    at = (np.arange(k) + 0.5) * np.minimum(1.0, ends[:, -1:] / k)
    columns = np.empty((n, k), np.intp)
    for entry in range(k):  # each row is searched on its own, so that it does not depend on the other rows
        columns[:, entry] = (ends <= at[:, entry : entry + 1]).sum(axis=1)
    np.minimum(columns, listed - 1, out=columns)
    return KnnGraph(
        np.take_along_axis(graph.indices, columns, axis=1), np.take_along_axis(graph.distances, columns, axis=1)
    )
