"""The methods of :class:`drsne.backends.Backend` in PyTorch, on a GPU or a CPU, with Triton programs where they pay.

Every sum is over the rows of an array or over sorted segments. There are no atomic additions, so a fit with the same
seed on the same device gives the same map, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from drsne.backends import NeighborList, PairList, arrays
from drsne.backends.torch import KIND, cells, comparisons, kernels, map_neighbors, neighbors, preparation, steps
from drsne.backends.torch.kernels import FUSED, grid
from drsne.backends.torch.segments import row_ranges, segment_sums, starts
from drsne.backends.torch.tree import TorchTree, pair_dtype
from drsne.precision import unit_scale

_PAIRS = 2**25  # largest number of stored pairs that plain PyTorch sums at a time
_ALL_PAIRS = 2**24  # the same for sums over all pairs
_ROWS, _BLOCK = 4, 32  # points in a program, and pairs of each that it reads at a time
_ATTRACTED = 1  # points in a program of the attraction, which reads more for each pair
_TARGETS, _SOURCES = 32, 64  # points in a program of the sums over all pairs, and points that it reads at a time
_MANY, _OF_FEW = 4096, (2, 512)  # the same for fewer points than _MANY
_REORDERED_FROM = 200_000  # smallest number of points for which an order that follows the map pays


class TorchOrder:
    """An order of the points: row r is point ``rows[r]``."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows
        self._position = torch.empty_like(rows)
        self._position[rows] = torch.arange(len(rows), device=rows.device)

    def reordered(self, values: Tensor) -> Tensor:
        return values[self._rows]

    def restored(self, values: Tensor) -> Tensor:
        return values[self._position]

    def pair_list(self, pairs: PairList) -> PairList:
        counts = pairs.indptr.diff()[self._rows]
        indptr = starts(counts)
        columns, values = torch.empty_like(pairs.columns), torch.empty_like(pairs.values)
        begin = pairs.indptr[:-1][self._rows]
        position = self._position.to(torch.int32)
        for rows, entries, sizes in row_ranges(indptr, _PAIRS):
            places = torch.arange(entries.start, entries.stop, device=indptr.device)
            places += (begin[rows] - indptr[:-1][rows]).repeat_interleave(sizes)
            columns[entries] = position[pairs.columns[places].to(torch.int64)]
            values[entries] = pairs.values[places]
        return PairList(indptr, columns, values)

    def neighbor_table(self, neighbors: Tensor) -> Tensor:
        return self._position[neighbors[self._rows].to(torch.int64)].to(torch.int32)


