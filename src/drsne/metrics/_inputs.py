"""Functions that the scores share: checks of the input, random samples, distances in blocks, and correlations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from drsne import checks
from drsne.backends import arrays, choice
from drsne.backends.numba.threads import Workers
from drsne.metrics import _on_processor
from drsne.neighbors.precomputed import check_precomputed
from drsne.neighbors.search import check_metric
from drsne.precision import unit_scale

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
_EUCLIDEAN = ("euclidean", "l2", "minkowski")
_MAX_BLOCK = 256  # largest number of rows in a block
# Points are centred if their distance from the origin is more than this many times their extent. Otherwise, distances
# computed from inner products would lose digits.
_FAR_AWAY = 2.0**10


def check_pair(X: Any, Y: Any, metric: Any = "euclidean", device: Any = None) -> tuple[Any, Any]:
    """Return ``X`` and ``Y`` as float64 after checking their shapes. A precomputed ``X`` must be a full matrix.

    With a ``device``, they are returned as tensors.
    """
    from sklearn.utils import check_array

    check_metric(metric)
    place = _checked_device(device, metric)
    X, Y = checks.refuse_other_data("X", X), checks.refuse_other_data("Y", Y)
    X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=3, input_name="X")
    Y = check_array(Y, dtype=np.float64, order="C", ensure_min_samples=3, input_name="Y")
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X and Y must have the same number of rows; got {X.shape[0]} and {Y.shape[0]}. Pass X and its map Y."
        )
    if is_precomputed(metric):
        X = check_precomputed(X)
        if issparse(X):
            raise ValueError(
                "X must contain the distances between all samples if metric='precomputed'; got a sparse neighbour "
                "graph. Pass a full distance matrix, or pass the data with another metric."
            )
    Y = np.require(Y, requirements=["W"])
    if place is None:
        return X, Y
    from drsne.metrics import _on_device

    return _on_device.received(X, metric, place), _on_device.received(Y, "euclidean", place)


def _checked_device(device: Any, metric: Any) -> str | None:
    """Return the name of a device, or raise an error if it is not there or does not support the metric."""
    if device is None:
        return None
    _, place = choice.resolve("torch", device)
    if not isinstance(metric, str) or metric not in (*_EUCLIDEAN, "cosine"):
        allowed = ", ".join(repr(name) for name in _EUCLIDEAN)
        raise ValueError(
            f"metric must be {allowed} or 'cosine' if a device is given; got {metric!r} with device={place!r}. Pass "
            "device=None to compute the scores on the processor."
        )
    return place


def among(A: Any) -> Any:
    """Return the module that compares points with all others: on the device of a tensor, or on the processor."""
    if isinstance(A, np.ndarray) or issparse(A):
        return _on_processor
    from drsne.metrics import _on_device

    return _on_device


def is_precomputed(metric: Any) -> bool:
    """Return whether ``metric`` is "precomputed", so that X contains distances."""
    return isinstance(metric, str) and metric == "precomputed"


def check_neighbors(n_neighbors: Any, n_samples: int, *, half: bool = False) -> int:
    """Return ``n_neighbors`` as an int, after checking that it is below ``n_samples`` (or, if ``half``, half of it)."""
    k = checks.integer("n_neighbors", n_neighbors, at_least=1)
    limit, rule = (n_samples / 2, "n_samples / 2") if half else (n_samples, "n_samples")
    if k >= limit:
        raise ValueError(f"n_neighbors must be smaller than {rule}={limit:g}; got {k}. Lower n_neighbors.")
    return k


def check_labels(labels: Any, n_samples: int) -> NDArray[Any]:
    """Return the number of the group of each row, or raise an error if the number of labels is wrong.

    The number is -1 for missing labels, which are None, nan and the missing values of pandas.
    """
    names = np.asarray(labels)
    if names.shape != (n_samples,):
        raise ValueError(
            f"labels must have shape ({n_samples},), one label for each row; got {names.shape}. Pass a list of labels."
        )
    found: dict[Any, int] = {}
    return np.array([-1 if _is_missing(name) else found.setdefault(name, len(found)) for name in names.tolist()], int)


def _is_missing(name: Any) -> bool:
    return name is None or type(name).__name__ in ("NAType", "NaTType") or name != name


def sampled_rows(n_samples: int, max_samples: int | None, random_state: Any) -> Rows:
    """Return the indices of all rows, or of a random sample of ``max_samples`` rows, in ascending order."""
    if max_samples is None or checks.integer("max_samples", max_samples, at_least=2) >= n_samples:
        return np.arange(n_samples)
    return np.sort(checks.random_numbers(random_state).choice(n_samples, max_samples, replace=False))


class Space(NamedTuple):
    """A set of points, represented by a function that computes their distances."""

    n: int
    scale: float  # factor by which the distances were divided
    # Distances from the given rows to all points, an array or a tensor. The caller may change it.
    distances: Callable[[Rows], Any]
    block_bytes: int  # largest number of bytes for a block of distances

    def blocks(self, rows: Rows) -> list[Rows]:
        """Return ``rows`` in blocks, so that the distances from a block to all points need little memory."""
        return list(blocks(rows, self.n, self.block_bytes))


def euclidean(A: Any, *, centred: bool = False) -> Space:
    """Return the space of the rows of ``A``, scaled so that squares do not overflow.

    If the rows are far from the origin, they are centred and scaled again, because distances are computed from inner
    products. Otherwise they are centred only if ``centred`` is True, because equal distances stay exactly equal without
    centring.
    """
    scale = unit_scale(A.data if issparse(A) else A)
    A = A / scale if issparse(A) else arrays.divided(A, scale)
    if issparse(A) and _extent(A) * _FAR_AWAY < 1.0:  # no entry is zero, so a dense array needs no more memory
        A = A.toarray()
    if not issparse(A):
        moved = A - A.mean(axis=0)
        extent = unit_scale(moved)
        if centred or extent * _FAR_AWAY < 1.0:
            A = moved / extent
            scale *= extent
    return Space(A.shape[0], scale, among(A).distances(A), among(A).block_bytes(A))


def _extent(A: Any) -> float:
    """Return the largest range of values in any column of a sparse matrix."""
    return float((A.max(axis=0) - A.min(axis=0)).max())


def space_of(X: Any, metric: Any, *, centred: bool = False) -> Space:
    """Return the space of the data for any metric of the estimators. A precomputed ``X`` contains distances."""
    if isinstance(metric, str) and metric in _EUCLIDEAN:
        return euclidean(X, centred=centred)
    room = among(X).block_bytes(X)
    if is_precomputed(metric):
        unit = unit_scale(X)
        return Space(X.shape[0], unit, lambda rows: np.asarray(X[rows] / unit), room)
    distances = among(X).distances(X, metric)
    unit = unit_scale(distances(np.arange(1)))
    return Space(X.shape[0], unit, lambda rows: distances(rows) / unit, room)


def blocks(rows: Rows, n_samples: int, block_bytes: int) -> Iterator[Rows]:
    """Split ``rows`` into blocks, so that a table with ``n_samples`` numbers for each row needs little memory."""
    step = max(1, min(_MAX_BLOCK, block_bytes // (8 * n_samples)))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def in_turn(workers: Workers | None, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Apply ``function`` to every item and return the results. If there are ``workers``, they do this in parallel."""
    return [function(item) for item in items] if workers is None else workers.each(function, items)


def pearson(a: Array, b: Array) -> float:
    """Return the Pearson correlation, or nan if one of the arrays is constant up to rounding errors."""
    if any(np.ptp(side) <= 1e-13 * np.abs(side).max() for side in (a, b)):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / scale) if scale > 0 else float("nan")
