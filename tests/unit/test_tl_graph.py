"""Neighbour graphs in AnnData objects: which are reused, and which number of neighbours a warning names."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from covering import in_one_test
from on_cells import NEEDED, PCS, QUICK, N, anndata, cells, reused, scanpy, with_graph

import drsne.tl
from drsne import DRSNE


def test_a_graph_that_is_large_enough_is_reused():
    adata = with_graph(cells(), NEEDED + 1)
    drsne.tl.drsne(adata, **QUICK)
    assert reused(adata) == "neighbors"
    given = DRSNE(**QUICK, random_state=0, neighbors=adata.obsp["distances"]).fit_transform(adata.obsm["X_pca"])
    np.testing.assert_array_equal(adata.obsm["X_drsne"], given)


def test_a_small_graph_is_not_and_the_number_that_is_named_serves():
    adata = with_graph(cells(), NEEDED)
    with pytest.warns(UserWarning, match="not used") as caught:
        drsne.tl.drsne(adata, **QUICK)
    assert reused(adata) is None
    assert caught[0].filename == __file__
    named = int(re.search(r"n_neighbors=(\d+)", str(caught[0].message))[1])
    assert named == NEEDED + 1
    drsne.tl.drsne(with_graph(adata, named), **QUICK)
    assert reused(adata) == "neighbors"


@in_one_test(
    ("settings", "needed"),
    [
        ({"perplexity": 8.0, "density_neighbors": 40}, 40),
        ({"perplexity": 8.3, "density_neighbors": 8}, 25),
        ({"perplexity": (N - 1) / 3}, N - 1),
    ],
)
def test_the_number_that_is_named(settings, needed):
    adata = with_graph(cells(), needed)
    with pytest.warns(UserWarning, match=f"n_neighbors={needed + 1}"):
        drsne.tl.drsne(adata, max_iter=10, **settings)
    drsne.tl.drsne(with_graph(adata, needed + 1), max_iter=10, **settings)
    assert reused(adata) == "neighbors"


def test_a_graph_of_something_else_is_not_reused():
    other = {
        "n_pcs": {"X": cells().obsm["X_pca"][:, :8], "n_pcs": 8},
        "use_rep": {"X": cells().X, "use_rep": "X"},
        "metric": {"metric": "cosine"},
        "stale": {"X": cells(seed=3).obsm["X_pca"]},
    }
    for kind, changes in other.items():
        adata = with_graph(cells(), NEEDED + 1, **changes)
        with pytest.warns(UserWarning, match="distances are not those of"):
            drsne.tl.drsne(adata, **QUICK)
        assert reused(adata) is None, kind


def test_a_key_that_is_passed_brings_its_representation_and_metric():
    adata = cells()
    with_graph(adata, NEEDED + 1, X=adata.X, metric="cosine", key="mine", use_rep="X")
    drsne.tl.drsne(adata, neighbors_key="mine", **QUICK)
    params = adata.uns["drsne"]["params"]
    assert (params["neighbors_key"], params["use_rep"], params["metric"]) == ("mine", "X", "cosine")
    with pytest.warns(UserWarning, match="not used"):
        drsne.tl.drsne(adata, neighbors_key="mine", use_rep="X_pca", **QUICK)
    drsne.tl.drsne(with_graph(adata, 5), neighbors_key=False, **QUICK)  # ignores graphs
    assert reused(adata) is None


@in_one_test("kind", ["no distances", "full matrix", "computed components", "empty"])
def test_graphs_that_cannot_be_used(kind):
    adata = with_graph(cells(), NEEDED + 1)
    if kind == "no distances":
        del adata.obsp["distances"]
    elif kind == "full matrix":
        adata.obsp["distances"] = adata.obsp["distances"].toarray()
    elif kind == "empty":
        adata.obsp["distances"] = sp.csr_matrix((N, N))
    settings = {"use_rep": "X", "n_pcs": 10} if kind == "computed components" else {}
    with pytest.warns(UserWarning, match="not used, because"):
        drsne.tl.drsne(adata, **settings, **QUICK)
    assert reused(adata) is None


def test_stored_cells_themselves_do_not_count():
    adata = with_graph(cells(), NEEDED)
    graph = adata.obsp["distances"].tolil()
    graph.setdiag(1.0)
    graph = graph.tocsr()
    graph.data[graph.indices == np.repeat(np.arange(N), np.diff(graph.indptr))] = 0.0
    adata.obsp["distances"] = graph
    assert (np.diff(graph.indptr) == NEEDED).all()
    with pytest.warns(UserWarning, match=f"only {NEEDED - 1} neighbours"):
        drsne.tl.drsne(adata, **QUICK)


@pytest.fixture
def prepared():
    sc, adata = scanpy(), cells(n_pcs=0)
    sc.pp.pca(adata, n_comps=PCS)
    return sc, adata


@pytest.mark.slow
def test_the_graph_of_15_and_the_one_that_is_named(prepared):
    sc, adata = prepared
    sc.pp.neighbors(adata, method="gauss")
    with pytest.warns(UserWarning, match="not used") as caught:
        drsne.tl.drsne(adata, max_iter=10)
    named = int(re.search(r"n_neighbors=(\d+)", str(caught[0].message))[1])
    assert named == 91
    sc.pp.neighbors(adata, n_neighbors=named, method="gauss", key_added="large")
    drsne.tl.drsne(adata, neighbors_key="large", max_iter=10)
    assert reused(adata) == "large"
    given = DRSNE(neighbors=adata.obsp["large_distances"], max_iter=10, random_state=0)
    np.testing.assert_array_equal(adata.obsm["X_drsne"], given.fit_transform(adata.obsm["X_pca"]))


# scanpy's usual weights are umap-learn's, which is compiled for half a minute.
UMAP = pytest.param({"method": "umap"}, marks=pytest.mark.rotating(5))
GRAPHS = [UMAP, *({"method": "gauss", **each} for each in ({"metric": "cosine"}, {"n_pcs": 5}, {"use_rep": "X"}))]


@pytest.mark.slow
@pytest.mark.parametrize("settings", GRAPHS)
def test_graphs_of_scanpy_are_recognised(prepared, settings):
    sc, adata = prepared
    sc.pp.neighbors(adata, n_neighbors=NEEDED + 1, key_added="mine", **settings)
    model = drsne.tl.fit(adata, neighbors_key="mine", **QUICK)
    assert reused(adata) == "mine"
    new = adata[:5].copy()
    drsne.tl.transform(new, model)
    np.testing.assert_array_equal(new.obsm["X_drsne"], model.embedding_[:5])


@pytest.mark.slow
def test_a_graph_after_a_round_trip(prepared, tmp_path):
    sc, adata = prepared
    sc.pp.neighbors(adata, n_neighbors=NEEDED + 1, n_pcs=5, metric="cosine", method="gauss", key_added="mine")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    drsne.tl.drsne(again, neighbors_key="mine", **QUICK)
    assert reused(again) == "mine"
    few = cells(n_genes=20)
    sc.pp.neighbors(few, n_neighbors=NEEDED + 1, method="gauss")
    drsne.tl.drsne(few, **QUICK)
    assert reused(few) == "neighbors"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # from matplotlib, because of scanpy
def test_plots(prepared):
    sc, adata = prepared
    pytest.importorskip("matplotlib").use("Agg")
    drsne.tl.drsne(adata, **QUICK)
    axes = sc.pl.embedding(adata, basis="drsne", color=["drsne_concentration", "gene3"], show=False)
    assert len(axes) == 2


@pytest.mark.slow
def test_projected_cells(prepared):
    _, adata = prepared
    model = drsne.tl.fit(adata, **QUICK)
    new = anndata.AnnData(adata.X[:10].copy(), var=adata.var)
    new.obsm["X_pca"] = (new.X - adata.X.mean(axis=0)) @ adata.varm["PCs"]
    drsne.tl.transform(new, model)
    assert new.obs["drsne_novelty"].max() < 0.1
