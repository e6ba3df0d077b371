"""Comparisons of points with all others on a device of PyTorch, in double precision.

The functions are those of :class:`drsne.backends.protocol.Comparisons`. Points are tensors. Neighbours at the same
distance are sorted by their number, and so are ranks. With ``metric="cosine"``, points have unit length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor

from drsne.backends.arrays import host
from drsne.backends.torch.map_neighbors import MapIndex, nearest_in_map
from drsne.backends.torch.neighbors import full_precision, unit_rows
from drsne.backends.torch.queries import Among, sent

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
_BLOCK_BYTES = {"cpu": 16 * 2**20, "cuda": 2**30}  # largest number of bytes for a block of distances


def received(X: Any, metric: str, device: str) -> Tensor:
    """Return data or a map as a tensor. Only the directions of rows matter to cosine distances."""
    if issparse(X):
        raise ValueError(
            f"X must be dense if a device is given; got a sparse matrix with device={device!r}. Pass device=None, or "
            "X.toarray() if that fits into memory."
        )
    points = sent(X, device)
    if metric != "cosine":
        return points
    empty = int((points == 0.0).all(dim=1).sum())
    if empty:
        raise ValueError(
            f"X must have no rows of zeros with metric='cosine' and device={device!r}; got {empty}. Pass device=None, "
            "or drop these rows."
        )
    return unit_rows(points)


def block_bytes(A: Tensor) -> int:
    return _BLOCK_BYTES[A.device.type]


def distances(A: Tensor, metric: str = "euclidean") -> Callable[[Rows], Tensor]:
    if metric == "cosine":
        return lambda rows: torch.mm(A[sent(rows, A.device)], A.T).neg_().add_(1.0).clamp_(0.0, 2.0)
    norms = (A * A).sum(dim=1)

    def of_rows(rows: Rows) -> Tensor:
        some = sent(rows, A.device)
        squares = torch.addmm(norms, A[some], A.T, alpha=-2.0)
        return squares.add_(norms[some, None]).clamp_(min=0.0).sqrt_()

    return of_rows


def nearest(
    X: Tensor, k: int, *, metric: str = "euclidean", workers: Any = None, rows: Rows | None = None
) -> tuple[NDArray[np.int32], Array]:
    own = torch.arange(len(X), device=X.device) if rows is None else sent(rows, X.device)
    among = Among(X)
    with full_precision():
        # With many duplicates, the rows found may not contain the row itself. The last one is then left out.
        found, squares = among.nearest(among.rows[own], k + 1)
    others = found != own[:, None]
    others[others.all(dim=1), k] = False
    lengths = among.restored(squares[others].reshape(-1, k).sqrt())
    indices = host(found[others].reshape(-1, k).to(torch.int32))
    return indices, host(0.5 * lengths**2 if metric == "cosine" else lengths)


def ranks(D: Tensor, rows: Rows, neighbors: NDArray[Any]) -> NDArray[np.intp]:
    D.scatter_(1, sent(rows, D.device)[:, None], torch.inf)
    numbers = torch.arange(D.shape[1], device=D.device)
    listed = sent(neighbors.astype(np.int64), D.device)
    values = D.gather(1, listed)
    before = torch.empty_like(listed)
    for c in range(listed.shape[1]):
        value = values[:, c, None]
        before[:, c] = torch.lt(D, value).sum(dim=1)
        tied = torch.nonzero(torch.le(D, value).sum(dim=1) > before[:, c] + 1)[:, 0]
        for some in tied.split(max(1, len(D) // 8)):  # few rows at a time, because these are copied
            equal = (D[some] == value[some]) & (numbers < listed[some, c, None])
            before[some, c] += equal.sum(dim=1)
    return host(before) + 1


def surroundings(Y: Tensor, k: int) -> tuple[Tensor, Tensor]:
    among = Among(Y)
    with torch.cuda.device_of(Y):
        # The division into cells is in single precision, so points are centred.
        near = nearest_in_map(among.rows - among.mean, k).to(torch.int64)
    near, squares = among.measured(among.rows, near, k)
    return among.restored(squares.sqrt()), near


def edges(lengths: Tensor, neighbors: Tensor) -> tuple[NDArray[Any], NDArray[Any], Array, NDArray[np.intp]]:
    """Return both ends and the lengths of edges to neighbours (n, k), and the order of ascending lengths.

    These are the edges that join two trees if all edges are visited in this order. No others matter for linking points.
    """
    n, k = neighbors.shape
    points = torch.arange(n, device=neighbors.device).repeat_interleave(k)
    a, b, along = (host(each) for each in spanning(points, neighbors.reshape(-1), lengths.reshape(-1), n))
    return a, b, along, np.arange(len(along))


def gaps(Y: Tensor, places: Array) -> Array:
    among = Among(Y)
    with torch.cuda.device_of(Y):
        index = MapIndex.of(among.rows - among.mean)
        found, _ = index.nearest(among.scaled(sent(places, Y.device)) - among.mean, 1)
    return host(among.restored(found[:, 0]))


def spanning(rows: Tensor, columns: Tensor, lengths: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the edges of a minimum spanning forest of ``n`` points, shortest first.

    These are the edges that join two trees if all edges are visited from the shortest to the longest one, and equally
    long edges in the order in which they are given. In each round, every tree is joined to another one by the shortest
    edge that leaves it.
    """
    lengths, order = lengths.sort(stable=True)
    # An edge is now identified by its place, so no two edges are equally long.
    place = torch.arange(len(order), device=order.device)
    a, b = rows[order], columns[order]
    points = torch.arange(n, device=order.device)
    tree = points
    chosen = torch.zeros(len(order), dtype=torch.bool, device=order.device)
    a_tree, b_tree = a, b
    while True:
        between = a_tree != b_tree
        if not bool(between.any()):
            break
        place, a_tree, b_tree = place[between], a_tree[between], b_tree[between]
        shortest = torch.full((n,), len(order), device=order.device)
        shortest.scatter_reduce_(0, a_tree, place, "amin").scatter_reduce_(0, b_tree, place, "amin")
        leaving = torch.nonzero(shortest < len(order))[:, 0]
        edge = shortest[leaving]
        chosen[edge] = True
        joined = points.clone()
        joined[leaving] = tree[a[edge]] + tree[b[edge]] - leaving
        # Two trees may have chosen the same edge. One of them becomes the root.
        joined = torch.where((joined[joined] == points) & (joined > points), points, joined)
        while not torch.equal(joined, joined[joined]):
            joined = joined[joined]
        tree = joined[tree]
        a_tree, b_tree = joined[a_tree], joined[b_tree]
    edge = torch.nonzero(chosen)[:, 0]
    return a[edge], b[edge], lengths[edge]
