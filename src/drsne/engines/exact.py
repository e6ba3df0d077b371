"""All pairs: the cost grows with the square of n. The fastest for a few thousand points, and exact on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend

Array = NDArray[np.float64]


class ExactEngine:
    """Sum the repulsion over all pairs, each in single precision with sums in double precision, or all in double.

    Parameters
    ----------
    backend : Backend
        Evaluates the sums.
    precision : {"single", "double"}, default="single"
        Arithmetic of a pair.
    """

    OPTIONS = ()
    tolerance = (3e-4, 2e-5)  # single precision, on maps of thousands of units; 1e-6 on ordinary ones
    adaptive = True

    def __init__(self, backend: Backend, *, precision: str = "single") -> None:
        self._backend, self._precision = backend, precision

    @staticmethod
    def supports(n_components: int) -> bool:
        """Return whether maps can have that many dimensions: any number."""
        return n_components >= 1

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Do nothing, because there are no options."""

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation that has not begun: nothing is carried on."""

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: Any = None
    ) -> tuple[float, Array]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        return self._backend.repulsion(Y, smoothing=smoothing, scales=scales, precision=self._precision)


ENGINE = ExactEngine
