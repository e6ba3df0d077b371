"""Nearest training rows of new rows.

Differences in single precision select candidates, which are ranked by distances in double precision. The neighbours of
a row do not depend on the other rows: its own loops visit the lists in the order of their numbers, and no matrix
products are used, whose rounding depends on their shape.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel
from drsne.backends.numba.kernels.neighbors import _keep_least, _offer, _sort


@kernel
def probed_lists(queries, centres, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the numbers of the nearest centres of the rows lo to hi, in ascending order of the numbers."""
    count, size = centres.shape[0], out.shape[1]
    value, index = np.empty(size), np.empty(size, np.int32)
    for r in range(lo, hi):
        value[:] = np.inf
        index[:] = count
        for c in range(count):
            s = 0.0
            for f in range(queries.shape[1]):
                s += (queries[r, f] - centres[c, f]) ** 2
            _offer(value, index, s, c)
        chosen = np.sort(index)
        for c in range(size):
            out[r, c] = chosen[c]


@kernel
def _distance(Q, i, X, j):  # type: ignore[no-untyped-def]
    s = 0.0
    for f in range(X.shape[1]):
        s += (Q[i, f] - X[j, f]) ** 2
    return s


@kernel
def _scanned(residual, start, end, own, value, name, filled, limit, size):  # type: ignore[no-untyped-def]
    """Add the rows of a list that are nearer than ``limit`` to a shortlist, and return its length and new limit.

    A full list keeps its ``size`` smallest values, and the largest of them becomes the limit.
    """
    d = np.uint64(own.shape[0])
    for j in range(np.uint64(start), np.uint64(end)):
        s = np.float32(0)
        for f in range(d):
            s += (residual[j, f] - own[f]) * (residual[j, f] - own[f])
        if s < limit:
            value[filled], name[filled] = s, j
            filled += 1
            if filled == value.shape[0]:
                _keep_least(value, name, filled, size)
                filled = size
                limit = value[0]
                for t in range(size):
                    limit = max(limit, value[t])
    return filled, limit


@kernel
def nearest(Q, queries, X, residual, order, first, centres, probed, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the k nearest rows of ``X`` for the rows lo to hi of ``Q``, among the rows of the lists that they probe.

    ``queries`` are the rows of ``Q`` in the coordinates of the ``centres``, and ``residual`` are the rows of the lists
    minus the centres of the lists, in single precision. A row is compared with all rows of its lists in double
    precision if the differences in single precision do not prove which ones are nearest.
    """
    k, d, lists = indices.shape[1], X.shape[1], centres.shape[0]
    size = k + k // 4 + 16
    room = 2 * size
    group = hi - lo
    value, name = np.empty((group, room), np.float32), np.empty((group, room), np.int64)
    largest = np.finfo(np.float32).max
    filled, limit = np.zeros(group, np.int64), np.full(group, largest)
    norm, at = np.zeros(group, np.float32), np.zeros(group, np.int64)
    own = np.empty(d, np.float32)
    # All rows of the block that probe a list are compared with it in turn, while it is in the cache.
    for u in range(lists):
        for r in range(group):
            if at[r] == probed.shape[1] or probed[lo + r, at[r]] != u:
                continue
            at[r] += 1
            for f in range(d):
                own[f] = np.float32(queries[lo + r, f] - centres[u, f])
            length = np.float32(0)
            for f in range(d):
                length += own[f] * own[f]
            norm[r] = max(norm[r], length)
            filled[r], limit[r] = _scanned(residual, first[u], first[u + 1], own, value[r], name[r], filled[r], limit[r], size)
    best, index = np.empty(k), np.empty(k, np.int32)
    doubt = np.float32(8 * d + 64) * np.finfo(np.float32).eps
    for r in range(group):
        best[:] = np.inf
        index[:] = X.shape[0]
        reach = largest
        if filled[r] >= k:
            _keep_least(value[r], name[r], filled[r], k)
            reach = value[r, 0]
            for t in range(k):
                reach = max(reach, value[r, t])
            reach += doubt * (norm[r] + norm[r] + reach + reach)
        if reach < limit[r]:
            for t in range(filled[r]):
                if value[r, t] <= reach:
                    j = order[name[r, t]]
                    _offer(best, index, _distance(Q, lo + r, X, j), j)
        else:
            for probe in range(probed.shape[1]):
                u = probed[lo + r, probe]
                for t in range(first[u], first[u + 1]):
                    _offer(best, index, _distance(Q, lo + r, X, order[t]), order[t])
        if index[0] == X.shape[0]:  # the lists have fewer than k rows
            best[:] = np.inf
            for j in range(X.shape[0]):
                _offer(best, index, _distance(Q, lo + r, X, j), j)
        _sort(best, index)
        for t in range(k):
            indices[lo + r, t] = index[t]
            distances[lo + r, t] = np.sqrt(best[t])


@kernel
def nearest_sparse(q_indptr, q_columns, q_values, indptr, columns, values, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the k nearest rows for CSR rows with sorted columns, compared with all rows in double precision."""
    n, k = indptr.shape[0] - 1, indices.shape[1]
    best, index = np.empty(k), np.empty(k, np.int32)
    for r in range(lo, hi):
        best[:] = np.inf
        index[:] = n
        for j in range(n):
            a, b = q_indptr[r], indptr[j]
            a_end, b_end = q_indptr[r + 1], indptr[j + 1]
            s = 0.0
            while a < a_end or b < b_end:
                if b >= b_end or (a < a_end and q_columns[a] < columns[b]):
                    s += q_values[a] ** 2
                    a += 1
                elif a >= a_end or columns[b] < q_columns[a]:
                    s += values[b] ** 2
                    b += 1
                else:
                    s += (q_values[a] - values[b]) ** 2
                    a += 1
                    b += 1
            _offer(best, index, s, j)
        _sort(best, index)
        for t in range(k):
            indices[r, t] = index[t]
            distances[r, t] = np.sqrt(best[t])
