"""Reuse of a neighbour graph that is stored in an AnnData object.

A graph is reused if its distances are those of the representation and if it has enough neighbours for the perplexity.
The distances are compared, and not only the recorded parameters, because a representation can change after its graph
was built. Otherwise, a warning states the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

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


class Settings(NamedTuple):
    """The settings of a fit that determine which graph can be reused."""

    metric: Any
    perplexity: float
    density_neighbors: int
    objective: Any
    n_jobs: int | None

    def needed(self, n_obs: int) -> int:
        """Return the number of neighbours that a fit needs for every cell, not counting the cell itself."""
        calibration = DEFAULT_CALIBRATION if self.objective is None else self.objective.calibration
        for_perplexity = math.ceil(_NEIGHBORS_PER_PERPLEXITY * self.perplexity)
        wanted = max(for_perplexity, calibration.n_neighbors(self.perplexity, n_obs), self.density_neighbors)
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
    adata: Any, key: str, representation: Representation, settings: Settings, *, suggested: str
) -> sp.csr_matrix | None:
    """Return the graph of distances in an AnnData object if a fit can use it. Otherwise warn, and return None.

    ``suggested`` are further arguments for ``sc.pp.neighbors`` that lead to a graph of this representation.
    """
    graph, reason = _usable(adata, key, representation, settings)
    if reason is None:
        return graph
    needed = settings.needed(adata.n_obs)
    checks.warn(
        f"The neighbour graph adata.uns[{key!r}] was not used, because {reason}. Neighbours were computed from "
        f"{representation.described} instead. To reuse a graph, call sc.pp.neighbors(adata, "
        f"n_neighbors={needed + 1}{suggested}, key_added={_SUGGESTED_KEY!r}) and pass "
        f"neighbors_key={_SUGGESTED_KEY!r}. To ignore graphs, pass neighbors_key=False."
    )
    return None


def _usable(
    adata: Any, key: str, representation: Representation, settings: Settings
) -> tuple[sp.csr_matrix | None, str | None]:
    """Return the graph, or None and the reason why it cannot be used."""
    params, entry = parameters_of(adata, key), adata.uns[key]
    place = str(entry.get("distances_key", "distances")) if isinstance(entry, Mapping) else "distances"
    if place not in adata.obsp:
        return None, f"adata.obsp has no {place!r}"
    stored = adata.obsp[place]
    if not sp.issparse(stored):
        return None, f"adata.obsp[{place!r}] is not a sparse matrix"
    if representation.computes_pca:
        return None, f"the principal components are computed from adata.X, and not taken from {PCA_KEY!r}"
    graph = sp.csr_matrix(stored)
    if graph.nnz == 0 or not _measures(graph, representation.X, settings):
        metric = settings.metric if isinstance(settings.metric, str) else "the given function"
        reason = f"its distances are not those of {representation.described} with metric={metric!r}"
        return None, f"{reason}{_built_with(params, key)}"
    have, needed = available(graph), settings.needed(adata.n_obs)
    if have < needed:
        return None, (
            f"it has only {have} neighbours for some cells, not counting the cell itself, and "
            f"perplexity={settings.perplexity:g} with density_neighbors={settings.density_neighbors} needs {needed}"
        )
    return graph, None


def _built_with(params: Mapping[str, Any], key: str) -> str:
    """Return how a graph was built, and how to embed the cells in the same way."""
    known = [f"{name}={params[name]!r}" for name in ("use_rep", "n_pcs", "metric") if params.get(name) is not None]
    if not known:
        return ""
    return f" (it was built with {', '.join(known)}; to embed the same, pass only neighbors_key={key!r})"


def _sampled(n_obs: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n_obs - 1, min(n_obs, _SAMPLED_CELLS)).astype(np.intp))


def _rows(X: Any, rows: Any = None) -> Any:
    """Return some rows as the search for neighbours needs them."""
    some = X if rows is None else X[rows]
    return sp.csr_matrix(some, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(some, dtype=np.float64)


def _measures(graph: sp.csr_matrix, X: Any, settings: Settings) -> bool:
    """Return whether the distances of a graph are those between the rows of ``X``, for a sample of the cells."""
    agreeing = []
    with Workers(settings.n_jobs) as workers:
        for cell in _sampled(len(graph.indptr) - 1):
            listed = slice(graph.indptr[cell], graph.indptr[cell + 1])
            others = graph.indices[listed] != cell
            indices, stored = graph.indices[listed][others], graph.data[listed][others]
            if len(indices) == 0:
                continue
            among = _rows(X, np.concatenate([[cell], indices]))
            first = np.zeros(1, dtype=np.intp)
            found = nearest(among, len(indices), metric=settings.metric, workers=workers, rows=first)
            agreeing.append(_near(np.sort(stored), found.distances[0]))
    return bool(agreeing) and float(np.concatenate(agreeing).mean()) >= _AGREEING


def lists_nearest(graph: sp.csr_matrix, X: Any, settings: Settings) -> bool:
    """Return whether the neighbours in a graph are the nearest ones in ``X``, for a sample of the cells.

    This holds for an ordinary graph, but not for a graph that balances batches. New cells are placed by their nearest
    neighbours, so they can be placed only in the map of an ordinary graph.
    """
    k, cells = settings.needed(X.shape[0]), _sampled(X.shape[0])
    with Workers(settings.n_jobs) as workers:
        found = nearest(_rows(X), k, metric=settings.metric, workers=workers, rows=cells).distances
    agreeing = []
    for cell, distances in zip(cells, found, strict=True):
        listed = slice(graph.indptr[cell], graph.indptr[cell + 1])
        stored = np.sort(graph.data[listed][graph.indices[listed] != cell])
        agreeing.append(_near(stored[:k], distances))
    return float(np.concatenate(agreeing).mean()) >= _AGREEING


def _near(stored: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(stored - found) <= _TOLERANCE * np.maximum(found, found.mean()))
