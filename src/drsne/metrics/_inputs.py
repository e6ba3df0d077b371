"""What every score shares: checked inputs, sampled rows, blocks of them, correlations that may be undefined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from drsne import _checks
from drsne.parallel import Workers
from drsne.search import unit_scale

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


class Space(NamedTuple):
    """Points, known by their distances."""

    n: int
    scale: float  # unit of the distances
    distances: Callable[[Rows], Array]  # of some rows to all points; an array that the caller may change


def euclidean(A: Any, *, centred: bool = False) -> Space:
    """The space of the rows of ``A``, at a scale at which squares stay finite."""
    from sklearn.metrics import pairwise_distances

    scale = unit_scale(A.data if issparse(A) else A)
    A = A / scale
    if centred and not issparse(A):
        A = A - A.mean(axis=0)  # far from the origin, distances from products would lose digits
    return Space(A.shape[0], scale, lambda some: np.asarray(pairwise_distances(A[some], A)))


def space_of(X: Any, metric: Any, *, centred: bool = False) -> Space:
    """The space of data with a metric of the estimator."""
    from sklearn.metrics import pairwise_distances

    if isinstance(metric, str) and metric == "euclidean":
        return euclidean(X, centred=centred)
    if isinstance(metric, str) and metric == "precomputed":
        return Space(X.shape[0], 1.0, lambda some: X[some].copy())
    return Space(X.shape[0], 1.0, lambda some: np.asarray(pairwise_distances(X[some], X, metric=metric)))


def blocks(rows: Rows, n_samples: int) -> Iterator[Rows]:
    """``rows`` in blocks whose distances to all samples take a bounded space."""
    step = max(1, min(_MAX_BLOCK, _BLOCK_BYTES // (8 * n_samples)))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def in_turn(workers: Workers | None, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """``function`` of every item; by the ``workers`` where there are any."""
    return [function(item) for item in items] if workers is None else workers.each(function, items)


def pearson(a: Array, b: Array) -> float:
    """Pearson correlation; nan where one side is constant (but for rounding)."""
    if any(np.ptp(side) <= 1e-13 * np.abs(side).max() for side in (a, b)):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / scale) if scale > 0 else float("nan")
