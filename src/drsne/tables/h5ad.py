"""H5AD files of AnnData objects: the representation that is embedded, and the map that is added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import Table, plural


class Document(NamedTuple):
    """An AnnData object, and what is embedded of it."""

    adata: Any
    representation: Any

    @property
    def pca_components(self) -> int | None:
        """The number of principal components that the model has to compute, or None."""
        return self.representation.n_pcs if self.representation.computes_pca else None


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read the representation of the cells, chosen as in :func:`drsne.tl.drsne`, and the columns of ``obs``."""
    anndata = package("anndata", "H5AD files", "anndata")
    from drsne.tl.objects import MIN_CELLS, check_cells
    from drsne.tl.representation import choose

    if source.is_stream:
        raise TableError("An H5AD file cannot be read from standard input. Pass its name.")
    try:
        adata = anndata.read_h5ad(source.path)
    except Exception as error:  # a damaged file can raise any error
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{source.name} is damaged or not an H5AD file ({reason}). Write it again.") from error
    check_cells(adata, MIN_CELLS)
    chosen = choose(adata, options.get("use_rep"), None)
    note = f"Read {plural(adata.n_obs, 'cell')}; embedding {chosen.described}."
    others = {str(each): adata.obs[each].to_numpy() for each in adata.obs}
    names = None if chosen.var_names is None else [str(each) for each in chosen.var_names]
    document = Document(adata, chosen)
    return Content(
        chosen.X, (note,), index=np.asarray(adata.obs_names), columns=names, others=others, document=document
    )


def with_map(table: Table, model: Any, columns: Mapping[str, Any], label: str | None) -> Any:
    """Return an AnnData object with the map: that of the input with everything in it, or a new one of the numbers."""
    anndata = package("anndata", "H5AD files", "anndata")
    from drsne.tl.objects import write_map
    from drsne.tl.representation import choose

    if table.document is not None:
        adata, chosen = table.document
        if len(table.rows) < adata.n_obs:
            adata = adata[table.rows].copy()
    else:
        adata = anndata.AnnData(table.X)
        if table.columns is not None:
            adata.var_names = table.columns
        if table.index is not None:
            adata.obs_names = [str(each) for each in table.index]
        if label is not None and table.label is not None:
            adata.obs[label] = table.label
        chosen = choose(adata, "X", None)
    write_map(adata, model, chosen, None, None)
    return adata


FORMAT = Format("H5AD", (".h5ad",), b"\x89HDF\r\n\x1a\n", read, None)
