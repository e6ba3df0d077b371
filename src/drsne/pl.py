"""Plots. matplotlib is imported when a plot is drawn: ``pip install 'drsne[plot]'``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def compare(
    maps: Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    concentration: Mapping[str, ArrayLike] | None = None,
    *,
    point_size: float | None = None,
) -> Any:
    """Two-dimensional maps side by side, coloured by label and, in a second row, by relative concentration.

    The few points that lie far outside all others are drawn at the edge, so that the others can be seen.

    Parameters
    ----------
    maps : mapping of str to array of shape (n_samples, 2)
        Titles and maps.
    labels : array-like of shape (n_samples,), default=None
        Colours of the first row.
    concentration : mapping of str to array of shape (n_samples,), default=None
        For each title, the logarithm of relative concentration (``concentration_``) that colours its map in
        the second row; all maps share one scale.
    point_size : float, default=None
        Area of a point; by default it shrinks as the samples grow.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig(...)``.
    """
    figure_type, grid = _matplotlib()
    drawn = {title: np.asarray(Y) for title, Y in maps.items()}
    for title, Y in drawn.items():
        if Y.ndim != 2 or Y.shape[1] != 2:
            raise ValueError(f"maps must have shape (n_samples, 2); {title!r} has {Y.shape}.")
    size = point_size or float(np.clip(12000 / max(len(Y) for Y in drawn.values()), 0.5, 30))
    n_rows = 1 + (concentration is not None)
    figure = figure_type(figsize=(5.2 * len(drawn) + 1.0, 5.0 * n_rows), layout="constrained")
    axes = grid(figure, n_rows, len(drawn))
    _label_row(axes[0], drawn, labels, size)
    if concentration is not None:
        _concentration_row(figure, axes[1], drawn, concentration, size)
    return figure


_STRIP = 6  # maps at most


def trade_off(
    path: Any, labels: ArrayLike | None = None, *, chosen: int, criterion: str = "concentration_correlation"
) -> Any:
    """Trustworthiness against another score along a path of lambda, and some of its maps as a strip.

    Parameters
    ----------
    path : DensityPath
        The maps and their scores, with two-dimensional maps for the strip.
    labels : array-like of shape (n_samples,), default=None
        Colours of the points.
    chosen : int
        The map to mark.
    criterion : str, default="concentration_correlation"
        The score on the horizontal axis: a key of ``path.metrics``, or "density" for the mean of the density scores.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig(...)``.
    """
    figure_type, grid = _matplotlib()
    x, y = path.score(criterion), path.metrics["trustworthiness"]
    flat = path.embeddings[0].shape[1] == 2
    shown = _spread(len(path.weights), chosen) if flat else []
    figure = figure_type(figsize=(max(6.5, 2.6 * len(shown)), 4.2 + (2.9 if flat else 0.0)), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(4.2, 2.9)) if flat else (figure, None)
    axis = upper.subplots()
    axis.plot(x, y, "-o", color="0.45", markersize=5, zorder=2)
    axis.plot(x[chosen], y[chosen], "o", color="tab:red", markersize=10, zorder=3, label=_weight(path, chosen))
    for at in _apart(x, y):
        axis.annotate(
            f"{path.weights[at]:g}", (x[at], y[at]), xytext=(6, 6), textcoords="offset points", fontsize=9, color="0.3"
        )
    axis.axhline(path.baseline, color="0.8", linewidth=1, zorder=1)
    axis.set_xlabel("mean of the density scores" if criterion == "density" else criterion.replace("_", " "))
    axis.set_ylabel("trustworthiness")
    axis.set_title("Path of lambda (numbers: lambda; line: trustworthiness at 0)")
    axis.legend(loc="lower left", frameon=False)
    axis.margins(0.08, 0.12)
    if lower is not None:
        size = float(np.clip(4000 / len(path.embeddings[0]), 0.3, 12))
        strip = grid(lower, 1, len(shown))[0]
        maps = {_weight(path, at): np.asarray(path.embeddings[at]) for at in shown}
        _label_row(strip, maps, labels, size, most_named=10)
        for at, panel in zip(shown, strip, strict=True):
            if at == chosen:
                panel.title.set_color("tab:red")
    return figure


def _apart(x: NDArray[Any], y: NDArray[Any]) -> list[int]:
    """Places along a curve that are far enough from one another for a label; its end is one of them."""
    place = np.c_[x, y]
    place = (place - place.min(axis=0)) / np.maximum(np.ptp(place, axis=0), 1e-12) * (1.0, 0.5)
    out = [len(x) - 1]
    for at in range(len(x) - 2, -1, -1):
        if np.linalg.norm(place[out] - place[at], axis=1).min() > 0.03:
            out.append(at)
    return out


def _weight(path: Any, at: int) -> str:
    return f"lambda = {path.weights[at]:g}"


def _spread(m: int, chosen: int) -> list[int]:
    """Up to six places along a path, its ends and the chosen one among them."""
    places = np.unique(np.linspace(0, m - 1, min(m, _STRIP)).round().astype(int))
    inner = places[1:-1]
    if chosen not in places and len(inner):
        inner[np.argmin(np.abs(inner - chosen))] = chosen
    return sorted({int(at) for at in (places[0], *inner, places[-1])})


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'drsne[plot]'.") from error
    return Figure, lambda figure, rows, columns: figure.subplots(rows, columns, squeeze=False)


def _label_row(
    axes: Any, maps: Mapping[str, NDArray[Any]], labels: ArrayLike | None, size: float, most_named: int = 20
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
    if 1 < len(names) <= most_named:
        handles = points.legend_elements(num=None)[0]
        axes[-1].legend(handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _classes(labels: Any, n: int) -> tuple[list[Any], NDArray[Any]]:
    """Names of the classes, and for each point which it has."""
    given = np.asarray(labels)
    if given.shape != (n,):
        raise ValueError(
            f"labels must have one entry for each of the {n} points; got shape {given.shape}. Pass a list or column."
        )
    if given.dtype == object:  # None, or a mixture, has no order
        given = np.array([str(label) for label in given])
    names, codes = np.unique(given, return_inverse=True)
    return names.tolist(), codes


def _concentration_row(
    figure: Any, axes: Any, maps: Mapping[str, NDArray[Any]], values: Mapping[str, ArrayLike], size: float
) -> None:
    arrays = {title: np.asarray(values[title], dtype=float) for title in maps}
    low, high = np.quantile(np.concatenate(list(arrays.values())), (0.01, 0.99))
    for axis, (title, Y) in zip(axes, maps.items(), strict=True):
        points = axis.scatter(*framed(Y).T, c=arrays[title], s=size, linewidths=0, cmap="viridis", vmin=low, vmax=high)
        _finish(axis, f"{title}: relative concentration")
    bar = figure.colorbar(points, ax=list(axes), shrink=0.8)
    bar.set_label("log relative concentration (0: average; brighter: denser)")


def framed(Y: NDArray[Any]) -> NDArray[Any]:
    """A map with its outermost points pulled to a frame: the middle 99 % in each direction, and a quarter more."""
    low, high = np.quantile(Y, (0.005, 0.995), axis=0)
    room = 0.25 * float((high - low).max())
    return np.asarray(np.clip(Y, low - room, high + room))


def _finish(axis: Any, title: str) -> None:
    axis.set_title(title)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_xticks([])
    axis.set_yticks([])
