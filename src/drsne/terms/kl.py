"""The KL divergence of a map over its stored pairs, and its gradient (docs/theory.md, eqs. 7 to 13 and 49 to 51)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.backends import Backend, Order, PairList
from drsne.backends.arrays import cast, namespace

Array = NDArray[np.float64]
_LEAST_PARTITION = np.finfo(np.float64).tiny  # smallest partition sum, for maps that are so large that no pair repels


class StoredPairs(NamedTuple):
    """The pairs of a KL term: ``A = (P_s + P_s^T) / 2`` for the stored part P_s of P, with its sum and entropy."""

    pairs: PairList
    mass: float  # the sum of P_s
    entropy: float  # the sum of p log p over P_s

    @classmethod
    def of(cls, P: sp.csr_matrix | PairList, smoothing: float, masses: Array | None = None) -> StoredPairs:
        """Return all pairs of a symmetric ``P`` without copying them.

        Points with masses stand for several points, which share the affinity of their point.
        """
        pairs = P if isinstance(P, PairList) else PairList(P.indptr, P.indices, P.data)
        mass = float(pairs.values.sum(dtype=namespace(pairs.values).float64))
        entropy = _entropy(pairs.values, smoothing)
        if masses is not None:
            entropy -= 2.0 * float((P @ np.ones(len(masses))) @ np.log(masses))
        return cls(pairs, mass, entropy)

    def on(self, backend: Backend) -> StoredPairs:
        """Return the same pairs with arrays of a backend."""
        return self._replace(pairs=PairList(*(backend.received(each) for each in self.pairs)))

    @classmethod
    def directed(cls, P: sp.csr_matrix, neighbors: NDArray[np.int32], smoothing: float) -> StoredPairs:
        """Return only the pairs (i, j) with j among the ``neighbors`` of i."""
        n, k = neighbors.shape
        chosen = sp.csr_matrix((np.ones(n * k), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        stored = sp.csr_matrix(P.multiply(chosen))
        A = sp.csr_matrix((stored + stored.T) * 0.5)
        A.sort_indices()
        return cls.of(stored, smoothing)._replace(pairs=PairList(A.indptr, A.indices, A.data))

    def reordered(self, order: Order) -> StoredPairs:
        """Return the same pairs in another order of the points."""
        return self._replace(pairs=order.pair_list(self.pairs))


def _entropy(p: NDArray[Any], smoothing: float, block: int = 2**20) -> float:
    """Return ``sum p log(p + smoothing)``, computed block by block to save memory."""
    total = 0.0
    for start in range(0, len(p), block):
        some = cast(p[start : start + block], np.float64)
        some = some[some > 0.0]
        total += float((some * namespace(some).log(some + smoothing)).sum())
    return total


def kl_term(
    Y: NDArray[Any],
    stored: StoredPairs,
    repulsion: tuple[float, Array],
    backend: Backend,
    *,
    exaggeration: float = 1.0,
    affinity_smoothing: float = 0.0,
    distance_smoothing: float = 0.0,
    inverse_scales: NDArray[Any] | None = None,
    losses: bool = False,
    factor: float = 1.0,
) -> tuple[Array, float | None]:
    """Return ``factor`` times the gradient of the KL term, and its value if ``losses`` is True.

    The gradient is ``4 a sum_j A_ij w_ij (y_i - y_j) - 4 (S / Z) F_i``.

    ``a`` is the exaggeration, ``S`` is the sum of the affinities, and ``repulsion`` holds ``Z`` and ``F``. ``F`` is
    overwritten. ``Y`` and ``inverse_scales`` (n,), those of the adaptive kernel, have the dtype used for pairwise
    computations.
    """
    Z, forces = repulsion
    Z = max(Z, _LEAST_PARTITION)
    base, delta = 1.0 + distance_smoothing, affinity_smoothing * Z
    gradient, mass = backend.attraction(Y, stored.pairs, base, delta, inverse_scales)
    total = stored.mass if mass is None else mass
    gradient = backend.combined(gradient, forces, 4.0 * exaggeration, 4.0 * total / Z, factor)
    if not losses:
        return gradient, None
    energy = backend.energy(Y, stored.pairs, base, delta, inverse_scales)
    return gradient, stored.entropy + energy + stored.mass * float(np.log(Z))


def stored(P: sp.csr_matrix | PairList, precision: str) -> sp.csr_matrix | PairList:
    """Return ``P`` in the form that backends expect: sorted rows, int32 columns, values in ``precision``.

    Pairs that a backend has made have this form already.
    """
    if isinstance(P, PairList):
        return P
    real = np.float32 if precision == "single" else np.float64
    P.sort_indices()
    if P.data.dtype == real and P.indices.dtype == np.int32:
        return P
    out = sp.csr_matrix(P.shape)
    out.data, out.indices, out.indptr = P.data.astype(real), P.indices.astype(np.int32), P.indptr
    return out
