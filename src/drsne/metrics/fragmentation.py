"""Fragmentation: how much connected neighbourhoods of the data are torn into separate pieces of the map.

The eye joins points of a map that are close relative to the spacing around them, and sees a border where a gap is wide
relative to that spacing. The local spacing of a point is the larger of two distances: the distance to its third nearest
neighbour in the map, and the median of this distance over its ten nearest neighbours. Two neighbours in the data are
torn apart if nothing in the map joins them at this spacing (docs/scores.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne.backends.arrays import divided, host, medians, namespace, taken
from drsne.backends.numba.kernels import metrics as kernels
from drsne.backends.numba.kernels._turns import whole
from drsne.metrics._inputs import Array, Rows, among, check_neighbors, check_pair, nearest, sampled, shared
from drsne.neighbors.graph import KnnGraph
from drsne.precision import unit_scale

N_NEIGHBORS = 10  # number of neighbours in the data
# The spacing is the distance to the third nearest neighbour, so pieces of up to three points are never counted.
_THIRD = 3
_AROUND = 10  # number of neighbours in the map over which the spacing is smoothed
# Number of neighbours in the map that are considered for linking. It is larger than the number of neighbours within the
# longest step that counts.
_LINKED = 30
_AREA = 4.0  # a gap is wide if a ball of its width would contain three points times this factor
# A neighbour in the data is not connected to a point if it is more than this many times as far as the third neighbour.
_APART = 2.0
_MAX_LINES, _MAX_PLACES = 50_000, 24  # largest number of lines checked for empty discs, and of places on each line


@shared
def fragmentation(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = N_NEIGHBORS,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the fraction of neighbours in the data that the map shows in separate pieces.

    Consider a point and one of its k nearest neighbours in the data that is at most twice as far as its third nearest
    neighbour. In the map, let s be the larger of the local spacings of the two points. The pair is torn if

    - every chain of map points from one point to the other has a step longer than 2 s, or
    - the straight line between the two points passes through an empty disc of radius 2 s.

    The factor is 2 in two dimensions and ``4 ** (1 / d)`` in d dimensions. The score does not depend on the scale of
    the map or on how densely a region is drawn.

    Parameters
    ----------
    {X, Y}
    n_neighbors : int, default=10
        The number of neighbours k, not counting the point itself.
    {metric, max_samples, random_state, device}

    Returns
    -------
    float
        A number between 0 and 1. 0 is best.

    Examples
    --------
    A single group of points, drawn as one piece and as ten separate pieces:

    >>> import numpy as np
    >>> from drsne.metrics import fragmentation
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> heaps = 0.1 * X + 10.0 * (np.arange(200) % 10)[:, None]
    >>> round(fragmentation(X, X), 2), fragmentation(X, heaps) > 0.8
    (0.0, True)
    """
    data, low, k, rows = sampled(X, Y, n_neighbors, metric, max_samples, random_state, device)
    searched = rows if len(rows) < len(low) else None  # if None, an approximate search is allowed
    graph = nearest(data, k, metric, searched)
    return torn_share(graph, low, rows)


def torn_share(graph: KnnGraph, Y: Any, rows: Rows) -> float:
    """Compute the score from the nearest neighbours of ``rows`` in the data. ``Y`` is an array or a tensor."""
    ends, torn, wide, scaled = _unconnected(graph, Y, rows)
    across, checked = _crossing(scaled, ends[0][~torn], ends[1][~torn], wide[~torn])
    return float((torn.sum() + len(across) * checked) / len(torn))


def torn_pairs(X: ArrayLike, Y: ArrayLike, *, metric: Any = "euclidean") -> tuple[NDArray[np.int64], float]:
    """Return the pairs of points that :func:`fragmentation` counts, of shape (n_pairs, 2), and the score.

    If there are very many pairs whose line may pass through an empty disc, only some of these are checked and returned.
    """
    data, low = check_pair(X, Y, metric)
    rows = np.arange(len(low))
    graph = nearest(data, check_neighbors(N_NEIGHBORS, len(low)), metric, None)
    ends, torn, wide, scaled = _unconnected(graph, low, rows)
    others = np.flatnonzero(~torn)
    across, checked = _crossing(scaled, ends[0][others], ends[1][others], wide[others])
    found = np.sort(np.concatenate((np.flatnonzero(torn), others[across])))
    return np.column_stack([each[found] for each in ends]), float((torn.sum() + len(across) * checked) / len(torn))


def _unconnected(graph: KnnGraph, Y: Any, rows: Rows) -> tuple[tuple[Any, Any], Any, Array, Any]:
    """Return pairs of neighbours, which of them no chain connects, the widths of their gaps, and the scaled map."""
    third = graph.distances[:, min(_THIRD, graph.distances.shape[1]) - 1, None]
    place, column = np.nonzero(graph.distances <= _APART * third)
    ends = rows[place].astype(np.int64), graph.indices[place, column].astype(np.int64)
    linked = _linked(divided(Y, unit_scale(Y)))
    wide = _AREA ** (1.0 / Y.shape[1]) * np.maximum(linked.spacing[ends[0]], linked.spacing[ends[1]])
    steps = np.empty(len(wide))
    kernels.widest_steps(linked.parent, linked.length, *ends, steps, whole(len(wide)))
    return ends, steps > wide, wide, linked.Y


class _Linked(NamedTuple):
    """A map with its local spacings, and a forest that joins the points, starting with the shortest steps."""

    Y: Any  # (n, d), an array or a tensor
    spacing: Array  # (n,)
    parent: NDArray[np.int64]  # (n,)
    length: Array  # (n,), length of the step to the parent


def _linked(Y: Any) -> _Linked:
    n = len(Y)
    k = min(_LINKED, n - 1)
    distances, neighbors = among(Y).surroundings(Y, k)
    third = distances[:, min(_THIRD, k) - 1]
    spacing = namespace(Y).maximum(third, medians(third[neighbors[:, :_AROUND]]))
    parent, size, length = np.arange(n), np.ones(n, np.int64), np.full(n, np.inf)
    kernels.link(*among(Y).edges(distances, neighbors), parent, size, length)
    return _Linked(Y, host(spacing), parent, length)


def _crossing(Y: Any, a: Rows, b: Rows, wide: Array) -> tuple[NDArray[np.intp], float]:
    """Return which lines from ``a`` to ``b`` pass through an empty ball of radius ``wide``.

    The places that are checked on a line are half of this radius apart. If there are very many lines, only every m-th
    line is checked. The second result is the number of lines for which each line that was checked stands.
    """
    begin, end = taken(Y, a), taken(Y, b)
    span = np.sqrt(((begin - end) ** 2).sum(axis=1))
    long = np.flatnonzero(span > 2.0 * wide)  # an end of a shorter line would lie inside the ball
    if len(long) == 0:
        return np.empty(0, np.intp), 1.0
    some = long[:: -(-len(long) // _MAX_LINES)]
    with np.errstate(divide="ignore"):
        steps = np.minimum(np.ceil(2.0 * span[some] / wide[some]), _MAX_PLACES).astype(np.intp)
    first = np.cumsum(steps - 1) - (steps - 1)  # where the places of each line begin
    line = np.repeat(np.arange(len(some)), steps - 1)
    share = ((np.arange(len(line)) - first[line] + 1) / steps[line])[:, None]
    places = begin[some][line] * (1.0 - share) + end[some][line] * share
    empty = np.maximum.reduceat(among(Y).gaps(Y, places), first)
    return some[empty > wide[some]], len(long) / len(some)
