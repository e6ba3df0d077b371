"""How well a map shows which points are far from each other: the order of distances of random points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from drsne import checks
from drsne.backends.arrays import taken
from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import EUCLIDEAN, Array, Rows, check_pair, in_turn, sampled_rows, shared, space_of
from drsne.precision import unit_scale

_ROWS, _PARTNERS = 1000, 100  # largest number of rows that are compared with others, and number of these others
_BLOCK, _DIGITS = 50, 12  # number of rows that are compared at once, and decimals of distances
_TINY = float(np.finfo(np.float64).tiny)


class Sampled(float):
    """A score that was measured on a random sample, with its standard error."""

    standard_error: float = 0.0


@shared
def triplets(
    X: ArrayLike,
    Y: ArrayLike,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = 0,
    device: Any = None,
) -> Sampled:
    """Return the share of random triplets whose order of distances is the same in the data and in the map.

    A triplet is a point and two others: which of them is nearer? 1 is best, and 0.5 is chance. Triplets with equal
    distances in the data do not count, and those with equal distances in the map count half.

    Parameters
    ----------
    {X, Y}
    {metric, max_samples}
        At most 1,000 points are compared with 100 random others each.
    random_state : int, RandomState or Generator, default=0
        Seed or generator used to draw the random points.
    {device}

    Returns
    -------
    Sampled
        A number between 0 and 1, or nan if all distances in the data are equal. Its ``standard_error`` is that of the
        random sample.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import triplets
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> triplets(X, -2 * X) == 1
    True
    """
    return _single(X, Y, metric, max_samples, random_state, device)["triplets"]


@shared
def distance_correlation(
    X: ArrayLike,
    Y: ArrayLike,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = 0,
    device: Any = None,
) -> Sampled:
    """Return the Spearman correlation of the distances of random pairs of points in the data and in the map.

    Parameters
    ----------
    {X, Y}
    {metric, max_samples}
        At most 1,000 points are compared with 100 random others each.
    random_state : int, RandomState or Generator, default=0
        Seed or generator used to draw the random points.
    {device}

    Returns
    -------
    Sampled
        A number between -1 and 1, or nan if all distances are equal. Its ``standard_error`` is that of the random
        sample.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import distance_correlation
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> round(distance_correlation(X, -2 * X), 12)
    1.0
    """
    return _single(X, Y, metric, max_samples, random_state, device)["distance_correlation"]


def _single(X: Any, Y: Any, metric: Any, max_samples: int | None, random_state: Any, device: Any) -> dict[str, Sampled]:
    data, low = check_pair(X, Y, metric, device)
    rng = checks.random_numbers(random_state)
    rows = sampled_rows(len(low), max_samples, rng)
    found = of_maps(data, [low], rows, rng, metric=metric)
    return {name: values[0] for name, values in found.items()}


def of_maps(
    X: Any, maps: Sequence[Any], rows: Rows, rng: Any, workers: Workers | None = None, *, metric: Any = "euclidean"
) -> dict[str, list[Sampled]]:
    """Return both scores of several maps of the same data, for some of the ``rows``."""
    rows = rows[sampled_rows(len(rows), _ROWS, rng)]
    partners = rng.randint(X.shape[0] - 1, size=(len(rows), _PARTNERS))
    partners += partners >= rows[:, None]  # not the row itself

    high = _lengths(X, metric, rows, partners)
    ranks = rankdata(high).reshape(high.shape)
    lows = in_turn(workers, lambda Y: _lengths(Y, "euclidean", rows, partners), maps)
    return {
        "triplets": [_order(high, low) for low in lows],
        "distance_correlation": [_correlation(ranks, rankdata(low).reshape(low.shape)) for low in lows],
    }


def _lengths(X: Any, metric: Any, rows: Rows, partners: NDArray[np.intp]) -> Array:
    """Return the distances of ``rows`` from their ``partners``.

    If possible, they are summed feature by feature, so that the distances of equal rows are exactly 0. Data on a device
    are compared on the processor, because there are few of them.
    """
    dense = isinstance(metric, str) and metric in (*EUCLIDEAN, "cosine") and not sp.issparse(X)
    space, out = None if dense else space_of(X, metric), np.empty(partners.shape)
    unit = unit_scale(X) if dense else 1.0
    for start in range(0, len(rows), _BLOCK):
        some = slice(start, start + _BLOCK)
        if space is not None:
            out[some] = np.take_along_axis(space.distances(rows[some]), partners[some], axis=1)
            continue
        own, others = (taken(X, each[some].ravel()) / unit for each in (rows, partners))
        if metric == "cosine":
            own, others = (A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), _TINY) for A in (own, others))
        differences = own[:, None, :] - others.reshape(len(own), _PARTNERS, -1)
        out[some] = np.sqrt(np.einsum("ijf,ijf->ij", differences, differences))
    largest = float(out.max(initial=0.0))
    return np.round(out / largest, _DIGITS) if largest > 0.0 else out  # equal distances may differ in the last bits


def _order(high: Array, low: Array) -> Sampled:
    """Return the share of the pairs of partners of a row that have the same order in both tables of distances."""
    a, b = (np.sign(each[:, ::2] - each[:, 1::2]) for each in (high, low))
    counted, right = (a != 0.0).sum(axis=1), np.where(a == 0.0, 0.0, 0.5 * (1.0 + a * b)).sum(axis=1)
    return _with_error(lambda some: right[some].sum() / counted[some].sum() if counted[some].any() else np.nan, len(a))


def _correlation(a: Array, b: Array) -> Sampled:
    """Return the correlation of two tables of ranks."""
    a, b = a - a.mean(), b - b.mean()
    products, squares, others = ((x * y).sum(axis=1) for x, y in ((a, b), (a, a), (b, b)))

    def correlation(some: Any) -> float:
        scale = np.sqrt(squares[some].sum() * others[some].sum())
        return float(products[some].sum() / scale) if scale > 0.0 else np.nan

    return _with_error(correlation, len(a))


def _with_error(score: Any, n: int) -> Sampled:
    """Return a score of rows with its standard error, by leaving out each row in turn (jackknife).

    With more than 100 rows, a hundredth of them is left out at a time.
    """
    groups = np.arange(n) % min(n, 100)
    left = np.array([score(groups != g) for g in range(groups.max() + 1)])
    m = len(left)
    found = Sampled(score(slice(None)))
    found.standard_error = float(np.sqrt((m - 1) / m * ((left - left.mean()) ** 2).sum()))
    return found
