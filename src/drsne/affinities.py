"""Affinities P of t-SNE and their precisions, computed from nearest neighbours (docs/theory.md, eqs. 1 to 5).

Row i of the conditional affinities is ``p_{j|i} = exp(-beta_i d_ij^2) / sum_l exp(-beta_i d_il^2)``. The precision
``beta_i`` gives the row the desired perplexity. The symmetric affinities are ``P = (P_cond + P_cond^T) / (2 n)``. The
smallest squared distance of a row is subtracted first. This does not change the affinities but prevents underflow, so
rows sum to one at any scale of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import FEW, DeviceBackend, PairList, choice
from drsne.backends.arrays import host, same_kind
from drsne.backends.numba.kernels import affinities as kernels
from drsne.backends.numba.ordering import transposed
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.precision import rounded

_PERPLEXITY_TOLERANCE = 1e-4  # largest relative error of the perplexity of a row
_FEW_NEIGHBORS = 256  # largest number of neighbours for which NumPy needs little memory
_STEPS = 100  # largest number of steps of the search
_CONVERGED = 1e-10  # error of the entropy at which a row has converged
_SUM_TOLERANCE = 1e-4  # largest error of the sum of a row of affinities, in either precision
_SMALL = 1e-100  # largest distance in data that can be rescaled if precisions overflow


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Settings of the search for precisions. Values other than the defaults reproduce the paper's code.

    Parameters
    ----------
    neighbors : "auto", "all" or int, default="auto"
        Number of neighbours of each point that have an affinity. "auto" is three times the perplexity, and "all" is all
        other points.
    search : {"bracketed", "doubling"}, default="bracketed"
        "bracketed" is a search that converges. "doubling" is the search of the authors' ablations, which only doubles
        or halves the precision.
    shift : bool, default=True
        Whether to subtract the smallest squared distance from each row. If False, the search does not rescale the
        distances either. It starts at a precision of 1 and stops after ``max_steps``, as in the authors' code.
    smoothing : float, default=0.0
        Constant that is added to the sum of each row, and inside the logarithm when the entropy of the row is computed.
        It can only be used with ``shift=False``.
    max_steps : int, default=50
        Largest number of steps of the search with ``shift=False``.
    tolerance : float, default=1e-5
        Error of the entropy at which the search stops with ``shift=False``.

    Examples
    --------
    >>> from drsne import Calibration
    >>> Calibration(neighbors=60)
    Calibration(neighbors=60, search='bracketed', shift=True, smoothing=0.0, max_steps=50, tolerance=1e-05)
    """

    neighbors: int | str = "auto"
    search: str = "bracketed"
    shift: bool = True
    smoothing: float = 0.0
    max_steps: int = 50
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        if isinstance(self.neighbors, str):
            checks.choice("neighbors", self.neighbors, ("auto", "all"), also=" or an integer")
        else:
            checks.integer("neighbors", self.neighbors, at_least=1)
        checks.choice("search", self.search, ("bracketed", "doubling"))
        checks.flag("shift", self.shift)
        checks.number("smoothing", self.smoothing, at_least=0)
        checks.integer("max_steps", self.max_steps, at_least=1)
        checks.number("tolerance", self.tolerance, above=0)
        if self.shift and (self.search != "bracketed" or self.smoothing):
            raise ValueError(
                f"shift=True needs search='bracketed' and smoothing=0; got search={self.search!r} and "
                f"smoothing={self.smoothing!r}. Pass shift=False for other values."
            )

    def n_neighbors(self, perplexity: float, n_samples: int) -> int:
        """Return the number of neighbours that have an affinity, for data with ``n_samples`` points."""
        if self.neighbors == "all":
            return n_samples - 1
        requested = int(3 * perplexity + 0.5) if self.neighbors == "auto" else int(self.neighbors)
        return max(1, min(n_samples - 1, requested))


DEFAULT_CALIBRATION = Calibration()


