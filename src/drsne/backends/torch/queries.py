"""The nearest rows of a matrix for other rows, on a device.

Candidates come from matrix products. A row is proved if all rows that are not candidates are farther away, whatever
the rounding of the products. Products have single precision first, then double precision for rows that are not proved.
Those that are still not proved are compared with all rows. The distances of candidates are summed from differences in
double precision, so the result for a row does not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from drsne.backends import arrays
from drsne.backends.torch.neighbors import full_precision, smallest
from drsne.backends.torch.segments import row_sums
from drsne.precision import unit_scale

Array = NDArray[np.float64]
_EXTRA = 16  # number of further candidates
_PRODUCTS = {"cpu": 2**22, "cuda": 2**27}  # largest number of products in memory
_DIFFERENCES = {"cpu": 2**22, "cuda": 2**26}  # largest number of differences in memory


def sent(values: NDArray[Any], device: Any) -> Tensor:
    """Return an array as a tensor on a device. On the CPU, they share their memory if the array can be changed."""
    values = np.ascontiguousarray(values)
    return torch.as_tensor(values if values.flags.writeable else values.copy(), device=device)


def search_among(X: Array, device: Any) -> Callable[[Array, int], tuple[NDArray[np.int32], Array]]:
    """Return a function of new rows (m, d) and k, which returns the numbers and distances of the k nearest rows.

    Rows at the same distance are sorted by their number.
    """
    among = Among(sent(X, device))

    def search(Q: Array, k: int) -> tuple[NDArray[np.int32], Array]:
        with full_precision():
            indices, squares = among.nearest(among.scaled(sent(Q, device)), k)
        return arrays.host(indices.to(torch.int32)), arrays.host(among.restored(squares.sqrt()))

    return search


class Among:
    """Rows in units of about their spread, and the factors of products with other rows."""

    def __init__(self, X: Tensor) -> None:
        self._first = unit_scale(X)
        rows = X / X.new_full((), self._first)  # a division: the inverse of the unit may overflow
        mean = rows.mean(dim=0)
        self._second = unit_scale(rows - mean)
        self.rows, self.mean, self.block = rows / self._second, mean / self._second, _DIFFERENCES[X.device.type]
        centred = self.rows - self.mean
        self.norms = (centred * centred).sum(dim=1)
        self.single = centred.to(torch.float32)

    def scaled(self, Q: Tensor) -> Tensor:
        """Return other rows in the same units."""
        return Q / Q.new_full((), self._first) / self._second

    def restored(self, distances: Tensor) -> Tensor:
        """Return distances in the units of the data."""
        return distances * self._second * self._first

    def nearest(self, own: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the numbers of the k nearest rows (m, k), and their squared distances."""
        indices = torch.empty((len(own), k), dtype=torch.int64, device=own.device)
        squares = torch.empty((len(own), k), dtype=torch.float64, device=own.device)
        left = torch.arange(len(own), device=own.device)
        step = max(1, _PRODUCTS[own.device.type] // len(self.rows))
        for double in (False, True):
            rest = []
            factors = self.rows - self.mean if double else self.single
            for some in left.split(step):
                indices[some], squares[some], proved = self._by_products(own[some], factors, k)
                rest.append(some[~proved])
            left = torch.cat(rest)
            if not len(left):
                return indices, squares
        for some in left.split(step):
            indices[some], squares[some] = self._by_differences(own[some], k)
        return indices, squares

    def _by_products(self, own: Tensor, factors: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the nearest of some candidates, and whether these are proved to be the nearest rows.

        The error of a product is at most ``doubt`` times the sum of both squared norms.
        """
        n, real = len(factors), factors.dtype
        doubt = (2 * factors.shape[1] + 16) * torch.finfo(real).eps
        centred = own - self.mean
        D = torch.addmm((self.norms * (1.0 - doubt)).to(real), centred.to(real), factors.T, alpha=-2.0)
        near = smallest(D, min(k + _EXTRA, n))
        indices, squares = self.measured(own, near, k)
        if near.shape[1] == n:
            return indices, squares, torch.ones(len(own), dtype=torch.bool, device=own.device)
        bound = D.gather(1, near).amax(dim=1).to(torch.float64) + (1.0 - doubt) * (centred * centred).sum(dim=1)
        return indices, squares, squares[:, -1] < bound

    def measured(self, own: Tensor, near: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k nearest of the candidates ``near`` (m, c) by exact distances, nearest first."""
        squares = torch.empty(near.shape, dtype=torch.float64, device=own.device)
        near = near.sort(dim=1).values  # ties go to the smallest number
        step = max(1, self.block // (near.shape[1] * own.shape[1]))
        for first in range(0, len(own), step):
            some = slice(first, first + step)
            away = own[some, None, :] - self.rows[near[some]]
            squares[some] = row_sums(away * away)
        squares, by = squares.sort(dim=1, stable=True)
        return near.gather(1, by[:, :k]), squares[:, :k]

    def _by_differences(self, own: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the nearest of all rows."""
        squares = torch.empty((len(own), len(self.rows)), dtype=torch.float64, device=own.device)
        step = max(1, self.block // (len(own) * own.shape[1]))
        for first in range(0, len(self.rows), step):
            away = own[:, None, :] - self.rows[first : first + step]
            squares[:, first : first + step] = row_sums(away * away)
        squares, by = squares.sort(dim=1, stable=True)
        return by[:, :k], squares[:, :k]
