"""Rounding, and the floating-point types for computations over pairs of points.

The last bits of a distance depend on the units of the data, and the last bits of a matrix product depend on the number
of BLAS threads. After rounding to fewer bits, numbers that should be equal are equal, and this noise does not affect
the map.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

SINGLE = 24  # number of bits of a significand in single precision
NEARLY_DOUBLE = 40  # number of bits of a significand that are kept in double precision; the others are noise


def rounded(values: NDArray[np.float64], bits: int = SINGLE) -> NDArray[np.float64]:
    """Return ``values`` rounded to ``bits`` significant bits, over the whole range of double precision."""
    significand, exponent = np.frexp(values)
    scale = 2.0**bits
    return np.asarray(np.ldexp(np.rint(significand * scale) / scale, exponent))


WIDEST_SINGLE = 2.0**14  # largest extent of a map at which single precision resolves a thousandth of a unit
NARROWEST_SINGLE = 2.0**-40  # smallest extent of a map at which squared distances do not underflow in single precision


def pair_type(Y: Any, precision: str) -> Any:
    """Return the floating-point type for computations over the pairs of a map.

    The type is single precision if ``precision`` is "single" and single precision resolves the map. Otherwise it is
    double precision.
    """
    return _resolving_type(_extent(Y), precision)


def _extent(Y: Any) -> float:
    """Return the difference of the largest and the smallest coordinate of a map, an array or a tensor."""
    if isinstance(Y, np.ndarray):
        return float(Y.max()) - float(Y.min())
    low, high = Y.aminmax()
    return float(high - low)


def _resolving_type(extent: float, precision: str) -> Any:
    single = precision == "single" and NARROWEST_SINGLE <= extent <= WIDEST_SINGLE
    return np.float32 if single else np.float64


SMALLEST_SCALE, LARGEST_SCALE = 2.0**-12, 2.0**12  # range in which fourth powers do not overflow in single precision


def scaled_pair_type(Y: Any, scales: Any, precision: str) -> Any:
    """Return the floating-point type for computations over the pairs of a map whose points have these scales.

    Single precision must also resolve the smallest scale.
    """
    if isinstance(Y, np.ndarray):
        extent, least, largest = _extent(Y), float(scales.min()), float(scales.max())
    else:  # all bounds at once, because the processor waits for a GPU whenever it reads a number
        low, high, least, largest = sys.modules["torch"].stack((*Y.aminmax(), *scales.aminmax())).tolist()
        extent = high - low
    if least < SMALLEST_SCALE or largest > LARGEST_SCALE or extent > WIDEST_SINGLE * least:
        return np.float64
    return _resolving_type(extent, precision)


def unit_scale(X: Any) -> float:
    """Return a power of two near the largest magnitude in ``X``. Dividing by it is exact and keeps squares finite."""
    if isinstance(X, np.ndarray):
        largest = float(np.abs(X).max(initial=0.0))
    else:
        largest = max(abs(float(bound)) for bound in X.aminmax())
    return float(2.0 ** min(np.frexp(largest)[1], 1023)) if largest > 0 else 1.0