class Affinities(NamedTuple):
    """Symmetric affinities, which sum to one, and the precisions of their rows."""

    P: sp.csr_matrix | PairList  # (n, n); pairs if they are on a device
    precisions: NDArray[np.float64]  # (n,)
    offsets: NDArray[np.float64]  # log p_{j|i} + precision_i d_ij^2, the same for all neighbours j of a row i, (n,)
    log_radii: NDArray[np.float64] | None = None  # of the rows in the data, (n,), for den-SNE

    def matrix(self) -> sp.csr_matrix:
        """Return ``P`` as a matrix of SciPy."""
        if not isinstance(self.P, PairList):
            return self.P
        indptr, columns, values = (host(each) for each in self.P)
        index = np.int32 if len(columns) < np.iinfo(np.int32).max else np.int64
        n = len(indptr) - 1
        return sp.csr_matrix((values, columns.astype(index, copy=False), indptr.astype(index)), shape=(n, n))


def affinities(
    graph: KnnGraph,
    perplexity: float,
    calibration: Calibration,
    workers: Workers,
    dtype: type = np.float64,
    masses: NDArray[np.float64] | None = None,
) -> Affinities:
    """Return ``P`` and the precisions for a neighbour graph, and warn if rows cannot reach the perplexity.

    With ``masses``, the graph lists a neighbour of mass m up to m times.
    """
    device = choice.holding(graph.distances)
    if device is not None:
        return _on_device(device, graph, perplexity, workers)
    conditional, precisions = calibrated(graph, perplexity, calibration, workers, dtype)
    found = offsets(graph.distances, conditional, precisions)
    if masses is not None:
        share = masses * (len(masses) / masses.sum())
        P = _symmetrized(graph.indices, conditional * share[:, None].astype(dtype), repeats=True)
        return Affinities(P, precisions, found)
    return Affinities(symmetrize(graph.indices, conditional, workers), precisions, found)


def _on_device(device: DeviceBackend, graph: KnnGraph, perplexity: float, workers: Workers) -> Affinities:
    """Return the affinities of neighbours that are tensors. Unusual rows are calibrated on the CPU."""
    indices: Any = graph.indices
    distances: Any = graph.distances
    conditional, *of_rows, rest = device.calibrated(distances, perplexity)
    precisions, reached = (host(each) for each in of_rows)
    if len(rest):
        rows = host(rest)
        some = host(distances[rest]).astype(np.float64)
        of_rest, precisions[rows], reached[rows] = _by_kernel(some, perplexity, workers, np.float32)
        conditional[rest] = same_kind(of_rest, distances)
    _check_scale(precisions, distances)
    _warn_if_missed(reached, perplexity)
    nearest = host(distances[:, :1]).astype(np.float64)
    return Affinities(
        device.symmetrized(indices, conditional), precisions, offsets(nearest, host(conditional[:, :1]), precisions)
    )


