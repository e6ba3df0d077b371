"""H5AD files of AnnData objects: the representation that is embedded, and the map that is added."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import Table, column_of, plural

_anndata = partial(package, "anndata", "H5AD files", "anndata")


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
    anndata = _anndata()
    from drsne.tl.objects import MIN_CELLS, check_cells
    from drsne.tl.representation import choose

    if source.is_stream:
        raise TableError(f"An H5AD file cannot be read from {source.name}, which is a stream. Pass the name of a file.")
    try:
        adata = anndata.read_h5ad(source.path)
    except Exception as error:  # a damaged file can raise any error
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{source.name} is damaged or not an H5AD file ({reason}). Write it again.") from error
    check_cells(adata, MIN_CELLS)
    chosen = choose(adata, options.get("use_rep"), None)
    note = f"Read {plural(adata.n_obs, 'cell')}; embedding {chosen.described}."
    others = {str(each): column_of(adata.obs, place) for place, each in enumerate(adata.obs)}
    names = None if chosen.var_names is None else [str(each) for each in chosen.var_names]
    document = Document(adata, chosen)
    return Content(
        chosen.X,
        (note,),
        index=np.asarray(adata.obs_names),
        index_name=None if adata.obs_names.name is None else str(adata.obs_names.name),
        columns=names,
        others=others,
        document=document,
    )


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of all arrays of the file, because all of them are read."""
    if source.is_stream:
        return None
    h5py = package("h5py", "H5AD files", "anndata")
    sizes: list[int] = []

    def add(_: str, each: Any) -> None:
        if isinstance(each, h5py.Dataset):
            sizes.append((each.size or 0) * each.dtype.itemsize)

    try:
        with h5py.File(source.path, "r") as file:
            file.visititems(add)
    except (OSError, RuntimeError):  # the file is damaged, which is reported when it is read
        return None
    return sum(sizes)


def with_map(table: Table, model: Any, label: str | None) -> Any:
    """Return an AnnData object with the map: that of the input with everything in it, or a new one of the numbers."""
    anndata = _anndata()
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
            adata.obs_names.name = table.index_name
        if label is not None and table.label is not None:
            adata.obs[label] = table.label
        chosen = choose(adata, "X", None)
    write_map(adata, model, chosen, None, None)
    return adata


FORMAT = Format("H5AD", (".h5ad",), b"\x89HDF\r\n\x1a\n", read, None, estimate, _anndata)
