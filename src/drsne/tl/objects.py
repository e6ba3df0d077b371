"""Checks of AnnData objects, and the results that are written into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drsne.checks import package
from drsne.estimators.drsne import DRSNE
from drsne.tl.representation import Representation

MIN_CELLS = 3
_NOT_STORED = ("pca_components", "keep_affinities", "verbose")  # n_pcs replaces the first one


def check_cells(adata: Any, at_least: int, *, copy: bool = False) -> None:
    """Raise an error unless ``adata`` is an AnnData object with enough cells, to which results can be written."""
    if not isinstance(adata, package("anndata", "drsne.tl needs", "anndata").AnnData):
        way_out = "For an array or a data frame, use drsne.DRSNE().fit(X)."
        if hasattr(adata, "mod"):
            way_out = "Pass one of its modalities, such as mdata.mod['rna']."
        raise TypeError(f"adata must be an AnnData object; got {type(adata).__name__}. {way_out}")
    if adata.n_obs < at_least:
        raise ValueError(
            f"adata must have at least {at_least} cell{'s' * (at_least > 1)}; got {adata.n_obs}. Check the "
            "filters that were applied to it."
        )
    if adata.isbacked and (copy or adata.is_view):
        what = "cannot be copied here" if copy else "is a view, to which nothing can be written"
        raise ValueError(f"adata is backed by a file and {what}. Load it with adata = adata.to_memory() first.")


def check_key(key_added: Any) -> None:
    """Raise an error unless ``key_added`` is a name or None."""
    if key_added is not None and (not isinstance(key_added, str) or not key_added):
        raise TypeError(f"key_added must be a text that is not empty, or None; got {key_added!r}. Pass a name.")


def write_map(adata: Any, model: DRSNE, representation: Representation, key: str | None, key_added: str | None) -> None:
    """Write the map of a fitted model into an AnnData object."""
    used = {"use_rep": representation.use_rep, "n_pcs": representation.n_pcs, "neighbors_key": key}
    used["mask_var"] = "highly_variable" if representation.masked else None
    metric = model.metric if isinstance(model.metric, str) else getattr(model.metric, "__name__", "a function")
    own = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_STORED}
    params = _plain({**own, "metric": metric, **used})
    results = {
        "params": params,
        "density_weight": float(model.density_weight_),
        "kl_divergence": float(model.kl_divergence_),
        "concentration_loss": float(model.concentration_loss_),
        "contrast": float(model.contrast_),
        "n_iter": int(model.n_iter_),
    }
    columns = {"concentration": model.input_concentration_, "concentration_map": model.concentration_}
    write(adata, key_added, np.asarray(model.embedding_), columns, results)


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that an h5ad file can hold: numbers and texts, but not None, arrays or objects."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    return {name: value for name, value in plain.items() if isinstance(value, bool | int | float | str)}


def write(adata: Any, key_added: str | None, places: Any, columns: Mapping[str, Any], results: dict[str, Any]) -> None:
    """Write positions, columns of ``obs`` and other results into an AnnData object, under the names of scanpy."""
    in_obsm, name = ("X_drsne", "drsne") if key_added is None else (key_added, key_added)
    adata.obsm[in_obsm] = places
    for column, values in columns.items():
        adata.obs[f"{name}_{column}"] = values
    adata.uns[name] = results
