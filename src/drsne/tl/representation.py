"""The representation of the cells that is embedded: the data matrix, an array in ``obsm``, or principal components.

The rules are those of scanpy. This module only reads AnnData objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.pca import AUTO
from drsne.placement.lazy import is_lazy

PCA_KEY = "X_pca"
_MASK = "highly_variable"  # scanpy computes principal components from the genes that this column of var marks


@dataclass(frozen=True, kw_only=True)
class Representation:
    """The rows that are embedded, and where they are stored."""

    X: Any  # array or sparse matrix of shape (n_obs, n_columns)
    use_rep: str  # "X" or a key of obsm
    n_pcs: int | None = None  # number of columns of an array in obsm that the user asked for, or of components of X
    computes_pca: bool = False  # whether the model has to compute the principal components
    var_names: NDArray[Any] | None = None  # names of the columns, if they are variables
    masked: bool = False  # whether the columns are only the highly variable genes

    @property
    def described(self) -> str:
        """The representation, in words."""
        if not self.computes_pca:
            return f"{place_of(self.use_rep)} ({self.X.shape[1]} columns)"
        return f"{self.n_pcs} principal components of adata.X"

    def record(self) -> dict[str, Any]:
        """Return what a model has to know to find the same columns in another AnnData object."""
        record = {"use_rep": self.use_rep, "n_columns": int(self.X.shape[1])}
        if self.var_names is not None:
            return {**record, "var_names": self.var_names}
        return {**record, "of_more_columns": self.n_pcs is not None}


def place_of(use_rep: str) -> str:
    """Return the place of a representation in an AnnData object."""
    return "adata.X" if use_rep == "X" else f"adata.obsm[{use_rep!r}]"


def choose(adata: Any, use_rep: str | None, n_pcs: int | None) -> Representation:
    """Return the representation that the user asks for, or the default of :func:`drsne.tl.drsne`, as in scanpy."""
    if n_pcs is not None:
        n_pcs = checks.integer("n_pcs", n_pcs, at_least=0, hint="Pass None to use all columns.")
    if use_rep is None and n_pcs == 0:  # scanpy has this second name for the data matrix
        use_rep, n_pcs = "X", None
    automatic = use_rep is None
    if use_rep is None:
        small = n_pcs is None and adata.n_vars <= AUTO and adata.X is not None
        use_rep = PCA_KEY if PCA_KEY in adata.obsm and not small else "X"
        if not small and use_rep == "X":
            n_pcs = n_pcs or AUTO
    _check_key(adata, use_rep)
    if use_rep == "X":
        return _of_variables(adata, n_pcs or None, warns=automatic)
    values = _checked(place_of(use_rep), adata.obsm[use_rep])
    if n_pcs is not None and not 1 <= n_pcs <= values.shape[1]:
        raise ValueError(
            f"n_pcs must be between 1 and {values.shape[1]}, the number of columns of {place_of(use_rep)}; got "
            f"{n_pcs}. Lower it, or compute more components first."
        )
    return Representation(X=values if n_pcs is None else values[:, :n_pcs], use_rep=use_rep, n_pcs=n_pcs)


def _check_key(adata: Any, use_rep: Any) -> None:
    hint = "" if len(adata.obsm) else "adata.obsm has no arrays, so compute the representation first."
    checks.choice("use_rep", use_rep, ("X", *adata.obsm), hint=hint)


def _of_variables(adata: Any, n_pcs: int | None, *, warns: bool) -> Representation:
    values, names = _checked("adata.X", adata.X), np.asarray(adata.var_names, dtype=str)
    if n_pcs is None:
        return Representation(X=values, use_rep="X", var_names=names)
    mask = adata.var[_MASK].to_numpy() if _MASK in adata.var else np.ones(adata.n_vars, dtype=bool)
    masked = mask.dtype == bool and mask.any() and not mask.all()
    if masked:
        values, names = values[:, np.flatnonzero(mask)], names[mask]
    if warns:
        n_pcs = min(n_pcs, *(size - sp.issparse(values) for size in values.shape))  # sparse solvers find one fewer
        genes = f"the {len(names)} highly variable genes" if masked else f"all {len(names)} variables of adata.X"
        checks.warn(
            f"adata.obsm has no {PCA_KEY!r}, so {n_pcs} principal components were computed from {genes}. Run "
            "sc.pp.pca(adata) first to choose them yourself, or pass use_rep='X' to use all variables without PCA."
        )
    return Representation(X=values, use_rep="X", n_pcs=n_pcs, computes_pca=True, var_names=names, masked=bool(masked))


def same_columns(adata: Any, use_rep: str, record: dict[str, Any]) -> Any:
    """Return the columns of new cells that the ``record`` of a model's data describes, matched by name if possible."""
    _check_key(adata, use_rep)
    values = adata.X if use_rep == "X" else adata.obsm[use_rep]
    if not is_lazy(values):  # the blocks of a Dask array are checked when they are computed
        values = _checked(place_of(use_rep), values)
    if use_rep == "X" and "var_names" in record:
        return _by_name(adata, values, record["var_names"])
    n_columns, found = record["n_columns"], values.shape[1]
    if found < n_columns or (found > n_columns and not record.get("of_more_columns", False)):
        raise ValueError(
            f"{place_of(use_rep)} must have the {n_columns} columns of the data that the model was fitted to; got "
            f"{found}. Compute the same representation for the new cells."
        )
    return values[:, :n_columns]


def _by_name(adata: Any, values: Any, wanted: NDArray[Any]) -> Any:
    names = np.asarray(adata.var_names, dtype=str)
    if np.array_equal(names, wanted):
        return values
    missing = [str(name) for name in wanted if name not in adata.var_names]
    if missing:
        shown = ", ".join(map(repr, missing[:3])) + (", ..." if len(missing) > 3 else "")
        raise ValueError(
            f"adata.var_names must contain the {len(wanted)} variables that the model was fitted to; {len(missing)} "
            f"are missing ({shown}). Use the same genes, with the same kind of names."
        )
    if not adata.var_names.is_unique or len(set(wanted)) < len(wanted):
        raise ValueError(
            "adata.var_names must be unique, because the variables of new cells are matched by name; got repeated "
            "names. Call adata.var_names_make_unique() before the fit and here."
        )
    return values[:, adata.var_names.get_indexer(list(wanted))]


def _checked(name: str, values: Any) -> Any:
    """Return an array in memory with finite numbers, or raise an error that names its place."""
    if values is None:
        raise ValueError(f"{name} is empty. Pass use_rep with a key of adata.obsm.")
    package = type(values).__module__.split(".")[0]
    if not isinstance(values, np.ndarray) and not sp.issparse(values) and package != "pandas":
        on_gpu = package in ("cupy", "cupyx")
        load = "rapids_singlecell.get.anndata_to_CPU(adata)" if on_gpu else "adata = adata.to_memory()"
        raise ValueError(
            f"{name} must be in memory; got a {type(values).__name__} of {package}. Load it with {load}, "
            "or pass use_rep with an array of adata.obsm that is in memory."
        )
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"{name} must have one row per cell and at least one column; got shape {values.shape}. Pass "
            "another use_rep."
        )
    checks.refuse_other_data(name, values)
    if package == "pandas":
        return values.to_numpy()
    # The arrays of views have types of their own, which make an actual object of the view when they are changed.
    return sp.csr_matrix(values) if sp.issparse(values) else np.asarray(values)
