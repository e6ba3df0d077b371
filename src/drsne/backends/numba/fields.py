"""A tree of cells over the points of a map with scales and masses, from which the repulsion at any place is read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.cells import scaled_structure
from drsne.backends.numba.kernels import placement as kernels
from drsne.backends.numba.kernels.adaptive_tree import N_SUMMED
from drsne.backends.numba.threads import Workers

Array = NDArray[np.float64]
_LEAF, _THETA, _SPREADING = 24, 0.45, 0.15


def field_tree(
    fixed: tuple[Array, Array, Array, Array], workers: Workers, theta: float | None = None
) -> tuple[Any, ...]:
    """Return the tree of points, given as (places, places divided by the stretch, scales, masses).

    ``theta`` is the accuracy of the tree, 0 for sums over all pairs, or None for the usual accuracy.

    Maps with more than three dimensions have no tree: a tree of one point is returned, which is not used.
    """
    _, shrunk, scales, masses = fixed
    if shrunk.shape[1] > 3:
        shrunk, scales, masses = np.zeros((1, 1)), np.ones(1), np.ones(1)
    n, d = shrunk.shape
    at = scaled_structure(shrunk, scales, workers, _LEAF)
    coordinates = np.zeros((3, n))
    coordinates[:d] = shrunk[at.order].T
    scale, mass, summed = scales[at.order], masses[at.order], np.empty((N_SUMMED, len(at.nodes[0])))
    workers.run(kernels.summaries, len(at.nodes[0]), coordinates, scale, mass, *at.nodes[:2], summed)
    return coordinates, scale, mass, at.nodes, summed, ((_THETA if theta is None else theta) ** 2, _SPREADING)
