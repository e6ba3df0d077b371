"""Engines evaluate the repulsion of a map: the partition sum Z and F_i = sum_j w_ij^2 (y_i - y_j).

One engine a file: ``engines/<name>.py`` exposes ``ENGINE``, a class built as ``ENGINE(workers,
precision=...)`` with ``repulsion(Y, smoothing) -> (Z, F)`` and ``supports(n_components) -> bool``. The
registry reads file names only, so listing engines imports none.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Engine(Protocol):
    """What every engine offers."""

    def repulsion(self, Y: NDArray[np.float64], smoothing: float) -> tuple[float, NDArray[np.float64]]:
        """The partition sum and the forces ``F`` (n, d) of a map ``Y`` (n, d)."""
        ...


def names() -> list[str]:
    """Names of the engines in this folder."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def load(name: str) -> Any:
    """The engine class in ``engines/<name>.py``."""
    return import_module(f"drsne.engines.{name}").ENGINE


def resolve(name: str) -> str:
    """The name of an engine, for "auto" too."""
    return "exact" if name == "auto" else name
