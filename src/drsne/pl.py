"""Plots of maps. They need matplotlib (``pip install 'drsne[plot]'``), which is imported when a plot is drawn.

The figures do not use pyplot and do not open a window. A notebook shows the figure that a cell returns.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_STRIP_MAPS = 6  # largest number of maps below the curve of a path
_MAX_LEGEND_ENTRIES = 20  # largest number of labels in a legend
_MAX_STRIP_LEGEND_ENTRIES = 10  # largest number of labels in the legend of the maps of a path
_MIN_LABEL_DISTANCE = 0.03  # smallest distance between two annotated points, as a fraction of the plot size


def compare(
    maps: Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    concentration: Mapping[str, ArrayLike] | None = None,
    *,
    point_size: float | None = None,
) -> Any:
    """Draw two-dimensional maps side by side.

    The points are coloured by label and, in a second row, by relative concentration. A few points that are far away
    from all others are drawn at the edge, so that the other points remain visible.

    Parameters
    ----------
    maps : mapping of str to array of shape (n_samples, 2)
        The maps with their titles, such as ``{"DR-SNE": Y}``.
    labels : array-like of shape (n_samples,), default=None
        The labels used to colour the points in the first row. If None, all points have the same colour.
    concentration : mapping of str to array of shape (n_samples,), default=None
        For each title, the logarithm of the relative concentration (``concentration_``), used to colour the map in the
        second row. All maps share one colour scale. If None, the second row is not drawn.
    point_size : float, default=None
        The area of a point. If None, it decreases with the number of samples.

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
    arrays = _checked_maps(maps)
    if concentration is not None:
        _check_titles(concentration, arrays)
    size = point_size or float(np.clip(12000 / max(len(Y) for Y in arrays.values()), 0.5, 30))
    n_rows = 1 + (concentration is not None)
    figure = _new_figure((5.2 * len(arrays) + 1.0, 5.0 * n_rows))
    axes = figure.subplots(n_rows, len(arrays), squeeze=False)
    _draw_label_row(axes[0], arrays, labels, size)
    if concentration is not None:
        _draw_concentration_row(figure, axes[1], arrays, concentration, size)
    return figure


def trade_off(
    path: Any, labels: ArrayLike | None = None, *, chosen: int, criterion: str = "concentration_correlation"
) -> Any:
    """Plot trustworthiness against another score for the maps of a path, with some of the maps below the curve.

    Parameters
    ----------
    path : DensityPath
        The maps and their scores. The maps are drawn only if they have two dimensions.
    labels : array-like of shape (n_samples,), default=None
        The labels used to colour the points of the maps. If None, all points have the same colour.
    chosen : int
        The index of the map to highlight.
    criterion : str, default="concentration_correlation"
        The score on the horizontal axis: a key of ``path.metrics``, or "density" for the mean of the density scores.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A notebook shows it; ``figure.savefig(...)`` saves it.
    """
    flat = path.embeddings[0].shape[1] == 2
    shown = _spread(len(path.weights), chosen) if flat else []
    figure = _new_figure((max(6.5, 2.6 * len(shown)), 4.2 + (2.9 if flat else 0.0)))
    upper, lower = figure.subfigures(2, 1, height_ratios=(4.2, 2.9)) if flat else (figure, None)
    _draw_curve(upper.subplots(), path, chosen, criterion)
    if lower is not None:
        size = float(np.clip(4000 / len(path.embeddings[0]), 0.3, 12))
        strip = lower.subplots(1, len(shown), squeeze=False)[0]
        maps = {_title(path, index): np.asarray(path.embeddings[index]) for index in shown}
        _draw_label_row(strip, maps, labels, size, max_entries=_MAX_STRIP_LEGEND_ENTRIES)
        for index, axis in zip(shown, strip, strict=True):
            if index == chosen:
                axis.title.set_color("tab:red")
    return figure


def framed(Y: NDArray[Any]) -> NDArray[Any]:
    """Return a map with outlying points moved to the edge of a frame.

    In each direction, the frame contains the middle 99 % of the points. On each side, it has a margin of a quarter of
    the largest extent of these points.
    """
    low, high = np.quantile(Y, (0.005, 0.995), axis=0)
    room = 0.25 * float((high - low).max())
    return np.asarray(np.clip(Y, low - room, high + room))


