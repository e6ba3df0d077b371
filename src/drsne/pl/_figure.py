"""Figures and axes that a notebook shows without pyplot."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

from drsne import checks


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
