"""The plot of neighbours that a map tears apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.pl import _colors
from drsne.pl._figure import axes_of, require_matplotlib
from drsne.pl._inputs import colors_of, map_of
from drsne.pl._points import draw, framed

_MAX_LINES = 3000  # largest number of lines that are drawn


def fragmentation(
    X: ArrayLike,
    source: Any,
    color: Any = None,
    *,
    metric: Any = "euclidean",
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    cmap: Any = None,
    point_size: float | None = None,
) -> Any:
    """Draw a map with lines between neighbours in the data that the map shows in separate pieces.

    Many lines between two pieces mean that the gap between them is an artefact: in the data, the two pieces are
    connected (:func:`drsne.metrics.fragmentation`). A gap that few lines cross is probably in the data. At most 3,000
    lines are drawn, chosen at random.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.
    source : DRSNE, DenSNE or array of shape (n_samples, 2)
        The fitted model, or the map.
    color : array-like of shape (n_samples,) or str, default=None
        Colours of the points, as in :func:`drsne.pl.embedding`. If None, the points are grey.
    metric : str or callable, default="euclidean"
        The metric used on the data.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. If None, a new figure is made.
    figsize : tuple of float, default=None
        Width and height of the new figure in inches. If None, (6.5, 5.5).
    cmap : str or matplotlib.colors.Colormap, default=None
        Colours of values or classes, as in :func:`drsne.pl.embedding`.
    point_size : float, default=None
        Area of a point. If None, it depends on the number of points and on the size of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. A notebook shows them; ``ax.figure.savefig(...)`` saves the figure.
    """
    require_matplotlib()
    from matplotlib.collections import LineCollection

    from drsne.metrics.fragmentation import torn_pairs

    Y = map_of(source)
    ends, share = torn_pairs(X, Y, metric=metric)
    if color is None:
        colors = _colors.single(len(Y))._replace(rgba=np.tile((0.72, 0.72, 0.72, 1.0), (len(Y), 1)))
    else:
        colors = colors_of(source, color, len(Y), cmap)[0]
    axis = axes_of(ax, figsize, (6.5, 5.5))
    draw(axis, Y, colors, point_size, f"Torn neighbours: {share:.1%} (fragmentation)")
    if len(ends) > _MAX_LINES:
        ends = ends[np.sort(np.random.default_rng(0).choice(len(ends), _MAX_LINES, replace=False))]
    lines = LineCollection(list(framed(Y)[ends]), colors="#D55E00", linewidths=0.6, alpha=0.5, zorder=3)
    axis.add_collection(lines)
    return axis
