"""Single linkage: the longest edge on the best path from one point to another."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel


@kernel
def link(rows, columns, lengths, order, parent, size, length):  # type: ignore[no-untyped-def]
    """Join points along edges, shortest first (``order``), into a forest.

    ``length[i]`` is the length of the edge that joined the tree of i to that of ``parent[i]``, and it is infinite for a
    root. The smaller tree is put below the larger one, so no path is longer than log2(n), and lengths ascend along it.
    """
    for e in order:
        i, j = rows[e], columns[e]
        while parent[i] != i:
            i = parent[i]
        while parent[j] != j:
            j = parent[j]
        if i != j:
            if size[i] > size[j]:
                i, j = j, i
            parent[i] = j
            length[i] = lengths[e]
            size[j] += size[i]


@kernel
def widest_steps(parent, length, rows, columns, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the longest edge between ``rows[e]`` and ``columns[e]``, or infinity if no tree contains both."""
    for e in range(lo, hi):
        i, j, widest = rows[e], columns[e], 0.0
        while i != j:
            # Lengths ascend towards the root, so the shorter edge is followed first.
            if length[i] > length[j]:
                i, j = j, i
            widest = max(widest, length[i])
            if parent[i] == i:
                break
            i = parent[i]
        out[e] = widest
