"""Rounding, and the floating-point types in which pairs of points are computed.

The last bits of a distance depend on the units of the data, and those of a matrix product on the number of BLAS
threads. After rounding to fewer bits, numbers that should be equal are equal, and this noise does not affect the map.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SINGLE = 24  # bits of a significand in single precision
NEARLY_DOUBLE = 40  # bits that remain of a significand in double precision, without the noisy ones


def rounded(values: NDArray[np.float64], bits: int = SINGLE) -> NDArray[np.float64]:
    """Return ``values`` rounded to ``bits`` significant bits, over the whole range of double precision."""
    significand, exponent = np.frexp(values)
    scale = 2.0**bits
    return np.asarray(np.ldexp(np.rint(significand * scale) / scale, exponent))


WIDEST_SINGLE = 2.0**14  # largest extent of a map whose coordinates single precision resolves to a thousandth
NARROWEST_SINGLE = 2.0**-40  # smallest extent of a map whose squared distances do not underflow in single precision


def pair_type(Y: NDArray[np.float64], precision: str) -> Any:
    """Return the type in which pairs of a map are computed.

    It is single precision if that is the ``precision`` and it resolves the map, and double precision otherwise.
    """
    extent = float(Y.max()) - float(Y.min())
    single = precision == "single" and NARROWEST_SINGLE <= extent <= WIDEST_SINGLE
    return np.float32 if single else np.float64


SMALLEST_SCALE, LARGEST_SCALE = 2.0**-12, 2.0**12  # scales whose fourth powers do not overflow in single precision


def scaled_pair_type(Y: NDArray[np.float64], scales: NDArray[np.float64], precision: str) -> Any:
    """Return the type in which pairs of a map are computed if its points have these scales.

    Single precision must also resolve the smallest scale.
    """
    least = float(scales.min())
    extent = float(Y.max()) - float(Y.min())
    if least < SMALLEST_SCALE or scales.max() > LARGEST_SCALE or extent > WIDEST_SINGLE * least:
        return np.float64
    return pair_type(Y, precision)


def unit_scale(X: NDArray[np.float64]) -> float:
    """Return a power of two near the largest magnitude in ``X``. Dividing by it is exact and keeps squares finite."""
    largest = float(np.abs(X).max(initial=0.0))
    return float(2.0 ** min(np.frexp(largest)[1], 1023)) if largest > 0 else 1.0
