"""The repulsion as den-SNE's program sums it, to see what its coarse tree does to its maps.

A tree of square cells, each with its mass and centre of mass; a cell stands for its points where half of its side is
below theta times the distance of its centre of mass, at theta = 0.5 where its side is below that distance. The cell of
the point itself can qualify, and then repels it too. Sequential and slow; no part of the package. Written from the
description of Barnes-Hut t-SNE (van der Maaten, 2014), as in github hhcho/densvis at d65bb31, folder densne.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def build(Y, centre, half, child, mass, point, com):  # type: ignore[no-untyped-def]
    """Points into cells of one point each; points that coincide share one. Returns the number of cells."""
    n = Y.shape[0]
    for c in range(2):
        mean = Y[:, c].mean()
        centre[0, c] = mean
        half[0, c] = max(Y[:, c].max() - mean, mean - Y[:, c].min()) + 1e-5
    child[0] = -1
    mass[0], point[0] = 0, -1
    count = 1
    for i in range(n):
        v = 0
        while True:
            mass[v] += 1
            for c in range(2):
                com[v, c] += (Y[i, c] - com[v, c]) / mass[v]
            if child[v] < 0:
                if point[v] < 0:
                    point[v] = i
                    break
                j = point[v]
                if Y[i, 0] == Y[j, 0] and Y[i, 1] == Y[j, 1]:
                    break
                # Four cells for the points that were here so far, all of them in one place.
                child[v] = count
                for q in range(4):
                    w = count + q
                    child[w], mass[w], point[w] = -1, 0, -1
                    for c in range(2):
                        half[w, c] = half[v, c] / 2
                        centre[w, c] = centre[v, c] + (half[w, c] if (q >> c) & 1 else -half[w, c])
                        com[w, c] = 0.0
                w = count + (Y[j, 0] > centre[v, 0]) + 2 * (Y[j, 1] > centre[v, 1])
                mass[w], point[w] = mass[v] - 1, j
                com[w, 0], com[w, 1] = Y[j, 0], Y[j, 1]
                point[v] = -1
                count += 4
            v = child[v] + (Y[i, 0] > centre[v, 0]) + 2 * (Y[i, 1] > centre[v, 1])
    return count


@njit(cache=True)
def sums(Y, half, child, mass, point, com, theta, forces):  # type: ignore[no-untyped-def]
    """Forces on all points; returns the partition sum."""
    total = 0.0
    stack = np.empty(4096, np.int64)
    for i in range(Y.shape[0]):
        depth, stack[0] = 1, 0
        fx, fy = 0.0, 0.0
        while depth > 0:
            depth -= 1
            v = stack[depth]
            if mass[v] == 0 or (child[v] < 0 and point[v] == i):
                continue
            x, y = Y[i, 0] - com[v, 0], Y[i, 1] - com[v, 1]
            s = x * x + y * y
            if child[v] < 0 or max(half[v, 0], half[v, 1]) < theta * np.sqrt(s):
                w = 1.0 / (1.0 + s)
                total += mass[v] * w
                fx += mass[v] * w * w * x
                fy += mass[v] * w * w * y
            else:
                for q in range(4):
                    stack[depth] = child[v] + q
                    depth += 1
        forces[i, 0], forces[i, 1] = fx, fy
    return total


class ProgramTree:
    """An engine (:mod:`drsne.engines`) for 2-D maps."""

    def __init__(self, theta: float = 0.5) -> None:
        self._theta = theta

    def repulsion(self, Y: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        size, forces = 64 * len(Y), np.empty_like(Y)
        centre, half, com = (np.zeros((size, 2)) for _ in range(3))
        child, mass, point = (np.zeros(size, np.int64) for _ in range(3))
        count = build(Y, centre, half, child, mass, point, com)
        assert count + 4 < size
        return sums(Y, half, child, mass, point, com, self._theta, forces), forces