def _checked_maps(maps: Any) -> dict[str, NDArray[Any]]:
    """Return the maps as arrays, or raise an error if they are not a mapping from titles to two-dimensional maps."""
    if not isinstance(maps, Mapping):
        shape = getattr(maps, "shape", None)
        found = type(maps).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise TypeError(f'maps must be a mapping from titles to maps; got {found}. Pass {{"DR-SNE": Y}}.')
    if not maps:
        raise ValueError('maps must have at least one entry; got none. Pass {"DR-SNE": Y}.')
    arrays = {title: np.asarray(Y) for title, Y in maps.items()}
    for title, Y in arrays.items():
        if Y.ndim != 2 or Y.shape[1] != 2:
            raise ValueError(
                f"maps must have shape (n_samples, 2); the map {title!r} has shape {Y.shape}. Pass two-dimensional "
                "maps."
            )
    return arrays


def _check_titles(concentration: Any, maps: Mapping[str, NDArray[Any]]) -> None:
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


def _new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure that a notebook can display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'drsne[plot]'.") from error
    figure: Any = Figure(figsize=size, layout="constrained")
    figure._repr_png_ = partial(_png, figure)  # IPython calls this method; pyplot would add it, but is not loaded
    return figure


def _png(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", bbox_inches="tight")
    return content.getvalue()


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
    return f"lambda = {path.weights[index]:g}"


def _spread(n_maps: int, chosen: int) -> list[int]:
    """Return up to six indices spread along a path. They include both ends and the chosen map."""
    indices = np.unique(np.linspace(0, n_maps - 1, min(n_maps, _MAX_STRIP_MAPS)).round().astype(int))
    inner = indices[1:-1]
    if chosen not in indices and len(inner):
        inner[np.argmin(np.abs(inner - chosen))] = chosen
    return sorted({int(index) for index in (indices[0], *inner, indices[-1])})


def _draw_label_row(
    axes: Any,
    maps: Mapping[str, NDArray[Any]],
    labels: ArrayLike | None,
    size: float,
    max_entries: int = _MAX_LEGEND_ENTRIES,
) -> None:
    colours: dict[str, Any] = {}
    names: list[Any] = []
    if labels is not None:
        names, codes = _classes(labels, len(next(iter(maps.values()))))
        few = "tab10" if len(names) <= 10 else "tab20"
        colours = {"c": codes, "cmap": few if len(names) <= 20 else "viridis"}
    for axis, (title, Y) in zip(axes, maps.items(), strict=True):
        points = axis.scatter(*framed(Y).T, s=size, linewidths=0, **colours)
        _finish(axis, title)
    if 1 < len(names) <= max_entries:
        handles = points.legend_elements(num=None)[0]
        axes[-1].legend(handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _classes(labels: Any, n_samples: int) -> tuple[list[Any], NDArray[Any]]:
    """Return the names of the classes, and the index of the class of each point."""
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise ValueError(
            f"labels must have one entry for each of the {n_samples} points; got shape {values.shape}. "
            "Pass a list or a one-dimensional array."
        )
    if values.dtype == object:  # None and mixed types cannot be sorted
        values = np.array([str(label) for label in values])
    names, codes = np.unique(values, return_inverse=True)
    return names.tolist(), codes


def _draw_concentration_row(
    figure: Any, axes: Any, maps: Mapping[str, NDArray[Any]], values: Mapping[str, ArrayLike], size: float
) -> None:
    arrays = {title: np.asarray(values[title], dtype=float) for title in maps}
    low, high = np.quantile(np.concatenate(list(arrays.values())), (0.01, 0.99))
    for axis, (title, Y) in zip(axes, maps.items(), strict=True):
        points = axis.scatter(*framed(Y).T, c=arrays[title], s=size, linewidths=0, cmap="viridis", vmin=low, vmax=high)
        _finish(axis, f"{title}: relative concentration")
    bar = figure.colorbar(points, ax=list(axes), shrink=0.8)
    bar.set_label("log relative concentration (0: average; brighter: denser)")


def _finish(axis: Any, title: str) -> None:
    axis.set_title(title)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_xticks([])
    axis.set_yticks([])
