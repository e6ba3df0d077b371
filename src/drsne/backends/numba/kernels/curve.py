"""Places of points on a Z-order curve: near on the curve is near in the map."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel


@kernel
def codes(Y, low, scale, bits, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Place of each point, with ``bits`` bits a coordinate; ``scale`` cells per unit from ``low`` on."""
    d = Y.shape[1]
    largest = (1 << bits) - 1
    for i in range(lo, hi):
        code = 0
        for c in range(d):
            cell = min(int((Y[i, c] - low[c]) * scale), largest)
            for b in range(bits):
                code |= ((cell >> b) & 1) << (b * d + c)
        out[i] = code
