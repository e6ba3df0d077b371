"""Affinities: the precision of each row that gives the perplexity, and the symmetric matrix (docs/theory.md, eqs. 2-5).

The affinities of all rows are symmetrised by adding the transpose of their matrix.
"""

from __future__ import annotations

import math

import numpy as np

from drsne.backends.numba.kernels._compile import inlined, kernel, pasted

TINY = 2.3e-308  # smallest normal number, rounded up
_FAR = 1e300  # placeholder for an upper bracket that is not known yet
LATE = 12  # number of steps in which nearly all rows converge
SAME = 2.0**-48  # largest relative difference of two distances that counts as a rounding error
BEYOND = 1e60  # affinities are exactly 0 beyond this multiple of the distance of the neighbours within the perplexity
LEAST = 1e-140  # smallest scaled squared distance; smaller ones do not matter, and their precisions would overflow


@inlined
def _rounded(x):  # type: ignore[no-untyped-def]
    """Return ``x`` rounded to the 24 bits of single precision, over the whole range of double precision."""
    significand, exponent = math.frexp(x)
    return math.ldexp(np.float64(np.float32(significand)), exponent)


@pasted
def _scaled(distances, k, D):  # type: ignore[no-untyped-def]
    """Write k squared distances, shifted and scaled, and return the number of ties with the nearest, and the unit.

    Squared distances are shifted by the smallest of the row and scaled by the largest, so that they are between 0 and 1
    (all 0 if the distances are equal). They are rounded to single precision, because the last bits depend on the units
    of the data, but the map must not.

    Ties with the nearest distance are found by comparing the distances themselves. The scaled distances cannot be
    compared: the compiler may multiply by a reciprocal in one place and divide in another, so scaled values of equal
    distances can differ.
    """
    # d^2 - d_0^2 = (d - d_0)(d + d_0), with both factors in the unit of the row, to avoid overflow and cancellation.
    largest = max(distances[k - 1], TINY)
    near = distances[0] / largest
    spread = (distances[k - 1] / largest - near) * (distances[k - 1] / largest + near)
    tied = distances[0] + SAME * distances[0]
    ties = 0
    for j in range(k):
        far = distances[j] / largest
        D[j] = _rounded((far - near) * (far + near) / spread) if spread > 0.0 else 0.0
        if distances[j] <= tied or D[j] < LEAST:
            D[j] = 0.0
            ties = j + 1
    return ties, largest * np.sqrt(spread)


@kernel
def calibrate(distances, perplexity, P, precision, reached, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write rows of ``P`` that sum to one, their precisions and their perplexities, for rows of ascending distances.

    Neighbours that are too far away to have any affinity are left out, so that they do not determine the scale.
    """
    n_listed = distances.shape[1]
    target = np.log(perplexity)
    D, e = np.empty(n_listed), np.empty(n_listed)
    reach = min(n_listed - 1, int(np.ceil(perplexity)))  # index of the first neighbour beyond the perplexity
    for i in range(lo, hi):
        k = n_listed
        while k - 1 > reach and distances[i, reach] > 0.0 and distances[i, k - 1] > BEYOND * distances[i, reach]:
            k -= 1
            P[i, k] = 0.0
        ties, unit = _scaled(distances[i], k, D)
        if ties == k or ties >= perplexity or k <= perplexity:
            # There are more ties with the nearest neighbour than the perplexity. Equal affinities for these ties give
            # the closest possible perplexity. If the perplexity is at least k, all k neighbours get equal affinities.
            m = k if k <= perplexity or ties == k else ties
            for j in range(k):
                P[i, j] = 1.0 / m if j < m else 0.0
            if m < k:
                precision[i] = 40.0 / D[ties] / unit / unit
            else:
                precision[i] = 0.0 if k == n_listed else 40.0 / distances[i, k] / distances[i, k]
            reached[i] = m
            continue
        mean = 0.0
        for j in range(k):
            mean += D[j] / k
        beta = 1.0 / mean
        low, high = 0.0, _FAR
        entropy = 0.0
        for turn in range(200):
            s, first, second = 0.0, 0.0, 0.0
            for j in range(k):
                e[j] = np.exp(-beta * D[j])
                s += e[j]
                first += e[j] * D[j]
                second += e[j] * D[j] * D[j]
            first /= s
            entropy = np.log(s) + beta * first
            gap = entropy - target
            if abs(gap) < 1e-10:
                break
            if gap > 0.0:
                low = beta
            else:
                high = beta
            # d entropy / d log(beta) = -beta^2 Var(D)
            slope = beta * beta * (second / s - first * first)
            step = beta * np.exp(min(max(gap / max(slope, 1e-300), -3.0), 3.0))
            # Newton steps from both sides of the root can undo each other, so late steps alternate with bisection.
            if step <= low or step >= high or (turn >= LATE and turn % 2 == 1):
                step = 2.0 * beta if high == _FAR else 0.5 * (low + high)
            if step == beta:
                break
            beta = step
        for j in range(k):
            P[i, j] = e[j] / s
        precision[i] = beta / unit / unit
        reached[i] = np.exp(entropy)


@kernel
def calibrate_as_coded(D, perplexity, smoothing, steps, tolerance, doubling, P, precision, reached, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the affinities of the authors' searches.

    Squared distances ``D`` are not shifted or scaled, and ``smoothing`` is added to the sum of a row, and inside the
    logarithm when the entropy of the row is computed. With ``doubling``, the precision is only doubled or halved, so
    the search does not converge.
    """
    k = D.shape[1]
    target = np.log(perplexity)
    for i in range(lo, hi):
        beta = 1.0
        low, high = 0.0, _FAR
        entropy = 0.0
        for _ in range(steps):
            s = 0.0
            for j in range(k):
                P[i, j] = np.exp(-beta * D[i, j])
                s += P[i, j]
            s += smoothing
            entropy = 0.0
            for j in range(k):
                P[i, j] /= s
                entropy -= P[i, j] * np.log(P[i, j] + smoothing)
            precision[i] = beta
            gap = entropy - target
            if abs(gap) < tolerance:
                break
            if gap > 0.0:
                low = beta
                beta = 2.0 * beta if doubling or high == _FAR else 0.5 * (beta + high)
            else:
                high = beta
                beta = 0.5 * beta if doubling else 0.5 * (beta + low)
        reached[i] = np.exp(entropy)


@kernel
def merge(starts, columns, values, offsets, names, moved, indptr, into, data, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the rows of ``(C + C^T) / (2 n)`` without zeros, from the sorted rows of both matrices.

    If ``into`` is empty, the entries are only counted, and ``indptr[i + 1]`` is the length of row i.
    """
    scale = 0.5 / (starts.shape[0] - 1)
    counting = into.shape[0] == 0
    for i in range(lo, hi):
        a, a_end, b, b_end = starts[i], starts[i + 1], offsets[i], offsets[i + 1]
        e = 0 if counting else indptr[i]
        while a < a_end or b < b_end:
            v = 0.0
            left = b == b_end or (a < a_end and columns[a] <= names[b])
            right = a == a_end or (b < b_end and names[b] <= columns[a])
            j = columns[a] if left else names[b]
            if left:
                v += values[a]
                a += 1
            if right:
                v += moved[b]
                b += 1
            if values.dtype.type(v * scale) > 0:
                if not counting:
                    into[e] = j
                    data[e] = v * scale
                e += 1
        if counting:
            indptr[i + 1] = e
