"""Anomalies in a map: detectors that score points.

Every detector is an entry of ``DETECTORS``. Listing their names imports no estimator. A detector uses only the map (or
any data), and does not depend on how the map was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drsne.anomaly._detector import anomaly_scores, detectors

if TYPE_CHECKING:
    from drsne.anomaly.distances import CentroidDistance, KNeighborsDistance

__all__ = ["CentroidDistance", "KNeighborsDistance", "anomaly_scores", "detectors"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'drsne.anomaly' has no attribute {name!r}")
    from drsne.anomaly import distances

    return getattr(distances, name)
