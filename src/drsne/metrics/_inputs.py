"""What every score shares: checked inputs, sampled rows, blocks of them, correlations that may be undefined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import _checks

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
_BLOCK_BYTES = 16 * 2**20
_MAX_BLOCK = 256


def check_pair(X: Any, Y: Any) -> tuple[Any, Array]:
    """``X`` and ``Y`` as float64 with equally many rows."""
    from sklearn.utils import check_array

    for name, values in (("X", X), ("Y", Y)):
        _checks.refuse_text(name, values)
    X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=3, input_name="X")
    Y = check_array(Y, dtype=np.float64, order="C", ensure_min_samples=3, input_name="Y")
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"X and Y must have equally many rows; got {X.shape[0]} and {Y.shape[0]}.")
    return X, np.require(Y, requirements=["W"])


def check_neighbors(n_neighbors: Any, n_samples: int, *, half: bool = False) -> int:
    """``n_neighbors`` as an int that the data allow (below half of them for rank-based scores)."""
    k = _checks.integer("n_neighbors", n_neighbors, at_least=1)
    limit, rule = (n_samples / 2, "n_samples / 2") if half else (n_samples, "n_samples")
    if k >= limit:
        raise ValueError(f"n_neighbors must be smaller than {rule}={limit:g}; got {k}. Lower it.")
    return k


def sampled_rows(n_samples: int, max_samples: int | None, random_state: Any) -> Rows:
    """All rows, or a random ``max_samples`` of them, ascending."""
    from sklearn.utils import check_random_state

    if max_samples is None or _checks.integer("max_samples", max_samples, at_least=2) >= n_samples:
        return np.arange(n_samples)
    return np.sort(check_random_state(random_state).choice(n_samples, max_samples, replace=False))


def blocks(rows: Rows, n_samples: int) -> Iterator[Rows]:
    """``rows`` in blocks whose distances to all samples take a bounded space."""
    step = max(1, min(_MAX_BLOCK, _BLOCK_BYTES // (8 * n_samples)))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def pearson(a: Array, b: Array) -> float:
    """Pearson correlation; nan where one side is constant."""
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / scale) if scale > 0 else float("nan")
