"""Figures of studies: grids and rows of maps, sweeps, trade-offs and run times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.pl import framed

Array = NDArray[Any]
_POINTS = 5000  # largest number of points that are drawn


def grid_of_maps(
    maps: Mapping[tuple[str, str], Array],
    labels: Mapping[str, Any],
    methods: Sequence[tuple[str, str]],
    datasets: Sequence[tuple[str, str]],
    *,
    solids: Mapping[str, Array] | None = None,
    captions: Mapping[tuple[str, str], str] | None = None,
) -> Any:
    """Draw a grid of maps, one for each method and data set, coloured by label.

    Parameters
    ----------
    maps : mapping of (method, dataset) to array of shape (n, 2)
        The maps. The few points that are far away are drawn at the edge. A panel without a map says so.
    labels : mapping of dataset to labels
        The labels that the points are coloured by.
    methods, datasets : sequence of (name, title)
        The rows and columns of the grid.
    solids : mapping of dataset to array of shape (n, 3), default=None
        Three-dimensional data, each drawn below the column of its data set.
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


def save(figure: Any, file: Path, *, dpi: int = 110) -> None:
    """Write a figure as a PNG of 256 colours, a third of the full size. An interrupted call leaves no damaged file."""
    from io import BytesIO

    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    part = file.with_name(f"{file.stem}.part.png")
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(part, optimize=True)
    part.replace(file)


class Panel(NamedTuple):
    """One map of a row."""

    map: Array
    labels: Any
    title: str
    caption: str = ""


def row_of_maps(panels: Sequence[Panel]) -> Any:
    """Draw maps in one row, as a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.9 * len(panels), 3.2), layout="constrained")
    for place, panel in enumerate(panels, start=1):
        axis = figure.add_subplot(1, len(panels), place)
        _map(axis, panel.map, panel.labels)
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.caption, fontsize=8)
    return figure


class Sweep(NamedTuple):
    """A score at several values of lambda: a curve for one method, and single points for another."""

    values: Array
    mean: Array
    std: Array
    best: Array  # the best scores, with everything else chosen for each lambda
    others: Sequence[tuple[float, float, float]] = ()  # (lambda, mean, standard deviation) of each point


def sweeps(panels: Mapping[str, Mapping[str, Sweep]], labels: tuple[str, str, str], *, score: str = "AUPRC") -> Any:
    """Draw a panel for each data set, with a curve for each detector.

    Parameters
    ----------
    panels : mapping of title to mapping of detector to Sweep
        The curves; lambda = 0 is drawn at half the smallest other value.
    labels : tuple of str
        The labels of the solid lines, the dashed lines and the single points.
    score : str, default="AUPRC"
        The name of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig(...)``.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.7 * rows + 0.8), layout="constrained")
    for place, (title, curves) in enumerate(panels.items(), start=1):
        axis = figure.add_subplot(rows, columns, place)
        for number, curve in enumerate(curves.values()):
            _sweep(axis, curve, f"C{number}")
        axis.set_xscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("lambda (left end: 0)", fontsize=8)
        axis.set_ylabel(score, fontsize=8)
        axis.tick_params(labelsize=7)
    detectors = dict.fromkeys(name for curves in panels.values() for name in curves)
    handles = [Line2D([], [], color=f"C{number}", label=name) for number, name in enumerate(detectors)]
    lines, dashes, points = labels
    handles.append(Line2D([], [], color="0.3", marker="o", markersize=3, label=lines))
    handles.append(Line2D([], [], color="0.3", linestyle="--", linewidth=1, label=dashes))
    handles.append(Line2D([], [], color="0.3", marker="D", markersize=5, linestyle="", label=points))
    figure.legend(handles=handles, fontsize=8, loc="outside lower center", ncols=len(handles))
    return figure


def _sweep(axis: Any, curve: Sweep, colour: str) -> None:
    zero = 0.5 * curve.values[curve.values > 0].min()
    x = np.where(curve.values > 0, curve.values, zero)
    axis.plot(x, curve.mean, "o-", color=colour, markersize=3)
    axis.fill_between(x, curve.mean - curve.std, curve.mean + curve.std, color=colour, alpha=0.15, linewidth=0)
    axis.plot(x, curve.best, "--", color=colour, linewidth=1)
    for lam, mean, std in curve.others:
        axis.errorbar(
            lam or zero, mean, std, fmt="D", color=colour, markersize=5, markeredgecolor="0.2", elinewidth=0.8
        )


class TradeOff(NamedTuple):
    """The scores of a method at each lambda."""

    concentration: Array
    trust: Array
    std: Array  # standard deviation of the trustworthiness


def trade_offs(panels: Mapping[str, Mapping[str, TradeOff]]) -> Any:
    """Draw trustworthiness against concentration, with a panel for each method and a curve for each data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, curve) in enumerate(curves.items()):
            order = np.argsort(curve.concentration)
            x, y, std = (part[order] for part in curve)
            axis.plot(x, y, "o-", color=f"C{number}", markersize=3.5, label=name)
            axis.fill_between(x, y - std, y + std, color=f"C{number}", alpha=0.15, linewidth=0)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("concentration correlation", fontsize=9)
        axis.grid(color="0.92")
    axes[0].set_ylabel("trustworthiness", fontsize=9)
    axes[0].legend(fontsize=8, loc="lower left")
    return figure


def run_times(curves: Mapping[str, Mapping[int, float]], paper: Mapping[int, float]) -> Any:
    """Draw run times over the number of points on logarithmic axes, with a line for n^2 and the paper's times."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.add_subplot()
    for number, (name, times) in enumerate(curves.items()):
        axis.plot(list(times), list(times.values()), "o-", color=f"C{number}", markersize=4, label=name)
    first = next(iter(curves.values()))
    end = max(first)
    n = np.array([min(first), end], dtype=float)
    axis.plot(n, first[end] * (n / end) ** 2, ":", color="0.4", label="proportional to n^2")
    label = "the paper's program, as published (another machine)"
    axis.plot(list(paper), list(paper.values()), "s--", color="0.6", markersize=4, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("points")
    axis.set_ylabel("seconds")
    axis.grid(color="0.92", which="both")
    axis.legend(fontsize=8)
    return figure


def colours(labels: Any, n: int) -> Any:
    """Return one number per point, which a colour map converts to its colour."""
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
    Y = framed(Y)
    axis.scatter(*Y[rows].T, c=colours(labels, len(Y))[rows], cmap="tab10", s=1.2, linewidths=0, rasterized=True)
    axis.set_aspect("equal", "datalim")


def _solid(axis: Any, X: Array, labels: Any) -> None:
    rows = _some(len(X))
    axis.scatter(*X[rows].T, c=colours(labels, len(X))[rows], cmap="tab10", s=0.8, linewidths=0, rasterized=True)
    axis.set_xticklabels([])
    axis.set_yticklabels([])
    axis.set_zticklabels([])
    axis.set_xlabel("original data", fontsize=7, labelpad=-12)
