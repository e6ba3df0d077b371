"""DR-SNE of AnnData objects: what is read, what is written, and what is refused."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import in_one_test
from on_cells import GENES, PCS, QUICK, N, anndata, cells, with_graph

import drsne.tl
from drsne import DRSNE
from drsne.neighbors.search import knn


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


def test_dense_cells_have_a_larger_concentration():
    adata = cells()
    drsne.tl.drsne(adata, **QUICK)
    for column in ("drsne_concentration", "drsne_concentration_map"):
        values = adata.obs[column].to_numpy()
        assert values[: N // 2].mean() > values[N // 2 :].mean() + 0.3


def test_key_added_is_used_verbatim():
    adata = cells()
    drsne.tl.drsne(adata, key_added="mine", **QUICK)
    assert set(adata.obsm) == {"X_pca", "mine"}
    assert list(adata.obs) == ["mine_concentration", "mine_concentration_map"]
    assert set(adata.uns) == {"mine"}


def test_a_copy_leaves_the_original_unchanged():
    adata = cells()
    done = drsne.tl.drsne(adata, copy=True, **QUICK)
    assert "X_drsne" in done.obsm
    assert set(adata.obsm) == {"X_pca"}
    assert not len(adata.obs.columns)
    assert not adata.uns
    drsne.tl.drsne(adata, **QUICK)
    np.testing.assert_array_equal(done.obsm["X_drsne"], adata.obsm["X_drsne"])


def test_h5ad_keeps_everything(tmp_path):
    adata = cells()
    drsne.tl.drsne(adata, metric="manhattan", **QUICK)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_drsne"], adata.obsm["X_drsne"])
    np.testing.assert_array_equal(again.obs["drsne_concentration"], adata.obs["drsne_concentration"])
    assert again.uns["drsne"] == adata.uns["drsne"]


def test_parameters_that_h5ad_cannot_hold_are_left_out(tmp_path):
    adata = cells()
    init = np.random.default_rng(0).normal(size=(N, 2))
    drsne.tl.drsne(adata, init=init, random_state=np.random.RandomState(0), callbacks=lambda *_: None, **QUICK)
    assert not {"init", "random_state", "callbacks"} & set(adata.uns["drsne"]["params"])
    adata.write_h5ad(tmp_path / "cells.h5ad")


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


@pytest.mark.parametrize(("use_rep", "n_pcs"), [("X", None), ("X_pca", None), ("X_pca", 5), (None, 5), (None, 0)])
def test_what_is_asked_for_is_used(use_rep, n_pcs):
    adata = cells()
    drsne.tl.drsne(adata, use_rep=use_rep, n_pcs=n_pcs, **QUICK)
    whole = use_rep == "X" or n_pcs == 0
    X = adata.X if whole else adata.obsm["X_pca"][:, :n_pcs]
    np.testing.assert_array_equal(adata.obsm["X_drsne"], DRSNE(**QUICK, random_state=0).fit_transform(X))
    assert adata.uns["drsne"]["params"]["use_rep"] == ("X" if whole else "X_pca")


def test_few_variables_are_used_directly_as_in_scanpy():
    adata = cells(n_genes=20)
    drsne.tl.drsne(adata, **QUICK)
    assert adata.uns["drsne"]["params"]["use_rep"] == "X"


@pytest.mark.parametrize("sparse", [False, True])
def test_missing_components_are_computed_and_reported(sparse):
    adata = cells(n_pcs=0)
    adata.X = sp.csr_matrix(adata.X) if sparse else adata.X
    adata.var["highly_variable"] = np.arange(GENES) < 60
    with pytest.warns(UserWarning, match=r"50 principal components .* 60 highly variable genes"):
        drsne.tl.drsne(adata, **QUICK)
    params = adata.uns["drsne"]["params"]
    assert (params["use_rep"], params["n_pcs"], params["mask_var"]) == ("X", 50, "highly_variable")
    assert "X_pca" not in adata.obsm


def test_sparse_and_dense_data_give_the_same_map():
    maps = []
    for kind in (np.asarray, sp.csr_matrix, sp.csc_matrix):
        adata = cells()
        adata.X = kind(adata.X)
        drsne.tl.drsne(adata, use_rep="X", **QUICK)
        maps.append(adata.obsm["X_drsne"])
    np.testing.assert_array_equal(maps[1], maps[2])
    near = [knn(Y, 10).indices for Y in maps[:2]]
    assert np.mean([len(set(a) & set(b)) for a, b in zip(*near, strict=True)]) > 6


def test_sparse_arrays():
    pytest.importorskip("anndata", minversion="0.11", reason="older versions refuse sparse arrays")
    adata = cells()
    for kind, key in ((sp.csr_matrix, "matrix"), (sp.csr_array, "array")):
        adata.X = kind(adata.X)
        drsne.tl.drsne(adata, use_rep="X", key_added=key, **QUICK)
    np.testing.assert_array_equal(adata.obsm["matrix"], adata.obsm["array"])


def test_a_data_frame_in_obsm():
    adata = cells()
    adata.obsm["table"] = pd.DataFrame(adata.obsm["X_pca"], index=adata.obs_names).add_prefix("PC")
    drsne.tl.drsne(adata, use_rep="table", **QUICK)
    drsne.tl.drsne(adata, key_added="plain", **QUICK)
    np.testing.assert_array_equal(adata.obsm["X_drsne"], adata.obsm["plain"])


def test_what_is_not_anndata():
    with pytest.raises(TypeError, match=r"AnnData.*got ndarray.*DRSNE\(\)\.fit"):
        drsne.tl.drsne(np.zeros((10, 3)))


@in_one_test("n", [0, 2])
def test_too_few_cells(n):
    with pytest.raises(ValueError, match=f"at least 3 cells; got {n}"):
        drsne.tl.drsne(cells()[:n].copy())
    model = drsne.tl.fit(cells(), **QUICK)
    with pytest.raises(ValueError, match="at least 1 cell; got 0"):
        drsne.tl.transform(cells()[:0].copy(), model)


@pytest.mark.parametrize("place", ["X", "X_pca"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_missing_values_are_located(place, kind):
    adata = cells()
    if place == "X":
        adata.X[3, 4] = np.nan
        adata.X = kind(adata.X)
    else:
        adata.obsm[place][3, 4] = np.nan
        adata.obsm[place] = kind(adata.obsm[place])
    with pytest.raises(ValueError, match=rf"adata\..*{place}.* must be finite; got NaN in 1 of"):
        drsne.tl.drsne(adata, use_rep=place)


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


def test_a_graph_that_is_not_there():
    with pytest.raises(ValueError, match=r"neighbors_key.*sc\.pp\.neighbors"):
        drsne.tl.drsne(cells(), neighbors_key="mine")


def test_no_data_matrix():
    adata = cells()
    empty = anndata.AnnData(obs=adata.obs, obsm={"X_pca": adata.obsm["X_pca"]})
    drsne.tl.drsne(empty, **QUICK)
    assert empty.uns["drsne"]["params"]["use_rep"] == "X_pca"
    with pytest.raises(ValueError, match=r"adata\.X"):
        drsne.tl.drsne(empty, use_rep="X")


def test_an_array_of_more_dimensions():
    adata = cells()
    adata.obsm["cube"] = np.zeros((N, 3, 2))
    with pytest.raises(ValueError, match=r"got shape \(150, 3, 2\)"):
        drsne.tl.drsne(adata, use_rep="cube")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_backed_data(tmp_path, kind):
    adata = cells()
    adata.X = kind(adata.X)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"must be in memory.*to_memory"):
        drsne.tl.drsne(backed, use_rep="X")
    for refused in ({"adata": backed, "copy": True}, {"adata": backed[:50]}):
        with pytest.raises(ValueError, match=r"backed.*to_memory"):
            drsne.tl.drsne(**refused)
    drsne.tl.drsne(backed, **QUICK)
    drsne.tl.drsne(adata, **QUICK)
    np.testing.assert_array_equal(backed.obsm["X_drsne"], adata.obsm["X_drsne"])
    backed.file.close()


def test_dask_arrays():
    dask = pytest.importorskip("dask.array", reason="looks at lazy arrays")
    adata = cells()
    adata.obsm["lazy"], adata.X = dask.from_array(adata.obsm["X_pca"]), dask.from_array(adata.X)
    for use_rep in ("lazy", "X"):
        with pytest.raises(ValueError, match=r"must be in memory.*to_memory"):
            drsne.tl.drsne(adata, use_rep=use_rep)


def test_without_anndata(monkeypatch):
    adata = cells()
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r"pip install 'drsne\[anndata\]'"):
        drsne.tl.drsne(adata)


@pytest.mark.slow
def test_the_module_does_not_import_scanpy_or_anndata():
    code = "import sys, drsne.tl; print(sorted({'anndata', 'scanpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
