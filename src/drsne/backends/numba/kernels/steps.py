"""Steps of the optimisers in one pass over memory, for many points. For few points, NumPy is as fast."""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel


@kernel
def momentum(gradient, units, step, gain, least, rest, share, rate, block, lo, hi):  # type: ignore[no-untyped-def]
    """Set ``step = share * step - rate * gain * gradient`` in place, after the gains are raised or lowered.

    The gradient is multiplied by the units of the points, if there are any. With ``rest``, the gains of coordinates
    that have not moved are raised as well.
    """
    for i in range(lo, hi):
        for c in range(gradient.shape[1]):
            g = gradient[i, c] * units[i] if len(units) > 0 else gradient[i, c]
            if least > 0.0:
                flipped = np.sign(step[i, c]) == np.sign(g) if rest else step[i, c] * g >= 0.0
                v = gain[i, c] * 0.8 if flipped else gain[i, c] + 0.2
                v = max(v, least)
                gain[i, c] = v
                g *= v
            step[i, c] = share * step[i, c] - rate * g


@kernel
def adam(gradient, units, mean, square, one, two, unbias, eps, rate, step, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``step = rate * mean / (unbias * sqrt(square) + eps)``, after ``mean`` and ``square`` are updated."""
    for i in range(lo, hi):
        for c in range(gradient.shape[1]):
            g = gradient[i, c] * units[i] if len(units) > 0 else gradient[i, c]
            mean[i, c] = one * mean[i, c] + (1.0 - one) * g
            square[i, c] = two * square[i, c] + (1.0 - two) * g * g
            step[i, c] = rate * mean[i, c] / (unbias * np.sqrt(square[i, c]) + eps)


@kernel
def combine(attraction, repulsion, a, b, block, lo, hi):  # type: ignore[no-untyped-def]
    """Set ``attraction = a * attraction - b * repulsion`` in place."""
    for i in range(lo, hi):
        for c in range(attraction.shape[1]):
            attraction[i, c] = a * attraction[i, c] - b * repulsion[i, c]


@kernel
def move(Y, step, units, longest, out, sums, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the map after a step that is limited to the length ``longest``, and the sums of its columns."""
    d = Y.shape[1]
    for i in range(lo, hi):
        square = 0.0
        for c in range(d):
            square += step[i, c] * step[i, c]
        factor = longest / np.sqrt(square) if square > longest * longest else 1.0
        if len(units) > 0:
            factor *= units[i]
        for c in range(d):
            out[i, c] = Y[i, c] + factor * step[i, c]
    for c in range(d):
        total = 0.0  # in a loop that writes nothing, so that its order does not depend on places in memory
        for i in range(lo, hi):
            total += out[i, c]
        sums[block, c] = total


@kernel
def shift(Y, mean, block, lo, hi):  # type: ignore[no-untyped-def]
    """Subtract the mean from every row in place."""
    for i in range(lo, hi):
        for c in range(Y.shape[1]):
            Y[i, c] -= mean[c]
