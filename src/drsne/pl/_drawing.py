"""Figures that a notebook shows without pyplot, and the drawing of points, legends and colour bars."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.pl._colors import Colors


def require_matplotlib() -> None:
    """Raise an error that says how to install matplotlib if it is missing."""
    checks.package("matplotlib", "Plots need", "plot")


def new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure that a notebook can display.

    Parameters
    ----------
    size : tuple of float
        Width and height in inches.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=size, layout="constrained")
    figure._repr_png_ = partial(_png, figure)  # IPython calls this method; pyplot would add it, but is not loaded
    return figure


def axes_of(ax: Any, figsize: tuple[float, float] | None, default: tuple[float, float]) -> Any:
    """Return ``ax``, or the axes of a new figure that a notebook shows when a cell returns the axes."""
    if ax is not None:
        if figsize is not None:
            raise ValueError(f"figsize must be None if ax is given; got {figsize!r}. Set the size of your own figure.")
        return ax
    figure = new_figure(figsize or default)
    made: Any = figure.subplots()
    made._repr_png_ = partial(_png, figure)
    return made


def _png(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", bbox_inches="tight")
    return content.getvalue()


_RASTERIZED = 5000  # smallest number of points that are stored as a picture in PDF and SVG files
_FEW = 20  # smallest number of points with a frame
_CELLS = 150_000  # smallest number of points that are drawn as a picture of cells
_RESOLUTION = 700  # number of cells along the longer side of a map
_FAINTEST = 0.25  # opacity of a cell with one point
_COLUMN = 15  # largest number of entries in a column of a legend
_LONGEST = 24  # largest number of characters of a name in a legend


def framed(Y: NDArray[Any]) -> NDArray[Any]:
    """Return a map with outlying points moved to the edge of a frame.

    In each direction, the frame contains the middle 99 % of the points. On each side, it has a margin of a quarter of
    the largest extent of these points.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, 2)
        The map.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        The map within the frame.
    """
    if len(Y) < _FEW:
        return Y
    low = np.quantile(Y, 0.005, axis=0, method="higher")  # a single outlier among few points is outside of the frame
    high = np.quantile(Y, 0.995, axis=0, method="lower")
    room = 0.25 * float((high - low).max())
    return np.asarray(np.clip(Y, low - room, high + room))


def draw(axis: Any, Y: NDArray[Any], colors: Colors, size: float | None, title: str | None) -> None:
    """Draw the points of a map. Their order is random, so that no class covers another one as a whole."""
    Y = framed(Y)
    if len(Y) >= _CELLS and size is None:
        _draw_cells(axis, Y, colors.rgba)
    else:
        order = np.random.default_rng(0).permutation(len(Y))
        axis.scatter(
            *Y[order].T,
            s=point_size(axis, len(Y)) if size is None else size,
            c=colors.rgba[order],
            linewidths=0,
            rasterized=len(Y) >= _RASTERIZED,
        )
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_axes_locator(_fitted)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    if title:
        axis.set_title(title)


def _fitted(axis: Any, renderer: Any) -> Any:
    """Return the position of the axes, and restore the limits of the data, unless they were set by hand.

    The limits are extended whenever the axes change their shape to keep an equal aspect. While the layout makes room
    for a legend, this happens several times and would leave the map smaller than its axes.
    """
    if axis.get_autoscale_on():
        axis.autoscale_view()
    return axis.get_position(original=True)


def point_size(axis: Any, n: int) -> float:
    """Return an area, in square points, such that all points together cover about a quarter of the axes."""
    box = axis.get_position()
    width, height = axis.figure.get_size_inches()
    inches = box.width * width * box.height * height
    return float(np.clip(0.25 * inches * 72**2 / n, 0.6, 36))


def _draw_cells(axis: Any, Y: NDArray[Any], rgba: NDArray[Any]) -> None:
    """Draw a picture in which a cell has the mean colour of its points, and is the more opaque the more it has."""
    low, high = Y.min(axis=0), Y.max(axis=0)
    cell = float((high - low).max()) / _RESOLUTION or 1.0
    width, height = (np.ceil((high - low) / cell).astype(int) + 1).tolist()
    at = ((Y - low) / cell).astype(np.intp)
    place = at[:, 1] * width + at[:, 0]
    counts = np.bincount(place, minlength=width * height)
    picture = np.ones((width * height, 4))
    filled = counts > 0
    for channel in range(3):
        total = np.bincount(place, rgba[:, channel], minlength=width * height)
        picture[filled, channel] = total[filled] / counts[filled]
    typical = np.quantile(counts[filled], 0.95)
    strength = np.log1p(counts) / np.log1p(typical)
    picture[:, 3] = np.where(filled, np.clip(_FAINTEST + (1 - _FAINTEST) * strength, 0, 1), 0.0)
    edges = (low[0], low[0] + width * cell, low[1], low[1] + height * cell)
    axis.imshow(
        picture.reshape(height, width, 4), origin="lower", extent=edges, interpolation="nearest", aspect="equal"
    )
    axis.margins(0.02)


def add_key(axis: Any, colors: Colors, title: str | None = None) -> None:
    """Add the legend of classes, or the colour bar of values."""
    if colors.mapped is not None:
        look = {"shrink": 0.7, "pad": 0.02, "extend": colors.extend, "label": title or ""}
        axis.figure.colorbar(colors.mapped, ax=axis, **look).outline.set_visible(False)
    elif len(colors.names) > 1:
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], linestyle="", marker="o", markersize=6, markeredgewidth=0, color=color, label=name)
            for name, color in zip(_shortened(colors.names), colors.of_names, strict=True)
        ]
        axis.legend(
            handles=handles,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            ncols=-(-len(handles) // _COLUMN),
            fontsize="medium" if len(handles) <= _COLUMN else "small",
            columnspacing=0.8,
            handletextpad=0.2,
            title=title,
        )


def key_width(colors: Colors) -> float:
    """Return about how many inches wide the legend of classes is."""
    columns = -(-len(colors.names) // _COLUMN)
    return columns * (0.3 + 0.075 * max(map(len, _shortened(colors.names)), default=0))


def _shortened(names: list[str]) -> list[str]:
    """Return names that fit into a legend. If their beginnings are equal, the middle is left out instead of the end."""
    short = [_short(name, _LONGEST - 1) for name in names]
    if len(set(short)) < len(set(names)):
        short = [_short(name, _LONGEST // 2) for name in names]
    return [name.replace("$", r"\$") for name in short]  # matplotlib reads text between dollar signs as mathematics


def _short(name: str, beginning: int) -> str:
    """Return a name, or its beginning and as much of its end as fits."""
    end = _LONGEST - 1 - beginning
    return name if len(name) <= _LONGEST else name[:beginning] + "…" + name[len(name) - end :]
