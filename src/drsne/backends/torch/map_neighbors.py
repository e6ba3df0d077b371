"""The nearest neighbours of every point in a map, and those of other places, by the cells of a tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from drsne.backends.torch import cells
from drsne.backends.torch.cells import FAN, LEAF, Structure
from drsne.backends.torch.lists import Lists, grouped
from drsne.backends.torch.segments import starts

_FEW = 8192  # number of points below which all distances are computed
_LARGEST_TREE = 3  # largest number of dimensions of a map that is divided into cells
_DISTANCES = {"cpu": 2**22, "cuda": 2**26}  # largest number of distances in memory
_COMPARED = 2**24  # largest number of boxes that are compared with each other at a time
_TIES = 8  # number of further points among which ties are broken


def nearest_in_map(Y: Tensor, k: int) -> Tensor:
    """Return the ``k`` nearest neighbours of every point of ``Y``, nearest first, without the point itself.

    In a map that is not finite, arbitrary points are returned.
    """
    n, d = Y.shape
    widest = float(Y.abs().max())
    if not widest < torch.inf:
        numbers = torch.arange(n, device=Y.device)
        return ((numbers[:, None] + torch.arange(1, k + 1, device=Y.device)) % n).to(torch.int32)
    if Y.dtype == torch.float32 and widest > 1e15:
        Y = Y / widest
    if n < max(_FEW, 8 * k) or d > _LARGEST_TREE:
        return _by_all_distances(Y, k)
    at = cells.structure(Y)
    places = torch.stack([each[at.order] for each in Y.T])  # (d, n), because rows of two numbers are slow to gather
    return _nearest_among(places, at, _candidate_leaves(places, at, k), k)


def _by_all_distances(Y: Tensor, k: int) -> Tensor:
    n = len(Y)
    out = torch.empty((n, k), dtype=torch.int32, device=Y.device)
    for rows in torch.arange(n, device=Y.device).split(max(1, _DISTANCES[Y.device.type] // n)):
        square = _squares(Y[rows].T[:, None], Y.T[:, None])[0]
        square[torch.arange(len(rows), device=Y.device), rows] = torch.inf
        out[rows] = square.topk(k, dim=1, largest=False).indices.to(torch.int32)
    return out


def _candidate_leaves(places: Tensor, at: Structure, k: int) -> Lists:
    """Return the leaves that may hold neighbours of the points of each leaf.

    A first bound of the distance of the k-th neighbour comes from the points around the leaf in the order of the tree.
    """
    n, device = places.shape[1], places.device
    run = LEAF * FAN
    while run < 2 * k:
        run *= 2
    reach = torch.empty(at.n_leaves, dtype=places.dtype, device=device)
    for leaf in torch.arange(at.n_leaves, device=device).split(max(1, _DISTANCES[device.type] // (LEAF * run))):
        begin = (leaf * LEAF // run * run).clamp(max=n - run)
        own = places[:, (leaf[:, None] * LEAF + torch.arange(LEAF, device=device)).clamp(max=n - 1)]
        others = places[:, begin[:, None] + torch.arange(run, device=device)]
        square = _squares(own, others)
        # The point itself is among the others, so k + 1 of them are needed.
        reach[leaf] = square.kthvalue(k + 1, dim=2).values.amax(dim=1)
    low, high = _boxes(places, at)
    offsets, top = at.offsets, len(at.levels) - 1
    children = torch.arange(FAN, device=device)
    found = []
    for own in torch.arange(at.n_leaves, device=device).split(2**15):
        leaf = own.repeat_interleave(at.levels[top])
        node = (offsets[top] + torch.arange(at.levels[top], device=device)).repeat(len(own))
        for level in range(top, -1, -1):
            away: Any = 0.0
            for lower, upper in zip(low, high, strict=True):
                gap = (torch.maximum(lower[leaf], lower[node]) - torch.minimum(upper[leaf], upper[node])).clamp(min=0.0)
                away = away + gap * gap
            close = away <= reach[leaf]
            leaf, node = leaf[close], node[close]
            if level:
                below = ((node - offsets[level])[:, None] * FAN + children).reshape(-1)
                there = below < at.levels[level - 1]
                leaf, node = leaf.repeat_interleave(FAN)[there], offsets[level - 1] + below[there]
        found.append((leaf, node))
    return grouped(found, at.n_leaves)


def _boxes(places: Tensor, at: Structure) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest coordinates of every node, (d, nodes)."""
    lows, highs, low, high, fan = [], [], places, places, LEAF
    for size in at.levels:
        empty = size * fan - low.shape[1]
        low, high = (
            torch.nn.functional.pad(each, (0, empty), value=filling).reshape(each.shape[0], size, fan)
            for each, filling in ((low, torch.inf), (high, -torch.inf))
        )
        low, high, fan = low.amin(dim=2), high.amax(dim=2), FAN
        lows.append(low)
        highs.append(high)
    return torch.cat(lows, dim=1), torch.cat(highs, dim=1)


