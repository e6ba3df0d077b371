"""The function :func:`page`, and the page that it returns."""

from __future__ import annotations

import html as escaping
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from drsne.explorer.columns import given_columns, label_column, own_columns, row_names
from drsne.explorer.payload import document, payload
from drsne.explorer.sources import maps_of, with_targets
from drsne.io.writing import replacing

TITLE = "DR-SNE explorer"
_HEIGHT = 760  # height of the frame in a notebook, in pixels


def page(
    source: Any,
    *,
    labels: ArrayLike | None = None,
    label_name: str | None = None,
    columns: Any = None,
    names: ArrayLike | None = None,
    title: str | None = None,
    input_concentration: ArrayLike | None = None,
    contrast: ArrayLike | None = None,
) -> Page:
    """Make an interactive page of one map or of several maps of the same rows.

    The page is one HTML file with everything it needs. It shows the maps with a slider that moves the points from one
    map to the next, colours the points by any column, and exports the rows that are selected with a lasso. It works
    without a network, and no data leave the computer.

    Parameters
    ----------
    source : estimator, DensityPath, array of shape (n_samples, 2) or mapping of str to such arrays
        The maps. A fitted estimator has its map in ``embedding_``; if it was fitted with ``density_weight="auto"``, the
        page shows all maps of its ``path_`` and starts at the chosen one. The page of a path starts at the map that
        "auto" would choose. A mapping holds several maps of the same
        rows, such as ``{"t-SNE": Y, "DR-SNE": Z}``.
    labels : array-like of shape (n_samples,), default=None
        The label of every row. The points are coloured by label at first.
    label_name : str, default=None
        The name of the labels on the page. If None, it is the name of ``labels`` if that is a pandas Series with a
        name, and "label" otherwise.
    columns : mapping of str to array-like of shape (n_samples,), or DataFrame, default=None
        Further columns of numbers or text, to colour by, to search in and to export. A column replaces a column of the
        page itself if it has the same name. It must not have the name of the labels.
    names : array-like of shape (n_samples,), default=None
        The name of every row. If None, the names are the index of ``columns`` if that is a DataFrame, and the row
        numbers otherwise.
    title : str, default=None
        The title of the page. If None, it is "DR-SNE explorer".
    input_concentration : array-like of shape (n_samples,), default=None
        The log relative concentration of the data, such as ``model.input_concentration_``. If None, it is taken from
        ``source``, if that is a model or a path that has it. The page needs it for the concentration in the data and
        for the residual.
    contrast : float or array-like of shape (n_maps,), default=None
        The residual is the concentration in a map minus this factor times that in the data, shifted so that its median
        is 0. One number is used for all
        maps. The maps of a path above a weight of 70 have the contrast 1, unless one number is given for each map. If
        None, it is taken from ``source``, if that is a model or a path that has it, and it is 1 otherwise.

    Returns
    -------
    Page
        The page. A notebook shows it; :meth:`Page.save` writes it to a file.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import explorer
    >>> Y = np.random.default_rng(0).normal(size=(50, 2))
    >>> explorer.page({"noise": Y, "mirrored": -Y}, labels=Y[:, 0] > 0)
    Page(50 rows, 2 maps, 0.3 MB)
    """
    import drsne

    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string; got {title!r}. Pass None for the default title.")
    title = TITLE if title is None else title
    if label_name is not None and (not isinstance(label_name, str) or not label_name):
        raise TypeError(f"label_name must be a text that is not empty; got {label_name!r}. Pass None for the default.")
    maps = with_targets(maps_of(source), input_concentration, contrast)
    first = [] if labels is None else [label_column(labels, label_name, maps.n_samples)]
    given = [] if columns is None else given_columns(columns, maps.n_samples)
    if first and first[0].name in {column.name for column in given}:
        raise ValueError(
            f"columns must not repeat the name of the labels; got {first[0].name!r} in both. Leave it out of columns, "
            "or pass another label_name."
        )
    taken = {column.name for column in (*first, *given)}
    listed = [*first, *(column for column in own_columns(maps) if column.name not in taken), *given]
    rows, label = row_names(names, columns, maps.n_samples), 0 if first else None
    data = payload(maps, listed, label=label, names=rows, title=title, version=drsne.__version__)
    return Page(document(title, data), n_samples=maps.n_samples, n_maps=len(maps.embeddings))


@dataclass(frozen=True, repr=False)
class Page:
    """An interactive page of maps, made by :func:`page`.

    Attributes
    ----------
    html : str
        The page as HTML.
    n_samples, n_maps : int
        The number of rows and the number of maps.
    """

    html: str
    n_samples: int
    n_maps: int

    def __repr__(self) -> str:
        maps = "1 map" if self.n_maps == 1 else f"{self.n_maps} maps"
        return f"Page({self.n_samples:,} rows, {maps}, {len(self.html) / 1e6:.1f} MB)"

    def _repr_html_(self) -> str:
        """Return a frame with the page, for notebooks. The page cannot reach the notebook around it."""
        return (
            f'<iframe title="Explorer of maps" srcdoc="{escaping.escape(self.html)}" width="100%" height="{_HEIGHT}" '
            'style="border: 1px solid #8884; border-radius: 8px" sandbox="allow-scripts allow-downloads allow-modals" '
            'allow="clipboard-write"></iframe>'
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page to a file.

        The file is complete or not there at all, even if the program is interrupted.

        Parameters
        ----------
        path : str or path-like
            The file to write, such as "map.html".
        force : bool, default=False
            Whether to overwrite an existing file.

        Returns
        -------
        pathlib.Path
            The file.
        """
        target = Path(path)
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise ValueError(
                f"path must be a file in an existing folder; got {str(target)!r}. Create the folder first."
            )
        if target.exists() and not force:
            raise FileExistsError(
                f"path must be a new file unless force=True; got {str(target)!r}, which exists. Pass force=True to "
                "overwrite it, or choose another name."
            )
        with replacing(target) as temporary:
            temporary.write_bytes(self.html.encode("utf-8"))
        return target
