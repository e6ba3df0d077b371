"""New cells in the map of an AnnData object."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from covering import in_one_test
from on_cells import GENES, NEEDED, PCS, QUICK, N, cells, reused, with_graph

import drsne.tl
from drsne import DRSNE


def test_a_model_places_the_cells_that_it_knows():
    adata = cells()
    model = drsne.tl.fit(adata, **QUICK)
    new = adata[[3, 1, 77]].copy()
    assert drsne.tl.transform(new, model) is None
    np.testing.assert_array_equal(new.obsm["X_drsne"], adata.obsm["X_drsne"][[3, 1, 77]])
    np.testing.assert_array_equal(new.obs["drsne_novelty"], 0.0)
    np.testing.assert_array_equal(adata.obsm["X_drsne"], model.embedding_)


@in_one_test("lazy", [False, True])
def test_neighbours_of_new_cells_are_searched_once(lazy):
    calls = []

    def counting(a, b):
        calls.append(1)
        return np.abs(a - b).sum()

    adata, new = cells(), cells()[:20].copy()
    model = DRSNE(metric=counting, **QUICK).fit(adata.obsm["X_pca"])
    rows = new.obsm["X_pca"] + np.float32(0.01)
    calls.clear()
    places = model.transform(rows)
    once = len(calls)
    concentration, novelty = model.new_concentration(rows), model.novelty(rows)
    if lazy:
        rows = pytest.importorskip("dask.array", reason="places lazy cells").from_array(rows, (15, -1))
    new.obsm["X_pca"] = rows
    calls.clear()
    drsne.tl.transform(new, model, use_rep="X_pca")
    assert len(calls) == once
    assert new.obsm["X_drsne"].dtype == places.dtype
    np.testing.assert_array_equal(new.obsm["X_drsne"], places)
    np.testing.assert_array_equal(new.obs["drsne_concentration"], concentration)
    np.testing.assert_array_equal(new.obs["drsne_novelty"], novelty)


def test_strange_cells_are_novel_and_a_copy_leaves_the_original_unchanged():
    model, new = drsne.tl.fit(cells(), **QUICK), cells()[:4].copy()
    new.obsm["X_pca"] = new.obsm["X_pca"] + 50.0
    placed = drsne.tl.transform(new, model, key_added="placed", copy=True)
    assert (placed.obs["placed_novelty"] > 3).all()
    assert placed.obs["placed_concentration"].max() < 0
    assert placed.obsm["placed"].shape == (4, 2)
    assert "placed" not in new.obsm
    assert not new.uns


@in_one_test("settings", [{"use_rep": "X"}, {"use_rep": "X", "n_pcs": 10}])
def test_variables_are_matched_by_name(tmp_path, settings):
    adata = cells()
    adata.var["highly_variable"] = np.arange(GENES) < 60
    model = drsne.tl.fit(adata, **settings, **QUICK)
    new = adata[:5, ::-1].copy()
    model.save(tmp_path / "cells.drsne")
    drsne.tl.transform(new, drsne.load(tmp_path / "cells.drsne"))
    np.testing.assert_array_equal(new.obsm["X_drsne"], model.embedding_[:5])
    new.var_names = [f"other{i}" for i in range(GENES)]
    with pytest.raises(ValueError, match=r"var_names .* are missing \('gene0'"):
        drsne.tl.transform(new, model)


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_repeated_names():
    adata = cells()
    adata.var_names = ["gene"] * GENES
    model = drsne.tl.fit(adata, use_rep="X", **QUICK)
    drsne.tl.transform(adata[:5].copy(), model)
    with pytest.raises(ValueError, match="unique"):
        drsne.tl.transform(adata[:5, :70].copy(), model)


def test_other_columns_are_refused():
    model = drsne.tl.fit(cells(), **QUICK)
    for n_pcs in (PCS - 1, PCS + 1):
        with pytest.raises(ValueError, match=rf"{PCS} columns .* got {n_pcs}"):
            drsne.tl.transform(cells(n_pcs=n_pcs), model)
    with pytest.raises(ValueError, match="use_rep must be 'X_pca'"):
        drsne.tl.transform(cells(), model, use_rep="X")
    with pytest.raises(ValueError, match="use_rep must be one of 'X'"):
        drsne.tl.transform(cells(n_pcs=0), model)
    model, new = drsne.tl.fit(cells(), n_pcs=5, **QUICK), cells()[:5].copy()
    drsne.tl.transform(new, model)  # the first columns of more
    np.testing.assert_array_equal(new.obsm["X_drsne"], model.embedding_[:5])


def test_a_model_of_arrays_needs_use_rep():
    adata = cells()
    model = DRSNE(**QUICK).fit(adata.obsm["X_pca"])
    with pytest.raises(ValueError, match="use_rep must be given"):
        drsne.tl.transform(adata, model)
    drsne.tl.transform(adata, model, use_rep="X_pca")
    np.testing.assert_array_equal(adata.obsm["X_drsne"], model.embedding_)


def test_a_model_of_a_graph_places_cells_as_without_it():
    adata, new = with_graph(cells(), NEEDED + 1), cells(seed=5)[:6].copy()
    places = []
    for key in ("neighbors", False):
        model = drsne.tl.fit(adata, neighbors_key=key, **QUICK)
        drsne.tl.transform(new, model)
        places.append(new.obsm["X_drsne"])
    assert model.neighbors is None
    np.testing.assert_array_equal(*places)


def test_a_graph_of_other_neighbours_makes_a_map_but_places_no_cells():
    adata = with_graph(cells(), 2 * NEEDED + 1)
    graph = adata.obsp["distances"]  # every second neighbour, as if there were two batches
    kept = (np.arange(graph.nnz) % 2).astype(bool)
    parts = graph.data[kept], graph.indices[kept], np.arange(0, N * NEEDED + 1, NEEDED)
    adata.obsp["distances"] = sp.csr_matrix(parts, shape=(N, N))
    model = drsne.tl.fit(adata, **QUICK)
    assert reused(adata) == "neighbors"
    with pytest.raises(ValueError, match="neighbors_key=False"):
        drsne.tl.transform(adata, model)


def test_the_model_has_its_own_data():
    adata = cells()
    adata.X = adata.X.astype(np.float64)
    model, before = drsne.tl.fit(adata, use_rep="X", **QUICK), adata.X.copy()
    adata.X[:] = 0.0
    np.testing.assert_array_equal(model.transform(before), model.embedding_)


@in_one_test("model", [None, DRSNE(), np.zeros(3)])
def test_what_is_not_a_fitted_model(model):
    with pytest.raises((TypeError, ValueError), match=r"model must be a DRSNE|not fitted"):
        drsne.tl.transform(cells(), model)
