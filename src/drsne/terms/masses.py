"""Statistics of rows with masses. A row of mass m counts as m rows.

All functions take ``masses`` (n,) or None, which stands for masses of 1 and leaves the results of NumPy unchanged.
Values and masses are NumPy arrays, or tensors on a device.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.arrays import along_rows, namespace
from drsne.neighbors.graph import KnnGraph

Array = NDArray[np.float64]
_BITS = 60  # number of bits of a sum of masses of tensors


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
    if not isinstance(values, np.ndarray):
        return _quantiles_of_tensors(values, levels, masses)
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(masses[order])
    at = np.asarray(levels) * max(float(ends[-1]) - 1.0, 0.0)
    below, above = (
        values[order][np.minimum(np.searchsorted(ends, place, side="right"), len(values) - 1)]
        for place in (np.floor(at), np.ceil(at))
    )
    return np.asarray(below + (at - np.floor(at)) * (above - below))


def _quantiles_of_tensors(values: Any, levels: tuple[float, ...], masses: Any) -> Array:
    """Return the same for tensors.

    Masses are added as integers, because cumulative sums of real numbers on a GPU are not the same in every run. The
    unit is a power of two, so masses that are integers are exact.
    """
    xp, total = namespace(values), float(masses.sum())
    unit = 2.0 ** (_BITS - math.ceil(math.log2(total)))
    ordered, order = xp.sort(values, stable=True)
    ends = xp.cumsum(xp.round(masses[order] * unit).to(xp.int64), dim=0)
    at = np.asarray(levels) * max(total - 1.0, 0.0)
    places = [[int(place * unit) for place in found] for found in (np.floor(at), np.ceil(at))]
    columns = xp.searchsorted(ends, xp.as_tensor(places, device=values.device), right=True)
    below, above = ordered[columns.clamp(max=len(values) - 1)].cpu().numpy()
    return np.asarray(below + (at - np.floor(at)) * (above - below))


def slots(graph: KnnGraph, masses: Array | None, k: int) -> KnnGraph:
    """Return the k nearest neighbours of each row, where a neighbour of mass m is listed m times.

    The neighbours in ``graph`` are in ascending order of distance. Masses that are not integers are rounded to whole
    entries. If the neighbours of a row have less mass than k, they share all entries in proportion to their masses.
    """
    if masses is None:
        return graph.first(k)
    columns = slot_columns(graph.indices, masses, k)
    return KnnGraph(along_rows(graph.indices, columns), along_rows(graph.distances, columns))


def slot_columns(indices: Any, masses: Any, k: int) -> Any:
    """Return the columns (n, k) of a table of neighbours that :func:`slots` lists."""
    n, listed = indices.shape
    if not isinstance(indices, np.ndarray):
        xp = namespace(indices)
        ends = xp.cumsum(masses[indices.to(xp.int64)], dim=1)
        entries = xp.arange(k, dtype=ends.dtype, device=ends.device) + 0.5
        at = entries * (ends[:, -1:] / k).clamp(max=1.0)
        return xp.searchsorted(ends, at, right=True).clamp(max=listed - 1)
    ends = np.cumsum(masses[indices], axis=1)
    at = (np.arange(k) + 0.5) * np.minimum(1.0, ends[:, -1:] / k)
    columns = np.empty((n, k), np.intp)
    for entry in range(k):  # each row is searched on its own, so that it does not depend on the other rows
        columns[:, entry] = (ends <= at[:, entry : entry + 1]).sum(axis=1)
    return np.minimum(columns, listed - 1, out=columns)