class TorchBackend:
    """The loops over pairs and points on a ``device`` of PyTorch."""

    kind = KIND
    comparisons = comparisons
    calibrated = staticmethod(preparation.calibrated)
    symmetrized = staticmethod(preparation.symmetrized)
    momentum_step = staticmethod(steps.momentum_step)
    adam_step = staticmethod(steps.adam_step)
    combined = staticmethod(steps.combined)
    moved = staticmethod(steps.moved)
    nearest_in_map = staticmethod(map_neighbors.nearest_in_map)
    tree = TorchTree

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)
        self._sent: tuple[Any, Tensor, float] | None = None  # the last data, their rows on the device, and their unit

    def received(self, values: Any) -> Tensor:
        return torch.as_tensor(values, device=self.device)

    def compared(self, X: Any, metric: Any) -> Tensor:
        return comparisons.received(X, metric, str(self.device))

    def session(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def searches(self, X: Any, metric: Any) -> bool:
        if not isinstance(X, np.ndarray) or metric not in ("euclidean", "cosine"):
            return False
        return bool(metric == "euclidean" or X.any(axis=1).all())  # rows of zeros have no direction

    def nearest(self, X: Any, k: int, *, cosine: bool) -> neighbors.Found:
        if cosine:
            rows = neighbors.unit_rows(self.received(X))
            rows, unit = rows - rows.mean(dim=0), 1.0
        else:
            rows, unit = self._rows(X)
        with neighbors.full_precision():
            found = neighbors.nearest(rows, k)
        return found._replace(distances=0.5 * found.distances**2 if cosine else found.distances * unit)

    def components(self, X: Any, count: int) -> NDArray[np.float64]:
        with neighbors.full_precision():
            found = arrays.host(preparation.components(self._rows(X)[0], min(count, X.shape[1])))
        return np.pad(found, ((0, 0), (0, count - found.shape[1])))

    def _rows(self, X: Any) -> tuple[Tensor, float]:
        """Return data in double precision with the mean 0, in units of about their largest value, and this unit."""
        if self._sent is None or self._sent[0] is not X:
            rows = self.received(X)
            first = unit_scale(rows)
            rows = rows / rows.new_full((), first)  # a division: the inverse of the unit may overflow
            rows = rows - rows.mean(dim=0)
            second = unit_scale(rows)
            self._sent = X, rows / second, first * second
        return self._sent[1:]

    def forget(self) -> None:
        """Free the data on the device. The neighbours are known by then."""
        self._sent = None

    def reorders(self, n: int) -> bool:
        return n >= _REORDERED_FROM

    def attraction(
        self, Y: Tensor, pairs: PairList, base: float, delta: float, inverse_scales: Tensor | None
    ) -> tuple[Tensor, float | None]:
        n = len(Y)
        if _compiled(Y) and not delta:
            found, places = torch.empty_like(Y), Y
            if inverse_scales is not None:
                u = inverse_scales[:, None].to(Y.dtype)
                places = torch.cat((Y, u, u), dim=1)
            sizes = n, inverse_scales is not None, _ATTRACTED, _BLOCK
            program = kernels.sums.attraction_2d[grid(n, _ATTRACTED)]
            program(places, *pairs, base, found, *sizes, num_warps=1, **FUSED)
            return found.to(torch.float64), None
        forces = torch.empty(Y.shape, dtype=torch.float64, device=Y.device)
        mass = 0.0
        for at in _edges(Y, pairs, base, inverse_scales):
            a = pairs.values[at.entries].to(torch.float64)
            a = a * at.w / (at.w + delta) if delta else a
            mass += float(a.sum()) if delta else 0.0
            forces[at.rows] = segment_sums((a * at.u * at.w)[:, None] * at.away, at.sizes)
        return forces, mass if delta else None

    def energy(self, Y: Tensor, pairs: PairList, base: float, delta: float, inverse_scales: Tensor | None) -> float:
        total = 0.0
        for at in _edges(Y, pairs, base, inverse_scales):
            total -= float((pairs.values[at.entries].to(torch.float64) * torch.log(at.w + delta)).sum())
        return total

    def repulsion(self, Y: Tensor, *, smoothing: float, scales: Tensor | None, precision: str) -> tuple[float, Tensor]:
        real = pair_dtype(Y, scales, precision)
        points = torch.arange(len(Y), device=Y.device)
        potential, forces = _over_all(Y, points, scales, 1.0 + smoothing, real)
        return float(potential.sum()), forces

    def sampled_repulsion(
        self, Y: Tensor, points: Tensor, *, scales: Tensor | None, precision: str
    ) -> tuple[float, NDArray[np.float64]]:
        potential, forces = _over_all(Y, points, scales, 1.0, pair_dtype(Y, scales, precision))
        return float(potential.sum()), arrays.host(forces)

    def weighted_repulsion(
        self, Y: Tensor, points: Tensor, masses: Tensor, *, smoothing: float, scales: Tensor | None, precision: str
    ) -> tuple[Tensor, Tensor]:
        return _over_all(Y, points, scales, 1.0 + smoothing, pair_dtype(Y, scales, precision), masses)

    def neighbor_list(self, neighbors: Tensor) -> NeighborList:
        n, m = neighbors.shape
        flat = neighbors.reshape(-1).contiguous()
        point, by_point = torch.sort(flat, stable=True)
        offsets = torch.searchsorted(point, torch.arange(n + 1, device=flat.device, dtype=flat.dtype))
        return NeighborList(neighbors.contiguous(), offsets, (by_point // m).to(torch.int32))

    def lengths(self, Y: Tensor, neighbors: Tensor, floor: float, lengths: Tensor, directions: Tensor) -> None:
        n, m = neighbors.shape
        if _compiled(Y):
            sizes = n, m, _ROWS, _BLOCK
            program = kernels.sums.lengths_2d[grid(n, _ROWS)]
            program(Y, neighbors, floor, lengths, directions, *sizes, num_warps=1, **FUSED)
            return
        step = max(1, _PAIRS // m)
        for lo in range(0, n, step):
            rows = slice(lo, lo + step)
            away = Y[rows, None, :] - Y[neighbors[rows].to(torch.int64)]
            length = torch.sqrt((away * away).sum(dim=2) + floor)
            lengths[rows] = length.sum(dim=1, dtype=torch.float64)
            directions[rows] = (away / torch.where(length > 0.0, length, 1.0)[:, :, None]).sum(dim=1)

    def pull_back(self, Y: Tensor, near: NeighborList, slope: Tensor, floor: float, forces: Tensor) -> None:
        slope, n = slope.to(Y.dtype), len(Y)
        if _compiled(Y):
            kinds = n, _ROWS, _BLOCK
            program = kernels.sums.pull_back_2d[grid(n, _ROWS)]
            program(Y, near.offsets, near.listed_by, slope, floor, forces, *kinds, num_warps=1, **FUSED)
            return
        for rows, entries, sizes in row_ranges(near.offsets, _PAIRS):
            i, j = _points(rows, sizes), near.listed_by[entries].to(torch.int64)
            away = Y[i] - Y[j]
            length = torch.sqrt((away * away).sum(dim=1) + floor)
            pull = (slope[j] / torch.where(length > 0.0, length, 1.0))[:, None] * away
            forces[rows] = segment_sums(pull, sizes)

    def add_forces(self, slope: Tensor, directions: Tensor, back: Tensor, forces: Tensor) -> None:
        forces += slope[:, None] * directions.sum(dim=0) + back.sum(dim=0)

    def profile_slope(
        self, radii: Tensor, target: Tensor, *, exponent: float, added: float, attached: bool
    ) -> tuple[float, Tensor]:
        r = (radii + added).clamp(min=torch.finfo(torch.float64).tiny)
        log = -exponent * torch.log(r / r.amin())
        c = torch.exp(log)
        mean = c.mean()
        e = target - (log - torch.log(mean))
        pull = e - c / mean * e.mean() if attached else e
        return float((e * e).mean()), (2.0 * exponent / len(e)) * pull / r

    def kernel_sums(self, Y: Tensor, pairs: PairList) -> tuple[Tensor, Tensor]:
        near, far = (torch.empty(len(Y), dtype=torch.float64, device=Y.device) for _ in range(2))
        for at in _edges(Y, pairs, 1.0, None):
            near[at.rows] = segment_sums(at.w, at.sizes)
            far[at.rows] = segment_sums(at.w * (at.away * at.away).sum(dim=1), at.sizes)
        return near, far

    def add_kernel_forces(self, Y: Tensor, pairs: PairList, pull: Tensor, forces: Tensor) -> None:
        for rows, entries, sizes in row_ranges(pairs.indptr, _PAIRS):
            i, j = _points(rows, sizes), pairs.columns[entries].to(torch.int64)
            away = (Y[i] - Y[j]).to(torch.float64)
            w = 1.0 / (1.0 + (away * away).sum(dim=1))
            both = (pull[i] + pull[j]).to(torch.float64)
            forces[rows] += segment_sums((w * w * both)[:, None] * away, sizes)

    def order(self, Y: Tensor) -> TorchOrder:
        """Return the points leaf by leaf of a tree over the map."""
        return TorchOrder(cells.structure(Y[:, :3]).order)


def _compiled(Y: Tensor) -> bool:
    """Return whether there are Triton programs for a map."""
    return kernels.compiled(Y) and Y.shape[1] == 2


class _Edges(NamedTuple):
    """The stored pairs (i, j) of some rows, in double precision."""

    rows: slice
    entries: slice
    sizes: Tensor  # number of pairs of each row
    w: Tensor  # kernel
    u: Any  # product of the inverse scales
    away: Tensor  # y_i - y_j


def _edges(Y: Tensor, pairs: PairList, base: float, inverse_scales: Tensor | None) -> Iterator[_Edges]:
    """Yield the stored pairs, some rows at a time."""
    for rows, entries, sizes in row_ranges(pairs.indptr, _PAIRS):
        i, j = _points(rows, sizes), pairs.columns[entries].to(torch.int64)
        away = (Y[i] - Y[j]).to(torch.float64)
        u = 1.0 if inverse_scales is None else (inverse_scales[i] * inverse_scales[j]).to(torch.float64)
        yield _Edges(rows, entries, sizes, 1.0 / (base + u * (away * away).sum(dim=1)), u, away)


def _points(rows: slice, sizes: Tensor) -> Tensor:
    """Return the number of the row of each of its entries."""
    return torch.arange(rows.start, rows.stop, device=sizes.device).repeat_interleave(sizes)


def _over_all(
    Y: Tensor, points: Tensor, scales: Tensor | None, base: float, real: torch.dtype, masses: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the sums of the kernel and the forces for some points, over all points, which may have masses."""
    n, d = Y.shape
    places, points = (Y - Y.mean(dim=0)).to(real).contiguous(), points.contiguous()
    inverse = None if scales is None else (1.0 / scales).to(real)
    potential = torch.empty(len(points), dtype=torch.float64, device=Y.device)
    forces = torch.empty((len(points), d), dtype=torch.float64, device=Y.device)
    if _compiled(places) and masses is None:
        sums = torch.empty((3, len(points)), dtype=real, device=Y.device)
        targets, sources = (_TARGETS, _SOURCES) if len(points) >= _MANY else _OF_FEW
        sizes = len(points), n, inverse is not None, targets, sources
        program = kernels.sums.repulsion_2d[grid(len(points), targets)]
        program(places, places if inverse is None else inverse, points, base, sums, *sizes, num_warps=4, **FUSED)
        return sums[0].to(torch.float64), sums[1:].T.to(torch.float64)
    step = max(1, _ALL_PAIRS // n)
    for lo in range(0, len(points), step):
        some = points[lo : lo + step]
        away = [places[some, c, None] - places[None, :, c] for c in range(d)]
        factor: Any = 1.0 if inverse is None else inverse[some, None] * inverse[None, :]
        square: Any = sum(each * each for each in away)
        w = 1.0 / (base + factor * square)
        w[torch.arange(len(some), device=Y.device), some] = 0.0
        of_mass = w if masses is None else masses.to(real) * w
        potential[lo : lo + step] = of_mass.sum(dim=1, dtype=torch.float64)
        for c in range(d):
            forces[lo : lo + step, c] = (factor * of_mass * w * away[c]).sum(dim=1, dtype=torch.float64)
    return potential, forces
