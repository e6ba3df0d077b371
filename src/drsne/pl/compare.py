"""The plots of several maps: side by side, and along a path of weights with the trade-off of neighbours and density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne.pl import _colors
from drsne.pl._drawing import add_key, draw, new_figure, require_matplotlib
from drsne.pl._models import CONCENTRATION, as_model, contrast_line, given_colors, map_of

_SCORES = {
    "trustworthiness": "TW",
    "continuity": "Cont",
    "concentration_correlation": "CC",
    "density_rank_correlation": "rho30",
    "local_density_rank_correlation": "rho5",
    "fragmentation": "Frag",
}  # the scores below the titles, and their short names
_SCORED = 2000  # largest number of points that are scored
_MAX_STRIP_MAPS = 6  # largest number of maps below the curve of a path
_MAX_STRIP_LEGEND_ENTRIES = 10  # largest number of labels in the legend of the maps of a path
_BESIDE: dict[str, Any] = {"xytext": (6, 6), "textcoords": "offset points", "fontsize": 9, "color": "0.3"}
_MIN_LABEL_DISTANCE = 0.03  # smallest distance between two annotated points, as a fraction of the plot size


def compare(
    maps: Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    concentration: Mapping[str, ArrayLike] | None = None,
    *,
    X: ArrayLike | None = None,
    metric: Any = "euclidean",
    figsize: tuple[float, float] | None = None,
    cmap: Any = None,
    point_size: float | None = None,
) -> Any:
    """Draw two-dimensional maps side by side.

    The points are coloured by label and, in a second row, by relative concentration. A few points that are far away
    from all others are drawn at the edge, so that the other points remain visible.

    Parameters
    ----------
    maps : mapping of str to DRSNE, DenSNE or array of shape (n_samples, 2)
        The maps of the same rows, or the fitted models, with their titles, such as ``{"DR-SNE": Y}``.
    labels : array-like of shape (n_samples,), default=None
        The classes or values used to colour the points in the first row, as in :func:`drsne.pl.embedding`. If None, all
        points have the same colour.
    concentration : mapping of str to array of shape (n_samples,), default=None
        For each title, the logarithm of the relative concentration (``concentration_``), used to colour the map in the
        second row. All maps share one colour scale. If None, the second row is not drawn.
    X : array-like of shape (n_samples, n_features), default=None
        The data. With them, every map has its scores below its title: trustworthiness (TW), continuity (Cont),
        concentration correlation (CC), density rank correlations at 30 and 5 neighbours (rho30 and rho5) and
        fragmentation (Frag), on at most 2000 points.
    metric : str or callable, default="euclidean"
        The metric used on the data for the scores.
    figsize : tuple of float, default=None
        Width and height of the figure in inches. If None, they follow from the number of maps.
    cmap, point_size
        As in :func:`drsne.pl.embedding`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A notebook shows it; ``figure.savefig(...)`` saves it.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import pl
    >>> Y = np.random.default_rng(0).normal(size=(50, 2))
    >>> figure = pl.compare({"noise": Y}, labels=Y[:, 0] > 0)
    >>> figure.axes[0].get_title()
    'noise'
    """
    require_matplotlib()
    arrays = _checked_maps(maps)
    shown = None if concentration is None else _checked_concentrations(concentration, arrays)
    scores = {} if X is None else {title: _score_line(X, Y, metric) for title, Y in arrays.items()}
    n_rows = 1 + (shown is not None)
    figure = new_figure(figsize or (5.2 * len(arrays) + 1.0, 5.0 * n_rows))
    axes = figure.subplots(n_rows, len(arrays), squeeze=False)
    _draw_labelled(axes[0], arrays, labels, point_size, cmap=cmap)
    for axis, title in zip(axes[0], arrays, strict=True):
        lines = (scores.get(title, ""), contrast_line(as_model(maps[title])))
        if any(lines):
            axis.set_xlabel("  ".join(line for line in lines if line), fontsize="small")
    if shown is not None:
        limits = _colors.limits_of(np.concatenate(list(shown.values())))
        for axis, (title, Y) in zip(axes[1], arrays.items(), strict=True):
            colors = _colors.by_value(shown[title], None, limits)
            draw(axis, Y, colors, point_size, f"{title}: relative concentration")
        figure.colorbar(colors.mapped, ax=list(axes[1]), shrink=0.8, pad=0.02, extend="both", label=CONCENTRATION)
    return figure


def _draw_labelled(
    axes: Any,
    maps: Mapping[str, NDArray[Any]],
    labels: ArrayLike | None,
    size: float | None,
    *,
    cmap: Any = None,
    max_entries: int = _colors.MOST_CLASSES,
) -> None:
    """Draw maps coloured by label, with a legend beside the last one if it has at most ``max_entries`` entries."""
    n = len(next(iter(maps.values())))
    colors, key_title = given_colors(labels, n, cmap, "labels")
    for axis, (title, Y) in zip(axes, maps.items(), strict=True):
        draw(axis, Y, colors, size, title)
    if colors.mapped is not None or 1 < len(colors.names) <= max_entries:
        add_key(axes[-1], colors, key_title)


def _score_line(X: Any, Y: NDArray[Any], metric: Any) -> str:
    """Return the main scores of a map as one line of text."""
    from drsne import metrics

    few = None if len(Y) <= _SCORED else _SCORED
    found = metrics.evaluate(X, Y, max_samples=few, random_state=0, metric=metric)
    return "  ".join(f"{short} {found[name]:.2f}" for name, short in _SCORES.items())


def _checked_maps(maps: Any) -> dict[str, NDArray[Any]]:
    """Return the maps as arrays, or raise an error if they are not a mapping from titles to two-dimensional maps."""
    if not isinstance(maps, Mapping):
        shape = getattr(maps, "shape", None)
        found = type(maps).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise TypeError(f'maps must be a mapping from titles to maps; got {found}. Pass {{"DR-SNE": Y}}.')
    if not maps:
        raise ValueError('maps must have at least one entry; got none. Pass {"DR-SNE": Y}.')
    arrays = {title: map_of(as_model(Y, f"maps[{title!r}]"), f"maps[{title!r}]") for title, Y in maps.items()}
    first, n = next((title, len(Y)) for title, Y in arrays.items())
    for title, Y in arrays.items():
        if len(Y) != n:
            raise ValueError(
                f"maps must have the same rows; {title!r} has {len(Y)} points, and {first!r} has {n}. Draw maps of "
                "different rows in separate figures."
            )
    return arrays


def _checked_concentrations(concentration: Any, maps: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]]:
    """Return the concentrations of all maps, or raise an error if one of them does not belong to its map."""
    if not isinstance(concentration, Mapping):
        raise TypeError(
            "concentration must be a mapping from the titles of maps to arrays; got "
            f'{type(concentration).__name__}. Pass {{"DR-SNE": model.concentration_}}.'
        )
    missing = [title for title in maps if title not in concentration]
    if missing:
        raise ValueError(
            f"concentration must have an array for every map; got none for {', '.join(map(repr, missing))}. Add "
            "the missing arrays, or pass None."
        )
    arrays = {title: np.asarray(concentration[title], dtype=np.float64) for title in maps}
    for title, values in arrays.items():
        if values.shape != (len(maps[title]),) or not np.isfinite(values).all():
            raise ValueError(
                f"concentration[{title!r}] must have one finite number for each of the {len(maps[title])} points; got "
                f"shape {values.shape}, with {int((~np.isfinite(values)).sum())} numbers that are not finite. Pass "
                "model.concentration_ of a completed fit."
            )
    return arrays


def trade_off(
    path: Any,
    labels: ArrayLike | None = None,
    *,
    chosen: int | None = None,
    criterion: str = "concentration_correlation",
    figsize: tuple[float, float] | None = None,
) -> Any:
    """Plot trustworthiness against another score for the maps of a path, with some of the maps below the curve.

    Parameters
    ----------
    path : DensityPath
        The maps and their scores. The maps are drawn only if they have two dimensions.
    labels : array-like of shape (n_samples,), default=None
        The labels used to colour the points of the maps. If None, all points have the same colour.
    chosen : int, default=None
        The index of the map to highlight. If None, it is the map with the best ``criterion`` (the smallest for "stress"
        and "fragmentation", and otherwise the largest) among those with a trustworthiness at most 0.01 below that of
        the map at lambda = 0. If no map of the path is that close, it is the map with the largest trustworthiness. Ties
        go to the smallest weight.
    criterion : str, default="concentration_correlation"
        The score on the horizontal axis: a key of ``path.metrics``, or "density" for the mean of the density scores.
    figsize : tuple of float, default=None
        Width and height of the figure in inches. If None, they follow from the number of maps.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A notebook shows it; ``figure.savefig(...)`` saves it.
    """
    require_matplotlib()
    if not hasattr(path, "embeddings"):
        raise TypeError(f"path must be a DensityPath; got {type(path).__name__}. Pass the result of density_path.")
    if chosen is None:
        drop = max(0.01, path.baseline - path.metrics["trustworthiness"].max())
        chosen = int(path.select(max_trustworthiness_drop=drop, criterion=criterion))
    flat = path.embeddings[0].shape[1] == 2
    shown = _spread(len(path.weights), chosen) if flat else []
    figure = new_figure(figsize or (max(6.5, 2.6 * len(shown)), 4.2 + (2.9 if flat else 0.0)))
    upper, lower = figure.subfigures(2, 1, height_ratios=(4.2, 2.9)) if flat else (figure, None)
    _draw_curve(upper.subplots(), path, chosen, criterion)
    if lower is not None:
        strip = lower.subplots(1, len(shown), squeeze=False)[0]
        maps = {_title(path, index): np.asarray(path.embeddings[index]) for index in shown}
        size = float(np.clip(4000 / len(path.embeddings[0]), 0.3, 12))
        _draw_labelled(strip, maps, labels, size, max_entries=_MAX_STRIP_LEGEND_ENTRIES)
        for index, axis in zip(shown, strip, strict=True):
            if index == chosen:
                axis.title.set_color("tab:red")
    return figure


def _draw_curve(axis: Any, path: Any, chosen: int, criterion: str) -> None:
    x, y = path.score(criterion), path.metrics["trustworthiness"]
    axis.plot(x, y, "-o", color="0.45", markersize=5, zorder=2)
    axis.plot(x[chosen], y[chosen], "o", color="tab:red", markersize=10, zorder=3, label=_title(path, chosen))
    for index in _apart(x, y):
        axis.annotate(f"{path.weights[index]:g}", (x[index], y[index]), **_BESIDE)
    axis.axhline(path.baseline, color="0.8", linewidth=1, zorder=1)
    axis.set_xlabel("mean of the density scores" if criterion == "density" else criterion.replace("_", " "))
    axis.set_ylabel("trustworthiness")
    axis.set_title("Path of lambda (numbers: lambda; line: trustworthiness at 0)")
    axis.legend(loc="lower left", frameon=False)
    axis.margins(0.08, 0.12)


def _apart(x: NDArray[Any], y: NDArray[Any]) -> list[int]:
    """Return the indices of points of a curve that are far enough apart to be labelled. The last index is included."""
    points = np.c_[x, y]
    points = (points - points.min(axis=0)) / np.maximum(np.ptp(points, axis=0), 1e-12) * (1.0, 0.5)
    kept = [len(x) - 1]
    for index in range(len(x) - 2, -1, -1):
        if np.linalg.norm(points[kept] - points[index], axis=1).min() > _MIN_LABEL_DISTANCE:
            kept.append(index)
    return kept


def _title(path: Any, index: int) -> str:
    known = path.contrasts is not None and path.weights[index]
    return f"lambda = {path.weights[index]:g}" + (f", contrast {path.contrasts[index]:.3g}" if known else "")


def _spread(n_maps: int, chosen: int) -> list[int]:
    """Return up to six indices spread along a path. They include both ends and the chosen map."""
    indices = np.unique(np.linspace(0, n_maps - 1, min(n_maps, _MAX_STRIP_MAPS)).round().astype(int))
    inner = indices[1:-1]
    if chosen not in indices and len(inner):
        inner[np.argmin(np.abs(inner - chosen))] = chosen
    return sorted({int(index) for index in (indices[0], *inner, indices[-1])})
