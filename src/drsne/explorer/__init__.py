"""An interactive page for maps: one HTML file that opens in any browser and needs no network.

:func:`page` makes a :class:`Page` from a fitted model, a path of density weights, or maps of any other method. A
notebook shows the page, and :meth:`Page.save` writes it to a file. ``docs/explorer.md`` describes the controls.
"""

from drsne.explorer.pages import Page, page

__all__ = ["Page", "page"]
