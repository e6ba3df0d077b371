"""Sums over all pairs. The time grows with the square of n; up to a few thousand points, this is the fastest engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, Kind

Array = NDArray[np.float64]


class ExactEngine:
    """The repulsion summed over all pairs. ``precision`` is that of the terms; their sums have double precision."""

    OPTIONS = ()
    tolerance = (3e-4, 2e-5)  # for maps of thousands of units in single precision; errors on ordinary maps are 1e-6
    adaptive = True

    def __init__(self, backend: Backend, *, precision: str = "single") -> None:
        self._backend, self._precision = backend, precision

    @staticmethod
    def supports(n_components: int, kind: Kind) -> bool:
        """Return True, because maps can have any number of dimensions, with every backend."""
        return n_components >= 1

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Do nothing, because there are no options."""

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation, which is None: this engine has no state."""

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: Any = None
    ) -> tuple[float, Array]:
        return self._backend.repulsion(Y, smoothing=smoothing, scales=scales, precision=self._precision)


ENGINE = ExactEngine
