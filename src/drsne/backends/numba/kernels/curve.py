"""Positions of points on a Z-order curve. Points that are close together on the curve are close together in the map."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel


@kernel
def codes(Y, low, scale, bits, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the position of each point, with ``bits`` bits per coordinate and ``scale`` cells per unit from ``low``."""
    d = Y.shape[1]
    largest = (1 << bits) - 1
    for i in range(lo, hi):
        code = 0
        for c in range(d):
            cell = min(int((Y[i, c] - low[c]) * scale), largest)
            for b in range(bits):
                code |= ((cell >> b) & 1) << (b * d + c)
        out[i] = code
