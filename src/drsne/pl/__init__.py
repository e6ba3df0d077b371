"""Plots of maps. They need matplotlib (``pip install 'drsne[plot]'``), which is imported when a plot is drawn.

Functions with one panel take ``ax``, ``figsize`` and ``cmap``, and return the Axes. Functions with several panels
return the Figure. The figures do not use pyplot and do not open a window. A notebook shows what a cell returns.
"""

from drsne.pl._drawing import framed, new_figure
from drsne.pl.compare import compare, trade_off
from drsne.pl.maps import density, embedding, fragmentation, reliability

__all__ = ["compare", "density", "embedding", "fragmentation", "framed", "new_figure", "reliability", "trade_off"]
