"""The edges of a graph that join its points by the shortest steps, on a device."""

from __future__ import annotations

import torch
from torch import Tensor


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
