"""The methods of :class:`drsne.backends.Backend` as compiled loops that run on threads."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends import FEW, NeighborList, PairList
from drsne.backends.numba import KIND
from drsne.backends.numba.cells import NumbaTree, nearest_in_map
from drsne.backends.numba.kernels import concentration, repulsion, steps
from drsne.backends.numba.kernels import pairs as stored
from drsne.backends.numba.ordering import LIGHT, Ordering, along_curve, listed_back
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.backends.numpy import NumpyBackend
from drsne.precision import pair_type, scaled_pair_type

Array = NDArray[np.float64]
_COMPILED_FROM = 8192  # smallest number of points for which a compiled step is faster than NumPy
_SAMPLED = 16  # smallest number of sampled points in a block
_HALVES = 64  # largest number of blocks if every block writes forces on all points
_REPULSION = {1: repulsion.repulsion_1d, 3: repulsion.repulsion_3d}


class NumbaBackend(NumpyBackend):
    """Compiled loops that run on the threads of ``workers``.

    There are separate functions for two dimensions, because a loop over an unknown number of coordinates is not
    vectorised.
    """

    kind = KIND

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    @property
    def tree(self) -> NumbaTree:
        """The sums over a tree of cells."""
        return NumbaTree(self.workers)

    def session(self) -> AbstractContextManager[Any]:
        return self.workers

    def attraction(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> tuple[Array, float | None]:
        n, flat = len(Y), Y.shape[1] == 2
        forces, masses = np.empty(Y.shape), np.empty(n_blocks(n))
        edges, out = _edges(Y, pairs, base, inverse_scales), (forces, masses)
        if flat and (inverse_scales is None or not delta):
            self.workers.run(stored.attraction_2d, n, *edges, delta or None, *out)
        else:
            smoothing = None if inverse_scales is None and not delta else delta
            self.workers.run(stored.attraction, n, *edges, smoothing, *out)
        return forces, float(masses.sum()) if delta else None

    def energy(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> float:
        if len(Y) < FEW:
            return super().energy(Y, pairs, base, delta, inverse_scales)
        sums = np.empty(n_blocks(len(Y)))
        self.workers.run(stored.energy, len(Y), *_edges(Y, pairs, base, inverse_scales), delta, sums)
        return float(sums.sum())

    def repulsion(self, Y: Array, *, smoothing: float, scales: Array | None, precision: str) -> tuple[float, Array]:
        n, d = Y.shape
        real = pair_type(Y, precision) if scales is None else scaled_pair_type(Y, scales, precision)
        coordinates = np.ascontiguousarray((Y - Y.mean(axis=0)).T, dtype=real)
        inverse = None if scales is None else (1.0 / scales).astype(real)
        constants = real(1.0), real(1.0 + smoothing)
        forces = np.empty((n, d))
        if d == 2:  # every pair is visited once
            half = (n + 1) // 2
            grain = max(256 if scales is None else 128, half // _HALVES)
            blocks = n_blocks(half, grain)
            back, partition = np.empty((blocks, 2, n), dtype=real), np.empty(blocks)
            out = forces, back, partition
            self.workers.run(repulsion.half_2d, half, coordinates, inverse, *constants, *out, grain=grain)
            forces += back.sum(axis=0, dtype=np.float64).T
            return float(partition.sum()), forces
        partition = np.empty(n_blocks(n))
        if scales is None and d in _REPULSION:
            self.workers.run(_REPULSION[d], n, coordinates, *constants, forces, partition)
        else:
            self.workers.run(repulsion.repulsion_any, n, coordinates, inverse, *constants, forces, partition)
        return float(partition.sum()), forces

    def sampled_repulsion(
        self, Y: Array, points: NDArray[Any], *, scales: Array | None, precision: str
    ) -> tuple[float, Array]:
        d = Y.shape[1]
        sample_first = np.concatenate((points, np.delete(np.arange(len(Y)), points)))
        real: Any = pair_type(Y, precision) if scales is None else scaled_pair_type(Y, scales, precision)
        coordinates = np.ascontiguousarray((Y[sample_first] - Y.mean(axis=0)).T).astype(real)
        forces, partition = np.empty((len(points), d)), np.empty(n_blocks(len(points), _SAMPLED))
        constants = real(1.0), real(1.0), forces, partition
        if scales is None:
            kernel = {**_REPULSION, 2: repulsion.repulsion_2d}[d]
            self.workers.run(kernel, len(points), coordinates, *constants, grain=_SAMPLED)
        else:
            inverse = (1.0 / scales[sample_first]).astype(real)
            self.workers.run(repulsion.repulsion_any, len(points), coordinates, inverse, *constants, grain=_SAMPLED)
        return float(partition.sum()), forces

    def neighbor_list(self, neighbors: NDArray[np.int32]) -> NeighborList:
        if len(neighbors) < FEW:
            return super().neighbor_list(neighbors)
        neighbors = np.ascontiguousarray(neighbors, dtype=np.int32)
        return NeighborList(neighbors, *listed_back(neighbors, self.workers))

    def lengths(
        self, Y: NDArray[Any], neighbors: NDArray[np.int32], floor: float, lengths: Array, directions: NDArray[Any]
    ) -> None:
        kernel = concentration.radii_2d if Y.shape[1] == 2 else concentration.radii_any
        self.workers.run(kernel, len(Y), Y, neighbors, *_constants(Y, floor), lengths, directions)

    def pull_back(self, Y: NDArray[Any], near: NeighborList, slope: Array, floor: float, forces: NDArray[Any]) -> None:
        kernel = concentration.pull_back_2d if Y.shape[1] == 2 else concentration.pull_back_any
        listed = (near.offsets, near.listed_by, slope.astype(Y.dtype))
        self.workers.run(kernel, len(Y), Y, *listed, *_constants(Y, floor), forces)

    def add_forces(self, slope: Array, directions: NDArray[Any], back: NDArray[Any], forces: Array) -> None:
        if len(directions) == 1:  # the compiled function is only faster for several shares
            forces += slope[:, None] * directions[0] + back[0]
            return
        self.workers.run(concentration.add_forces, len(slope), slope, directions, back, forces)

    def profile_slope(
        self, radii: Array, target: Array, *, exponent: float, added: float, attached: bool
    ) -> tuple[float, Array]:
        n, blocks = len(radii), n_blocks(len(radii), LIGHT)
        least = np.empty(blocks)
        self._by_row(concentration.smallest, radii, least)
        smallest = max(float(least.min()) + added, np.finfo(np.float64).tiny)
        log, relative, sums = np.empty(n), np.empty(n), np.empty((blocks, 2))
        self._by_row(concentration.concentrate, radii, added, smallest, exponent, log, relative, sums)
        mean = float(sums[:, 0].sum()) / n
        self._by_row(concentration.compare, target, math.log(mean), log, sums)
        shift, loss = (float(total) / n for total in sums.sum(axis=0))
        slope, factor = np.empty(n), 2.0 * exponent / n
        shares = (log, relative, shift / mean if attached else 0.0, factor)
        self._by_row(concentration.slopes, radii, added, *shares, slope)
        return loss, slope

    def kernel_sums(self, Y: NDArray[Any], pairs: PairList) -> tuple[Array, Array]:
        near, far = np.empty(len(Y)), np.empty(len(Y))
        kernel = stored.kernel_sums_2d if Y.shape[1] == 2 else stored.kernel_sums
        self.workers.run(kernel, len(Y), Y, pairs.indptr, pairs.columns, Y.dtype.type(1.0), near, far)
        return near, far

    def add_kernel_forces(self, Y: NDArray[Any], pairs: PairList, pull: NDArray[Any], forces: Array) -> None:
        kernel = stored.kernel_forces_2d if Y.shape[1] == 2 else stored.kernel_forces
        self.workers.run(kernel, len(Y), Y, pairs.indptr, pairs.columns, Y.dtype.type(1.0), pull, forces)

    def nearest_in_map(self, Y: NDArray[Any], k: int) -> NDArray[np.int32]:
        return nearest_in_map(Y, k, self.workers)

    def momentum_step(self, gradient: Array, step: Array, gains: Array, **settings: Any) -> Array:
        if len(gradient) < _COMPILED_FROM:
            return super().momentum_step(gradient, step, gains, **settings)
        units, rule = settings.get("units"), (settings["grow_from_rest"], settings["momentum"], settings["rate"])
        self._by_row(steps.momentum, gradient, _listed(units), step, gains, settings["min_gain"] or 0.0, *rule)
        return step

    def adam_step(self, gradient: Array, mean: Array, square: Array, **settings: Any) -> Array:
        if len(gradient) < _COMPILED_FROM:
            return super().adam_step(gradient, mean, square, **settings)
        (one, two), n_steps, units = settings["betas"], settings["n_steps"], settings.get("units")
        unbias, rate = 1.0 / math.sqrt(1.0 - two**n_steps), -settings["rate"] / (1.0 - one**n_steps)
        step = np.empty_like(gradient)
        constants = one, two, unbias, settings["eps"], rate
        self._by_row(steps.adam, gradient, _listed(units), mean, square, *constants, step)
        return step

    def combined(self, attraction: Array, repulsion: Array, a: float, b: float, factor: float) -> Array:
        if len(attraction) < _COMPILED_FROM:
            return super().combined(attraction, repulsion, a, b, factor)
        self._by_row(steps.combine, attraction, repulsion, factor * a, factor * b)
        return attraction

    def moved(self, Y: Array, step: Array, *, units: Array | None, longest: float | None, center: bool) -> Array | None:
        if len(Y) < _COMPILED_FROM:
            return super().moved(Y, step, units=units, longest=longest, center=center)
        out, sums = np.empty_like(Y), np.empty((n_blocks(len(Y), LIGHT), Y.shape[1]))
        self._by_row(steps.move, Y, step, _listed(units), np.inf if longest is None else float(longest), out, sums)
        mean = sums.sum(axis=0) / len(Y)
        if not np.isfinite(mean).all():
            return None
        if center:
            self._by_row(steps.shift, out, mean)
        return out

    def _by_row(self, kernel: Any, values: Array, *arguments: Any) -> None:
        """Run a kernel that does little work for each row."""
        self.workers.run(kernel, len(values), values, *arguments, grain=LIGHT)

    def order(self, Y: Array) -> Ordering:
        """Return the points along a Z-order curve of the map."""
        return Ordering(along_curve(Y, self.workers).order, self.workers)


def _edges(Y: NDArray[Any], pairs: PairList, base: float, inverse_scales: NDArray[Any] | None) -> tuple[Any, ...]:
    return Y, inverse_scales, pairs.indptr, pairs.columns, pairs.values, Y.dtype.type(base)


def _listed(units: Array | None) -> Array:
    """Return the units of the points, or an empty array if there are none."""
    return np.empty(0) if units is None else units


def _constants(Y: NDArray[Any], floor: float) -> tuple[Any, ...]:
    real = Y.dtype.type
    return real(floor), real(1.0), np.finfo(real).tiny
