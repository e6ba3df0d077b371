"""The first of equal rows, found by hashes of their contents. 0.0 and -0.0 are the same number."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_ROWS_AT_ONCE = 4096


def hashes(X: Any) -> NDArray[np.uint64]:
    """Return a number for each row of dense data, or of sparse data in canonical format. Equal rows have equal ones."""
    factors = 2 * np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) + np.uint64(1)
    out = np.empty(X.shape[0], np.uint64)
    for start in range(0, len(out), _ROWS_AT_ONCE):
        some = X[start : start + _ROWS_AT_ONCE]
        bits = ((some.data if sp.issparse(some) else np.ascontiguousarray(some)) + 0.0).view(np.uint64)
        bits ^= bits >> np.uint64(32)  # numbers with few digits differ only in their first bits
        bits = sp.csr_matrix((bits, some.indices, some.indptr), some.shape) if sp.issparse(some) else bits
        out[start : start + _ROWS_AT_ONCE] = bits @ factors
    return out


class EqualRows:
    """The rows of dense float64 or boolean data, or of sparse data in canonical format, sorted by their hashes."""

    def __init__(self, X: Any) -> None:
        self._X = X

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        found = hashes(self._X)
        order = np.argsort(found, kind="stable")
        return found[order], order

    def first(self, Q: Any) -> NDArray[np.intp]:
        """Return the first row that equals each row of ``Q``, or -1."""
        values, order = self._sorted
        wanted, first = hashes(Q), np.full(Q.shape[0], -1, np.intp)
        at, end = (np.searchsorted(values, wanted, side=side) for side in ("left", "right"))
        while len(left := np.flatnonzero(at < end)):
            rows = order[at[left]]
            same = np.asarray((self._X[rows] != Q[left]).sum(axis=1)).ravel() == 0
            first[left[same]] = rows[same]
            at[left] = np.where(same, end[left], at[left] + 1)  # different rows can have the same hash
        return first
