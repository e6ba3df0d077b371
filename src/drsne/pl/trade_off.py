"""The plot of the trade-off between neighbours and density along a path of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne.pl._drawing import new_figure, require_matplotlib
from drsne.pl.compare import draw_label_row

_MAX_STRIP_MAPS = 6  # largest number of maps below the curve of a path
_MAX_STRIP_LEGEND_ENTRIES = 10  # largest number of labels in the legend of the maps of a path
_MIN_LABEL_DISTANCE = 0.03  # smallest distance between two annotated points, as a fraction of the plot size


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
        draw_label_row(strip, maps, labels, size, max_entries=_MAX_STRIP_LEGEND_ENTRIES)
        for index, axis in zip(shown, strip, strict=True):
            if index == chosen:
                axis.title.set_color("tab:red")
    return figure


def _draw_curve(axis: Any, path: Any, chosen: int, criterion: str) -> None:
    x, y = path.score(criterion), path.metrics["trustworthiness"]
    axis.plot(x, y, "-o", color="0.45", markersize=5, zorder=2)
    axis.plot(x[chosen], y[chosen], "o", color="tab:red", markersize=10, zorder=3, label=_title(path, chosen))
    for index in _apart(x, y):
        axis.annotate(
            f"{path.weights[index]:g}",
            (x[index], y[index]),
            xytext=(6, 6),
            textcoords="offset points",
            fontsize=9,
            color="0.3",
        )
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
    weight = f"lambda = {path.weights[index]:g}"
    if path.contrasts is None or not path.weights[index]:
        return weight
    return f"{weight}, contrast {path.contrasts[index]:.3g}"


def _spread(n_maps: int, chosen: int) -> list[int]:
    """Return up to six indices spread along a path. They include both ends and the chosen map."""
    indices = np.unique(np.linspace(0, n_maps - 1, min(n_maps, _MAX_STRIP_MAPS)).round().astype(int))
    inner = indices[1:-1]
    if chosen not in indices and len(inner):
        inner[np.argmin(np.abs(inner - chosen))] = chosen
    return sorted({int(index) for index in (indices[0], *inner, indices[-1])})
