"""The nearest neighbours of the rows of a matrix on a device: among all rows, or in the lists of an inverted file.

Distances come from matrix products in single precision. A few more neighbours than needed are kept, and their
distances are then computed again from the differences of the rows in double precision. The recall is measured on some
rows, because products lose small differences of large numbers. If it is too small, products have double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from drsne.backends.torch.segments import segment_sums

_GROUPS = (8, 64)  # least and largest number of rows in a group: only the nearest groups are searched row by row
_EXTRA = 8  # number of neighbours that are kept in addition until distances are exact
_BLOCK = 2**28  # largest number of distances in memory
_CHECKED = 1000  # number of rows whose recall is measured
_EXACT_RECALL = 0.999  # recall of a search among all rows below which it is repeated in double precision
GOOD_RECALL, _HIGH_RECALL = 0.95, 0.99  # recall that a search must have, and above which more lists are not tried
_INVERTED_FROM = 300_000  # smallest number of rows for which an inverted file is faster
_LIST = 2048  # mean number of rows in a list
_PROBES = (8, 16, 32, 64, 128, 256)  # numbers of lists that are searched; the first one with a high recall is taken
_LARGEST_SHARE = 0.5  # share of the rows in the searched lists above which all rows are searched
_ROUNDS = 8  # number of rounds of k-means
_TRAINED = 64  # number of rows per list that k-means sees


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute matrix products in full single precision, whatever the user has chosen for other programs."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def unit_rows(X: Tensor) -> Tensor:
    """Return rows scaled to unit length. A row of zeros becomes nan."""
    X = X / X.abs().amax(dim=1, keepdim=True)
    return X / torch.linalg.vector_norm(X, dim=1, keepdim=True)


class Found(NamedTuple):
    """The neighbours of every row, nearest first, and the recall of an approximate search."""

    indices: Tensor  # (n, k), int32
    distances: Tensor  # (n, k), float64
    recall: float | None  # None if all rows were compared


def nearest(X: Tensor, k: int) -> Found:
    """Return the ``k`` nearest neighbours of every row of ``X`` (n, d), without the row itself.

    ``X`` has double precision, the mean 0 and values up to about 1.
    """
    rows = _spread(len(X), min(len(X), _CHECKED), X.device).unique()
    _, reach = exact(X, k, X, rows)

    def recall(distances: Tensor) -> float:
        return float((distances <= reach[:, -1:] * (1.0 + 1e-9)).to(torch.float64).mean())

    single = X.to(torch.float32)
    if len(X) >= _INVERTED_FROM:
        lists, chosen, share = _Lists.of(single), 0, 0.0
        for probes in _PROBES:
            if probes * _LIST > _LARGEST_SHARE * len(X):
                break
            chosen, share = probes, recall(lists.nearest(single, k, X, probes, rows)[1])
            if share >= _HIGH_RECALL:
                break
        if share >= GOOD_RECALL:
            return Found(*lists.nearest(single, k, X, chosen), share)
    found = exact(single, k, X)
    if recall(found[1][rows]) < _EXACT_RECALL:
        found = exact(X, k, X)
    return Found(*found, None)


def exact(X: Tensor, k: int, precise: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the neighbours and distances of ``rows``, or of all rows, by computing all distances.

    Products are those of ``X``, and the final distances those of the same rows in double precision.
    """
    n = len(X)
    numbers = torch.arange(n, device=X.device) if rows is None else rows
    norms = (X * X).sum(dim=1)
    wanted = min(k + _EXTRA, n - 1)
    indices = torch.empty((len(numbers), k), dtype=torch.int32, device=X.device)
    distances = torch.empty((len(numbers), k), dtype=torch.float64, device=X.device)
    step = max(1, _BLOCK // n)
    for begin in range(0, len(numbers), step):
        mine = numbers[begin : begin + step]
        D = torch.addmm(norms, X[mine], X.T, alpha=-2.0)  # without the norm of the row, which changes no order
        D[torch.arange(len(mine), device=X.device), mine] = torch.inf
        near = smallest(D, wanted)
        indices[begin : begin + step], distances[begin : begin + step] = _measured(precise, mine, near, k)
    return indices, distances


def smallest(D: Tensor, k: int) -> Tensor:
    """Return the columns of the k smallest values of every row, in no particular order.

    The k smallest values are in the k groups of columns with the smallest minima.
    """
    m, n = D.shape
    least, largest = _GROUPS
    # The values that are compared are one for each group, and then those of the nearest k groups.
    group = min(largest, max(least, 1 << round(math.log2(max(1.0, n / k)) / 2)))
    if n < 4 * group * k:
        return D.topk(k, dim=1, largest=False, sorted=False).indices
    whole = n // group * group
    groups = D[:, :whole].reshape(m, -1, group)
    chosen = groups.amin(dim=2).topk(k, dim=1, largest=False, sorted=False).indices
    columns = (chosen[:, :, None] * group + torch.arange(group, device=D.device)).reshape(m, -1)
    if whole < n:
        columns = torch.cat((columns, torch.arange(whole, n, device=D.device).expand(m, -1)), dim=1)
    best = D.gather(1, columns).topk(k, dim=1, largest=False, sorted=False).indices
    return columns.gather(1, best)


def _measured(X: Tensor, rows: Tensor, near: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k nearest of the neighbours ``near`` by exact distances, nearest first."""
    square = torch.empty(near.shape, dtype=X.dtype, device=X.device)
    step = max(1, _BLOCK // (near.shape[1] * X.shape[1]))
    for begin in range(0, len(rows), step):
        away = X[rows[begin : begin + step], None, :] - X[near[begin : begin + step]]
        square[begin : begin + step] = (away * away).sum(dim=2)
    near = near.sort(dim=1)  # ties go to the smallest number
    square, by = square.gather(1, near.indices).sort(dim=1, stable=True)
    return near.values.gather(1, by)[:, :k].to(torch.int32), square[:, :k].sqrt()


class _Lists(NamedTuple):
    """The rows divided into lists around centres."""

    centres: Tensor  # (lists, d)
    order: Tensor  # the rows, list by list
    starts: list[int]  # where each list begins in ``order``

    @classmethod
    def of(cls, X: Tensor) -> _Lists:
        """Divide rows by k-means. Sums are over sorted rows, so the result does not depend on the order of threads."""
        count = max(16, len(X) // _LIST)
        sample = X[_spread(len(X), min(len(X), _TRAINED * count), X.device)]
        centres = sample[_spread(len(sample), count, X.device)].clone()
        for _ in range(_ROUNDS):
            label, by_label = torch.sort(_closest(sample, centres)[:, 0], stable=True)
            sizes = torch.bincount(label, minlength=count)
            means = segment_sums(sample[by_label], sizes) / sizes.clamp(min=1)[:, None]
            centres = torch.where(sizes[:, None] > 0, means, centres)
        label, order = torch.sort(_closest(X, centres)[:, 0], stable=True)
        bounds = torch.searchsorted(label, torch.arange(count + 1, device=X.device))
        return cls(centres, order, bounds.tolist())

    def nearest(
        self, X: Tensor, k: int, precise: Tensor, probes: int, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the neighbours of ``rows``, or of every row, in the ``probes`` lists around the list of each row."""
        n, device = len(X), X.device
        probes = min(probes, len(self.centres))
        around = _closest(self.centres, self.centres, probes).tolist()
        sorted_rows = X[self.order]
        norms = (sorted_rows * sorted_rows).sum(dim=1)
        wanted = torch.arange(n, device=device) if rows is None else self._places(rows)
        bounds = torch.tensor(self.starts, device=device)
        ends = torch.searchsorted(wanted, bounds).tolist()
        near = torch.empty((len(wanted), k + _EXTRA), dtype=torch.int32, device=device)  # places along ``order``
        for own, others in enumerate(around):
            if ends[own] == ends[own + 1]:
                continue
            chosen = sorted({own, *others})
            parts = [(self.starts[j], self.starts[j + 1]) for j in chosen if self.starts[j] < self.starts[j + 1]]
            places = torch.cat([torch.arange(a, b, device=device) for a, b in _joined(parts)])
            if len(places) <= k + _EXTRA:
                places = torch.arange(n, device=device)
            candidates, of_candidates = sorted_rows[places], norms[places]
            at_once = max(1, _BLOCK // len(places))
            for begin in range(ends[own], ends[own + 1], at_once):
                end = min(ends[own + 1], begin + at_once)
                mine = wanted[begin:end]
                D = torch.addmm(of_candidates, sorted_rows[mine], candidates.T, alpha=-2.0)
                # The row itself is among the candidates, whose places are sorted.
                D[torch.arange(len(mine), device=device), torch.searchsorted(places, mine)] = torch.inf
                near[begin:end] = places[smallest(D, k + _EXTRA)].to(torch.int32)
        indices = torch.empty((len(wanted), k), dtype=torch.int32, device=device)
        distances = torch.empty((len(wanted), k), dtype=torch.float64, device=device)
        step = max(1, _BLOCK // ((k + _EXTRA) * X.shape[1]))
        for begin in range(0, len(wanted), step):
            part = slice(begin, begin + step)
            numbers = self.order[wanted[part]]
            to = numbers if rows is None else torch.searchsorted(rows, numbers)
            indices[to], distances[to] = _measured(precise, numbers, self.order[near[part].to(torch.int64)], k)
        return indices, distances

    def _places(self, rows: Tensor) -> Tensor:
        """Return the sorted places of some rows along ``order``."""
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(len(place), device=place.device)
        return place[rows].sort().values


def _spread(n: int, count: int, device: torch.device) -> Tensor:
    """Return ``count`` of n numbers at equal intervals, in double precision, because n can exceed 2^24."""
    return torch.linspace(0, n - 1, count, device=device, dtype=torch.float64).to(torch.int64)


def _joined(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges, with those that follow each other joined."""
    out = [parts[0]]
    for a, b in parts[1:]:
        if a == out[-1][1]:
            out[-1] = (out[-1][0], b)
        else:
            out.append((a, b))
    return out


def _closest(X: Tensor, centres: Tensor, count: int = 1) -> Tensor:
    """Return the numbers of the centres that are closest to every row."""
    norms = (centres * centres).sum(dim=1)

    def closest(part: Tensor) -> Tensor:
        D = torch.addmm(norms, part, centres.T, alpha=-2.0)
        return D.argmin(dim=1, keepdim=True) if count == 1 else D.topk(count, dim=1, largest=False).indices

    return torch.cat([closest(part) for part in X.split(max(1, _BLOCK // len(centres)))])
