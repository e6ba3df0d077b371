"""Reuse of a neighbour graph that is stored in an AnnData object.

A graph is reused if its distances are those of the representation and if it has enough neighbours for the perplexity.
The distances are compared, and not only the recorded parameters, because a representation can change after its graph
was built. Otherwise, a warning states the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.affinities import DEFAULT_CALIBRATION
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import available
from drsne.neighbors.search import nearest
from drsne.tl.representation import PCA_KEY, Representation

DEFAULT_KEY = "neighbors"
_SUGGESTED_KEY = "neighbors_drsne"  # a separate key, because clusters and other maps use the default graph
_NEIGHBORS_PER_PERPLEXITY = 3.0  # with fewer neighbours, DRSNE lowers the perplexity
_SAMPLED_CELLS = 32
_TOLERANCE = 2e-3  # relative; distances in single precision are closer, and those of other representations are not
_AGREEING = 0.9  # share of the sampled distances that must agree; approximate searches miss a few neighbours


def _needed(model: Any, n_obs: int) -> int:
    """Return the number of neighbours that a fit needs for every cell, not counting the cell itself."""
    calibration = DEFAULT_CALIBRATION if model.objective is None else model.objective.calibration
    perplexity = float(model.perplexity)
    for_perplexity = math.ceil(_NEIGHBORS_PER_PERPLEXITY * perplexity)
    wanted = max(for_perplexity, calibration.n_neighbors(perplexity, n_obs), int(model.density_neighbors))
    return min(n_obs - 1, wanted)


def parameters_of(adata: Any, key: str) -> dict[str, Any]:
    """Return the parameters with which scanpy built a graph, or raise an error if there is no such graph."""
    if key not in adata.uns:
        graphs = [name for name, entry in adata.uns.items() if isinstance(entry, Mapping) and "distances_key" in entry]
        hint = "Build one with sc.pp.neighbors(adata, key_added=...), or pass False to ignore graphs."
        if not graphs:
            raise ValueError(f"neighbors_key must be a key of a graph in adata.uns; got {key!r}. {hint}")
        checks.choice("neighbors_key", key, graphs, hint=hint)
    entry = adata.uns[key]
    found = entry.get("params", {}) if isinstance(entry, Mapping) else {}
    return dict(found) if isinstance(found, Mapping) else {}


def reusable(
    adata: Any, key: str, representation: Representation, model: Any, *, asked_for: str | None
) -> sp.csr_matrix | None:
    """Return the graph of distances if a fit can use it, or warn and return None. ``asked_for`` is a given use_rep."""
    graph = _usable(adata, key, representation, model)
    if not isinstance(graph, str):
        return graph
    suggested = "" if asked_for is None else f", use_rep={asked_for!r}"
    if representation.n_pcs is not None and not representation.computes_pca:
        suggested += f", n_pcs={representation.n_pcs}"
    suggested += "" if model.metric == "euclidean" else f", metric={model.metric!r}"
    checks.warn(
        f"The neighbour graph adata.uns[{key!r}] was not used, because {graph}. Neighbours were computed from "
        f"{representation.described} instead. To reuse a graph, call sc.pp.neighbors(adata, "
        f"n_neighbors={_needed(model, adata.n_obs) + 1}{suggested}, key_added={_SUGGESTED_KEY!r}) and pass "
        f"neighbors_key={_SUGGESTED_KEY!r}. To ignore graphs, pass neighbors_key=False."
    )
    return None


def _usable(adata: Any, key: str, representation: Representation, model: Any) -> sp.csr_matrix | str:
    """Return the graph, or the reason why it cannot be used."""
    params, entry = parameters_of(adata, key), adata.uns[key]
    place = str(entry.get("distances_key", "distances")) if isinstance(entry, Mapping) else "distances"
    if place not in adata.obsp:
        return f"adata.obsp has no {place!r}"
    if not sp.issparse(adata.obsp[place]):
        return f"adata.obsp[{place!r}] is not a sparse matrix"
    if representation.computes_pca:
        return f"the principal components are computed from adata.X, and not taken from {PCA_KEY!r}"
    graph = sp.csr_matrix(adata.obsp[place])
    if graph.nnz == 0 or not _measures(graph, representation.X, model):
        metric = model.metric if isinstance(model.metric, str) else "the given function"
        reason = f"its distances are not those of {representation.described} with metric={metric!r}"
        known = [f"{name}={params[name]!r}" for name in ("use_rep", "n_pcs", "metric") if params.get(name) is not None]
        if known:
            reason += f" (it was built with {', '.join(known)}; to embed the same, pass only neighbors_key={key!r})"
        return reason
    have, needed = available(graph), _needed(model, adata.n_obs)
    if have < needed:
        return (
            f"it has only {have} neighbours for some cells, not counting the cell itself, and "
            f"perplexity={model.perplexity:g} with density_neighbors={model.density_neighbors} needs {needed}"
        )
    return graph


def _sampled(graph: sp.csr_matrix) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
    """Yield some cells, with the other cells in their lists of the graph, and the distances of these."""
    n_obs = graph.shape[0]
    for cell in np.unique(np.linspace(0, n_obs - 1, min(n_obs, _SAMPLED_CELLS)).astype(np.intp)):
        listed = slice(graph.indptr[cell], graph.indptr[cell + 1])
        others = graph.indices[listed] != cell
        yield int(cell), graph.indices[listed][others], np.sort(graph.data[listed][others])


def _rows(X: Any) -> Any:
    """Return rows as the search for neighbours needs them."""
    return sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def _measures(graph: sp.csr_matrix, X: Any, model: Any) -> bool:
    """Return whether the distances of a graph are those between the rows of ``X``, for a sample of the cells."""
    agreeing, first = [], np.zeros(1, dtype=np.intp)
    with Workers(model.n_jobs) as workers:
        for cell, others, stored in _sampled(graph):
            if len(others):
                among = _rows(X[np.concatenate([[cell], others])])
                found = nearest(among, len(others), metric=model.metric, workers=workers, rows=first)
                agreeing.append(_near(stored, found.distances[0]))
    return bool(agreeing) and float(np.concatenate(agreeing).mean()) >= _AGREEING


def lists_nearest(graph: sp.csr_matrix, X: Any, model: Any) -> bool:
    """Return whether the neighbours in a graph are the nearest ones in ``X``, for a sample of the cells.

    This holds for an ordinary graph, but not for a graph that balances batches. New cells are placed by their nearest
    neighbours, so they can be placed only in the map of an ordinary graph.
    """
    k, sampled = _needed(model, X.shape[0]), list(_sampled(graph))
    cells = np.array([cell for cell, _, _ in sampled], dtype=np.intp)
    with Workers(model.n_jobs) as workers:
        found = nearest(_rows(X), k, metric=model.metric, workers=workers, rows=cells).distances
    agreeing = [_near(stored[:k], each) for (_, _, stored), each in zip(sampled, found, strict=True)]
    return float(np.concatenate(agreeing).mean()) >= _AGREEING


def _near(stored: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(stored - found) <= _TOLERANCE * np.maximum(found, found.mean()))
