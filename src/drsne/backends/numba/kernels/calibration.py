"""Row-wise search for the precision that gives the asked perplexity (docs/theory.md, eqs. 2 to 4)."""

from __future__ import annotations

import math

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TINY = 2.3e-308  # smallest normal number, rounded up
_FAR = 1e300  # stands for "no upper bracket yet"
_LATE = 12  # steps; nearly all rows are done by then
_SAME = 2.0**-48  # relative difference of two distances that is rounding
_BEYOND = 1e60  # times the distance that the perplexity reaches to: affinities are exactly 0 from there on
_LEAST = 1e-140  # of the scaled squared distances: smaller ones cannot matter, and their precisions would overflow


@kernel
def _rounded(x):  # type: ignore[no-untyped-def]
    """``x`` to the 24 bits of single precision, over the whole range of double precision."""
    significand, exponent = math.frexp(x)
    return math.ldexp(np.float64(np.float32(significand)), exponent)


@kernel
def calibrate(distances, perplexity, P, precision, reached, block, lo, hi):  # type: ignore[no-untyped-def]
    """Safeguarded Newton search in log(precision) on rows of ascending distances.

    Squared distances are shifted by the row's minimum and scaled by the row's largest, so that they run from 0 to 1
    (all 0 where the distances are equal), and rounded to single precision: what the data's units leave in the last
    bits must not reach the map. Writes rows of ``P`` that sum to one, and the perplexity reached.

    Ties with the nearest distance are found by comparing the distances themselves. The scaled ones cannot tell: the
    compiler may multiply by a reciprocal in one place and divide in another, and then equal distances differ.
    Neighbours so far away that they cannot have any affinity are left out, so that they do not set the scale.
    """
    n_listed = distances.shape[1]
    target = np.log(perplexity)
    D, e = np.empty(n_listed), np.empty(n_listed)
    reach = min(n_listed - 1, int(np.ceil(perplexity)))  # more neighbours than the perplexity lie within this one
    for i in range(lo, hi):
        k = n_listed
        while k - 1 > reach and distances[i, reach] > 0.0 and distances[i, k - 1] > _BEYOND * distances[i, reach]:
            k -= 1
            P[i, k] = 0.0
        # d^2 - d_0^2 = (d - d_0)(d + d_0), with each factor in the row's own unit: no overflow, no cancellation.
        largest = max(distances[i, k - 1], _TINY)
        near = distances[i, 0] / largest
        spread = (distances[i, k - 1] / largest - near) * (distances[i, k - 1] / largest + near)
        unit = largest * np.sqrt(spread)
        tied = distances[i, 0] + _SAME * distances[i, 0]
        ties = 0
        for j in range(k):
            far = distances[i, j] / largest
            D[j] = _rounded((far - near) * (far + near) / spread) if spread > 0.0 else 0.0
            if distances[i, j] <= tied or D[j] < _LEAST:
                D[j] = 0.0
                ties = j + 1
        if ties == k or ties >= perplexity or k <= perplexity:
            # More equally near neighbours than the perplexity: their uniform law is the nearest there is
            # (all k neighbours where the perplexity is at least k).
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
            # Newton steps from either side of the root can undo each other: late ones take turns with halvings.
            if step <= low or step >= high or (turn >= _LATE and turn % 2 == 1):
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
    """The authors' searches: squared distances as they are, ``smoothing`` in the row sum and in the entropy's log.

    With ``doubling`` the precision is only ever doubled or halved, so the search does not converge.
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
