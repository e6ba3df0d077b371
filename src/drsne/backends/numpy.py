"""The backend in plain NumPy, which is the reference that every other backend is tested against.

Each method is written as its formula. Memory grows with the square of the number of points, so this backend is for
small data only.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Kind, NeighborList, Order, PairList

Array = NDArray[np.float64]


class NumpyOrder:
    """An order of the points: row r is point ``rows[r]``."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._rows = rows
        self._position = np.argsort(rows)

    def reordered(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(values[self._rows])

    def restored(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(values[self._position])

    def pair_list(self, pairs: PairList) -> PairList:
        counts = np.diff(pairs.indptr)[self._rows]
        places = np.concatenate([np.arange(pairs.indptr[i], pairs.indptr[i + 1]) for i in self._rows])
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(pairs.indptr.dtype)
        return PairList(indptr, self._position[pairs.columns[places]].astype(np.int32), pairs.values[places])

    def neighbor_table(self, neighbors: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.asarray(self._position[neighbors[self._rows]], dtype=np.int32)


class NumpyBackend:
    """The loops over pairs and points of :class:`drsne.backends.Backend`, in plain NumPy."""

    kind = Kind("numpy")

    def received(self, values: Any) -> Any:
        """Return the values unchanged."""
        return values

    def session(self) -> AbstractContextManager[Any]:
        """Return a context in which loops run."""
        return nullcontext()

    def searches(self, X: Any, metric: Any) -> bool:
        """Return False, because neighbours in the data are searched by :mod:`drsne.neighbors`."""
        return False

    def forget(self) -> None:
        """Do nothing, because no data are kept."""

    def reorders(self, n: int) -> bool:
        """Return True, so that tests of this backend cover the orders too."""
        return True

    def attraction(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> tuple[Array, float | None]:
        i, j = _ends(pairs)
        u = _factor(inverse_scales, i, j)
        w = _kernel(Y, i, j, base, u)
        a = pairs.values.astype(np.float64)
        a = a * w / (w + delta) if delta else a
        return _summed(i, (a * u * w)[:, None] * _difference(Y, i, j), len(Y)), float(a.sum()) if delta else None

    def energy(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> float:
        sizes, j = np.diff(pairs.indptr), pairs.columns  # repeating by sizes is faster than indexing by i
        square = sum((np.repeat(y, sizes) - y[j]) ** 2 for y in Y.T)
        if inverse_scales is not None:
            u = inverse_scales
            square = np.repeat(u, sizes) * u[j] * square
        inverse_w = Y.dtype.type(base) + square
        inverse_q = inverse_w / (1.0 + delta * inverse_w) if delta else inverse_w
        return float((pairs.values * np.log(inverse_q)).sum(dtype=np.float64))

    def repulsion(self, Y: Array, *, smoothing: float, scales: Array | None, precision: str) -> tuple[float, Array]:
        """Return the partition sum and the repulsive forces over all pairs, always in double precision."""
        u = 1.0 if scales is None else 1.0 / np.outer(scales, scales)
        away = [column[:, None] - column[None, :] for column in Y.T]
        w = 1.0 / (1.0 + smoothing + u * sum(difference**2 for difference in away))
        np.fill_diagonal(w, 0.0)
        return float(w.sum()), np.stack([(u * w**2 * difference).sum(axis=1) for difference in away], axis=1)

    def sampled_repulsion(
        self, Y: Array, points: NDArray[Any], *, scales: Array | None, precision: str
    ) -> tuple[float, Array]:
        u = 1.0 if scales is None else 1.0 / np.outer(scales[points], scales)
        away = Y[points, None, :] - Y[None, :, :]
        w = 1.0 / (1.0 + u * (away**2).sum(axis=2))
        w[np.arange(len(points)), points] = 0.0
        return float(w.sum()), ((u * w**2)[:, :, None] * away).sum(axis=1)

    def neighbor_list(self, neighbors: NDArray[np.int32]) -> NeighborList:
        n, m = neighbors.shape
        listed = np.argsort(neighbors.ravel(), kind="stable") // m
        offsets = np.concatenate(([0], np.cumsum(np.bincount(neighbors.ravel(), minlength=n))))
        return NeighborList(np.ascontiguousarray(neighbors), offsets, listed.astype(np.int32))

    def lengths(
        self, Y: NDArray[Any], neighbors: NDArray[np.int32], floor: float, lengths: Array, directions: NDArray[Any]
    ) -> None:
        away = Y[:, None, :].astype(np.float64) - Y[neighbors]
        length = np.sqrt((away**2).sum(axis=2) + floor)
        lengths[:] = length.sum(axis=1)
        directions[:] = (away / np.where(length > 0.0, length, 1.0)[:, :, None]).sum(axis=1)

    def pull_back(self, Y: NDArray[Any], near: NeighborList, slope: Array, floor: float, forces: NDArray[Any]) -> None:
        i, j = np.repeat(np.arange(len(Y)), np.diff(near.offsets)), near.listed_by
        away = _difference(Y, i, j)
        length = np.sqrt((away**2).sum(axis=1) + floor)
        forces[:] = _summed(i, (slope[j] / np.where(length > 0.0, length, 1.0))[:, None] * away, len(Y))

    def add_forces(self, slope: Array, directions: NDArray[Any], back: NDArray[Any], forces: Array) -> None:
        forces += slope[:, None] * directions.sum(axis=0) + back.sum(axis=0)

    def profile_slope(
        self, radii: Array, target: Array, *, exponent: float, added: float, attached: bool
    ) -> tuple[float, Array]:
        r = radii + added
        c = (r / r.min()) ** -exponent
        relative = c / c.mean()
        e = target - np.log(relative)
        pull = e - relative * e.mean() if attached else e
        return float(np.mean(e**2)), 2.0 * exponent / len(e) * pull / r

    def kernel_sums(self, Y: NDArray[Any], pairs: PairList) -> tuple[Array, Array]:
        i, j = _ends(pairs)
        w = _kernel(Y, i, j, 1.0, 1.0)
        square = (_difference(Y, i, j) ** 2).sum(axis=1)
        n = len(Y)
        return np.asarray(np.bincount(i, w, n)), np.asarray(np.bincount(i, w * square, n))

    def add_kernel_forces(self, Y: NDArray[Any], pairs: PairList, pull: NDArray[Any], forces: Array) -> None:
        i, j = _ends(pairs)
        w = _kernel(Y, i, j, 1.0, 1.0)
        forces += _summed(i, (w**2 * (pull[i] + pull[j]))[:, None] * _difference(Y, i, j), len(Y))

    def nearest_in_map(self, Y: NDArray[Any], k: int) -> NDArray[np.int32]:
        square = ((Y[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
        np.fill_diagonal(square, np.inf)
        return np.argsort(square, axis=1, kind="stable")[:, :k].astype(np.int32)

    def order(self, Y: Array) -> Order:
        """Return the points sorted by their first coordinate."""
        return NumpyOrder(np.argsort(Y[:, 0], kind="stable"))

    def momentum_step(
        self,
        gradient: Array,
        step: Array,
        gains: Array,
        *,
        rate: float,
        momentum: float,
        min_gain: float | None,
        grow_from_rest: bool,
        units: Array | None = None,
    ) -> Array:
        """Update the last ``step`` and the ``gains`` in place, and return the step.

        The gain of a coordinate grows while the gradient keeps its sign, that is, while the last step went downhill.
        """
        gradient = _in_units(gradient, units)
        if min_gain is not None:
            uphill = np.sign(step) == np.sign(gradient) if grow_from_rest else step * gradient >= 0.0
            lowered = gains * 0.8
            gains += 0.2
            np.copyto(gains, lowered, where=uphill)
            np.maximum(gains, min_gain, out=gains)
            gradient = gains * gradient
        step *= momentum
        step -= rate * gradient
        return step

    def adam_step(
        self,
        gradient: Array,
        mean: Array,
        square: Array,
        *,
        rate: float,
        betas: tuple[float, float],
        eps: float,
        n_steps: int,
        units: Array | None = None,
    ) -> Array:
        gradient = _in_units(gradient, units)
        one, two = betas
        mean *= one
        mean += (1.0 - one) * gradient
        power = gradient * gradient
        power *= 1.0 - two
        square *= two
        square += power
        root = np.sqrt(square, out=power)
        root *= 1.0 / math.sqrt(1.0 - two**n_steps)
        root += eps
        step = np.divide(mean, root, out=root)
        step *= -rate / (1.0 - one**n_steps)
        return step

    def combined(self, attraction: Array, repulsion: Array, a: float, b: float, factor: float) -> Array:
        attraction *= a
        repulsion *= b
        attraction -= repulsion
        attraction *= factor
        return attraction

    def moved(self, Y: Array, step: Array, *, units: Array | None, longest: float | None, center: bool) -> Array | None:
        if longest is not None:
            length = np.sqrt(np.einsum("ij,ij->i", step, step))
            if not length.max() <= longest:
                step = step * np.minimum(1.0, longest / np.maximum(length, longest))[:, None]
        out = Y + _in_units(step, units)
        for column in out.T:  # in a loop, because NumPy's mean over the first axis takes ten times as long
            mean = float(column.mean())
            if not math.isfinite(mean):
                return None
            if center:
                column -= mean
        return out


def _in_units(values: Array, units: Array | None) -> Array:
    """Return the rows of ``values`` times the ``units`` of the points, if there are any."""
    return values if units is None else units[:, None] * values


def _ends(pairs: PairList) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the two points of every pair."""
    return np.repeat(np.arange(len(pairs.indptr) - 1), np.diff(pairs.indptr)), pairs.columns


def _difference(Y: NDArray[Any], i: NDArray[Any], j: NDArray[Any]) -> Array:
    return np.asarray(Y[i].astype(np.float64) - Y[j])


def _factor(inverse_scales: NDArray[Any] | None, i: NDArray[Any], j: NDArray[Any]) -> Any:
    return 1.0 if inverse_scales is None else inverse_scales[i].astype(np.float64) * inverse_scales[j]


def _kernel(Y: NDArray[Any], i: NDArray[Any], j: NDArray[Any], base: float, u: Any) -> Array:
    return np.asarray(1.0 / (base + u * (_difference(Y, i, j) ** 2).sum(axis=1)))


def _summed(i: NDArray[Any], values: Array, n: int) -> Array:
    """Return, for each point, the sum of the rows of ``values`` that belong to the point."""
    return np.stack([np.bincount(i, column, n) for column in values.T], axis=1)
