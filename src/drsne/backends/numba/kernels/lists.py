"""Comparisons of rows with the lists of an inverted file.

Matrix products in single precision select candidates. The candidates are ranked elsewhere, by distances in double
precision (``neighbors.rank_dense``).
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel, pasted

_CHUNK = 64
_TILE = 256, 512  # rows and columns of the products, which stay in the cache


def room(k: int) -> int:
    """Return the length of the shortlists of :func:`compare`."""
    return 2 * (k + k // 16 + 5) + 2 * _CHUNK


@kernel
def _trimmed(value, index, filled, size, spare):  # type: ignore[no-untyped-def]
    """Keep the ``size`` smallest values of a list, and up to ``spare`` more, and return their number and a limit.

    The limit is not less than the largest of these. It is found by bisection, because counting is vectorised and faster
    than a quickselect.
    """
    one, half, zero = value.dtype.type(1), value.dtype.type(0.5), value.dtype.type(0)
    low, high = value[0], value[0]
    for t in range(1, filled):
        low, high = min(low, value[t]), max(high, value[t])
    if filled <= size:
        return filled, high
    enough, most = value.dtype.type(size), value.dtype.type(size + spare)
    moved = False
    while True:
        middle = low + (high - low) * half
        if middle <= low or middle >= high:
            break
        count = zero
        for t in range(filled):
            count += one if value[t] <= middle else zero
        moved = moved or count <= most
        if count < enough:
            low = middle
        else:
            high = middle
            if count <= most:
                low = middle
    kept = 0
    for t in range(filled):
        v, name = value[t], index[t]
        value[t], value[kept] = value[kept], v
        index[t], index[kept] = index[kept], name
        kept += moved and v <= low
    # If there are fewer than ``size`` values now, the others to choose from are equal.
    for t in range(kept, filled):
        if kept < size and value[t] <= high:
            value[t], value[kept] = value[kept], value[t]
            index[t], index[kept] = index[kept], index[t]
            kept += 1
    return kept, high


@kernel
def _collect(products, norms, base, start, value, index, hits, filled, limit, size):  # type: ignore[no-untyped-def]
    """Add the points of a tile that are nearer than ``limit`` to a shortlist, and return its length and new limit.

    The squared distance is ``base + norms[t] - 2 * products[t]`` and the name of the point is ``start + t``. A list
    without room for a chunk keeps its ``size`` smallest values, and the largest of them becomes the limit.
    """
    one, two, zero = norms.dtype.type(1), norms.dtype.type(2), norms.dtype.type(0)
    least = limit - base
    for first in range(0, norms.shape[0], _CHUNK):
        end = min(first + _CHUNK, norms.shape[0])
        # Many chunks contain no near point, so this vectorised loop first checks whether there is one. Unsigned
        # numbers and no slices make it 4 times as fast, because numba then checks and counts nothing.
        below = zero
        for t in range(np.uint64(first), np.uint64(end)):
            below += one if norms[t] - two * products[t] < least else zero
        if below > zero:
            if filled + _CHUNK > value.shape[0]:
                filled, limit = _trimmed(value, index, filled, size, size // 8)
                least = limit - base
            count = np.uint64(0)
            for t in range(np.uint64(first), np.uint64(end)):
                hits[count] = t  # without branches, because many of them would be predicted wrongly
                count += np.uint64(norms[t] - two * products[t] < least)
            for c in range(count):
                hit = np.uint64(hits[c])
                value[filled] = base + (norms[hit] - two * products[hit])
                index[filled] = start + hit
                filled += 1
    return filled, limit


@kernel
def nearest_lists(rows, centres, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the nearest centres of each row, the nearest first."""
    count, size = centres.shape[0], out.shape[1]
    norms = np.empty(count, rows.dtype)
    for c in range(count):
        norms[c] = 0
        for f in range(rows.shape[1]):
            norms[c] += centres[c, f] * centres[c, f]
    value, index = np.empty(2 * size + 2 * _CHUNK, rows.dtype), np.empty(2 * size + 2 * _CHUNK, np.int32)
    memory, hits = np.empty(_TILE[0] * count, rows.dtype), np.empty(_CHUNK, np.int32)
    for start in range(lo, hi, _TILE[0]):
        height = min(_TILE[0], hi - start)
        products = memory[: height * count].reshape(height, count)
        np.dot(rows[start : start + height], centres.T, products)
        for r in range(height):
            limit = np.finfo(rows.dtype).max / rows.dtype.type(65536)
            filled, limit = _collect(products[r], norms, rows.dtype.type(0), 0, value, index, hits, 0, limit, size)
            filled, limit = _trimmed(value, index, filled, size, 0)
            for c in range(size):  # insertion sort
                v, name, at = value[c], index[c], c
                while at > 0 and (v < value[at - 1] or (v == value[at - 1] and name < index[at - 1])):
                    value[at], index[at] = value[at - 1], index[at - 1]
                    at -= 1
                value[at], index[at] = v, name
            for c in range(size):
                out[start + r, c] = index[c]


