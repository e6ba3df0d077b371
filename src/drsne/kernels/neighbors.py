"""Exact nearest neighbours: a shortlist from a matrix product, ranked by distances summed here.

The product rounds differently with the number of BLAS threads, so it only proposes: candidates are
ranked by their own distance, ties by index, and a row whose shortlist cannot be proved complete is
searched in full.
"""

from __future__ import annotations

import numpy as np

from drsne.kernels._compile import kernel


@kernel
def _dense_distance(X, i, j):  # type: ignore[no-untyped-def]
    """|x_i - x_j|^2, feature by feature."""
    s = 0.0
    for f in range(X.shape[1]):
        s += (X[i, f] - X[j, f]) ** 2
    return s


@kernel
def _sparse_distance(indptr, columns, values, i, j):  # type: ignore[no-untyped-def]
    """|x_i - x_j|^2 of two CSR rows with sorted columns."""
    a, b = indptr[i], indptr[j]
    a_end, b_end = indptr[i + 1], indptr[j + 1]
    s = 0.0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and columns[a] < columns[b]):
            s += values[a] ** 2
            a += 1
        elif a >= a_end or columns[b] < columns[a]:
            s += values[b] ** 2
            b += 1
        else:
            s += (values[a] - values[b]) ** 2
            a += 1
            b += 1
    return s


@kernel
def _sink(value, index, size):  # type: ignore[no-untyped-def]
    """Restore the max-heap ordered by (value, index) after its root changed."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        right = child + 1
        if right < size and (
            value[right] > value[child] or (value[right] == value[child] and index[right] > index[child])
        ):
            child = right
        if value[at] > value[child] or (value[at] == value[child] and index[at] > index[child]):
            return
        value[at], value[child] = value[child], value[at]
        index[at], index[child] = index[child], index[at]
        at = child


@kernel
def _offer(value, index, v, j):  # type: ignore[no-untyped-def]
    """Put (v, j) into the full heap if it is smaller than the root."""
    if v < value[0] or (v == value[0] and j < index[0]):
        value[0] = v
        index[0] = j
        _sink(value, index, value.shape[0])


@kernel
def _sort(value, index):  # type: ignore[no-untyped-def]
    """Heap sort, ascending by (value, index), of a valid max-heap."""
    for size in range(value.shape[0] - 1, 0, -1):
        value[0], value[size] = value[size], value[0]
        index[0], index[size] = index[size], index[0]
        _sink(value, index, size)


@kernel
def shortlist(products, norms, row, doubt, candidates, bounds, block, lo, hi):  # type: ignore[no-untyped-def]
    """For rows ``row[lo:hi]``, the points whose squared distance may be smallest, by inner products with every point.

    ``doubt`` bounds the error of a product-based squared distance relative to the two squared norms, so
    ``(n_i + n_j)(1 - doubt) - 2 g_ij`` never exceeds the true one; ``bounds`` is its least value beyond the list.
    """
    n = norms.shape[0]
    bound = np.empty(candidates.shape[1])
    for r in range(lo, hi):
        i, candidate = row[r], candidates[r]
        bound[:] = np.inf
        candidate[:] = n
        for j in range(n):
            if j != i:
                _offer(bound, candidate, (norms[i] + norms[j]) * (1.0 - doubt) - 2.0 * products[r, j], j)
        bounds[r] = np.inf if candidates.shape[1] == n - 1 else bound[0]


@kernel
def rank_dense(X, row, candidates, bounds, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """The nearest candidates of each row, or of all points where the list cannot be proved complete."""
    n, k = X.shape[0], indices.shape[1]
    value = np.empty(k)
    index = np.empty(k, np.int32)
    for r in range(lo, hi):
        i = row[r]
        value[:] = np.inf
        index[:] = n
        for j in candidates[r]:
            _offer(value, index, _dense_distance(X, i, j), j)
        if value[0] >= bounds[r]:
            value[:] = np.inf
            index[:] = n
            for j in range(n):
                if j != i:
                    _offer(value, index, _dense_distance(X, i, j), j)
        _sort(value, index)
        indices[r] = index
        distances[r] = np.sqrt(value)


@kernel
def rank_sparse(indptr, columns, values, row, candidates, bounds, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """:func:`rank_dense` for CSR rows with sorted columns."""
    n, k = indptr.shape[0] - 1, indices.shape[1]
    value = np.empty(k)
    index = np.empty(k, np.int32)
    for r in range(lo, hi):
        i = row[r]
        value[:] = np.inf
        index[:] = n
        for j in candidates[r]:
            _offer(value, index, _sparse_distance(indptr, columns, values, i, j), j)
        if value[0] >= bounds[r]:
            value[:] = np.inf
            index[:] = n
            for j in range(n):
                if j != i:
                    _offer(value, index, _sparse_distance(indptr, columns, values, i, j), j)
        _sort(value, index)
        indices[r] = index
        distances[r] = np.sqrt(value)


@kernel
def nearest_in_rows(D, row, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """The k smallest entries of each row of a distance matrix, the row's own point left out."""
    k = indices.shape[1]
    value = np.empty(k)
    index = np.empty(k, np.int32)
    for r in range(lo, hi):
        value[:] = np.inf
        index[:] = D.shape[1]
        for j in range(D.shape[1]):
            if j != row[r]:
                _offer(value, index, D[r, j], j)
        _sort(value, index)
        for m in range(k):
            indices[r, m] = index[m]
            distances[r, m] = value[m]


@kernel
def sparse_manhattan(indptr, columns, values, row, D, block, lo, hi):  # type: ignore[no-untyped-def]
    """Rows of Manhattan distances to every point, from CSR rows with sorted columns."""
    for r in range(lo, hi):
        for j in range(D.shape[1]):
            a, b = indptr[row[r]], indptr[j]
            a_end, b_end = indptr[row[r] + 1], indptr[j + 1]
            s = 0.0
            while a < a_end or b < b_end:
                if b >= b_end or (a < a_end and columns[a] < columns[b]):
                    s += abs(values[a])
                    a += 1
                elif a >= a_end or columns[b] < columns[a]:
                    s += abs(values[b])
                    b += 1
                else:
                    s += abs(values[a] - values[b])
                    a += 1
                    b += 1
            D[r, j] = s
