"""What a detector is, and the registry of those in this folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks

# Half spans, and their distances from 0 in half spans, at which single precision (the forest's) tells points apart.
_SPANS, _AWAY, _USUAL = (2.0**-6, 2.0**100), 2.0**6, 2.0**6
_NO_DETECTORS = {"selection"}  # modules of this folder that are none, beside the private ones


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A scikit-learn estimator whose scores are lower for what is more abnormal."""

    title: str  # as in the paper's tables
    estimator: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)  # the paper's, where scikit-learn's defaults differ
    # The fitted attribute with the scores of the rows it was fitted to; None where score_samples serves them too.
    training: str | None = None
    unitless: bool = False  # whether scores are the same elsewhere and in another unit of length

    def scores(self, Y: NDArray[np.float64], params: Mapping[str, Any]) -> NDArray[np.float64]:
        """One score for each row of ``Y``, higher where it is more anomalous."""
        points = _within_reach(Y) if self.unitless else Y
        model = self.estimator(**{**self.settings, **params}).fit(points)
        found = model.score_samples(points) if self.training is None else getattr(model, self.training)
        return -np.asarray(found, dtype=np.float64)

    def parameters(self) -> list[str]:
        """Names of what the estimator takes."""
        return sorted(self.estimator().get_params())


def _within_reach(Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """``Y``; moved to the origin, in another unit, where it is too far, too small or too large to be told apart."""
    from drsne.precision import unit_scale

    low, high = Y.min(axis=0) / 2, Y.max(axis=0) / 2
    half, middle = float((high - low).max()), low + high
    if half == 0 or (_SPANS[0] <= half <= _SPANS[1] and np.abs(middle).max() <= _AWAY * half):
        return Y
    unit = unit_scale(np.array([half])) / 2  # exact: a power of two
    return np.asarray((Y / unit - middle / unit) * _USUAL)


def detectors() -> list[str]:
    """Names of the detectors: of the files in this folder, none of which is imported.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from drsne import anomaly
    >>> anomaly.detectors()
    ['centroid', 'isolation_forest', 'knn', 'lof']
    """
    found = (module.name for module in iter_modules([str(Path(__file__).parent)]))
    return sorted(name for name in found if not name.startswith("_") and name not in _NO_DETECTORS)


def find(name: Any, parameter: str = "detector") -> Detector:
    """The ``DETECTOR`` of ``anomaly/<name>.py``; ``parameter`` is who asked for it."""
    known = detectors()
    checks.choice(parameter, name, known, hint=near(name, known))
    detector: Detector = import_module(f"drsne.anomaly.{name}").DETECTOR
    return detector


def near(name: Any, known: Collection[str]) -> str:
    """A hint at the known name nearest to a wrong one (in lower case, or by initials), or nothing."""
    if not isinstance(name, str):
        return ""
    short = ["".join(word[:1] for word in one.split("_")) for one in known]
    close = [one for one, initials in zip(known, short, strict=True) if initials == name.lower()]
    close = close or get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else ""
