"""Sums over all pairs on a mesh, in two dimensions (docs/theory.md, eqs. 30 to 34).

Points are sorted by square cells of side ``side``, row by row. ``coordinates`` (2, n) are their coordinates relative to
the corner of the mesh, and ``starts`` holds the first point of each cell. Each point spreads its unit charge over the 4
x 4 nodes around it with the weights of a cubic B-spline, and reads the potential with the same weights. Its force is
the derivative of the potential that it reads. Blocks are strips of rows that do not overlap, so the order of every sum
is fixed.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

# Constants in single precision, because literals would raise the precision of the arithmetic.
_ZERO, _ONE, _THREE, _FOUR = np.float32(0), np.float32(1), np.float32(3), np.float32(4)
_HALF, _SIXTH = np.float32(1 / 2), np.float32(1 / 6)


@kernel
def _weights(f):  # type: ignore[no-untyped-def]
    """Return the cubic B-spline at the four nodes around a point that lies ``f`` beyond the second of them."""
    e = _ONE - f
    w0, w3 = e * e * e * _SIXTH, f * f * f * _SIXTH
    w1 = (_ONE + _THREE * e + _THREE * e * e * f) * _SIXTH
    return w0, w1, _ONE - w0 - w1 - w3, w3


@kernel
def _slopes(f):  # type: ignore[no-untyped-def]
    """Return the derivatives of the weights."""
    e = _ONE - f
    d0, d3 = -e * e * _HALF, f * f * _HALF
    d1 = (_THREE * f - _FOUR) * f * _HALF
    return d0, d1, -d0 - d1 - d3, d3


@kernel
def bounds(Y, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the smallest and the largest coordinates of the points of the block."""
    low0, low1, high0, high1 = Y[lo, 0], Y[lo, 1], Y[lo, 0], Y[lo, 1]
    for i in range(lo, hi):
        low0, high0 = min(low0, Y[i, 0]), max(high0, Y[i, 0])
        low1, high1 = min(low1, Y[i, 1]), max(high1, Y[i, 1])
    out[block, 0], out[block, 1], out[block, 2], out[block, 3] = low0, low1, high0, high1


