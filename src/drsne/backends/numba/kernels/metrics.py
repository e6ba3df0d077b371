"""Loops of metrics: ranks among the entries of a row, and single linkage.

Single linkage finds the longest edge on the best path from one point to another.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_BINS = 512  # number of bins in which the entries of a row are counted


@kernel
def below(D, listed, order, counts, tied):  # type: ignore[no-untyped-def]
    """Write, for each entry at ``listed``, how many entries of the same row of ``D`` are smaller.

    ``order`` sorts the listed entries of a row by value. ``tied`` says whether any of them is equal to another entry of
    the row. Bins of equal size are used to find the position of an entry among the listed values. nan counts as larger
    than all values.
    """
    m = listed.shape[1]
    values, places, equal = np.empty(m), np.empty(m + 1, np.int64), np.empty(m, np.int64)
    starts = np.empty(_BINS, np.int64)  # index of the first listed value in each bin or above it
    for r in range(D.shape[0]):
        row = D[r]
        for c in range(m):
            values[c] = row[listed[r, order[r, c]]]
            places[c] = 0
            equal[c] = 0
        smallest, largest = values[0], values[m - 1]
        spread = largest - smallest
        scale = (_BINS - 1) / spread if spread > 0.0 else 0.0
        binned = 0.0 < scale < np.inf  # otherwise the values are equal, nearly equal or not finite
        at = 0
        for c in range(m):
            bin_ = int((values[c] - smallest) * scale) if binned else 0
            while at <= bin_:
                starts[at] = c
                at += 1
        while at < _BINS:  # an entry equal to the largest value may round into a later bin than that value did
            starts[at] = m - 1
            at += 1
        for d in row:
            if d > largest or np.isnan(d):
                continue
            first = 0
            if d > smallest:
                first = starts[int((d - smallest) * scale)] if binned else 0
                while first > 0 and values[first - 1] >= d:  # the bin index may be off by one because of rounding
                    first -= 1
                while values[first] < d:
                    first += 1
            if values[first] == d:
                equal[first] += 1
                while first < m and values[first] == d:
                    first += 1
            places[first] += 1
        so_far, several = 0, False
        for c in range(m):
            so_far += places[c]
            counts[r, order[r, c]] = so_far
            several = several or equal[c] > 1
        tied[r] = several


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
