"""Nearest-neighbour descent: neighbours of a point are compared with each other.

A round compares all pairs among the neighbours and the reverse neighbours of each point, as they were at the start of
the round. The distances come from matrix products of small groups of points. The pairs that improve a list are written
to the buffer of their block, and the lists are then updated by another kernel, so the result does not depend on the
number of threads.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel


@kernel
def measure(rows, near, value, limit, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the squared distances of the neighbours, and the largest of each row."""
    for i in range(lo, hi):
        largest = rows.dtype.type(0)
        for c in range(near.shape[1]):
            j = near[i, c]
            s = rows.dtype.type(0)
            for f in range(rows.shape[1]):
                s += (rows[i, f] - rows[j, f]) ** 2
            value[i, c] = s
            largest = max(largest, s)
        limit[i] = largest


@kernel
def sort_lists(near, value, fresh, block, lo, hi):  # type: ignore[no-untyped-def]
    """Sort the neighbours of each row by their distances."""
    for i in range(lo, hi):
        order = np.argsort(value[i], kind="mergesort")
        near[i], value[i], fresh[i] = near[i][order], value[i][order], fresh[i][order]


@kernel
def count_reverse(near, most, start):  # type: ignore[no-untyped-def]
    """Write where the reverse neighbours of each point begin, if each point keeps at most ``most`` of them."""
    start[:] = 0
    for i in range(near.shape[0]):
        for c in range(near.shape[1]):
            start[near[i, c] + 1] += 1
    for j in range(near.shape[0]):
        start[j + 1] = start[j] + min(start[j + 1], most)


@kernel
def reverse(near, fresh, salt, most, start, back, back_fresh):  # type: ignore[no-untyped-def]
    """Write the reverse neighbours of each point, and whether they are new.

    If there are too many, a sample is written, which depends on ``salt``. Most of its points were not in the sample of
    the last round, so all of them count as new.
    """
    mask, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    count = np.zeros(near.shape[0], np.int64)
    for i in range(near.shape[0]):
        for c in range(near.shape[1]):
            j = near[i, c]
            at, room = count[j], start[j + 1] - start[j]
            count[j] += 1
            if at >= room:  # reservoir sampling, with a hash of the pair instead of random numbers
                h = (np.uint64(i) * np.uint64(2654435761) + np.uint64(j) * np.uint64(40503) + np.uint64(salt)) & mask
                h = ((h ^ (h >> np.uint64(15))) * np.uint64(2246822519)) & mask
                h = ((h ^ (h >> np.uint64(13))) * np.uint64(3266489917)) & mask
                at = np.int64((h ^ (h >> np.uint64(16))) % (np.uint64(at) + one))
            if at < room:
                back[start[j] + at] = i
                back_fresh[start[j] + at] = fresh[i, c] or room == most


@kernel
def _group(near, fresh, start, back, back_fresh, m, listed, out):  # type: ignore[no-untyped-def]
    """Write the neighbours and reverse neighbours of m, the new ones first, and return both numbers."""
    new, total = 0, 0
    for c in range(near.shape[1]):
        listed[near[m, c]] = True
    for kind in range(2):
        for c in range(near.shape[1]):
            if fresh[m, c] == (kind == 0):
                out[total] = near[m, c]
                total += 1
        for e in range(start[m], start[m + 1]):
            if back_fresh[e] == (kind == 0) and not listed[back[e]]:
                out[total] = back[e]
                total += 1
        if kind == 0:
            new = total
    for c in range(near.shape[1]):
        listed[near[m, c]] = False
    return new, total


