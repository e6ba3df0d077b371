"""DR-SNE of AnnData objects: what is read, what is written, and what is refused."""

from __future__ import annotations

import inspect
from importlib import metadata

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import in_one_test
from on_cells import GENES, PCS, QUICK, N, anndata, cells, with_graph
from packaging.version import Version

import drsne.tl
from drsne import DRSNE
from drsne.neighbors.search import knn

ARRAYS = not Version(metadata.version("anndata")) < Version("0.11")  # older versions refuse sparse arrays


def test_the_default_names():
    adata = cells()
    assert drsne.tl.drsne(adata, **QUICK) is None
    model = DRSNE(**QUICK, random_state=0).fit(adata.obsm["X_pca"])
    np.testing.assert_array_equal(adata.obsm["X_drsne"], model.embedding_)
    np.testing.assert_array_equal(adata.obs["drsne_concentration"], model.input_concentration_)
    np.testing.assert_array_equal(adata.obs["drsne_concentration_map"], model.concentration_)
    results = adata.uns["drsne"]
    assert results["kl_divergence"] == model.kl_divergence_
    assert results["contrast"] == model.contrast_
    assert results["density_weight"] == 1.0
    assert results["params"]["use_rep"] == "X_pca"
    assert results["params"]["perplexity"] == 8.0
    for column in ("drsne_concentration", "drsne_concentration_map"):  # the first half of the cells is dense
        values = adata.obs[column].to_numpy()
        assert values[: N // 2].mean() > values[N // 2 :].mean() + 0.3


def test_key_added_and_a_copy():
    adata = cells()
    done = drsne.tl.drsne(adata, copy=True, key_added="mine", **QUICK)
    assert set(done.obsm) == {"X_pca", "mine"}
    assert list(done.obs) == ["mine_concentration", "mine_concentration_map"]
    assert set(done.uns) == {"mine"}
    assert set(adata.obsm) == {"X_pca"}
    assert not len(adata.obs.columns)
    assert not adata.uns
    drsne.tl.drsne(adata, **QUICK)
    np.testing.assert_array_equal(done.obsm["mine"], adata.obsm["X_drsne"])


def test_h5ad_keeps_everything_that_it_can_hold(tmp_path):
    adata = cells()
    init = np.random.default_rng(0).normal(size=(N, 2))
    others = {"init": init, "random_state": np.random.RandomState(0), "callbacks": lambda *_: None}
    drsne.tl.drsne(adata, metric="manhattan", **others, **QUICK)
    assert not set(others) & set(adata.uns["drsne"]["params"])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_drsne"], adata.obsm["X_drsne"])
    np.testing.assert_array_equal(again.obs["drsne_concentration"], adata.obs["drsne_concentration"])
    assert again.uns["drsne"] == adata.uns["drsne"]


def test_the_weight_that_auto_chose_is_stored():
    adata = cells()
    drsne.tl.drsne(adata, density_weight="auto", max_trustworthiness_drop=1.0, **QUICK)
    assert adata.uns["drsne"]["density_weight"] > 0.0
    assert adata.uns["drsne"]["params"]["density_weight"] == "auto"


def test_a_view_becomes_actual():
    adata = cells()
    view = adata[: N - 10]
    with pytest.warns(anndata.ImplicitModificationWarning):
        drsne.tl.drsne(view, **QUICK)
    assert not view.is_view
    assert view.obsm["X_drsne"].shape == (N - 10, 2)
    assert "X_drsne" not in adata.obsm


def test_the_defaults_are_those_of_the_estimator():
    defaults = DRSNE().get_params()
    for function in (drsne.tl.drsne, drsne.tl.fit):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in defaults and name not in ("metric", "random_state"):  # None follows a graph; scanpy's is 0
                assert parameter.default == defaults[name]


@in_one_test(("use_rep", "n_pcs"), [("X", None), ("X_pca", 5), (None, 5), (None, 0)])
def test_what_is_asked_for_is_used(use_rep, n_pcs):
    adata = cells()
    drsne.tl.drsne(adata, use_rep=use_rep, n_pcs=n_pcs, **QUICK)
    whole = use_rep == "X" or n_pcs == 0
    X = adata.X if whole else adata.obsm["X_pca"][:, :n_pcs]
    np.testing.assert_array_equal(adata.obsm["X_drsne"], DRSNE(**QUICK, random_state=0).fit_transform(X))
    assert adata.uns["drsne"]["params"]["use_rep"] == ("X" if whole else "X_pca")


@in_one_test("kind", [np.asarray, sp.csr_matrix])
def test_missing_components_are_computed_and_reported(kind):
    adata = cells(n_pcs=0)
    adata.X = kind(adata.X)
    adata.var["highly_variable"] = np.arange(GENES) < 60
    with pytest.warns(UserWarning, match=r"50 principal components .* 60 highly variable genes"):
        drsne.tl.drsne(adata, **QUICK)
    params = adata.uns["drsne"]["params"]
    assert (params["use_rep"], params["n_pcs"], params["mask_var"]) == ("X", 50, "highly_variable")
    assert "X_pca" not in adata.obsm
    few = cells(n_genes=20)
    drsne.tl.drsne(few, **QUICK)  # few variables are used directly, as in scanpy
    assert few.uns["drsne"]["params"]["use_rep"] == "X"


def test_sparse_and_dense_data_give_the_same_map():
    maps = []
    kinds = [np.asarray, sp.csr_matrix, sp.csc_matrix]
    if ARRAYS:
        kinds.append(sp.csr_array)
    for kind in kinds:
        adata = cells()
        adata.X = kind(adata.X)
        drsne.tl.drsne(adata, use_rep="X", **QUICK)
        maps.append(adata.obsm["X_drsne"])
    for other in maps[2:]:
        np.testing.assert_array_equal(maps[1], other)
    near = [knn(Y, 10).indices for Y in maps[:2]]
    assert np.mean([len(set(a) & set(b)) for a, b in zip(*near, strict=True)]) > 6


def test_a_data_frame_in_obsm():
    adata = cells()
    adata.obsm["table"] = pd.DataFrame(adata.obsm["X_pca"], index=adata.obs_names).add_prefix("PC")
    drsne.tl.drsne(adata, use_rep="table", **QUICK)
    drsne.tl.drsne(adata, key_added="plain", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_drsne"], adata.obsm["plain"])


def test_what_is_not_anndata_or_too_few_cells():
    with pytest.raises(TypeError, match=r"AnnData.*got ndarray.*DRSNE\(\)\.fit"):
        drsne.tl.drsne(np.zeros((10, 3)))
    for n in (0, 2):
        with pytest.raises(ValueError, match=f"at least 3 cells; got {n}"):
            drsne.tl.drsne(cells()[:n].copy())
    with pytest.raises(ValueError, match="at least 1 cell; got 0"):
        drsne.tl.transform(cells()[:0].copy(), drsne.tl.fit(cells(), **QUICK))
    with pytest.raises(ValueError, match=r"neighbors_key.*sc\.pp\.neighbors"):
        drsne.tl.drsne(cells(), neighbors_key="mine")


@in_one_test(("place", "kind"), [("X", np.asarray), ("X_pca", sp.csr_matrix)])
def test_missing_values_are_located(place, kind):
    adata = cells()
    values = adata.X if place == "X" else adata.obsm[place]
    values[3, 4] = np.nan
    adata.obsm["mine"] = kind(values)
    adata.X = kind(adata.X)
    with pytest.raises(ValueError, match=r"adata\..*mine.* must be finite; got NaN in 1 of"):
        drsne.tl.drsne(adata, use_rep="mine")
    if place == "X":
        with pytest.raises(ValueError, match=r"adata\.X must be finite; got NaN in 1 of"):
            drsne.tl.drsne(adata, use_rep="X")


@in_one_test(
    ("changes", "error", "message"),
    [
        ({"use_rep": "X_pcaa"}, ValueError, "Did you mean 'X_pca'"),
        ({"n_pcs": PCS + 1}, ValueError, f"between 1 and {PCS}"),
        ({"n_pcs": 2.5}, ValueError, "n_pcs must be an integer"),
        ({"n_pcs": -1}, ValueError, "n_pcs must be an integer of at least 0"),
        ({"neighbors_key": "neighbours"}, ValueError, "Did you mean 'neighbors'"),
        ({"neighbors_key": 3}, TypeError, "neighbors_key must be"),
        ({"key_added": 3}, TypeError, "key_added must be"),
        ({"key_added": "X_pca"}, ValueError, "key_added must differ from use_rep"),
        ({"copy": "yes"}, TypeError, "copy must be True or False"),
        ({"use_repp": "X"}, TypeError, "Did you mean 'use_rep'"),
        ({"perplexty": 3}, TypeError, "Did you mean 'perplexity'"),
        ({"seed": 3}, TypeError, "Did you mean 'random_state'"),
        ({"neighbors": None}, TypeError, "neighbors_key"),
        ({"obsm": "X_pca"}, TypeError, "no parameter 'obsm'. Pass use_rep"),
        ({"pca_components": 5}, TypeError, "n_pcs"),
        ({"metric": "precomputed"}, ValueError, "metric must not be 'precomputed'"),
        ({"perplexity": "x"}, TypeError, "perplexity must be"),
    ],
)
def test_wrong_parameters(changes, error, message):
    adata = with_graph(cells(), 5)
    with pytest.raises(error, match=message):
        drsne.tl.drsne(adata, **changes)
    assert set(adata.obsm) == {"X_pca"}


def test_no_data_matrix():
    adata = cells()
    empty = anndata.AnnData(obs=adata.obs, obsm={"X_pca": adata.obsm["X_pca"]})
    drsne.tl.drsne(empty, **QUICK)
    assert empty.uns["drsne"]["params"]["use_rep"] == "X_pca"
    empty.obsm["cube"] = np.zeros((N, 3, 2))
    for use_rep, message in (("X", r"adata\.X"), ("cube", r"got shape \(150, 3, 2\)")):
        with pytest.raises(ValueError, match=message):
            drsne.tl.drsne(empty, use_rep=use_rep)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_backed_and_lazy_data(tmp_path, kind):
    adata = cells()
    adata.X = kind(adata.X)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    lazy = cells()
    lazy.X = pytest.importorskip("dask.array", reason="looks at lazy arrays").from_array(lazy.X)
    lazy.obsm["lazy"] = lazy.X
    for refused, use_rep in ((backed, "X"), (lazy, "X"), (lazy, "lazy")):
        with pytest.raises(ValueError, match=r"must be in memory.*to_memory"):
            drsne.tl.drsne(refused, use_rep=use_rep)
    for refused in ({"adata": backed, "copy": True}, {"adata": backed[:50]}):
        with pytest.raises(ValueError, match=r"backed.*to_memory"):
            drsne.tl.drsne(**refused)
    drsne.tl.drsne(backed, **QUICK)
    drsne.tl.drsne(adata, **QUICK)
    np.testing.assert_array_equal(backed.obsm["X_drsne"], adata.obsm["X_drsne"])
    backed.file.close()
