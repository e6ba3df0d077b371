"""AnnData objects for tests: small ones, with and without principal components and neighbour graphs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from drsne.neighbors.search import knn

anndata = pytest.importorskip("anndata", reason="drsne.tl works on AnnData objects")

N, GENES, PCS = 150, 80, 12
QUICK = {"perplexity": 8.0, "density_neighbors": 8, "max_iter": 40}
NEEDED = 24  # neighbours: three times the perplexity


def scanpy():
    with warnings.catch_warnings():  # other packages announce their own changes when scanpy imports them
        warnings.simplefilter("ignore")
        return pytest.importorskip("scanpy", reason="compares with scanpy, which is not a dependency")


def cells(n_genes=GENES, n_pcs=PCS, seed=0):
    """Return two groups of cells of different density, with principal components unless n_pcs is 0."""
    rng = np.random.default_rng(seed)
    hidden = np.vstack([rng.normal(0, 0.3, (N // 2, 6)), rng.normal(2, 1, (N // 2, 6))])
    X = np.maximum(hidden @ np.random.default_rng(9).normal(size=(6, n_genes)), 0.0) + 0.01
    adata = anndata.AnnData(X.astype(np.float32))
    adata.var_names = [f"gene{i}" for i in range(n_genes)]
    adata.obs_names = [f"cell{i}" for i in range(N)]
    if n_pcs:
        left, scale, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
        adata.obsm["X_pca"] = np.zeros((N, n_pcs), np.float32)
        adata.obsm["X_pca"][:, :6] = (left * scale)[:, :6]
        adata.obsm["X_pca"] += rng.normal(0, 0.1, (N, n_pcs)).astype(np.float32)
    return adata


def with_graph(adata, n_neighbors, X=None, metric="euclidean", key="neighbors", **params):
    """Add a graph as sc.pp.neighbors does: n_neighbors counts the cell itself, which is not stored."""
    found = knn(adata.obsm["X_pca"] if X is None else X, n_neighbors - 1, metric=metric)
    starts = np.arange(0, found.indices.size + 1, n_neighbors - 1)
    place = "distances" if key == "neighbors" else f"{key}_distances"
    shape = (adata.n_obs, adata.n_obs)
    adata.obsp[place] = sp.csr_matrix((found.distances.ravel(), found.indices.ravel(), starts), shape=shape)
    params = {"n_neighbors": n_neighbors, "method": "umap", "metric": metric, **params}
    adata.uns[key] = {"connectivities_key": "connectivities", "distances_key": place, "params": params}
    return adata


def reused(adata):
    """Return the key of the graph that was reused, or None."""
    return adata.uns["drsne"]["params"].get("neighbors_key")
