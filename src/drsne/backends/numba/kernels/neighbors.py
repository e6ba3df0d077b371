"""Nearest neighbours from shortlists, which are made by matrix products and ranked by distances.

The rounding of matrix products depends on the number of BLAS threads, so the products only select candidates. The
candidates are ranked by distances that are summed here; ties are ranked by index. In an exact search, a row whose
shortlist cannot be proved complete is searched in full.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel, pasted

_CHUNK = 64


@kernel
def _dense_distance(Q, i, X, j):  # type: ignore[no-untyped-def]
    """Return |q_i - x_j|^2, summed feature by feature."""
    s = 0.0
    for f in range(X.shape[1]):
        s += (Q[i, f] - X[j, f]) ** 2
    return s


@kernel
def _sparse_distance(Q, i, X, j):  # type: ignore[no-untyped-def]
    """Return |q_i - x_j|^2 of two CSR rows with sorted columns; matrices are (offsets, columns, values)."""
    q_indptr, q_columns, q_values = Q
    indptr, columns, values = X
    a, b = q_indptr[i], indptr[j]
    a_end, b_end = q_indptr[i + 1], indptr[j + 1]
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
    """Replace the root of the full heap by (v, j) if (v, j) is smaller."""
    if v < value[0] or (v == value[0] and j < index[0]):
        value[0] = v
        index[0] = j
        _sink(value, index, value.shape[0])


@kernel
def _sort(value, index):  # type: ignore[no-untyped-def]
    """Sort a valid max-heap in ascending order of (value, index), by heap sort."""
    for size in range(value.shape[0] - 1, 0, -1):
        value[0], value[size] = value[size], value[0]
        index[0], index[size] = index[size], index[0]
        _sink(value, index, size)


@kernel
def _keep_least(value, index, count, size):  # type: ignore[no-untyped-def]
    """Move the ``size`` smallest of the first ``count`` values to the front (quickselect)."""
    lo, hi = 0, count - 1
    while lo < hi:
        pivot = value[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while value[i] < pivot:
                i += 1
            while value[j] > pivot:
                j -= 1
            if i <= j:
                value[i], value[j] = value[j], value[i]
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if size - 1 <= j:
            hi = j
        elif size - 1 >= i:
            lo = i
        else:
            return


@kernel
def _shell_sort(value, index, size):  # type: ignore[no-untyped-def]
    """Sort the first ``size`` values in ascending order. The sort of numba takes half a second longer to compile."""
    gap = 1
    while 3 * gap + 1 < size:
        gap = 3 * gap + 1
    while gap > 0:
        for m in range(gap, size):
            v, j = value[m], index[m]
            at = m
            while at >= gap and value[at - gap] > v:
                value[at], index[at] = value[at - gap], index[at - gap]
                at -= gap
            value[at], index[at] = v, j
        gap //= 3


@kernel
def scan(products, norms, points, row, own, at, value, index, count, bound, block, lo, hi):  # type: ignore[no-untyped-def]
    """Add ``points`` with small distances to the shortlists ``at[lo:hi]`` of the rows ``row[lo:hi]``.

    The distances come from inner products ``g_ij``. A list collects the values of ``own_i + norms_j - 2 g_ij`` that are
    below its ``bound``, and ``count`` is the number of these values. When a list is full, it keeps the smallest two
    thirds, and its bound becomes the smallest value that was left out so far. In an exact search, the norms are lowered
    by the bound on the errors, so no value exceeds the true squared distance.
    """
    m = points.shape[0]
    two, zero = norms.dtype.type(2), norms.dtype.type(0)
    room = value.shape[1]
    size = 2 * room // 3
    for r in range(lo, hi):
        i, list_, names, g = row[r], value[at[r]], index[at[r]], products[r]
        filled, limit = count[at[r]], bound[at[r]] - own[r]
        for start in range(0, m, _CHUNK):
            length = min(_CHUNK, m - start)
            norm, product = norms[start : start + length], g[start : start + length]
            # Most chunks contain no near point, so this vectorised loop first checks whether there is one.
            below = zero
            for t in range(length):
                below += max(limit - (norm[t] - two * product[t]), zero)
            if below > zero:
                for t in range(length):
                    v = norm[t] - two * product[t]
                    if v < limit and points[start + t] != i:
                        list_[filled] = v + own[r]
                        names[filled] = points[start + t]
                        filled += 1
                        if filled == room:
                            _keep_least(list_, names, filled, size + 1)
                            largest = list_[size]
                            for q in range(size + 1):
                                largest = max(largest, list_[q])
                            filled, spare = 0, 1  # one value at the bound is dropped, even if there are several
                            for q in range(size + 1):
                                if list_[q] < largest or spare == 0:
                                    list_[filled], names[filled] = list_[q], names[q]
                                    filled += 1
                                else:
                                    spare = 0
                            bound[at[r]] = largest
                            limit = largest - own[r]
        count[at[r]] = filled


@kernel
def nearest_centre(products, norms, X, centres, doubt, label, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the nearest centre of each row; ties go to the smallest number.

    Centres whose products are within the error bound of the smallest are compared by their distances.
    """
    m = centres.shape[0]
    for r in range(lo, hi):
        least = norms[0] - 2.0 * products[r, 0]
        for c in range(m):
            least = min(least, norms[c] - 2.0 * products[r, c])
        own = 0.0
        for f in range(X.shape[1]):
            own += X[r, f] * X[r, f]
        best, distance = -1, 0.0
        for c in range(m):
            v = norms[c] - 2.0 * products[r, c]
            if v - least <= doubt * (own + norms[c]) or v == least:
                s = 0.0
                for f in range(X.shape[1]):
                    s += (X[r, f] - centres[c, f]) ** 2
                if best < 0 or s < distance:
                    best, distance = c, s
        label[r] = best


