"""A DRSNE model that is fitted to the cells of an AnnData object, and the results that are written into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from drsne import checks
from drsne.estimators.drsne import DRSNE
from drsne.tl import graph as graphs
from drsne.tl.representation import Representation, choose

MIN_CELLS = 3
_RESULTS = ("density_weight_", "kl_divergence_", "concentration_loss_", "contrast_")  # numbers of a fitted model
_NOT_STORED = ("pca_components", "keep_affinities", "verbose")  # n_pcs replaces the first one


def check_cells(adata: Any, at_least: int, *, copy: bool = False) -> None:
    """Raise an error unless ``adata`` is an AnnData object with enough cells, to which results can be written."""
    if not isinstance(adata, checks.package("anndata", "drsne.tl needs", "anndata").AnnData):
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
    """Write the map of a fitted model into an AnnData object. ``key`` is that of the graph that was reused."""
    metric = model.metric if isinstance(model.metric, str) else getattr(model.metric, "__name__", "a function")
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_STORED}
    params |= {"metric": metric, "use_rep": representation.use_rep, "n_pcs": representation.n_pcs}
    params |= {"neighbors_key": key, "mask_var": "highly_variable" if representation.masked else None}
    # An h5ad file can hold numbers and texts, but not None, arrays or objects.
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    results = {
        "params": {name: value for name, value in plain.items() if isinstance(value, bool | int | float | str)},
        **{name.removesuffix("_"): float(getattr(model, name)) for name in _RESULTS},
        "n_iter": int(model.n_iter_),
    }
    columns = {"concentration": model.input_concentration_, "concentration_map": model.concentration_}
    write(adata, key_added, np.asarray(model.embedding_), columns, results)


def write(adata: Any, key_added: str | None, places: Any, columns: Mapping[str, Any], results: dict[str, Any]) -> None:
    """Write positions, columns of ``obs`` and other results into an AnnData object, under the names of scanpy."""
    name = key_added or "drsne"
    adata.obsm[key_added or "X_drsne"] = places
    for column, values in columns.items():
        adata.obs[f"{name}_{column}"] = values
    adata.uns[name] = results


_OWN_NAMES = ("use_rep", "n_pcs", "neighbors_key", "key_added", "copy")  # parameters that DRSNE does not have
# Parameters of DRSNE that an AnnData object replaces, and a name that is not one, with what to pass instead.
_REPLACED = {
    "obsm": "Pass use_rep, the key of an array in adata.obsm",
    "neighbors": "Pass neighbors_key, the key of a graph in adata.uns",
    "pca_components": "Pass use_rep='X' and n_pcs",
}


class Fitted(NamedTuple):
    """A fitted model, and what it was fitted to."""

    model: DRSNE
    representation: Representation
    graph_key: str | None  # key of the graph that was reused


def fitted(
    adata: Any,
    parameters: Mapping[str, Any],
    use_rep: str | None,
    n_pcs: int | None,
    neighbors_key: str | bool | None,
    key_added: str | None,
    *,
    for_new_cells: bool,
) -> Fitted:
    """Return a DRSNE model with these parameters that is fitted to the cells, and has to place new cells or not."""
    check_key(key_added)
    _check_names(parameters)
    key = _graph_key(adata, neighbors_key)
    built = graphs.parameters_of(adata, key) if isinstance(neighbors_key, str) and key else {}
    if use_rep is None and n_pcs is None:
        use_rep, n_pcs = built.get("use_rep"), built.get("n_pcs")
    model = DRSNE(**parameters)
    if model.metric is None:
        model.metric = built.get("metric", "euclidean")
    model._checked_parameters()
    representation = choose(adata, use_rep, n_pcs)
    if key_added == representation.use_rep:
        raise ValueError(
            f"key_added must differ from use_rep; got {key_added!r} for both, which would replace the representation. "
            "Pass another name."
        )
    if key is not None:
        model.neighbors = graphs.reusable(adata, key, representation, model, asked_for=use_rep)
    model.pca_components = representation.n_pcs if representation.computes_pca else None
    return Fitted(model, representation, key if _fit(model, representation.X, for_new_cells=for_new_cells) else None)


def _fit(model: DRSNE, X: Any, *, for_new_cells: bool) -> bool:
    """Fit a model, and return whether it used a graph. New cells can be placed if that has the nearest neighbours."""
    if for_new_cells and X.dtype == np.float64:  # DRSNE does not copy such data, but scanpy changes X in place
        X = X.copy()
    graph = model.neighbors
    model.fit(X)
    model.neighbors = None  # a later update has other cells, and the graph would only take up memory
    reference = model._reference
    if for_new_cells and graph is not None and reference is not None:
        searched = graphs.lists_nearest(graph, X, model)
        model._reference = replace(reference, training=replace(reference.training, given=not searched))
    return graph is not None


def _check_names(parameters: Mapping[str, Any]) -> None:
    """Raise an error for names that are not parameters, and for parameters that an AnnData object replaces."""
    known = DRSNE().get_params(deep=False)
    for name in parameters:
        if name in _REPLACED:
            raise TypeError(f"drsne.tl has no parameter {name!r}. {_REPLACED[name]}, or use drsne.DRSNE for arrays.")
        hint = checks.did_you_mean(name, [*_OWN_NAMES, *known])
        if name not in known and any(repr(own) in hint for own in _OWN_NAMES):
            raise TypeError(f"drsne.tl has no parameter {name!r}. {hint}")
    if isinstance(metric := parameters["metric"], str) and metric == "precomputed":
        raise ValueError(
            "metric must not be 'precomputed' in drsne.tl, which computes distances from a representation. Use "
            "drsne.DRSNE(metric='precomputed').fit(adata.obsp['distances'])."
        )


def _graph_key(adata: Any, neighbors_key: Any) -> str | None:
    """Return the key of the graph to look at, or None if there is none or graphs are to be ignored."""
    if neighbors_key is None:
        return graphs.DEFAULT_KEY if graphs.DEFAULT_KEY in adata.uns else None
    if neighbors_key is False:
        return None
    if not isinstance(neighbors_key, str):
        raise TypeError(f"neighbors_key must be a key of adata.uns, False or None; got {neighbors_key!r}. Pass a text.")
    return neighbors_key