class MapIndex(NamedTuple):
    """The points of a map among which those nearest to other places are searched."""

    points: Tensor  # in the order of the cells if there are any, (d, n)
    numbers: Tensor  # their numbers in the map, (n,)
    boxes: tuple[Tensor, Tensor] | None  # smallest and largest coordinates of the leaves, or None without cells

    @classmethod
    def of(cls, places: Tensor) -> MapIndex:
        """Divide the points of a map (n, d) into cells if there are many."""
        n, d = places.shape
        if n < _FEW or d > _LARGEST_TREE:
            return cls(places.T.contiguous(), torch.arange(n, device=places.device), None)
        at = cells.structure(places)
        points = torch.stack([each[at.order] for each in places.T])
        low, high = (each[:, : at.n_leaves] for each in _boxes(points, at))
        return cls(points, at.order, (low, high))

    def nearest(self, Y: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the distances and numbers of the ``k`` points nearest to places (m, d), nearest first."""
        m, n = len(Y), len(self.numbers)
        if self.boxes is None or 8 * k > n:
            parts = [
                self._ranked(_squares(some.T[:, None], self.points[:, None])[0], self.numbers, k)
                for some in Y.split(max(1, _DISTANCES[Y.device.type] // n))
            ]
            return torch.cat([each[0] for each in parts]), torch.cat([each[1] for each in parts])
        order = cells.structure(Y).order
        tiles = -(-m // LEAF)
        inside = torch.arange(tiles * LEAF, device=Y.device).clamp(max=m - 1)
        own = Y[order[inside]].T.reshape(-1, tiles, LEAF)
        distances = torch.empty((tiles * LEAF, k), dtype=Y.dtype, device=Y.device)
        indices = torch.empty((tiles * LEAF, k), dtype=torch.int64, device=Y.device)
        lanes = torch.arange(LEAF, device=Y.device)
        for tile, listed, others in _batches(self.points, self._candidates(own, k)):
            places = (listed[:, :, None] * LEAF + lanes).reshape(len(tile), 1, -1).clamp(max=n - 1)
            near = self._ranked(_squares(own[:, tile], others), self.numbers[places], k)
            to = (tile[:, None] * LEAF + lanes).reshape(-1)
            distances[to], indices[to] = (each.reshape(-1, k) for each in near)
        found = distances.new_empty((m, k)), indices.new_empty((m, k))
        found[0][order], found[1][order] = distances[:m], indices[:m]
        return found

    @staticmethod
    def _ranked(square: Tensor, names: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k smallest distances and the names of their points. Ties go to the smallest name."""
        best = square.topk(min(k + _TIES, square.shape[-1]), largest=False)
        names, by_name = names.expand(square.shape).gather(-1, best.indices).sort()
        square, by_square = best.values.gather(-1, by_name).sort(stable=True)
        return square[..., :k].sqrt(), names.gather(-1, by_square[..., :k])

    def _candidates(self, own: Tensor, k: int) -> Lists:
        """Return the leaves that may hold the neighbours of the places of each tile, (d, tiles, LEAF).

        All k neighbours of a place are within its largest distance from a run of leaves with k points.
        """
        assert self.boxes is not None
        low, high = self.boxes
        run = -(-k // LEAF)
        runs = len(self.numbers) // (LEAF * run)
        most = high[:, : runs * run].reshape(len(high), runs, run).amax(dim=2)
        least = low[:, : runs * run].reshape(len(low), runs, run).amin(dim=2)
        leaves, counts = [], []
        for some in own.split(max(1, _COMPARED // low.shape[1]), dim=1):
            bottom, top = some.amin(dim=2)[:, :, None], some.amax(dim=2)[:, :, None]
            span = torch.maximum(top - least[:, None], most[:, None] - bottom)
            reach = (span * span).sum(dim=0).amin(dim=1) * (1.0 + 1e-12)
            gap = torch.maximum(low[:, None] - top, bottom - high[:, None]).clamp(min=0.0)
            close = (gap * gap).sum(dim=0) <= reach[:, None]
            leaves.append(torch.nonzero(close)[:, 1])
            counts.append(close.sum(dim=1))
        return Lists(starts(torch.cat(counts)), torch.cat(leaves))


def _batches(places: Tensor, candidates: Lists) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield leaves that are searched together, their candidate leaves, and the places of the points in these.

    Leaves with similar numbers of candidates are searched together.
    """
    blocks, device = _blocks(places), places.device
    counts = candidates.start.diff()
    sorted_counts, by_count = torch.sort(counts, stable=True)
    sizes = sorted_counts.tolist()
    lo = 0
    while lo < len(sizes):
        hi = bisect_right(sizes, max(sizes[lo] * 5 // 4, sizes[lo] + 2))
        hi = min(hi, lo + max(1, _DISTANCES[device.type] // (sizes[hi - 1] * LEAF * LEAF)))
        most, leaf = sizes[hi - 1], by_count[lo:hi]
        column = torch.arange(most, device=device)
        there = column < counts[leaf][:, None]
        listed = candidates.cells[(candidates.start[leaf][:, None] + column).clamp(max=len(candidates.cells) - 1)]
        listed = listed.to(torch.int64)
        yield (
            leaf,
            listed,
            blocks[:, listed].masked_fill_(~there[:, :, None], torch.inf).flatten(2),
        )
        lo = hi


def _nearest_among(places: Tensor, at: Structure, candidates: Lists, k: int) -> Tensor:
    """Return the nearest neighbours of the points of each leaf among the points of its candidate leaves."""
    blocks, n, device = _blocks(places), places.shape[1], places.device
    out = torch.empty((at.n_leaves * LEAF, k), dtype=torch.int32, device=device)
    lanes = torch.arange(LEAF, device=device)
    for leaf, listed, others in _batches(places, candidates):
        square = _squares(blocks[:, leaf], others)
        # A point is not its own neighbour. Its leaf is one of the candidates.
        itself = (listed == leaf[:, None]).to(torch.int32).argmax(dim=1)[:, None] * LEAF + lanes
        square.scatter_(2, itself[:, :, None], torch.inf)
        numbers = (listed[:, :, None] * LEAF + lanes).reshape(len(leaf), -1)
        mine = leaf[:, None] * LEAF + lanes
        best = square.topk(k, dim=2, largest=False).indices
        found = numbers[:, None, :].expand(-1, LEAF, -1).gather(2, best)
        out[mine.reshape(-1)] = at.order[found.clamp(max=n - 1)].reshape(-1, k).to(torch.int32)
    result = torch.empty((n, k), dtype=torch.int32, device=device)
    result[at.order] = out[:n]
    return result


def _blocks(places: Tensor) -> Tensor:
    """Return the places of the points of each leaf, (d, leaves, LEAF). Missing points are infinitely far away."""
    return torch.nn.functional.pad(places, (0, -places.shape[1] % LEAF), value=torch.inf).reshape(len(places), -1, LEAF)


def _squares(own: Tensor, others: Tensor) -> Tensor:
    """Return the squared distances (b, m, k) of points (d, b, m) and (d, b, k)."""
    square: Any = None
    for mine, other in zip(own, others, strict=True):
        away = mine[:, :, None] - other[:, None, :]
        square = away.mul_(away) if square is None else square.addcmul_(away, away)
    return square