@kernel
def cell_of(Y, corner, inverse, n_columns, cell, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``cell_i``, the number of the cell of point i."""
    for i in range(lo, hi):
        row = int((Y[i, 0] - corner[0]) * inverse)
        column = int((Y[i, 1] - corner[1]) * inverse)
        cell[i] = row * n_columns + column


@kernel
def sort_by_cell(cell, starts, order):  # type: ignore[no-untyped-def]
    """Write the points cell by cell into ``order``, in ascending order within a cell (counting sort)."""
    starts[:] = 0
    for i in range(cell.shape[0]):
        starts[cell[i] + 1] += 1
    for c in range(1, starts.shape[0]):
        starts[c] += starts[c - 1]
    for i in range(cell.shape[0]):
        c = cell[i]
        order[starts[c]] = i
        starts[c] += 1
    for c in range(starts.shape[0] - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0


@kernel
def gather(Y, corner, order, coordinates, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the coordinates of the points in ``order``, relative to the ``corner`` of the mesh."""
    for i in range(lo, hi):
        coordinates[0, i] = Y[order[i], 0] - corner[0]
        coordinates[1, i] = Y[order[i], 1] - corner[1]


@kernel
def count_pairs(starts, n_rows, n_columns, reach):  # type: ignore[no-untyped-def]
    """Return the number of ordered pairs of points in cells that are at most ``reach`` rows and columns apart."""
    pairs = 0.0
    for r in range(n_rows):
        for c in range(n_columns):
            here = starts[r * n_columns + c + 1] - starts[r * n_columns + c]
            if here > 0:
                first, last = max(c - reach, 0), min(c + reach, n_columns - 1)
                around = 0
                for q in range(max(r - reach, 0), min(r + reach, n_rows - 1) + 1):
                    around += starts[q * n_columns + last + 1] - starts[q * n_columns + first]
                pairs += float(here) * float(around)
    return pairs


@kernel
def spread(coordinates, starts, n_columns, side, margin, per_unit, grid, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write rows lo to hi of the charges on the mesh, from all points with nodes in these rows."""
    n_cells = starts.shape[0] - 1
    grid[lo:hi] = 0
    # A point in mesh row r has nodes in rows r - 1 to r + 2. Cells begin ``margin`` inside the mesh. One more row of
    # cells is visited at either end, to guard against rounding errors.
    n_rows = n_cells // n_columns
    first = int(np.floor(((lo - 2) / per_unit - margin) / side)) - 1
    last = int(np.floor(((hi + 1) / per_unit - margin) / side)) + 2
    first, last = min(max(first, 0), n_rows), min(max(last, 0), n_rows)
    wx = np.empty(4, np.float32)
    for i in range(starts[first * n_columns], starts[last * n_columns]):
        u, v = coordinates[0, i] * per_unit, coordinates[1, i] * per_unit
        top, left = np.floor(u), np.floor(v)
        row, column = int(top), int(left)
        if row + 2 < lo or row - 1 >= hi:
            continue
        f, g = u - top, v - left
        wx[0], wx[1], wx[2], wx[3] = _weights(f)
        w0, w1, w2, w3 = _weights(g)
        for a in range(max(0, lo - row + 1), min(4, hi - row + 1)):
            x = wx[a]
            line = grid[row - 1 + a]
            line[column - 1] += x * w0
            line[column] += x * w1
            line[column + 1] += x * w2
            line[column + 2] += x * w3


@kernel
def read(coordinates, order, per_unit, potential, near, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the force on each point and the partition sums, from the mesh and from ``near``.

    ``near`` (3, n) has the potential and the force of near pairs, or is empty if the kernel is not split.
    """
    total = 0.0
    split = near.shape[1] > 0
    wx, dx = np.empty(4, np.float32), np.empty(4, np.float32)
    for i in range(lo, hi):
        u, v = coordinates[0, i] * per_unit, coordinates[1, i] * per_unit
        top, left = np.floor(u), np.floor(v)
        row, column = int(top), int(left)
        f, g = u - top, v - left
        wx[0], wx[1], wx[2], wx[3] = _weights(f)
        dx[0], dx[1], dx[2], dx[3] = _slopes(f)
        w0, w1, w2, w3 = _weights(g)
        d0, d1, d2, d3 = _slopes(g)
        value, fx, fy = _ZERO, _ZERO, _ZERO
        for a in range(4):
            line = potential[row - 1 + a]
            p0, p1, p2, p3 = line[column - 1], line[column], line[column + 1], line[column + 2]
            along = p0 * w0 + p1 * w1 + p2 * w2 + p3 * w3
            value += wx[a] * along
            fx += dx[a] * along
            fy += wx[a] * (p0 * d0 + p1 * d1 + p2 * d2 + p3 * d3)
        fx *= -_HALF * per_unit  # F is -1/2 times the gradient of the potential
        fy *= -_HALF * per_unit
        if split:
            value += near[0, i]
            fx += near[1, i]
            fy += near[2, i]
        total += float(value - _ONE)  # without the point itself
        forces[order[i], 0] = fx
        forces[order[i], 1] = fy
    partition[block] = total


@kernel
def near_pairs(coordinates, starts, n_columns, reach, square, scale, near, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the part of the sums that the far kernel leaves out, for the points of cell rows lo to hi.

    These are sums over pairs that are closer than the radius a of the split. With ``square`` = a^2, ``scale`` = 1 / (1
    + a^2) and tau = max(0, a^2 - s) / (1 + a^2), the kernel minus its cubic Taylor polynomial is ``w tau^4``, and the
    negative of its derivative with respect to s is ``w tau^3 (w tau + 4 / (1 + a^2))`` (eq. 34). Only cells that are at
    most ``reach`` rows and columns away are visited. The point itself contributes ``(a^2 / (1 + a^2))^4``.
    """
    n_rows = (starts.shape[0] - 1) // n_columns
    four = _FOUR * scale
    for r in range(lo, hi):
        top, bottom = max(r - reach, 0), min(r + reach, n_rows - 1)
        for c in range(n_columns):
            cell = r * n_columns + c
            first, last = max(c - reach, 0), min(c + reach, n_columns - 1)
            for i in range(starts[cell], starts[cell + 1]):
                xi, yi = coordinates[0, i], coordinates[1, i]
                value, fx, fy = _ZERO, _ZERO, _ZERO
                for q in range(top, bottom + 1):
                    begin, end = starts[q * n_columns + first], starts[q * n_columns + last + 1]
                    x, y = coordinates[0, begin:end], coordinates[1, begin:end]
                    for t in range(end - begin):
                        dx = xi - x[t]
                        dy = yi - y[t]
                        s = dx * dx + dy * dy
                        tau = max(_ZERO, square - s) * scale
                        w = _ONE / (_ONE + s)
                        cube = tau * tau * tau * w
                        value += cube * tau
                        g = cube * (w * tau + four)
                        fx += g * dx
                        fy += g * dy
                near[0, i] = value
                near[1, i] = fx
                near[2, i] = fy
