"""The plot of several maps side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne.pl import _colors
from drsne.pl._colors import Colors
from drsne.pl._figure import new_figure
from drsne.pl._points import add_key, draw

_SCORES = {
    "trustworthiness": "TW",
    "continuity": "Cont",
    "concentration_correlation": "CC",
    "density_rank_correlation": "rho30",
    "fragmentation": "torn",
}  # the scores below the titles, and their short names
_SCORED = 2000  # largest number of points that are scored


def compare(
    maps: Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    concentration: Mapping[str, ArrayLike] | None = None,
    *,
    X: ArrayLike | None = None,
    metric: Any = "euclidean",
    figsize: tuple[float, float] | None = None,
    cmap: Any = None,
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
        The labels or values used to colour the points in the first row. If None, all points have the same colour.
    concentration : mapping of str to array of shape (n_samples,), default=None
        For each title, the logarithm of the relative concentration (``concentration_``), used to colour the map in the
        second row. All maps share one colour scale. If None, the second row is not drawn.
    X : array-like of shape (n_samples, n_features), default=None
        The data. With them, every map has its scores below its title: trustworthiness (TW), continuity (Cont),
        concentration correlation (CC), density rank correlation (rho30) and fragmentation (torn), on at most 2000
        points.
    metric : str or callable, default="euclidean"
        The metric used on the data for the scores.
    figsize : tuple of float, default=None
        Width and height of the figure in inches. If None, they follow from the number of maps.
    cmap : str or matplotlib.colors.Colormap, default=None
        Colours of the labels, as in :func:`drsne.pl.embedding`.
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
    scores = {} if X is None else {title: _score_line(X, Y, metric) for title, Y in arrays.items()}
    n_rows = 1 + (concentration is not None)
    figure = new_figure(figsize or (5.2 * len(arrays) + 1.0, 5.0 * n_rows))
    axes = figure.subplots(n_rows, len(arrays), squeeze=False)
    draw_label_row(axes[0], arrays, labels, point_size, cmap=cmap)
    for axis, title in zip(axes[0], arrays, strict=True):
        if title in scores:
            axis.set_xlabel(scores[title])
    if concentration is not None:
        _draw_concentration_row(figure, axes[1], arrays, concentration, point_size)
    return figure


def draw_label_row(
    axes: Any,
    maps: Mapping[str, NDArray[Any]],
    labels: ArrayLike | None,
    size: float | None,
    *,
    cmap: Any = None,
    max_entries: int = _colors.MOST_CLASSES,
) -> None:
    """Draw maps coloured by label, with a legend beside the last one if it has at most ``max_entries`` entries."""
    n = len(next(iter(maps.values())))
    colors = _label_colors(labels, n, cmap)
    for axis, (title, Y) in zip(axes, maps.items(), strict=True):
        draw(axis, Y, colors, size, title)
    if colors.mapped is not None or 1 < len(colors.names) <= max_entries:
        add_key(axes[-1], colors)


def _label_colors(labels: Any, n: int, cmap: Any) -> Colors:
    if labels is None:
        return _colors.single(n)
    values = np.asarray(labels)
    if values.shape != (n,):
        raise ValueError(
            f"labels must have one entry for each of the {n} points; got shape {values.shape}. "
            "Pass a list or a one-dimensional array."
        )
    if _colors.is_categorical(values):
        return _colors.by_class(labels, cmap)
    return _colors.by_value(values.astype(np.float64), cmap)


def _score_line(X: Any, Y: NDArray[Any], metric: Any) -> str:
    """Return the main scores of a map as one line of text."""
    from drsne import metrics

    few = None if len(Y) <= _SCORED else _SCORED
    found = metrics.evaluate(X, Y, max_samples=few, random_state=0, metric=metric)
    return "  ".join(f"{short} {found[name]:.2f}" for name, short in _SCORES.items())


def _checked_maps(maps: Any) -> dict[str, NDArray[Any]]:
    """Return the maps as arrays, or raise an error if they are not a mapping from titles to two-dimensional maps."""
    if not isinstance(maps, Mapping):
        shape = getattr(maps, "shape", None)
        found = type(maps).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise TypeError(f'maps must be a mapping from titles to maps; got {found}. Pass {{"DR-SNE": Y}}.')
    if not maps:
        raise ValueError('maps must have at least one entry; got none. Pass {"DR-SNE": Y}.')
    arrays = {title: np.asarray(getattr(Y, "embedding_", Y)) for title, Y in maps.items()}
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


def _draw_concentration_row(
    figure: Any, axes: Any, maps: Mapping[str, NDArray[Any]], values: Mapping[str, ArrayLike], size: float | None
) -> None:
    arrays = {title: np.asarray(values[title], dtype=float) for title in maps}
    low, high = np.quantile(np.concatenate(list(arrays.values())), (0.01, 0.99))
    limits = (float(low), float(high if high > low else low + 1.0))
    for axis, (title, Y) in zip(axes, maps.items(), strict=True):
        colors = _colors.by_value(arrays[title], None, limits)
        draw(axis, Y, colors, size, f"{title}: relative concentration")
    bar = figure.colorbar(colors.mapped, ax=list(axes), shrink=0.8, pad=0.02, extend="both")
    bar.set_label("log relative concentration (0 is average)")
