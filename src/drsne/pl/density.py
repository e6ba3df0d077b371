"""The plot of the density of the data beside that of the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from drsne.pl import _colors
from drsne.pl._concentrations import target
from drsne.pl._figure import new_figure, require_matplotlib
from drsne.pl._inputs import CONCENTRATION, as_model, concentrations, map_of
from drsne.pl._points import draw

_LEAST = 0.05  # smallest range of the difference that is shown, as a fraction of the range of the density


def density(
    model: Any,
    *,
    figsize: tuple[float, float] | None = None,
    cmap: Any = None,
    point_size: float | None = None,
) -> Any:
    """Draw a map three times, coloured by the density of the data, by that of the map, and by their difference.

    The first two panels have the same scale of colours, so a map that shows density well looks the same in both. For
    this purpose, the log concentration of the data is multiplied by the contrast of the map (``contrast_``),
    which the title of the first panel shows unless it is 1, and shifted so that the median difference is 0. In
    the third panel, red points are drawn denser than they should be, compared with the other points, and blue points
    sparser.

    Parameters
    ----------
    model : DRSNE, DenSNE or AnnData
        The fitted model, or an AnnData object with the map of :func:`drsne.tl.drsne`.
    figsize : tuple of float, default=None
        Width and height of the figure in inches. If None, (15, 4.6).
    cmap : str or matplotlib.colors.Colormap, default=None
        Colours of the first two panels. If None, "viridis".
    point_size : float, default=None
        Area of a point. If None, it depends on the number of points.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A notebook shows it; ``figure.savefig(...)`` saves it.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import DRSNE, pl
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = DRSNE(perplexity=10, density_neighbors=10, max_iter=100, random_state=0).fit(X)
    >>> len(pl.density(model).axes)
    5
    """
    require_matplotlib()
    model = as_model(model, "model")
    Y = map_of(model, "model")
    data, shown, contrast = concentrations(model)
    data = target(data, shown, contrast)
    both = np.concatenate((data, shown))
    low, high = np.quantile(both, (0.01, 0.99))
    limits = (float(low), float(high if high > low else low + 1.0))
    figure = new_figure(figsize or (15.0, 4.6))
    axes = figure.subplots(1, 3)
    of_data = "Density of the data" + (f" \u00d7 contrast {contrast:.2f}" if contrast != 1.0 else "")
    for axis, values, title in ((axes[0], data, of_data), (axes[1], shown, "Density of the map")):
        colors = _colors.by_value(values, cmap, limits)
        draw(axis, Y, colors, point_size, title)
    bar = figure.colorbar(colors.mapped, ax=list(axes[:2]), shrink=0.8, pad=0.02, extend="both")
    bar.set_label(CONCENTRATION)
    correlation = np.corrcoef(data, shown)[0, 1] if data.std() > 0 and shown.std() > 0 else np.nan
    widest = max(float(np.quantile(np.abs(shown - data), 0.98)), _LEAST * (limits[1] - limits[0]))
    residual = _colors.by_value(shown - data, _colors.DIVERGING, (-widest, widest))
    draw(axes[2], Y, residual, point_size, f"Map minus data (correlation {correlation:.2f})")
    bar = figure.colorbar(residual.mapped, ax=axes[2], shrink=0.8, pad=0.02, extend=residual.extend)
    bar.set_label("difference of the logs (red: drawn too dense)")
    return figure