@kernel
def join(rows, old, fresh, start, back, back_fresh, most, near, limit, done, made, pair, value, block, lo, hi):  # type: ignore[no-untyped-def]
    """Compare the neighbours of each point with each other, until the buffer of the block is full.

    The block has the points ``done[block, 0]`` to ``done[block, 1]``, and moves the first of these to the next point.
    ``old`` and ``fresh`` are the neighbours at the start of the round, and whether each of them is new. Only pairs with
    at least one new point are compared. Pairs that are nearer than the ``limit`` of the first point, and not in its
    list ``near``, are written to ``pair`` and ``value``. ``made`` is the number of these pairs.
    """
    n, d = rows.shape
    width = old.shape[1] + most
    group = np.empty(width, np.int64)
    memory, products = np.empty((width, d), rows.dtype), np.empty(width * width, rows.dtype)
    norms = np.empty(width, rows.dtype)
    listed, slot = np.zeros(n, np.bool_), np.zeros(n, np.int16)  # slot: the place of a point in the group, from 1
    two, zero, largest = rows.dtype.type(2), rows.dtype.type(0), np.finfo(rows.dtype).max / rows.dtype.type(65536)
    cost, hits = np.empty(width + 1, rows.dtype), np.empty(width + 1, np.int64)
    m, written = done[block, 0], 0
    while m < done[block, 1]:
        new, total = _group(old, fresh, start, back, back_fresh, m, listed, group)
        if written + total * total > value.shape[1]:
            break
        for p in range(total if new > 0 else 0):
            s = zero
            for f in range(d):
                memory[p, f] = rows[group[p], f] - rows[m, f]  # small numbers, for exact products
                s += memory[p, f] * memory[p, f]
            norms[p] = s
            slot[group[p]] = p + 1
        for kind in range(2):  # first the new points, compared with all; then the old points, compared with the new
            top, bottom, across = (0, new, total) if kind == 0 else (new, total, new)
            if top == bottom or across == 0:
                continue
            out = products[: (bottom - top) * across].reshape(bottom - top, across)
            np.dot(memory[top:bottom], memory[:across].T, out)
            for p in range(top, bottom):
                i = group[p]
                least = limit[i] - norms[p]
                g = out[p - top]
                # Pairs that are known already, and the point itself, get a very large distance; cost[0] stands for
                # points outside the group. There are no branches, because many would be predicted wrongly.
                for t in range(across):
                    cost[t + 1] = norms[t]
                for c in range(near.shape[1]):
                    cost[slot[near[i, c]]] = largest
                cost[p + 1] = largest
                count = np.uint64(0)
                for t in range(np.uint64(across)):
                    hits[count] = t
                    count += np.uint64(cost[t + np.uint64(1)] - two * g[t] < least)
                for c in range(count):
                    hit = hits[c]
                    pair[block, written, 0], pair[block, written, 1] = i, group[hit]
                    value[block, written] = norms[p] + (norms[hit] - two * g[hit])
                    written += 1
        for p in range(total):
            slot[group[p]] = 0
        m += 1
    done[block, 0] = m
    made[block] = written


@kernel
def sort_pairs(pair, value, made, start, source, distance):  # type: ignore[no-untyped-def]
    """Sort the pairs of all blocks by their first point: those of the point i are ``start[i]`` to ``start[i + 1]``."""
    start[:] = 0
    for block in range(made.shape[0]):
        for e in range(made[block]):
            start[pair[block, e, 0] + 1] += 1
    for i in range(start.shape[0] - 1):
        start[i + 1] += start[i]
    for block in range(made.shape[0]):
        for e in range(made[block]):
            i = pair[block, e, 0]
            source[start[i]], distance[start[i]] = pair[block, e, 1], value[block, e]
            start[i] += 1
    for i in range(start.shape[0] - 1, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


@kernel
def _farthest(value, near):  # type: ignore[no-untyped-def]
    """Return the place of the farthest neighbour; ties go to the largest index."""
    worst = 0
    for c in range(1, near.shape[0]):
        if value[c] > value[worst] or (value[c] == value[worst] and near[c] > near[worst]):
            worst = c
    return worst


@kernel
def merge(start, source, distance, near, value, fresh, limit, block, lo, hi):  # type: ignore[no-untyped-def]
    """Replace the farthest neighbours of each row by nearer points from the pairs."""
    for i in range(lo, hi):
        if start[i] == start[i + 1]:
            continue
        names, lengths = near[i], value[i]
        worst = _farthest(lengths, names)
        for e in range(start[i], start[i + 1]):
            v, j = distance[e], source[e]
            if v < lengths[worst]:
                known = 0
                for c in range(names.shape[0]):
                    known += names[c] == j
                if known == 0:
                    names[worst], lengths[worst], fresh[i, worst] = j, v, True
                    worst = _farthest(lengths, names)
        limit[i] = lengths[worst]
