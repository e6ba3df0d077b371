"""Rounding: how many bits a number keeps.

The last bits of a distance depend on the units of the data, and those of a matrix product on the number of BLAS
threads. Rounded to fewer bits, numbers that should be equal are equal, and such noise does not reach the map.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SINGLE = 24  # bits of a single-precision significand
NEARLY_DOUBLE = 40


def rounded(values: NDArray[np.float64], bits: int = SINGLE) -> NDArray[np.float64]:
    """``values`` with ``bits`` significant bits, over the whole range of double precision."""
    significand, exponent = np.frexp(values)
    scale = 2.0**bits
    return np.asarray(np.ldexp(np.rint(significand * scale) / scale, exponent))


WIDEST_SINGLE = 2.0**14  # extent of a map whose coordinates single precision resolves to a thousandth
NARROWEST_SINGLE = 2.0**-40  # extent of one whose squared distances single precision can hold


def pair_type(Y: NDArray[np.float64], precision: str) -> Any:
    """The type in which pairs of a map are computed: single precision where it is asked for and resolves the map."""
    extent = float(Y.max()) - float(Y.min())
    single = precision == "single" and NARROWEST_SINGLE <= extent <= WIDEST_SINGLE
    return np.float32 if single else np.float64


SMALLEST_SCALE, LARGEST_SCALE = 2.0**-12, 2.0**12  # whose fourth powers single precision can hold


def scaled_pair_type(Y: NDArray[np.float64], scales: NDArray[np.float64], precision: str) -> Any:
    """Return the same for a map whose points have kernels of these scales, of which it resolves the smallest."""
    least = float(scales.min())
    extent = float(Y.max()) - float(Y.min())
    if least < SMALLEST_SCALE or scales.max() > LARGEST_SCALE or extent > WIDEST_SINGLE * least:
        return np.float64
    return pair_type(Y, precision)


def unit_scale(X: NDArray[np.float64]) -> float:
    """Return a power of two near the largest magnitude in ``X``: dividing by it is exact and keeps squares finite."""
    largest = float(np.abs(X).max(initial=0.0))
    return float(2.0 ** min(np.frexp(largest)[1], 1023)) if largest > 0 else 1.0