@pasted
def _asked(rows, centres, home, count, at, asking, union):  # type: ignore[no-untyped-def]
    """Write which rows of a part probe each list, and return the number of the lists of the ``union``, nearest first.

    ``rows`` are the lists that each row probes. ``count`` is the number of rows that probe each list, and the list c
    is probed by the rows that end before ``asking[at[c]]``. ``union`` has the lists in the order of the distances of
    their centres from that of the list ``home``.
    """
    count[:] = 0
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            count[rows[r, c]] += 1
    n_union, total = 0, 0
    distance = np.empty(centres.shape[0])
    for c in range(centres.shape[0]):
        at[c] = total
        total += count[c]
        if count[c] > 0:
            s = 0.0
            for f in range(centres.shape[1]):
                s += (centres[c, f] - centres[home, f]) ** 2
            union[n_union], distance[n_union] = c, s
            n_union += 1
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            asking[at[rows[r, c]]] = r
            at[rows[r, c]] += 1
    union[:n_union] = union[np.argsort(distance[:n_union], kind="mergesort")]
    return n_union


@pasted
def _kept(order, own, k, doubt, value, names, listed, row):  # type: ignore[no-untyped-def]
    """Keep the candidates that can belong to the k nearest, without the row itself, and return their number."""
    least = k + 1
    _, largest = _trimmed(value, names, listed, least, least // 16)
    largest += doubt * (own + own + abs(largest))
    kept = 0
    for q in range(listed):
        if value[q] <= largest and names[q] != row:
            names[kept] = order[names[q]]
            kept += 1
    return kept


@kernel
def compare(residual, order, first, centres, probed, part, offset, k, names, filled, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the candidates of the rows in the parts lo to hi of lists, (rows, room).

    The rows are sorted by list: ``order`` gives their numbers, and ``residual`` their differences from the centre of
    their list. The list c has the rows ``first[c]`` to ``first[c + 1]``. A part is (list, start, end). Its rows are
    compared with the lists that they probe, the nearest lists first, so that later values are compared with small
    limits. All differences are taken from the centre of the part's own list.
    """
    d, probes, dtype = residual.shape[1], probed.shape[1], residual.dtype.type
    size = k + k // 16 + 5  # with the row itself
    doubt = dtype(8 * d + 64) * np.finfo(residual.dtype).eps
    most = 0
    for p in range(lo, hi):
        most = max(most, part[p, 2] - part[p, 1])
    value = np.empty((most, names.shape[1]), residual.dtype)
    limit, own = np.empty(most, residual.dtype), np.empty(most, residual.dtype)
    count, at = np.zeros(centres.shape[0], np.int64), np.zeros(centres.shape[0], np.int64)
    asking = np.empty(most * probes, np.int64)
    union = np.empty(centres.shape[0], np.int64)
    queries = np.empty((_TILE[0], d), residual.dtype)
    base, norms = np.empty(_TILE[0], residual.dtype), np.empty(_TILE[1], residual.dtype)
    memory, shift = np.empty(_TILE[0] * _TILE[1], residual.dtype), np.empty(d, residual.dtype)
    hits = np.empty(_CHUNK, np.int32)
    for p in range(lo, hi):
        home, begin, end = part[p, 0], part[p, 1], part[p, 2]
        m = end - begin
        for r in range(m):
            limit[r] = np.finfo(residual.dtype).max / dtype(65536)
            filled[begin - offset + r] = 0
            s = dtype(0)
            for f in range(d):
                s += residual[begin + r, f] * residual[begin + r, f]
            own[r] = s
        n_union = _asked(probed[begin:end], centres, home, count, at, asking, union)
        for u in union[:n_union]:
            for f in range(d):
                shift[f] = centres[u, f] - centres[home, f]
            for top in range(at[u] - count[u], at[u], _TILE[0]):
                height = min(_TILE[0], at[u] - top)
                for q in range(height):
                    r = asking[top + q]
                    s = dtype(0)
                    for f in range(d):
                        queries[q, f] = residual[begin + r, f]
                        s += residual[begin + r, f] * shift[f]
                    base[q] = own[r] - s - s
                for left in range(first[u], first[u + 1], _TILE[1]):
                    width = min(_TILE[1], first[u + 1] - left)
                    for t in range(width):
                        s = dtype(0)
                        for f in range(d):
                            s += (residual[left + t, f] + shift[f]) ** 2
                        norms[t] = s
                    products = memory[: height * width].reshape(height, width)
                    np.dot(queries[:height], residual[left : left + width].T, products)
                    for q in range(height):
                        r = asking[top + q]
                        to = begin - offset + r
                        tile = products[q], norms[:width], base[q], left
                        found = _collect(*tile, value[r], names[to], hits, filled[to], limit[r], size)
                        filled[to], limit[r] = found
        for r in range(m):
            to = begin - offset + r
            filled[to] = _kept(order, own[r], k, doubt, value[r], names[to], filled[to], begin + r)


@kernel
def probes(queries, centres, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the nearest centres of each new row, in ascending order of their numbers.

    Matrix products are not used, because their rounding depends on the number of rows.
    """
    count, size = centres.shape[0], out.shape[1]
    value, index = np.empty(count, np.float32), np.empty(count, np.int32)
    for r in range(lo, hi):
        for c in range(count):
            s = 0.0
            for f in range(queries.shape[1]):
                s += (queries[r, f] - centres[c, f]) ** 2
            value[c], index[c] = s, c
        _trimmed(value, index, count, size, 0)
        for c in range(size):  # insertion sort
            name, at = index[c], c
            while at > 0 and name < index[at - 1]:
                index[at] = index[at - 1]
                at -= 1
            index[at] = name
        for c in range(size):
            out[r, c] = index[c]


@kernel
def _add_eight(tiles, u, own, f, value):  # type: ignore[no-untyped-def]
    """Add the squared differences in the columns f to f + 8 to the values of the rows of a tile."""
    a, b, c, d = own[f], own[f + np.uint64(1)], own[f + np.uint64(2)], own[f + np.uint64(3)]
    p, q, r, s = own[f + np.uint64(4)], own[f + np.uint64(5)], own[f + np.uint64(6)], own[f + np.uint64(7)]
    for t in range(np.uint64(value.shape[0])):
        da, db = tiles[u, f, t] - a, tiles[u, f + np.uint64(1), t] - b
        dc, dd = tiles[u, f + np.uint64(2), t] - c, tiles[u, f + np.uint64(3), t] - d
        dp, dq = tiles[u, f + np.uint64(4), t] - p, tiles[u, f + np.uint64(5), t] - q
        dr, ds = tiles[u, f + np.uint64(6), t] - r, tiles[u, f + np.uint64(7), t] - s
        value[t] += da * da + db * db + dc * dc + dd * dd + dp * dp + dq * dq + dr * dr + ds * ds


@kernel
def _within(tiles, tile, own, limit, value, hits):  # type: ignore[no-untyped-def]
    """Return the number of rows of a tile with a squared distance below ``limit``; ``hits`` are their places.

    A sum of squares does not become smaller when more squares are added, in spite of rounding. The comparison therefore
    ends as soon as no sum is below the limit. Unsigned numbers make the loops faster, because numba checks nothing.
    """
    one, zero = np.float32(1), np.float32(0)
    u, f, d, width = np.uint64(tile), np.uint64(0), np.uint64(own.shape[0]), np.uint64(value.shape[0])
    for t in range(width):
        value[t] = zero
    while f + np.uint64(8) <= d:
        _add_eight(tiles, u, own, f, value)
        f += np.uint64(8)
        below = zero
        for t in range(width):
            below += one if value[t] < limit else zero
        if below == zero:
            return np.uint64(0)
    while f < d:
        x = own[f]
        for t in range(width):
            value[t] += (tiles[u, f, t] - x) * (tiles[u, f, t] - x)
        f += np.uint64(1)
    count = np.uint64(0)
    for t in range(width):
        hits[count] = t
        count += np.uint64(value[t] < limit)
    return count


@kernel
def _uncertainty(square, norm, doubt):  # type: ignore[no-untyped-def]
    """Return how far a squared distance can be from its value in single precision.

    It is summed from the differences of coordinates, the rounding errors of which are proportional to the distance from
    a centre, whose square is at most ``norm``. The last term accounts for squares that are too small for single
    precision.
    """
    return doubt * (np.sqrt(square * norm) + square) + doubt * doubt * norm + np.finfo(np.float32).tiny


@kernel
def _least(square, radius, doubt):  # type: ignore[no-untyped-def]
    """Return a lower bound on the squared distances of the rows of a list, by the triangle inequality.

    ``square`` is the squared distance from the centre in single precision, and no row is farther from the centre than
    ``radius``.
    """
    gap = max(np.sqrt(square) * (1.0 - doubt) - radius, 0.0)
    return gap * gap * (1.0 - doubt)


@kernel
def _mark_nearest(queries, centres, first, probed, q, row, wanted, square, nearest):  # type: ignore[no-untyped-def]
    """Write the squared distances of the centres of the lists that a new row probes, and mark the nearest lists.

    The marked lists have at least ``wanted`` tiles together.
    """
    for c in range(probed.shape[1]):
        u, s = np.uint64(probed[row, c]), 0.0
        for f in range(np.uint64(queries.shape[1])):
            s += (queries[q, f] - centres[u, f]) * (queries[q, f] - centres[u, f])
        square[c], nearest[c] = s, False
    marked = 0
    while marked < wanted:
        best = -1
        for c in range(probed.shape[1]):
            if not nearest[c] and (best < 0 or square[c] < square[best]):
                best = c
        if best < 0:
            return
        nearest[best] = True
        marked += first[probed[row, best] + 1] - first[probed[row, best]]


@kernel
def shortlists(queries, tiles, order, first, centres, radii, probed, k, names, filled, bound, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write candidates for the k nearest rows of new rows, and a lower bound on the squared distances of the others.

    ``queries`` are the new rows in the coordinates of the ``centres``. They are compared with the rows of the lists
    that they probe, in single precision. ``probed`` has one row of lists for each new row, or one for all, in ascending
    order. The list c has the tiles ``first[c]`` to ``first[c + 1]``, (tiles, d, width), which contain differences from
    its centre, and infinite values in places without a row. A list is skipped if the triangle inequality proves that
    its rows are farther than the limit of the candidates. The candidates of a row do not depend on the other new rows.
    """
    d, group, room, width = queries.shape[1], hi - lo, names.shape[1], tiles.shape[2]
    size, n_probed = k + k // 4 + 16, probed.shape[1]
    largest = np.finfo(np.float32).max
    doubt = np.float64(8 * d + 64) * np.finfo(np.float32).eps
    value, name = np.empty((group, room + width), np.float32), np.empty((group, room + width), np.int32)
    square, nearest = np.empty((group, n_probed), np.float32), np.empty((group, n_probed), np.bool_)
    count, limit = np.zeros(group, np.int64), np.full(group, largest)
    norm, at = np.zeros(group, np.float32), np.empty(group, np.int64)
    own, found, hits = np.empty(d, np.float32), np.empty(width, np.float32), np.empty(width + 1, np.uint64)
    wanted = -(-room // width)
    for r in range(group):
        row = lo + r if probed.shape[0] > 1 else 0
        _mark_nearest(queries, centres, first, probed, np.uint64(lo + r), row, wanted, square[r], nearest[r])
    # The nearest lists come first, so that the others are compared with small limits. All rows of the block that probe
    # a list are compared with it in turn, while it is in the cache.
    for nearest_first in (True, False):
        at[:] = 0
        for u in range(centres.shape[0]):
            for r in range(group):
                row, c = lo + r if probed.shape[0] > 1 else 0, at[r]
                if c == n_probed or probed[row, c] != u:
                    continue
                at[r] += 1
                if nearest[r, c] != nearest_first or (
                    limit[r] < largest and _least(np.float64(square[r, c]), radii[u], doubt) >= limit[r]
                ):
                    continue
                for f in range(d):
                    own[f] = queries[lo + r, f] - centres[u, f]
                norm[r] = max(norm[r], square[r, c])
                for tile in range(first[u], first[u + 1]):
                    n_hits = _within(tiles, tile, own, limit[r], found, hits)
                    for h in range(n_hits):
                        value[r, count[r]], name[r, count[r]] = found[hits[h]], tile * width + np.int64(hits[h])
                        count[r] += 1
                    if count[r] > room:
                        kept, _ = _trimmed(value[r], name[r], count[r], size, size // 8)
                        for t in range(kept, count[r]):  # the limit is at most the smallest value that is left out
                            limit[r] = min(limit[r], value[r, t])
                        count[r] = kept
    for r in range(group):
        listed, to = count[r], lo + r
        bound[to] = limit[r] - 2.0 * _uncertainty(np.float64(limit[r]), np.float64(norm[r]), doubt)
        if limit[r] == largest or not bound[to] > 0.0:  # nothing was left out, or nothing is known
            bound[to] = np.inf if limit[r] == largest and norm[r] < largest else -np.inf
        reach = largest
        if listed < k:
            bound[to] = -np.inf
        else:
            _, reach = _trimmed(value[r], name[r], listed, k, k // 16)
            reach += np.float32(2.0 * _uncertainty(np.float64(reach), np.float64(norm[r]), doubt))
        filled[to] = 0
        for t in range(listed):
            if value[r, t] <= reach:
                names[to, filled[to]] = order[name[r, t]]
                filled[to] += 1
