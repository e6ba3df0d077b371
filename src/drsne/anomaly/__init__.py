"""Anomalies in a map: detectors that score points.

There is one detector in each file: ``anomaly/<name>.py`` exposes ``DETECTOR``. Listing the names does not import these
files. A detector uses only the map (or any data), and does not depend on how the map was made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drsne.anomaly._detector import detectors
from drsne.anomaly._scoring import anomaly_scores

if TYPE_CHECKING:
    from drsne.anomaly.centroid import CentroidDistance
    from drsne.anomaly.knn import KNeighborsDistance

_HOME = {"CentroidDistance": "centroid", "KNeighborsDistance": "knn"}

__all__ = [
    "CentroidDistance",
    "KNeighborsDistance",
    "anomaly_scores",
    "detectors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'drsne.anomaly' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"drsne.anomaly.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
