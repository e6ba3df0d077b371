"""Plots of maps. They need matplotlib (``pip install 'drsne[plot]'``), which is imported when a plot is drawn.

Functions with one panel take ``ax``, ``figsize`` and ``cmap``, and return the Axes. Functions with several panels
return the Figure. The figures do not use pyplot and do not open a window. A notebook shows what a cell returns.
"""

from drsne.pl._figure import new_figure
from drsne.pl._points import framed
from drsne.pl.compare import compare
from drsne.pl.density import density
from drsne.pl.embedding import embedding
from drsne.pl.fragmentation import fragmentation
from drsne.pl.reliability import reliability
from drsne.pl.trade_off import trade_off

__all__ = [
    "compare",
    "density",
    "embedding",
    "fragmentation",
    "framed",
    "new_figure",
    "reliability",
    "trade_off",
]
