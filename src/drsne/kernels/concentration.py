"""Neighbourhood radii of a map and the forces through them (docs/theory.md, eqs. 15 and 21).

Lengths are ``l_ij = sqrt(|y_i - y_j|^2 + floor)``; ``neighbors`` is ``(n, k)``.
"""

from __future__ import annotations

import numpy as np

from drsne.kernels._compile import kernel


@kernel
def radii(Y, neighbors, floor, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """``out_i`` = mean over j in N(i) of l_ij."""
    d = Y.shape[1]
    k = neighbors.shape[1]
    for i in range(lo, hi):
        total = 0.0
        for m in range(k):
            j = neighbors[i, m]
            s = floor
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) ** 2
            total += np.sqrt(s)
        out[i] = total / k


@kernel
def radius_forces(Y, neighbors, indptr, indices, slope, floor, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """``forces_i = sum_l slope_l dr_l/dy_i``: over N(i), and over the points that list i (the transpose).

    Coincident points (l = 0) have no direction and exert no force.
    """
    d = Y.shape[1]
    k = neighbors.shape[1]
    for i in range(lo, hi):
        for c in range(d):
            forces[i, c] = 0.0
        for m in range(k):
            j = neighbors[i, m]
            s = floor
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) ** 2
            if s > 0.0:
                g = slope[i] / (k * np.sqrt(s))
                for c in range(d):
                    forces[i, c] += g * (Y[i, c] - Y[j, c])
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            s = floor
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) ** 2
            if s > 0.0:
                g = slope[j] / (k * np.sqrt(s))
                for c in range(d):
                    forces[i, c] += g * (Y[i, c] - Y[j, c])
