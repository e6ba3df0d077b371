"""The KL term of a map over its stored pairs (docs/theory.md, eqs. 7 to 13)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.arrangement import Arrangement
from drsne.engines import Engine
from drsne.kernels import attraction as kernels
from drsne.parallel import Workers, n_blocks

Array = NDArray[np.float64]
_LEAST_PARTITION = np.finfo(np.float64).tiny  # a map so wide that no pair is left repels nothing


class Pairs(NamedTuple):
    """Pairs of a KL term: ``A = (P_s + P_s^T) / 2`` for the stored part P_s of P, its mass and sum of p log p."""

    indptr: NDArray[Any]  # (n + 1,)
    columns: NDArray[np.int32]  # (nnz,)
    A: NDArray[Any]  # (nnz,)
    mass: float
    entropy: float

    @classmethod
    def of(cls, P: sp.csr_matrix, smoothing: float) -> Pairs:
        """All of a symmetric ``P``, without a copy."""
        mass = float(P.data.sum(dtype=np.float64))
        return cls(P.indptr, P.indices, P.data, mass, _entropy(P.data, smoothing))

    @classmethod
    def directed(cls, P: sp.csr_matrix, neighbors: NDArray[np.int32], smoothing: float) -> Pairs:
        """Only the pairs (i, j) with j among the ``neighbors`` of i."""
        n, k = neighbors.shape
        chosen = sp.csr_matrix((np.ones(n * k), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        stored = sp.csr_matrix(P.multiply(chosen))
        A = sp.csr_matrix((stored + stored.T) * 0.5)
        A.sort_indices()
        return cls.of(stored, smoothing)._replace(indptr=A.indptr, columns=A.indices, A=A.data)

    def arranged(self, arrangement: Arrangement) -> Pairs:
        """The same pairs in another order of the points."""
        indptr, columns, A = arrangement.csr(self.indptr, self.columns, self.A)
        return self._replace(indptr=indptr, columns=columns, A=A)


def _entropy(p: NDArray[Any], smoothing: float, block: int = 2**20) -> float:
    """``sum p log(p + smoothing)``, a block at a time."""
    total = 0.0
    for start in range(0, len(p), block):
        some = p[start : start + block].astype(np.float64)
        some = some[some > 0.0]
        total += float((some * np.log(some + smoothing)).sum())
    return total


class Constants(NamedTuple):
    """Factors and small constants of the KL term."""

    exaggeration: float = 1.0
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0


def neighbor_term(
    M: Array,
    lanes: NDArray[Any],
    stored: Pairs,
    constants: Constants,
    engine: Engine,
    workers: Workers,
    losses: bool,
    scales: Array | None = None,
) -> tuple[Array, float | None]:
    """Return the gradient of the KL term, 4 rho sum_j A_ij w_ij (y_i - y_j) - 4 (S / Z) F_i, and its value if asked.

    ``lanes`` is the map ``M`` in the type in which pairs are computed, ``scales`` (n,) are those of the adaptive
    kernel (eqs. 49 to 51); None is the fixed one.
    """
    n, base = len(M), lanes.dtype.type(1.0 + constants.distance_smoothing)
    Z, repulsion = engine.repulsion(M, constants.distance_smoothing, scales)
    Z = max(Z, _LEAST_PARTITION)
    delta, mass = constants.affinity_smoothing * Z, stored.mass
    gradient, sums = np.empty_like(M), np.empty(n_blocks(n))
    edges: tuple[Any, ...] = (lanes, stored.indptr, stored.columns, stored.A, base)
    flat = M.shape[1] == 2
    if scales is not None:
        edges = (lanes, (1.0 / scales).astype(lanes.dtype), *edges[1:])
        if flat and not delta:
            workers.run(kernels.adaptive_attraction_2d, n, *edges, gradient)
        else:
            workers.run(kernels.adaptive_attraction, n, *edges, delta, gradient, sums)
            mass = float(sums.sum()) if delta else mass
    elif delta:
        kernel = kernels.smoothed_attraction_2d if flat else kernels.smoothed_attraction
        workers.run(kernel, n, *edges, delta, gradient, sums)
        mass = float(sums.sum())
    else:
        kernel = kernels.attraction_2d if flat else kernels.attraction_any
        workers.run(kernel, n, *edges, gradient)
    gradient *= 4.0 * constants.exaggeration
    repulsion *= 4.0 * mass / Z
    gradient -= repulsion
    if not losses:
        return gradient, None
    workers.run(kernels.energy if scales is None else kernels.adaptive_energy, n, *edges, delta, sums)
    return gradient, stored.entropy + float(sums.sum()) + stored.mass * float(np.log(Z))


def ready(P: sp.csr_matrix, precision: str) -> sp.csr_matrix:
    """``P`` as the kernels take it: sorted rows, int32 columns, values of the kernels' type."""
    lane = np.float32 if precision == "single" else np.float64
    P.sort_indices()
    if P.data.dtype == lane and P.indices.dtype == np.int32:
        return P
    out = sp.csr_matrix(P.shape)
    out.data, out.indices, out.indptr = P.data.astype(lane), P.indices.astype(np.int32), P.indptr
    return out
