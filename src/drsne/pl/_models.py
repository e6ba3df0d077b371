"""What plots accept: models and arrays, their concentrations, and colours that are named or given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import did_you_mean, refuse_cells
from drsne.pl import _colors
from drsne.pl._colors import Colors, as_numbers

Array = NDArray[np.float64]
_FLAT = 1e-9  # largest range of log concentrations that counts as rounding


def concentrations_of(model: Any) -> tuple[Array | None, Array | None, float]:
    """Return the concentrations of the data and of the map of a model, or None if unknown, and the contrast.

    For den-SNE, they are the relative concentrations that belong to its local radii. It has no contrast: the map may
    have any multiple of the log radii of the data. The contrast is therefore the slope of the best line.
    """
    if hasattr(model, "input_log_radii_"):
        data, shown = (_from_log_radii(_known(model, name)) for name in ("input_log_radii_", "log_radii_"))
        return data, shown, slope(data, shown)
    data, shown = _known(model, "input_concentration_"), _known(model, "concentration_")
    contrast = getattr(model, "contrast_", None)
    return data, shown, 1.0 if contrast is None else float(contrast)


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


def slope(data: Array | None, shown: Array | None) -> float:
    """Return the slope of the best line through the concentrations of a map against those of the data."""
    if data is None or shown is None:
        return 1.0
    centred = data - data.mean()
    return float(centred @ shown) / float(centred @ centred) if np.ptp(data) > _FLAT else 1.0


CONCENTRATION = "log relative concentration"
# Names of colours that a model knows, and what the colour bar says.
_NAMED = {
    "concentration": f"{CONCENTRATION} in the data",
    "map_concentration": f"{CONCENTRATION} in the map",
    "residual": "map minus data (log; red: drawn too dense)",
}


@dataclass(frozen=True, kw_only=True)
class Map:
    """A map from a file or an AnnData object, with the attributes of a fitted model. What is not known is None."""

    embedding_: Any
    obs: Any = ()
    input_concentration_: Any = None
    concentration_: Any = None
    contrast_: float | None = None
    density_weight_: float | None = None


def as_model(source: Any, name: str = "source") -> Any:
    """Return the map that :func:`drsne.tl.drsne` has written into an AnnData object, or anything else as it is."""
    if not (hasattr(source, "obsm") and hasattr(source, "uns")):
        return source
    if "X_drsne" not in source.obsm:
        raise ValueError(
            f"{name} must have the map of drsne.tl.drsne, obsm['X_drsne']; this AnnData object has "
            f"{', '.join(map(repr, source.obsm)) or 'no obsm'}. Call drsne.tl.drsne(adata) first, or pass an array, "
            "such as adata.obsm['X_umap']."
        )
    names = {"input_concentration_": "drsne_concentration", "concentration_": "drsne_concentration_map"}
    known: dict[str, Any] = {
        name: np.asarray(source.obs[column]) for name, column in names.items() if column in source.obs
    }
    results = source.uns.get("drsne", {})
    numbers = {name: float(results[name[:-1]]) for name in ("contrast_", "density_weight_") if name[:-1] in results}
    return Map(embedding_=np.asarray(source.obsm["X_drsne"]), obs=source.obs, **known, **numbers)


def map_of(source: Any, name: str = "source") -> NDArray[Any]:
    """Return the two-dimensional map of a model, of an AnnData object or of an array."""
    source = as_model(source, name)
    Y = np.asarray(getattr(source, "embedding_", source))
    if hasattr(source, "get_params") and not hasattr(source, "embedding_"):
        raise ValueError(f"{name} must be fitted; this {type(source).__name__} is not. Call fit first.")
    if Y.ndim != 2 or Y.shape[1] != 2 or Y.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a fitted model or a map of shape (n_samples, 2); got shape {Y.shape} of {Y.dtype}. Pass a "
            "two-dimensional map."
        )
    if not len(Y):
        raise ValueError(f"{name} must have at least one point; got none. Pass the map of some rows.")
    unknown = int((~np.isfinite(Y)).any(axis=1).sum())
    if unknown:
        raise ValueError(
            f"{name} must hold finite positions; {unknown} of its {len(Y)} points have none. Drop these points."
        )
    return Y


def contrast_line(source: Any) -> str:
    """Return a line that says the contrast of the map of a model, or "" if there is no density term."""
    contrast = getattr(source, "contrast_", None)
    return "" if contrast is None or not getattr(source, "density_weight_", 0.0) else f"contrast {contrast:.3g}"


def colors_of(source: Any, color: Any, n: int, cmap: Any) -> tuple[Colors, str | None]:
    """Return the colours of the points, and the title of their legend or colour bar."""
    if not isinstance(color, str):
        return given_colors(color, n, cmap, "color")
    if color not in _NAMED and color in getattr(source, "obs", ()):
        return given_colors(source.obs[color], n, cmap, "color")
    if color not in _NAMED:
        hint = did_you_mean(color, _NAMED)
        names = ", ".join(map(repr, _NAMED))
        raise ValueError(f"color must be an array or one of {names}; got {color!r}. {hint}".rstrip())
    data, shown, contrast = concentrations(source, of_map=color != "concentration")
    if color == "concentration":
        return _colors.by_value(data, cmap), _NAMED[color]
    if color == "map_concentration":
        return _colors.by_value(shown, cmap), _NAMED[color]
    return _colors.by_value(shown - target(data, shown, contrast), cmap, center=0.0), _NAMED[color]


def given_colors(color: Any, n: int, cmap: Any, name: str) -> tuple[Colors, str | None]:
    """Return the colours of classes or values, and their title. ``name`` is the parameter that errors name."""
    if color is None:
        return _colors.single(n), None
    refuse_cells(name, color)
    values = np.asarray(color)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one entry for each of the {n} points; got shape {values.shape}. Pass a list or a "
            "one-dimensional array."
        )
    title = getattr(color, "name", None)  # of a pandas column
    numbers = None if _colors.is_categorical(color) else as_numbers(values)
    colors = _colors.by_class(color, cmap) if numbers is None else _colors.by_value(numbers, cmap)
    return colors, None if title is None else str(title)


def concentrations(model: Any, *, of_map: bool = True) -> tuple[Array, Any, float]:
    """Return what :func:`concentrations_of` does, or raise an error if the data's or the map's are not known."""
    data, shown, contrast = concentrations_of(model)
    if data is None:
        raise ValueError(
            f"The concentration needs a fitted DRSNE or DenSNE; got {type(model).__name__}. Pass the model instead of "
            "its map."
        )
    if shown is None and of_map:
        raise ValueError(
            "The model must know the concentration of its map; this one does not, because its fit was interrupted. Fit "
            "it again."
        )
    return data, shown, contrast
