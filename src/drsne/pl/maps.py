"""The plots of one map: its points, its density, its torn neighbours and its reliability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.checks import refuse_cells
from drsne.pl import _colors
from drsne.pl._drawing import add_key, axes_of, draw, framed, key_width, new_figure, require_matplotlib
from drsne.pl._models import CONCENTRATION, as_model, colors_of, concentrations, contrast_line, map_of, target

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


_LEAST = 0.05  # smallest range of the difference that is shown, as a fraction of the range of the density


def density(
    model: Any, *, figsize: tuple[float, float] | None = None, cmap: Any = None, point_size: float | None = None
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
    limits = _colors.limits_of(np.concatenate((data, shown)))
    figure = new_figure(figsize or (15.0, 4.6))
    axes = figure.subplots(1, 3)
    of_data = "Density of the data" + (f" \u00d7 contrast {contrast:.2f}" if contrast != 1.0 else "")
    for axis, values, title in ((axes[0], data, of_data), (axes[1], shown, "Density of the map")):
        colors = _colors.by_value(values, cmap, limits)
        draw(axis, Y, colors, point_size, title)
    figure.colorbar(colors.mapped, ax=list(axes[:2]), shrink=0.8, pad=0.02, extend="both", label=CONCENTRATION)
    correlation = np.corrcoef(data, shown)[0, 1] if data.std() > 0 and shown.std() > 0 else np.nan
    widest = max(float(np.quantile(np.abs(shown - data), 0.98)), _LEAST * (limits[1] - limits[0]))
    residual = _colors.by_value(shown - data, _colors.DIVERGING, (-widest, widest))
    draw(axes[2], Y, residual, point_size, f"Map minus data (correlation {correlation:.2f})")
    label = "difference of the logs (red: drawn too dense)"
    figure.colorbar(residual.mapped, ax=axes[2], shrink=0.8, pad=0.02, extend=residual.extend, label=label)
    return figure


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
    ax, figsize, cmap, point_size
        As in :func:`drsne.pl.embedding`.

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
    colors = _colors.single(len(Y), "0.72") if color is None else colors_of(source, color, len(Y), cmap)[0]
    axis = axes_of(ax, figsize, (6.5, 5.5))
    draw(axis, Y, colors, point_size, f"Torn neighbours: {share:.1%} (fragmentation)")
    if len(ends) > _MAX_LINES:
        ends = ends[np.sort(np.random.default_rng(0).choice(len(ends), _MAX_LINES, replace=False))]
    lines = LineCollection(list(framed(Y)[ends]), colors="#D55E00", linewidths=0.6, alpha=0.5, zorder=3)
    axis.add_collection(lines)
    return axis


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
    ax, figsize, cmap, point_size
        As in :func:`drsne.pl.embedding`, except that the default of ``cmap`` is "cividis".
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
    refuse_cells("values", values)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (len(Y),):
        raise ValueError(f"values must have one entry for each of the {len(Y)} points; got shape {found.shape}.")
    colors = _colors.by_value(found, cmap or "cividis", (0.0, 1.0))
    axis = axes_of(ax, figsize, (6.5, 5.5))
    low = float(np.mean(found[np.isfinite(found)] < 0.5))
    draw(axis, Y, colors, point_size, f"Reliability of positions ({low:.0%} below 0.5)")
    add_key(axis, colors, "reliability (1: the point returns to its place)")
    return axis
