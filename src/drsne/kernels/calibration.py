"""Row-wise search for the precision that gives the asked perplexity (docs/theory.md, eqs. 2 to 4)."""

from __future__ import annotations

import numpy as np

from drsne.kernels._compile import kernel

_FAR = 1e300  # stands for "no upper bracket yet"


@kernel
def calibrate(D, perplexity, P, precision, reached, block, lo, hi):  # type: ignore[no-untyped-def]
    """Safeguarded Newton search in log(precision) on rows ``D`` of shifted, scaled squared distances.

    ``D[i, 0] == 0`` is the row's minimum, rows ascend, and the largest is 1 (or 0: all equal). Writes rows
    of ``P`` that sum to one, and the perplexity reached.
    """
    k = D.shape[1]
    target = np.log(perplexity)
    for i in range(lo, hi):
        ties = 0
        while ties < k and D[i, ties] == 0.0:
            ties += 1
        if ties == k or ties >= perplexity or k <= perplexity:
            # More equally near neighbours than the perplexity: their uniform law is the nearest there is
            # (all k neighbours where the perplexity is at least k).
            m = k if k <= perplexity or ties == k else ties
            for j in range(k):
                P[i, j] = 1.0 / m if j < m else 0.0
            precision[i] = 0.0 if m == k else 40.0 / D[i, ties]
            reached[i] = m
            continue
        mean = 0.0
        for j in range(k):
            mean += D[i, j] / k
        beta = 1.0 / mean
        low, high = 0.0, _FAR
        entropy = 0.0
        for _ in range(200):
            s, first, second = 0.0, 0.0, 0.0
            for j in range(k):
                e = np.exp(-beta * D[i, j])
                P[i, j] = e
                s += e
                first += e * D[i, j]
                second += e * D[i, j] * D[i, j]
            first /= s
            entropy = np.log(s) + beta * first
            gap = entropy - target
            for j in range(k):
                P[i, j] /= s
            if abs(gap) < 1e-10:
                break
            if gap > 0.0:
                low = beta
            else:
                high = beta
            # d entropy / d log(beta) = -beta^2 Var(D)
            slope = beta * beta * (second / s - first * first)
            step = beta * np.exp(min(max(gap / max(slope, 1e-300), -3.0), 3.0))
            if step <= low or step >= high:
                step = 2.0 * beta if high == _FAR else 0.5 * (low + high)
            if step == beta:
                break
            beta = step
        precision[i] = beta
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
