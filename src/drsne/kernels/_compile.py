"""How kernels are compiled: without the interpreter lock, cached on disk, loops in vector lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    # Sums may be reordered and multiply-adds fused. The flags that let the compiler assume away nan and inf
    # ("nnan", "ninf") are left out: they drop comparisons with inf.
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    # x / 0 is inf: the check for Python's ZeroDivisionError keeps a loop out of vector lanes (4 x slower).
    "error_model": "numpy",
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use; cache it on disk where a cache directory can be written."""
    try:
        compiled: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no place for a cache
        compiled = njit(**_OPTIONS)(function)
    return compiled
