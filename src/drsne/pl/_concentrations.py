"""Log relative concentrations of a model, in the data and in its map, and the contrast between the two."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_FLAT = 1e-9  # largest range of log concentrations that counts as rounding


class Concentrations(NamedTuple):
    """The concentrations of a model. The map should have the concentration of the data times the contrast."""

    data: Array | None  # None if it is not known
    shown: Array | None  # of the map; not known if the fit was interrupted
    contrast: float


def concentrations_of(model: Any) -> Concentrations:
    """Return the concentrations of a fitted model, which may be one of another package that has none.

    For den-SNE, they are the relative concentrations that belong to its local radii. It has no contrast: the map may
    have any multiple of the log radii of the data. The contrast is therefore the slope of the best line.
    """
    if hasattr(model, "input_log_radii_"):
        data, shown = (_from_log_radii(_known(model, name)) for name in ("input_log_radii_", "log_radii_"))
        return Concentrations(data, shown, _slope(data, shown))
    data, shown = _known(model, "input_concentration_"), _known(model, "concentration_")
    return Concentrations(data, shown, float(getattr(model, "contrast_", 1.0)))


def target(data: Array, shown: Array, contrast: float) -> Array:
    """Return the log concentration that a map should have: that of the data times the contrast, plus a constant.

    Concentrations are relative to their mean, which a few rows that are almost equal can dominate, and which the
    contrast changes. The constant makes the median of map minus target zero. Otherwise, nearly all points of a good map
    could look too dense.
    """
    scaled = contrast * data
    return np.asarray(scaled + np.median(shown - scaled))


def _known(model: Any, name: str) -> Array | None:
    """Return an attribute with one number per row, or None if the model does not have it or if it is nan."""
    try:
        values = np.asarray(getattr(model, name, np.nan), dtype=np.float64)
    except (TypeError, ValueError):  # an attribute of another package
        return None
    known = values.ndim == 1 and len(values) == len(model.embedding_) and np.isfinite(values).all()
    return values if known else None


def _from_log_radii(log_radii: Array | None) -> Array | None:
    """Return the log relative concentration that belongs to the logarithms of squared radii."""
    if log_radii is None:
        return None
    log_c = -0.5 * log_radii
    log_c -= log_c.max()
    return np.asarray(log_c - np.log(np.exp(log_c).mean()))


def _slope(data: Array | None, shown: Array | None) -> float:
    """Return the slope of the best line through the concentrations of a map against those of the data."""
    if data is None or shown is None:
        return 1.0
    centred = data - data.mean()
    return float(centred @ shown) / float(centred @ centred) if np.ptp(data) > _FLAT else 1.0
