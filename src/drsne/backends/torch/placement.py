"""Placing new rows in a fixed map on a device of PyTorch.

All rows of a chunk are moved in lockstep, and each makes the same decisions as in
:mod:`drsne.backends.numba.kernels.placement`. Rows that have arrived are taken out of the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from drsne.backends import arrays
from drsne.backends.protocol import Limits, Rows, Shared
from drsne.backends.torch import map_neighbors, queries
from drsne.backends.torch.row_losses import Field, loss
from drsne.backends.torch.segments import dot, row_sums

Array = NDArray[np.float64]
_CHUNK = {"cpu": 4096, "cuda": 2**16}  # number of new rows that are placed at once
_VALUES = 2**26  # largest number of values of the rows of a chunk, unless it has as few rows as on the CPU


class TorchPlacer:
    """The loops over new rows on a ``device`` (see :class:`drsne.backends.protocol.Placer`)."""

    chunk: int | None = None  # number of rows that are placed together, or None for that of the device

    def __init__(self, device: Any, limits: Limits, workers: Any) -> None:
        self.device, self.workers, self._limits = torch.device(device), workers, limits
        self.name = f"torch {self.device}"

    def rows_at_once(self, n_features: int) -> int:
        largest = self.chunk or _CHUNK[self.device.type]
        return min(largest, max(_CHUNK["cpu"], _VALUES // n_features))

    def dense_search(self, X: Array) -> Callable[[Array, int], tuple[NDArray[np.int32], Array]]:
        return queries.search_among(X, self.device)

    def _sent(self, values: NDArray[Any]) -> Tensor:
        return queries.sent(values, self.device)

    def field(self, places: Array, scales: Array, masses: Array, stretch: float) -> tuple[Field, float]:
        at = self._sent(places.T)
        found = Field(at, at / stretch, self._sent(scales), self._sent(masses), stretch)
        return found, found.partition()

    def received(self, rows: Rows) -> Rows:
        return Rows(*map(self._sent, rows))

    def chosen(self, rows: Rows, some: NDArray[Any]) -> Rows:
        return _of_rows(rows, self._sent(some))

    def pulled(self, rows: Rows, anchors: Array, stiffness: Array) -> Rows:
        return rows._replace(anchors=self._sent(anchors), stiffness=self._sent(stiffness))

    def begin(self, rows: Rows, shared: Shared, d: int) -> Array:
        """Return the best of some starts: the mean place of the neighbours, and the nearest of them.

        Rows that are kept apart by a large weight start outside of the map.
        """
        places = shared.field.places
        _, _, _, _, outer, rim, centre = shared.constants
        shares = rows.affinities / row_sums(rows.affinities)[:, None]
        mean = torch.stack([row_sums(shares * places[c][rows.near]) for c in range(d)], dim=1)
        away = mean - self._sent(centre)
        length = torch.sqrt(row_sums(away * away))[:, None]
        first = torch.zeros_like(away)
        first[:, 0] = rim
        Y = self._sent(centre) + torch.where(length > 0.0, rim * away / length, first)
        inner = torch.nonzero(rows.apart < outer)[:, 0]
        if len(inner):
            some, best = _of_rows(rows, inner), mean[inner]
            least, _ = loss(best, some, None, shared, self._limits)
            for candidate in range(min(self._limits.candidates, rows.near.shape[1])):
                y = places[:, some.near[:, candidate]].T.contiguous()
                value, _ = loss(y, some, None, shared, self._limits)
                better = value < least
                best, least = torch.where(better[:, None], y, best), torch.where(better, value, least)
            Y[inner] = best
        return arrays.host(Y)

    def values(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared) -> Array:
        return arrays.host(loss(self._sent(Y), rows, self._sent(in_map), shared, self._limits)[0])

    def descend(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared, steps: int) -> NDArray[np.bool_]:
        """Move rows by at most so many steps of the BFGS method, and return which have arrived at a minimum."""
        y, listed = self._sent(Y), self._sent(in_map)
        out = y.clone()
        moving = _Moving.of(y, rows, listed, *loss(y, rows, listed, shared, self._limits))
        for _ in range(steps):
            finished = moving.step(shared, self._limits)
            out[moving.at] = moving.y
            if bool(finished.any()):
                moving = moving.where(torch.nonzero(~finished)[:, 0])
            if not len(moving.at):
                break
        Y[...] = arrays.host(out)
        arrived = np.ones(len(Y), np.bool_)
        arrived[arrays.host(moving.at)] = False
        return arrived

    def index(self, places: Array) -> map_neighbors.MapIndex:
        return map_neighbors.MapIndex.of(self._sent(places))

    def nearest(self, index: map_neighbors.MapIndex, Y: Array, k: int) -> tuple[Array, NDArray[Any]]:
        distances, indices = index.nearest(self._sent(Y), k)
        return arrays.host(distances), arrays.host(indices)


def _of_rows(rows: Rows, some: Tensor) -> Rows:
    return Rows(*(each[some] for each in rows))


@dataclass
class _Moving:
    """Rows that still move, with the state of their descent."""

    at: Tensor  # their numbers, (m,)
    y: Tensor  # (m, d)
    rows: Rows
    in_map: Tensor
    value: Tensor  # (m,)
    gradient: Tensor  # (m, d)
    inverse: Tensor  # inverse Hessians, (m, d, d)
    fresh: Tensor  # whether the inverse Hessian begins again, (m,)

    @classmethod
    def of(cls, y: Tensor, rows: Rows, in_map: Tensor, value: Tensor, gradient: Tensor) -> _Moving:
        """Return rows at the start of a descent."""
        m, d = y.shape
        fresh = torch.ones(m, dtype=torch.bool, device=y.device)
        return cls(torch.arange(m, device=y.device), y, rows, in_map, value, gradient, y.new_zeros((m, d, d)), fresh)

    def where(self, some: Tensor) -> _Moving:
        """Return some of the rows."""
        parts = (getattr(self, each.name) for each in fields(self))
        return _Moving(*(_of_rows(each, some) if isinstance(each, Rows) else each[some] for each in parts))

    def step(self, shared: Shared, limits: Limits) -> Tensor:
        """Make a step with every row, and return which rows have arrived.

        The inverse Hessian begins as that of the attraction to neighbours at the distance zero.
        """
        a, d = self.rows.scales, self.y.shape[1]
        start = (0.5 * a * a)[:, None, None] * torch.eye(d, dtype=a.dtype, device=a.device)
        self.inverse = torch.where(self.fresh[:, None, None], start, self.inverse)
        direction = -row_sums(self.inverse * self.gradient[:, None, :])
        length, slope = torch.sqrt(dot(direction, direction)), dot(direction, self.gradient)
        trial, moved, after, size, accepted = self._searched(direction, length, slope, shared, limits)
        by, change = trial - self.y, after - self.gradient
        last = accepted & (size * length < limits.small * a)
        product = dot(by, change)
        curved = accepted & ~last & (product > limits.curved * dot(change, change))
        image = row_sums(self.inverse * change[:, None, :])
        per = torch.where(curved, product, 1.0)[:, None, None]
        total = (product + dot(change, image))[:, None, None]
        outer = by[:, :, None] * by[:, None, :]
        mixed = image[:, :, None] * by[:, None, :] + by[:, :, None] * image[:, None, :]
        updated = self.inverse + (total * outer / per - mixed) / per
        self.inverse = torch.where(curved[:, None, None], updated, self.inverse)
        finished = last | (~accepted & self.fresh)
        self.y, self.value, self.gradient, self.fresh = trial, moved, after, ~accepted
        return finished

    def _searched(
        self, direction: Tensor, length: Tensor, slope: Tensor, shared: Shared, limits: Limits
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Halve the steps of the rows until their losses decrease enough.

        Return the places, losses and gradients after the steps, the sizes of the steps, and which were accepted. Rows
        whose steps were not accepted stay where they are.
        """
        trial, moved, after = self.y.clone(), self.value.clone(), self.gradient.clone()
        size = (limits.longest * self.rows.scales / length).clamp(max=1.0)
        downhill = (length > 0.0) & (slope < 0.0)
        accepted = torch.zeros_like(downhill)
        left = torch.nonzero(downhill)[:, 0]
        rows, in_map = _of_rows(self.rows, left), self.in_map[left]
        for _ in range(limits.halvings):
            if not len(left):
                break
            y = self.y[left] + size[left, None] * direction[left]
            value, gradient = loss(y, rows, in_map, shared, limits)
            enough = value <= self.value[left] + limits.armijo * size[left] * slope[left]
            done = left[enough]
            trial[done], moved[done], after[done], accepted[done] = y[enough], value[enough], gradient[enough], True
            short = size[left] * length[left] < limits.small * self.rows.scales[left]
            rest = torch.nonzero(~enough & ~short)[:, 0]
            left, rows, in_map = left[rest], _of_rows(rows, rest), in_map[rest]
            size[left] *= 0.5
        return trial, moved, after, size, accepted
