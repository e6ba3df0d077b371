"""The plot of how far the positions in a map can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.pl import _colors
from drsne.pl._figure import axes_of, require_matplotlib
from drsne.pl._inputs import map_of
from drsne.pl._points import add_key, draw


def reliability(
    model: Any,
    values: ArrayLike | None = None,
    *,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    cmap: Any = None,
    point_size: float | None = None,
    max_samples: int | None = None,
    random_state: Any = None,
) -> Any:
    """Draw a map coloured by the reliability of its positions (:func:`drsne.metrics.reliability`).

    Points with a low reliability could also have been drawn elsewhere, for example because they lie between two groups.

    Parameters
    ----------
    model : DRSNE or DenSNE
        The fitted model, which must have its training data unless ``values`` are given.
    values : array-like of shape (n_samples,), default=None
        The reliability of every point. If None, it is computed. For 1,000 rows this takes about as long as a fit of
        5,000 rows, so pass ``max_samples`` for large data.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. If None, a new figure is made.
    figsize : tuple of float, default=None
        Width and height of the new figure in inches. If None, (6.5, 5.5).
    cmap : str or matplotlib.colors.Colormap, default=None
        Colours of the values. If None, "cividis".
    point_size : float, default=None
        Area of a point. If None, it depends on the number of points and on the size of the axes.
    max_samples : int, default=None
        Compute the reliability of a random sample of this many points. The other points are grey. If None, it is
        computed for all points.
    random_state : int, RandomState or Generator, default=None
        Seed or generator used to draw the random sample.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. A notebook shows them; ``ax.figure.savefig(...)`` saves the figure.
    """
    require_matplotlib()
    Y = map_of(model, "model")
    if values is None:
        from drsne import metrics

        values = metrics.reliability(model, max_samples=max_samples, random_state=random_state)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (len(Y),):
        raise ValueError(f"values must have one entry for each of the {len(Y)} points; got shape {found.shape}.")
    colors = _colors.by_value(found, cmap or "cividis", (0.0, 1.0))
    axis = axes_of(ax, figsize, (6.5, 5.5))
    low = float(np.mean(found[np.isfinite(found)] < 0.5))
    draw(axis, Y, colors, point_size, f"Reliability of positions ({low:.0%} below 0.5)")
    add_key(axis, colors, "reliability (1: the point returns to its place)")
    return axis
