"""What the scores share: descriptions and checks of parameters, random samples, neighbours, distances, correlations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from drsne import checks
from drsne.backends import arrays, choice
from drsne.backends.numba.threads import Workers
from drsne.backends.protocol import Comparisons
from drsne.metrics import _on_processor
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.precomputed import check_precomputed
from drsne.neighbors.search import check_metric, checked
from drsne.precision import unit_scale

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
EUCLIDEAN = ("euclidean", "l2", "minkowski")
# Largest numbers of dimensions for which scikit-learn's tree finds the neighbours of a map, and their distances.
_MAX_TREE_DIMENSIONS, _FEW_DIMENSIONS = 15, 3
_MAX_BLOCK = 256  # largest number of rows in a block
# Points are centred if their distance from the origin is more than this many times their extent. Otherwise, distances
# computed from inner products would lose digits.
_FAR_AWAY = 2.0**10
_DESCRIPTIONS = {
    "X, Y": """array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.""",
    "n_neighbors": """int, default=30
        The number of neighbours k, not counting the point itself.""",
    "metric": """str or callable, default="euclidean"
        The metric used on the data: any metric that the estimators accept. With "precomputed", ``X`` is the full
        distance matrix.""",
    "max_samples": """int, default=None
        Use a random sample of this many points. If None, use all points.""",
    "random_state": """int, RandomState or Generator, default=None
        Seed or generator used to draw the random sample.""",
    "device": """{None, "cpu", "cuda", "cuda:1", ...}, default=None
        Device of PyTorch on which points are compared, or None for the processor without PyTorch. A device needs dense
        data and the metric "euclidean" or "cosine". Ties go to the smallest row number.""",
}
Score = TypeVar("Score", bound=Callable[..., Any])


def shared(score: Score) -> Score:
    """Replace lines such as ``{metric}`` in the docstring of a score by the descriptions of these parameters."""

    def described(match: re.Match[str]) -> str:
        names = [match[1]] if match[1] in _DESCRIPTIONS else match[1].split(", ")
        return "\n".join(f"    {name} : {_DESCRIPTIONS[name]}" for name in names)

    if score.__doc__ is not None:  # Python can leave docstrings out
        score.__doc__ = re.sub(r"^    \{([\w, ]+)\}$", described, score.__doc__, flags=re.MULTILINE)
    return score


def check_pair(X: Any, Y: Any, metric: Any = "euclidean", device: Any = None) -> tuple[Any, Any]:
    """Return ``X`` and ``Y`` as float64 after checking their shapes. A precomputed ``X`` must be a full matrix.

    With a ``device``, they are returned as tensors.
    """
    from sklearn.utils import check_array

    check_metric(metric)
    on = choice.comparing(device)
    if on is not None and (not isinstance(metric, str) or metric not in (*EUCLIDEAN, "cosine")):
        allowed = ", ".join(repr(name) for name in EUCLIDEAN)
        raise ValueError(
            f"metric must be {allowed} or 'cosine' if a device is given; got {metric!r} with "
            f"device={str(on.device)!r}. Pass device=None to compute the scores on the processor."
        )
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
    if on is None:
        return X, Y
    return on.compared(X, metric), on.compared(Y, "euclidean")


def among(A: Any) -> Comparisons:
    """Return what compares points with all others: on the device of a tensor, or on the processor."""
    device = choice.holding(A)
    return _on_processor if device is None else device.comparisons


def nearest(X: Any, k: int, metric: Any, rows: Rows | None, workers: Workers | None = None) -> KnnGraph:
    """Return the k nearest neighbours of ``rows`` in the data. Without rows, the search may be approximate."""
    with workers or Workers() as threads:
        return checked(KnnGraph(*among(X).nearest(X, k, metric=metric, workers=threads, rows=rows)), metric)


def own_neighbors(A: Any, k: int, rows: Rows, metric: Any = "euclidean") -> NDArray[np.intp]:
    """Return the k nearest neighbours of ``rows`` of ``A``, not counting the rows themselves.

    On the processor, maps of few dimensions use scikit-learn's tree, which also determines the order of ties. Its
    brute-force search for other data is not used, because it uses OpenMP, which hangs in a forked process.
    """
    from sklearn.neighbors import NearestNeighbors

    plain = isinstance(metric, str) and metric == "euclidean"
    if not isinstance(A, np.ndarray) or not plain or A.shape[1] > _MAX_TREE_DIMENSIONS:
        return nearest(A, k, metric, rows).indices.astype(np.intp)
    A = A / unit_scale(A)
    tree = NearestNeighbors(n_neighbors=k + 1, algorithm="kd_tree").fit(A)
    nearest_rows = tree.kneighbors(A[rows], return_distance=False)
    own = nearest_rows == rows[:, None]
    own[~own.any(axis=1), 0] = True  # with many duplicates, the result may not contain the row itself
    return np.asarray(nearest_rows[~own].reshape(len(rows), k))


def nearest_distances(Y: Any, k: int, rows: Rows) -> Array:
    """Return the distances of ``rows`` of a map to their k nearest neighbours, (m, k), in any unit."""
    from sklearn.neighbors import NearestNeighbors

    Y = arrays.divided(Y, unit_scale(Y))
    if not isinstance(Y, np.ndarray) or Y.shape[1] > _FEW_DIMENSIONS:
        return nearest(Y, k, "euclidean", rows).distances
    tree = NearestNeighbors(n_neighbors=k + 1, algorithm="kd_tree").fit(Y)  # the first neighbour is the point itself
    return np.asarray(tree.kneighbors(Y[rows])[0][:, 1:])


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


def sampled(
    X: Any, Y: Any, n_neighbors: Any, metric: Any, max_samples: Any, random_state: Any, device: Any, half: bool = False
) -> tuple[Any, Any, int, Rows]:
    """Return the data, the map, the number of neighbours and the sampled rows of a score after checking them."""
    data, low = check_pair(X, Y, metric, device)
    k = check_neighbors(n_neighbors, len(low), half=half)
    return data, low, k, sampled_rows(len(low), max_samples, random_state)


def check_labels(labels: Any, n_samples: int) -> NDArray[Any]:
    """Return the number of the group of each row, or raise an error if the number of labels is wrong.

    The number is -1 for missing labels, which are None, nan and the missing values of pandas.
    """
    checks.refuse_cells("labels", labels)
    names = np.asarray(labels)
    if names.shape != (n_samples,):
        raise ValueError(
            f"labels must have shape ({n_samples},), one label for each row; got {names.shape}. Pass a list of labels."
        )
    numbers: dict[Any, int] = {}
    return np.array([-1 if checks.is_missing(x) else numbers.setdefault(x, len(numbers)) for x in names.tolist()], int)


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
    if isinstance(metric, str) and metric in EUCLIDEAN:
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
