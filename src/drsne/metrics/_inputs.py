"""What the scores share: checked inputs, sampled rows, distances in blocks, and correlations that may be undefined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.neighbors.precomputed import check_precomputed
from drsne.neighbors.search import check_metric
from drsne.precision import unit_scale

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
_EUCLIDEAN = ("euclidean", "l2", "minkowski")
_BLOCK_BYTES = 16 * 2**20
_MAX_BLOCK = 256
# Points further from the origin than this many times their own extent are centred, because distances that come from
# inner products would lose digits.
_FAR_AWAY = 2.0**10


def check_pair(X: Any, Y: Any, metric: Any = "euclidean") -> tuple[Any, Array]:
    """Return ``X`` and ``Y`` as float64 with the same number of rows; with "precomputed", ``X`` is a full matrix."""
    from sklearn.utils import check_array

    check_metric(metric)
    for name, values in (("X", X), ("Y", Y)):
        checks.refuse_text(name, values)
    X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=3, input_name="X")
    Y = check_array(Y, dtype=np.float64, order="C", ensure_min_samples=3, input_name="Y")
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"X and Y must have the same number of rows; got {X.shape[0]} and {Y.shape[0]}.")
    if is_precomputed(metric):
        X = check_precomputed(X)
        if issparse(X):
            raise ValueError(
                "X must hold the distances between all samples with metric='precomputed'; got a sparse neighbour "
                "graph. Pass a full matrix, or the data themselves."
            )
    return X, np.require(Y, requirements=["W"])


def is_precomputed(metric: Any) -> bool:
    """Return whether ``metric`` means that X holds distances."""
    return isinstance(metric, str) and metric == "precomputed"


def check_neighbors(n_neighbors: Any, n_samples: int, *, half: bool = False) -> int:
    """Return ``n_neighbors`` as an int, or raise if the data have too few rows (``half``: half of them count)."""
    k = checks.integer("n_neighbors", n_neighbors, at_least=1)
    limit, rule = (n_samples / 2, "n_samples / 2") if half else (n_samples, "n_samples")
    if k >= limit:
        raise ValueError(f"n_neighbors must be smaller than {rule}={limit:g}; got {k}. Lower it.")
    return k


def sampled_rows(n_samples: int, max_samples: int | None, random_state: Any) -> Rows:
    """Return the numbers of all rows, or of ``max_samples`` random rows, in ascending order."""
    from sklearn.utils import check_random_state

    if max_samples is None or checks.integer("max_samples", max_samples, at_least=2) >= n_samples:
        return np.arange(n_samples)
    return np.sort(check_random_state(random_state).choice(n_samples, max_samples, replace=False))


class Space(NamedTuple):
    """A set of points that is known by its distances."""

    n: int
    scale: float  # unit of the distances
    distances: Callable[[Rows], Array]  # from some rows to all points, in an array that the caller may change


def euclidean(A: Any, *, centred: bool = False) -> Space:
    """Return the space of the rows of ``A``, at a scale at which squares stay finite.

    Rows far from the origin are centred, and brought to unit scale again, because distances are computed from inner
    products. Other rows are left as they are unless ``centred`` is set: equal distances stay exactly equal.
    """
    from sklearn.metrics import pairwise_distances

    scale = unit_scale(A.data if issparse(A) else A)
    A = A / scale
    if issparse(A) and _extent(A) * _FAR_AWAY < 1.0:  # then no entry is zero, and a dense array takes no more memory
        A = A.toarray()
    if not issparse(A):
        moved = A - A.mean(axis=0)
        extent = unit_scale(moved)
        if centred or extent * _FAR_AWAY < 1.0:
            A = moved / extent
            scale *= extent
    return Space(A.shape[0], scale, lambda rows: np.asarray(pairwise_distances(A[rows], A)))


def _extent(A: Any) -> float:
    """Return the largest extent of a column of a sparse matrix."""
    return float((A.max(axis=0) - A.min(axis=0)).max())


def space_of(X: Any, metric: Any, *, centred: bool = False) -> Space:
    """Return the space of data with a metric of the estimators; with "precomputed", ``X`` holds distances."""
    from sklearn.metrics import pairwise_distances
    from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

    if isinstance(metric, str) and metric in _EUCLIDEAN:
        return euclidean(X, centred=centred)
    if is_precomputed(metric):
        unit = unit_scale(X)
        return Space(X.shape[0], unit, lambda rows: np.asarray(X[rows] / unit))
    options = {}
    if metric == "seuclidean":  # the variances of all data, not of a block of rows
        options["V"] = X.var(axis=0, ddof=1)
    elif metric == "mahalanobis":
        options["VI"] = np.linalg.pinv(np.atleast_2d(np.cov(X.T)))
    X = X.astype(bool) if metric in PAIRWISE_BOOLEAN_FUNCTIONS else X

    def distances(rows: Rows) -> Array:
        with np.errstate(all="ignore"):  # scores that need finite distances check them
            return np.asarray(pairwise_distances(X[rows], X, metric=metric, **options), dtype=np.float64)

    unit = unit_scale(distances(np.arange(1)))
    return Space(X.shape[0], unit, lambda rows: np.asarray(distances(rows) / unit))


def blocks(rows: Rows, n_samples: int) -> Iterator[Rows]:
    """Split ``rows`` into blocks whose distances to all samples take a bounded amount of memory."""
    step = max(1, min(_MAX_BLOCK, _BLOCK_BYTES // (8 * n_samples)))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def in_turn(workers: Workers | None, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return ``function`` of every item, computed by the ``workers`` if there are any."""
    return [function(item) for item in items] if workers is None else workers.each(function, items)


def pearson(a: Array, b: Array) -> float:
    """Return the Pearson correlation, or nan if one side is constant up to rounding."""
    if any(np.ptp(side) <= 1e-13 * np.abs(side).max() for side in (a, b)):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / scale) if scale > 0 else float("nan")