@kernel
def rank_dense(Q, X, row, own, candidates, count, bounds, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the nearest of the candidates of each row, or of all points if the list cannot be proved complete.

    The rows are rows of ``Q``, and ``own`` are the points of ``X`` that are left out in a search of all points.
    """
    n, k = X.shape[0], indices.shape[1]
    value = np.empty(k)
    index = np.empty(k, np.int32)
    for r in range(lo, hi):
        i = row[r]
        value[:] = np.inf
        index[:] = n
        for c in range(count[r]):
            j = int(candidates[r, c])
            _offer(value, index, _dense_distance(Q, i, X, j), j)
        if value[0] >= bounds[r] and value[0] > 0.0:  # no point is nearer than a duplicate
            value[:] = np.inf
            index[:] = n
            for j in range(n):
                if j != own[r]:
                    _offer(value, index, _dense_distance(Q, i, X, j), j)
        _sort(value, index)
        for m in range(k):  # a loop, because assignments of arrays take a second longer to compile
            indices[r, m] = index[m]
            distances[r, m] = np.sqrt(value[m])


@kernel
def rank_sparse(Q, X, row, own, candidates, count, bounds, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the result of :func:`rank_dense` for CSR rows with sorted columns."""
    n, k = X[0].shape[0] - 1, indices.shape[1]
    value = np.empty(k)
    index = np.empty(k, np.int32)
    for r in range(lo, hi):
        i = row[r]
        value[:] = np.inf
        index[:] = n
        for c in range(count[r]):
            j = int(candidates[r, c])
            _offer(value, index, _sparse_distance(Q, i, X, j), j)
        if value[0] >= bounds[r] and value[0] > 0.0:  # no point is nearer than a duplicate
            value[:] = np.inf
            index[:] = n
            for j in range(n):
                if j != own[r]:
                    _offer(value, index, _sparse_distance(Q, i, X, j), j)
        _sort(value, index)
        for m in range(k):  # a loop, because assignments of arrays take a second longer to compile
            indices[r, m] = index[m]
            distances[r, m] = np.sqrt(value[m])


@pasted
def _first_limit(coordinates, r, k, value, index):  # type: ignore[no-untyped-def]
    """Return a limit on the squared distances of the k nearest neighbours, from the adjacent points on the curve."""
    n = coordinates.shape[1]
    x, y, z = coordinates[0, r], coordinates[1, r], coordinates[2, r]
    start = max(0, min(r - k, n - 2 * k - 1))
    count = 0
    for j in range(start, min(n, start + 2 * k + 1)):
        if j != r:
            value[count] = (coordinates[0, j] - x) ** 2 + (coordinates[1, j] - y) ** 2 + (coordinates[2, j] - z) ** 2
            count += 1
    _keep_least(value, index, count, k)
    limit = value[0]
    for m in range(1, k):
        limit = max(limit, value[m])
    return np.nextafter(limit, limit + limit + 1)  # points at the initial limit are included


@pasted
def _leaves_within(leaf, box, after, height, widest, near, margin):  # type: ignore[no-untyped-def]
    """Write the leaves that are nearer to a leaf than the squared distance ``widest``, and return their number."""
    zero = margin - margin
    n_near = 0
    v = 0
    while v < after.shape[0]:
        dx = max(box[0, v] - box[3, leaf], max(box[0, leaf] - box[3, v], zero))
        dy = max(box[1, v] - box[4, leaf], max(box[1, leaf] - box[4, v], zero))
        dz = max(box[2, v] - box[5, leaf], max(box[2, leaf] - box[5, v], zero))
        if not margin * (dx * dx + dy * dy + dz * dz) < widest:
            v = after[v]
            continue
        if height[v] == 0:
            near[n_near] = v
            n_near += 1
        v += 1
    return n_near


@kernel
def nearest_in_cells(coordinates, order, first, last, after, height, box, leaves, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the nearest neighbours, nearest first, of the points in leaves lo to hi of a tree (kernels/tree.py).

    A list collects points that are nearer than ``limit``. When it is full, it keeps the k nearest, and the limit
    becomes the distance of the farthest of these. The leaves that are nearer than the largest initial limit are found
    once for all points of a leaf.
    """
    k = out.shape[1]
    room = 4 * k + 64
    zero = coordinates.dtype.type(0)
    # With some margin, because the limits of points are compared with sums that are rounded differently.
    margin = coordinates.dtype.type(0.999)
    value, index = np.empty(room, coordinates.dtype), np.empty(room, np.int64)
    near = np.empty(leaves.shape[0], np.int64)
    largest = 1
    for at in range(lo, hi):
        largest = max(largest, last[leaves[at]] - first[leaves[at]])
    limits = np.empty(largest)  # in double precision, where the next number above a limit is nearer
    for at in range(lo, hi):
        leaf = leaves[at]
        begin = first[leaf]
        widest = 0.0
        for r in range(begin, last[leaf]):
            limits[r - begin] = _first_limit(coordinates, r, k, value, index)
            widest = max(widest, limits[r - begin])
        n_near = _leaves_within(leaf, box, after, height, widest, near, margin)
        for r in range(begin, last[leaf]):
            x, y, z = coordinates[0, r], coordinates[1, r], coordinates[2, r]
            limit = limits[r - begin]
            count = 0
            for t in range(n_near):
                v = near[t]
                dx = max(box[0, v] - x, max(x - box[3, v], zero))
                dy = max(box[1, v] - y, max(y - box[4, v], zero))
                dz = max(box[2, v] - z, max(z - box[5, v], zero))
                if not dx * dx + dy * dy + dz * dz < limit:
                    continue
                for j in range(first[v], last[v]):
                    s = (coordinates[0, j] - x) ** 2 + (coordinates[1, j] - y) ** 2 + (coordinates[2, j] - z) ** 2
                    if s < limit and j != r:
                        value[count] = s
                        index[count] = j
                        count += 1
                        if count == room:
                            _keep_least(value, index, count, k)
                            count = k
                            limit = value[0]
                            for m in range(1, k):
                                limit = max(limit, value[m])
            _keep_least(value, index, count, k)
            _shell_sort(value, index, k)
            for m in range(k):
                out[order[r], m] = order[index[m]]


@kernel
def nearest_in_rows(D, row, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the k smallest entries of each row of a distance matrix, without the point of the row itself."""
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
def sparse_manhattan(q_indptr, q_columns, q_values, indptr, columns, values, row, D, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the Manhattan distances of some rows ``q`` to all points, from CSR rows with sorted columns."""
    for r in range(lo, hi):
        for j in range(D.shape[1]):
            a, b = q_indptr[row[r]], indptr[j]
            a_end, b_end = q_indptr[row[r] + 1], indptr[j + 1]
            s = 0.0
            while a < a_end or b < b_end:
                if b >= b_end or (a < a_end and q_columns[a] < columns[b]):
                    s += abs(q_values[a])
                    a += 1
                elif a >= a_end or columns[b] < q_columns[a]:
                    s += abs(values[b])
                    b += 1
                else:
                    s += abs(q_values[a] - values[b])
                    a += 1
                    b += 1
            D[r, j] = s


@kernel
def tidy(indptr, listed, given, counts, indices, distances, block, lo, hi):  # type: ignore[no-untyped-def]
    """Count the distinct neighbours of each row, without -1 and the row itself, and write the nearest of them."""
    seen = np.full(counts.shape[0], -1, np.int64)
    k = indices.shape[1]
    for i in range(lo, hi):
        names, lengths = listed[indptr[i] : indptr[i + 1]], given[indptr[i] : indptr[i + 1]]
        by_index = np.argsort(names)
        order = by_index[np.argsort(lengths[by_index], kind="mergesort")]
        count = 0
        for e in order:
            j = names[e]
            if j >= 0 and j != i and seen[j] != i:
                seen[j] = i
                if count < k:
                    indices[i, count] = j
                    distances[i, count] = lengths[e]
                count += 1
        counts[i] = count