def offsets(
    distances: NDArray[np.float64], conditional: NDArray[Any], precisions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``log p_{j|i} + precision_i d_ij^2`` of every row i, from its nearest neighbour j."""
    with np.errstate(all="ignore"):
        found = np.log(conditional[:, 0].astype(np.float64)) + precisions * distances[:, 0] ** 2
    # If the data are so large or small that precisions overflow, new rows have no affinities from training rows.
    return np.where(np.isfinite(found), found, -np.inf)


def calibrated(
    graph: KnnGraph, perplexity: float, calibration: Calibration, workers: Workers, dtype: type = np.float64
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the rows ``p_{j|i}`` (n, k) and the precisions, and warn if rows cannot reach the perplexity."""
    conditional, precisions, reached = conditional_affinities(graph.distances, perplexity, calibration, workers, dtype)
    _check_rows(conditional, calibration)
    _check_scale(precisions, graph.distances)
    if calibration.shift:
        _warn_if_missed(reached, perplexity)
    return conditional, precisions


def _warn_if_missed(reached: NDArray[np.float64], perplexity: float) -> None:
    """Warn if rows have another perplexity. The comparison is negated so that nan counts as missed."""
    missed = int((~(np.abs(reached - perplexity) <= _PERPLEXITY_TOLERANCE * max(1.0, perplexity))).sum())
    if missed:
        checks.warn(
            f"perplexity={perplexity:g} is out of reach for {missed} of {len(reached)} points. They have "
            f"more than {perplexity:g} nearest neighbours at the same distance (such as duplicates), or fewer than "
            f"{perplexity:g} neighbours in total. The closest possible perplexity is used for them, from "
            f"{np.nanmin(reached):.4g} to {np.nanmax(reached):.4g}. Remove duplicates or change the perplexity to "
            "avoid this warning."
        )


def _check_rows(conditional: NDArray[Any], calibration: Calibration) -> None:
    """Raise an error unless every row is finite and sums to one; without the shift, some rows may underflow."""
    sums = conditional.sum(axis=1, dtype=np.float64)
    if calibration.shift:
        wrong = ~(np.abs(sums - 1.0) <= _SUM_TOLERANCE)
    else:
        wrong = ~np.isfinite(sums) if sums.any() else np.ones(len(sums), dtype=bool)
    if wrong.any():
        way_out = (
            "Please report this error together with the data."
            if calibration.shift
            else "Rescale X, or pass Calibration(shift=True), which works at any scale."
        )
        raise FloatingPointError(
            f"The affinities of each point must be finite and sum to one; those of {int(wrong.sum())} of {len(sums)} "
            f"points do not. For example, row {int(np.argmax(wrong))} sums to {sums[np.argmax(wrong)]:g}. {way_out}"
        )


def _check_scale(precisions: NDArray[np.float64], distances: Any) -> None:
    """Raise an error if precisions overflow because all distances are very small.

    Among data of an ordinary scale, rows that are nearly equal may have infinite precisions.
    """
    if np.isfinite(precisions).all():
        return
    largest = float(distances.max())
    if largest < _SMALL:
        raise ValueError(
            "Distances between neighbours must be large enough that the precisions of the affinities are finite; the "
            f"largest distance is {largest:g}. Rescale X, for example by dividing it by its largest absolute value."
        )


def conditional_affinities(
    distances: NDArray[np.float64],
    perplexity: float,
    calibration: Calibration,
    workers: Workers,
    dtype: type = np.float64,
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows ``p_{j|i}`` (n, k), the precisions (n,) and the perplexities (n,) for ascending distances.

    In double precision, they are always computed by the kernel, because its last bits differ from those of NumPy.
    """
    n, k = distances.shape
    if calibration.shift and (n >= FEW or k > _FEW_NEIGHBORS or dtype != np.float32):
        return _by_kernel(distances, perplexity, workers, dtype)
    found: tuple[NDArray[Any], Any, Any] = np.empty((n, k), dtype), np.empty(n), np.empty(n)
    if not calibration.shift:
        with np.errstate(over="ignore"):  # a distance whose square overflows has the affinity 0
            D = distances**2
        doubling = calibration.search == "doubling"
        constants = (perplexity, calibration.smoothing, calibration.max_steps, calibration.tolerance, doubling)
        workers.run(kernels.calibrate_as_coded, n, D, *constants, *found)
        return found
    rest = _calibrate_few(distances, perplexity, *found)
    if len(rest):
        for values, of_rest in zip(found, _by_kernel(distances[rest], perplexity, workers, dtype), strict=True):
            values[rest] = of_rest
    return found


def _by_kernel(
    distances: NDArray[np.float64], perplexity: float, workers: Workers, dtype: type
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    n = len(distances)
    found: tuple[NDArray[Any], Any, Any] = np.empty(distances.shape, dtype), np.empty(n), np.empty(n)
    workers.run(kernels.calibrate, n, distances, float(perplexity), *found)
    return found


def _calibrate_few(
    distances: NDArray[np.float64],
    perplexity: float,
    P: NDArray[Any],
    precisions: NDArray[np.float64],
    reached: NDArray[np.float64],
) -> NDArray[np.intp]:
    """Write the same as the kernel ``calibrate`` by NumPy, for all rows but those that are returned.

    These are rows with many ties or very distant neighbours. Most data have none, and then nothing needs to be
    compiled.
    """
    n, k = distances.shape
    reach = min(k - 1, math.ceil(perplexity))
    near, largest = distances[:, :1], np.maximum(distances[:, -1:], kernels.TINY)
    with np.errstate(all="ignore"):  # rows with unusual distances are left to the kernel
        ratios = distances / largest
        spread = (ratios[:, -1:] - ratios[:, :1]) * (ratios[:, -1:] + ratios[:, :1])
        D = rounded((ratios - ratios[:, :1]) * (ratios + ratios[:, :1]) / spread)
        tied = (distances <= near + kernels.SAME * near) | ~(D >= kernels.LEAST)
        reaches = (tied.sum(axis=1) < perplexity) & (perplexity < k)
        usual = np.flatnonzero(reaches & (distances[:, -1] <= kernels.BEYOND * distances[:, reach]))
    left, unit, D = usual, (largest * np.sqrt(spread))[:, 0], np.where(tied, 0.0, D)[usual]
    beta = 1.0 / D.mean(axis=1)
    low, high = np.zeros(len(left)), np.full(len(left), np.inf)
    with np.errstate(under="ignore", over="ignore"):
        for turn in range(_STEPS):
            if not len(left):
                break
            e = np.exp(-beta[:, None] * D)
            s = e.sum(axis=1)
            first, second = (e * D).sum(axis=1) / s, (e * D * D).sum(axis=1) / s
            entropy = np.log(s) + beta * first
            gap = entropy - math.log(perplexity)
            done = np.abs(gap) < _CONVERGED
            rows = left[done]
            P[rows] = e[done] / s[done, None]
            precisions[rows] = beta[done] / unit[rows] / unit[rows]
            reached[rows] = np.exp(entropy[done])
            low, high = np.where(gap > 0.0, beta, low), np.where(gap > 0.0, high, beta)
            slope = beta * beta * (second - first * first)
            step = beta * np.exp(np.clip(gap / np.maximum(slope, 1e-300), -3.0, 3.0))
            outside = (step <= low) | (step >= high) | (turn >= kernels.LATE and turn % 2 == 1)
            beta = np.where(outside, np.where(np.isinf(high), 2.0 * beta, 0.5 * (low + high)), step)
            left, D, beta, low, high = (values[~done] for values in (left, D, beta, low, high))
    return np.sort(np.concatenate((np.setdiff1d(np.arange(n), usual), left)))


def _symmetrized(indices: NDArray[np.int32], conditional: NDArray[Any], *, repeats: bool = False) -> sp.csr_matrix:
    """Return the result of :func:`symmetrize` by SciPy, which needs no compilation.

    With ``repeats``, rows may list a neighbour several times.
    """
    n, k = indices.shape
    C = sp.csr_matrix((conditional.ravel().astype(np.float64), indices.ravel(), np.arange(0, n * k + 1, k)), (n, n))
    if repeats:
        C = C.copy()  # the arrays of the caller must not be sorted
        C.sum_duplicates()
    P = sp.csr_matrix((C + C.T) * (0.5 / n))
    P.data = P.data.astype(conditional.dtype)
    P.eliminate_zeros()
    P.sort_indices()
    return P


def symmetrize(indices: NDArray[np.int32], conditional: NDArray[Any], workers: Workers) -> sp.csr_matrix:
    """Return ``(C + C^T) / (2 n)`` as CSR with sorted columns, where ``C[i, indices[i]] = conditional[i]``."""
    n, k = indices.shape
    if n < FEW:
        return _symmetrized(indices, conditional)
    stored = np.arange(0, n * k + 1, k, dtype=np.int64), np.ascontiguousarray(indices).ravel(), conditional.ravel()
    back = transposed(*stored, workers)
    rows = (*transposed(*back, workers), *back)
    indptr = np.zeros(n + 1, np.int64)
    no_output = np.empty(0, np.int32), np.empty(0, conditional.dtype)
    workers.run(kernels.merge, n, *rows, indptr, *no_output)
    np.cumsum(indptr, out=indptr)
    nnz = int(indptr[-1])
    # scipy requires the same type for offsets and columns.
    index = np.int32 if nnz < np.iinfo(np.int32).max else np.int64
    columns, data = np.empty(nnz, index), np.empty(nnz, conditional.dtype)
    workers.run(kernels.merge, n, *rows, indptr, columns, data)
    P = sp.csr_matrix((data, columns, indptr.astype(index)), shape=(n, n), copy=False)
    P.has_sorted_indices = P.has_canonical_format = True
    return P
