"""A DRSNE model that is fitted to the cells of an AnnData object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from drsne import checks
from drsne.estimators import parameters
from drsne.estimators.drsne import DRSNE
from drsne.tl import graph as graphs
from drsne.tl.objects import check_key
from drsne.tl.representation import Representation, choose

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
    named: Mapping[str, Any],
    *,
    use_rep: str | None,
    n_pcs: int | None,
    neighbors_key: str | bool | None,
    key_added: str | None,
    for_new_cells: bool,
) -> Fitted:
    """Return a model that is fitted to the cells. ``named`` are the parameters of DRSNE.

    If ``for_new_cells`` is True, check whether the graph allows new cells to be placed.
    """
    check_key(key_added)
    _check_names(named)
    key = _graph_key(adata, neighbors_key)
    built = graphs.parameters_of(adata, key) if isinstance(neighbors_key, str) and key else {}
    if use_rep is None and n_pcs is None:
        use_rep, n_pcs = built.get("use_rep"), built.get("n_pcs")
    model = DRSNE(**named)
    if model.metric is None:
        model.metric = built.get("metric", "euclidean")
    parameters.check(model.get_params(deep=False), DRSNE().get_params(deep=False))
    representation = choose(adata, use_rep, n_pcs)
    if key_added == representation.use_rep:
        raise ValueError(
            f"key_added must differ from use_rep; got {key_added!r} for both, which would replace the representation. "
            "Pass another name."
        )
    if key is not None:
        suggested = _suggested(representation, use_rep, model.metric)
        model.neighbors = graphs.reusable(adata, key, representation, _settings(model), suggested=suggested)
    model.pca_components = representation.n_pcs if representation.computes_pca else None
    return Fitted(model, representation, key if _fit(model, representation.X, for_new_cells=for_new_cells) else None)


def _settings(model: DRSNE) -> graphs.Settings:
    sizes = float(model.perplexity), int(model.density_neighbors)
    return graphs.Settings(model.metric, *sizes, model.objective, model.n_jobs)


def _fit(model: DRSNE, X: Any, *, for_new_cells: bool) -> bool:
    """Fit a model, and return whether it used a graph.

    DRSNE refuses to place new rows after a fit to given neighbours, because they can be anything. It is allowed to do
    so if the graph is what a search for neighbours would have found.
    """
    if for_new_cells and X.dtype == np.float64:  # DRSNE does not copy such data, but scanpy changes X in place
        X = X.copy()
    graph = model.neighbors
    model.fit(X)
    model.neighbors = None  # a later update has other cells, and the graph would only take up memory
    reference = model._reference
    if for_new_cells and graph is not None and reference is not None:
        searched = graphs.lists_nearest(graph, X, _settings(model))
        model._reference = replace(reference, training=replace(reference.training, given=not searched))
    return graph is not None


def _check_names(named: Mapping[str, Any]) -> None:
    """Raise an error for names that are not parameters, and for parameters that an AnnData object replaces."""
    known = DRSNE().get_params(deep=False)
    for name in named:
        if name in _REPLACED:
            raise TypeError(f"drsne.tl has no parameter {name!r}. {_REPLACED[name]}, or use drsne.DRSNE for arrays.")
        hint = checks.did_you_mean(name, [*_OWN_NAMES, *known])
        if name not in known and any(repr(own) in hint for own in _OWN_NAMES):
            raise TypeError(f"drsne.tl has no parameter {name!r}. {hint}")
    if isinstance(named.get("metric"), str) and named.get("metric") == "precomputed":
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


def _suggested(representation: Representation, use_rep: str | None, metric: Any) -> str:
    """Return the arguments of ``sc.pp.neighbors`` that lead to a graph of the same representation and metric."""
    arguments = "" if use_rep is None else f", use_rep={use_rep!r}"
    if representation.n_pcs is not None and not representation.computes_pca:
        arguments += f", n_pcs={representation.n_pcs}"
    return arguments if metric == "euclidean" else f"{arguments}, metric={metric!r}"
