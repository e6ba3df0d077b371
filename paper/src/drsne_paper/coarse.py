"""The engine "coarse": the Barnes-Hut tree of van der Maaten's and den-SNE's programs.

It is for 2-D maps. Cells have one point each, and no moments. Errors can be as large as several tenths of the forces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper._private import Kind, NumbaBackend, kernel, n_blocks, number

_CELLS = 64  # largest number of cells per point; points that such a tree cannot separate share a cell


class CoarseEngine:
    """The repulsion as den-SNE's and van der Maaten's programs sum it.

    A cell is treated as one point if half of its side is below ``theta`` times the distance to the mean of its points.
    This can even be the cell that contains the point itself. The point is then repelled by its own cell. Maps are
    slightly smaller than with the exact forces. "auto" never chooses this engine. The default ``theta`` is that of the
    programs; with 0, sums are exact except for points that coincide. Sums always have double precision.
    """

    OPTIONS = ("theta",)
    tolerance = (0.5, 0.2)
    adaptive = False

    def __init__(self, backend: NumbaBackend, *, precision: str = "single", theta: float = 0.5) -> None:
        self._workers = backend.workers
        self._theta = float(theta)

    @staticmethod
    def supports(n_components: int, kind: Kind) -> bool:
        """Return whether maps can have this number of dimensions: only two, with NumPy arrays."""
        return n_components == 2 and kind.numpy_arrays

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Raise an error for a negative theta."""
        if "theta" in options:
            number("engine_options['theta']", options["theta"], at_least=0)

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation, which is None: this engine has no state."""

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None, state: Any = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        if scales is not None:
            raise NotImplementedError("engine='coarse' does not support the adaptive kernel. Pass kernel='fixed'.")
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        n = len(Y)
        size, forces, partition = _CELLS * n + 1, np.empty((n, 2)), np.zeros(n_blocks(n))
        centre, half, com = (np.empty((size, 2)) for _ in range(3))
        child, mass, point = (np.empty(size, np.int64) for _ in range(3))
        _build(Y, centre, half, child, mass, point, com)
        self._workers.run(_sums, n, Y, half, child, mass, point, com, self._theta, 1.0 + smoothing, forces, partition)
        return float(partition.sum()), forces


@kernel
def _build(Y, centre, half, child, mass, point, com):  # type: ignore[no-untyped-def]
    """Insert points (n, 2) one by one into cells (m, ...), and return the number of cells.

    Points that coincide share a cell.
    """
    n, room = Y.shape[0], child.shape[0]
    for c in range(2):
        mean = Y[:, c].mean()
        centre[0, c] = mean
        half[0, c] = max(Y[:, c].max() - mean, mean - Y[:, c].min()) + 1e-5
        com[0, c] = 0.0
    child[0], mass[0], point[0] = -1, 0, -1
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
                if (Y[i, 0] == Y[j, 0] and Y[i, 1] == Y[j, 1]) or count + 4 > room:
                    break
                # Divide the cell. The points in it so far all have the same position.
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


@kernel
def _sums(Y, half, child, mass, point, com, theta, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the forces (n, 2) and the partial partition sums.

    A cell is treated as one point if half of its side is below ``theta`` times the distance.
    """
    total = 0.0
    stack = np.empty(4096, np.int64)
    for i in range(lo, hi):
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
                w = 1.0 / (base + s)
                total += mass[v] * w
                fx += mass[v] * w * w * x
                fy += mass[v] * w * w * y
            else:
                for q in range(4):
                    stack[depth] = child[v] + q
                    depth += 1
        forces[i, 0], forces[i, 1] = fx, fy
    partition[block] = total


ENGINE = CoarseEngine
