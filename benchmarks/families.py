"""Data with known groups, and the count of the pieces into which a map breaks them.

"three" and "six" are the families of Gaussian groups on which the adaptive kernel was first tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

Array = np.ndarray


def gaussians(sizes: Any, deviations: Any, dimensions: int, apart: float, seed: int) -> tuple[Array, Array]:
    """Return Gaussian groups around random centres, with the group of every point."""
    rng = np.random.RandomState(seed)
    centres = rng.normal(size=(len(sizes), dimensions))
    centres *= apart / np.linalg.norm(centres, axis=1, keepdims=True)
    parts = [c + s * rng.normal(size=(n, dimensions)) for n, s, c in zip(sizes, deviations, centres, strict=True)]
    return np.vstack(parts), np.repeat(np.arange(len(sizes)), sizes)


def three(seed: int) -> tuple[Array, Array]:
    """Return three Gaussians of different sizes and widths in eight dimensions."""
    return gaussians((800, 450, 250), (0.3, 1.0, 2.0), 8, 12.0, seed)


def six(seed: int) -> tuple[Array, Array]:
    """Return six Gaussians of equal sizes, whose widths span a factor of 30, in five dimensions."""
    return gaussians((500,) * 6, np.geomspace(0.1, 3, 6), 5, 25.0, seed)


def three_and_14(seed: int, apart: float = 12.0) -> tuple[Array, Array]:
    """Return "three" and 14 points more, three times as wide as its sparsest group, ``apart`` from the origin."""
    X, groups = three(seed)
    rng = np.random.RandomState(1000 + seed)
    centre = rng.normal(size=8)
    few = apart * centre / np.linalg.norm(centre) + 6.0 * rng.normal(size=(14, 8))
    return np.vstack([X, few]), np.append(groups, np.full(14, 3))


def twenty(seed: int) -> tuple[Array, Array]:
    """Return twenty Gaussians of random sizes, widths and shapes in ten dimensions."""
    rng = np.random.RandomState(seed)
    sizes, widths = rng.randint(30, 300, 20), np.exp(rng.uniform(np.log(0.2), np.log(2.0), 20))
    parts = [
        10 * rng.normal(size=10) + width * rng.normal(size=(size, 10)) * np.exp(0.4 * rng.normal(size=10))
        for size, width in zip(sizes, widths, strict=True)
    ]
    return np.vstack(parts), np.repeat(np.arange(20), sizes)


def rings(seed: int) -> tuple[Array, Array]:
    """Return two interlocked rings in three dimensions, one ten times as densely filled as the other."""
    rng = np.random.RandomState(seed)
    parts = []
    for n, turned in ((2000, False), (200, True)):
        t = rng.uniform(0, 2 * np.pi, n)
        circle = np.c_[np.cos(t), np.sin(t), np.zeros(n)]
        parts.append((circle[:, [0, 2, 1]] + [1, 0, 0] if turned else circle) + 0.03 * rng.normal(size=(n, 3)))
    return np.vstack(parts), np.repeat([0, 1], [2000, 200])


def swiss(seed: int) -> tuple[Array, None]:
    """Return a Swiss roll that is denser inside."""
    rng = np.random.RandomState(seed)
    t = 1.5 * np.pi * (1 + 2 * rng.beta(1, 2, 3000))
    return np.c_[t * np.cos(t), 21 * rng.rand(3000), t * np.sin(t)], None


MADE: dict[str, Callable[[int], tuple[Array, Array | None]]] = {
    "three": three,
    "six": six,
    "three-and-14": three_and_14,
    "three-and-14-apart": lambda seed: three_and_14(seed, 80.0),
    "twenty": twenty,
    "rings": rings,
    "swiss": swiss,
}


def pieces(Y: Array, groups: Array, cut: float = 4.0) -> list[int]:
    """Return the pieces of each group: single linkage at ``cut`` median nearest-neighbour distances, without crumbs."""
    counts = []
    for group in np.unique(groups):
        A = Y[groups == group]
        step = np.median(NearestNeighbors(n_neighbors=2).fit(A).kneighbors(A)[0][:, 1])
        graph = NearestNeighbors(radius=cut * step).fit(A).radius_neighbors_graph(A)
        sizes = np.bincount(connected_components(graph, directed=False)[1])
        counts.append(int((sizes >= max(3, 0.01 * len(A))).sum()))
    return counts
