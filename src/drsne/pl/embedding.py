"""The plot of one map."""

from __future__ import annotations

from typing import Any

from drsne.pl._figure import axes_of, require_matplotlib
from drsne.pl._inputs import as_model, colors_of, contrast_line, map_of
from drsne.pl._points import add_key, draw, key_width

_LEGEND = 2.0  # inches of the width of a figure that a legend may take from the map


def embedding(
    source: Any,
    color: Any = None,
    *,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    cmap: Any = None,
    point_size: float | None = None,
    title: str | None = None,
    legend: bool = True,
) -> Any:
    """Draw a map.

    A few points that are far away from all others are drawn at the edge, so that the other points remain visible. From
    150,000 points on, the map is drawn as a picture whose cells have the mean colour of their points and are the more
    opaque the more points they have. If ``source`` is a fitted model, its contrast (``contrast_``) is written below the
    map.

    Parameters
    ----------
    source : DRSNE, DenSNE, AnnData or array of shape (n_samples, 2)
        The fitted model, an AnnData object with the map of :func:`drsne.tl.drsne`, or the map.
    color : array-like of shape (n_samples,) or str, default=None
        Classes (text, booleans, dates, a pandas categorical, or up to 30 different whole numbers) or values. Missing
        entries are grey. For an AnnData object, this can be the name of a column of ``obs``. For a model or an AnnData
        object, the name "concentration" stands for the log relative concentration of the data, "map_concentration" for
        that of the map, and "residual" for that of the map minus ``contrast_`` times that of the data, shifted so that
        its median is 0. If None, all points have the same colour.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. If None, a new figure is made.
    figsize : tuple of float, default=None
        Width and height of the new figure in inches. If None, (6.5, 5.5), and wider if the legend is wide.
    cmap : str or matplotlib.colors.Colormap, default=None
        Colours of values or classes. If None, "viridis" for values, and for classes a palette that people with any kind
        of colour vision can tell apart for up to eight classes. More than 30 classes share colours: the smaller
        ones are drawn as "other".
    point_size : float, default=None
        Area of a point. If None, it depends on the number of points and on the size of the axes.
    title : str, default=None
        Title of the plot.
    legend : bool, default=True
        Whether to draw a legend of classes or a colour bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. A notebook shows them; ``ax.figure.savefig(...)`` saves the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import pl
    >>> Y = np.random.default_rng(0).normal(size=(50, 2))
    >>> ax = pl.embedding(Y, Y[:, 0] > 0, title="noise")
    >>> ax.get_title()
    'noise'
    """
    require_matplotlib()
    source = as_model(source)
    Y = map_of(source)
    colors, key_title = colors_of(source, color, len(Y), cmap)
    wider = max(0.0, key_width(colors) - _LEGEND) if legend else 0.0
    axis = axes_of(ax, figsize, (6.5 + wider, 5.5))
    draw(axis, Y, colors, point_size, title)
    if line := contrast_line(source):
        axis.set_xlabel(line, fontsize="small", color="0.4", loc="right")
    if legend:
        add_key(axis, colors, key_title)
    return axis
