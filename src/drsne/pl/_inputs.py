"""What plots accept: models and arrays, and colours that are named or given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import did_you_mean
from drsne.pl import _colors
from drsne.pl._colors import Colors

# Names of colours that a model knows, their attributes, and what the colour bar says.
CONCENTRATION = "log relative concentration (0 is average)"
_NAMED = {
    "concentration": ("input_concentration_", "concentration of the data: " + CONCENTRATION),
    "map_concentration": ("concentration_", "concentration of the map: " + CONCENTRATION),
    "residual": ("", "concentration of the map minus its target (log; red: drawn too dense)"),
}


def map_of(source: Any, name: str = "source") -> NDArray[Any]:
    """Return the two-dimensional map of a model or an array."""
    Y = np.asarray(getattr(source, "embedding_", source))
    if hasattr(source, "get_params") and not hasattr(source, "embedding_"):
        raise ValueError(f"{name} must be fitted; this {type(source).__name__} is not. Call fit first.")
    if Y.ndim != 2 or Y.shape[1] != 2 or Y.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a fitted model or a map of shape (n_samples, 2); got shape {Y.shape} of {Y.dtype}. Pass a "
            "two-dimensional map."
        )
    if not len(Y) or not np.isfinite(Y).all():
        raise ValueError(f"{name} must hold finite positions; got {len(Y)} points, some of which are not finite.")
    return Y


def colors_of(source: Any, color: Any, n: int, cmap: Any) -> tuple[Colors, str | None]:
    """Return the colours of the points, and the title of their legend or colour bar."""
    if color is None:
        return _colors.single(n), None
    if isinstance(color, str):
        return _named(source, color, cmap)
    title = getattr(color, "name", None)  # of a pandas column
    values = np.asarray(color)
    if values.shape != (n,):
        raise ValueError(
            f"color must have one entry for each of the {n} points; got shape {values.shape}. Pass a list or a "
            "one-dimensional array."
        )
    if hasattr(getattr(color, "cat", color), "categories") or _colors.is_categorical(values):
        return _colors.by_class(color, cmap), None if title is None else str(title)
    return _colors.by_value(values.astype(np.float64), cmap), None if title is None else str(title)


def _named(source: Any, color: str, cmap: Any) -> tuple[Colors, str]:
    if color not in _NAMED:
        hint = did_you_mean(color, _NAMED)
        names = ", ".join(map(repr, _NAMED))
        raise ValueError(f"color must be an array or one of {names}; got {color!r}. {hint}".rstrip())
    data, shown, contrast = concentrations(source)
    values = {"concentration": data, "map_concentration": shown, "residual": shown - contrast * data}[color]
    center = 0.0 if color == "residual" else None
    return _colors.by_value(values, cmap, center=center), _NAMED[color][1]


def concentrations(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the log relative concentrations of the data and of the map of a model, and the contrast of the map.

    The concentration of the map should be that of the data times the contrast. For den-SNE, whose log radii are those
    of squared lengths, the concentrations are half of the negative log radii, shifted to a mean of 0. It has no
    contrast, so that of the best line is returned.
    """
    if hasattr(model, "input_concentration_"):
        data, shown = np.asarray(model.input_concentration_, float), np.asarray(model.concentration_, float)
        return data, shown, float(model.contrast_)
    if hasattr(model, "input_log_radii_"):
        data, shown = np.asarray(model.input_log_radii_, float), np.asarray(model.log_radii_, float)
        data, shown = 0.5 * (data.mean() - data), 0.5 * (shown.mean() - shown)
        return data, shown, float(data @ shown / (data @ data)) if data.any() else 1.0
    raise ValueError(
        f"The concentration needs a fitted DRSNE or DenSNE; got {type(model).__name__}. Pass the model instead of its "
        "map."
    )
