"""Figures of studies: grids and rows of maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_POINTS = 5000  # drawn at most


def grid_of_maps(
    maps: Mapping[tuple[str, str], Array],
    labels: Mapping[str, Any],
    methods: Sequence[tuple[str, str]],
    datasets: Sequence[tuple[str, str]],
    *,
    solids: Mapping[str, Array] | None = None,
    captions: Mapping[tuple[str, str], str] | None = None,
) -> Any:
    """Maps by method and data set, coloured by label.

    Parameters
    ----------
    maps : mapping of (method, dataset) to array of shape (n, 2)
        What is drawn; a panel without a map says so.
    labels : mapping of dataset to labels
        Colours.
    methods, datasets : sequence of (name, title)
        Rows and columns.
    solids : mapping of dataset to array of shape (n, 3), default=None
        Three-dimensional data, drawn below their columns.
    captions : mapping of (method, dataset) to str, default=None
        Small print below a panel, such as the parameter that was chosen.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig(...)``.
    """
    from matplotlib.figure import Figure

    solids, captions = solids or {}, captions or {}
    rows = len(methods) + bool(solids)
    figure = Figure(figsize=(2.3 * len(datasets) + 0.4, 2.3 * rows + 0.3), layout="constrained")
    for column, (dataset, title) in enumerate(datasets):
        for row, (method, name) in enumerate(methods):
            axis = figure.add_subplot(rows, len(datasets), row * len(datasets) + column + 1)
            _map(axis, maps.get((method, dataset)), labels.get(dataset))
            axis.set_xlabel(captions.get((method, dataset), ""), fontsize=7)
            if row == 0:
                axis.set_title(title, fontsize=10)
            if column == 0:
                axis.set_ylabel(name, fontsize=9)
        if dataset in solids:
            place = (rows - 1) * len(datasets) + column + 1
            axis = figure.add_subplot(rows, len(datasets), place, projection="3d")
            _solid(axis, solids[dataset], labels.get(dataset))
    return figure


class Panel(NamedTuple):
    """One map of a row."""

    map: Array
    labels: Any
    title: str
    caption: str = ""


def row_of_maps(panels: Sequence[Panel]) -> Any:
    """Maps beside one another, as a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.9 * len(panels), 3.2), layout="constrained")
    for place, panel in enumerate(panels, start=1):
        axis = figure.add_subplot(1, len(panels), place)
        _map(axis, panel.map, panel.labels)
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.caption, fontsize=8)
    return figure


def colours(labels: Any, n: int) -> Any:
    """Numbers for a colour map, one a point."""
    return np.zeros(n) if labels is None else np.unique(np.asarray(labels), return_inverse=True)[1]


def _some(n: int) -> NDArray[np.intp]:
    order = np.random.RandomState(0).permutation(n)  # so that no class is drawn over all others
    return order[:_POINTS]


def _map(axis: Any, Y: Array | None, labels: Any) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    for side in axis.spines.values():
        side.set_color("0.85")
    if Y is None:
        axis.text(0.5, 0.5, "no map", ha="center", va="center", transform=axis.transAxes, color="0.6", fontsize=8)
        return
    rows = _some(len(Y))
    axis.scatter(*Y[rows].T, c=colours(labels, len(Y))[rows], cmap="tab10", s=1.2, linewidths=0, rasterized=True)
    axis.set_aspect("equal", "datalim")


def _solid(axis: Any, X: Array, labels: Any) -> None:
    rows = _some(len(X))
    axis.scatter(*X[rows].T, c=colours(labels, len(X))[rows], cmap="tab10", s=0.8, linewidths=0, rasterized=True)
    axis.set_xticklabels([])
    axis.set_yticklabels([])
    axis.set_zticklabels([])
    axis.set_xlabel("original data", fontsize=7, labelpad=-12)
