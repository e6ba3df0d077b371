"""Steps of the optimisers in one pass over memory, for many points. For few points, NumPy is as fast."""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel


@kernel
def momentum(gradient, step, gain, least, rest, share, rate):  # type: ignore[no-untyped-def]
    """Set ``step = share * step - rate * gain * gradient`` in place, after the gains are raised or lowered.

    With ``rest``, the gains of coordinates that have not moved are raised as well.
    """
    for i in range(gradient.shape[0]):
        for c in range(gradient.shape[1]):
            g = gradient[i, c]
            if least > 0.0:
                flipped = np.sign(step[i, c]) == np.sign(g) if rest else step[i, c] * g >= 0.0
                v = gain[i, c] * 0.8 if flipped else gain[i, c] + 0.2
                v = max(v, least)
                gain[i, c] = v
                g *= v
            step[i, c] = share * step[i, c] - rate * g


@kernel
def adam(gradient, mean, square, one, two, unbias, eps, rate, step):  # type: ignore[no-untyped-def]
    """Write ``step = rate * mean / (unbias * sqrt(square) + eps)``, after ``mean`` and ``square`` are updated."""
    for i in range(gradient.shape[0]):
        for c in range(gradient.shape[1]):
            g = gradient[i, c]
            mean[i, c] = one * mean[i, c] + (1.0 - one) * g
            square[i, c] = two * square[i, c] + (1.0 - two) * g * g
            step[i, c] = rate * mean[i, c] / (unbias * np.sqrt(square[i, c]) + eps)
