"""The commands that read and write files of users, run in this process: rows, columns, options and exit codes."""

from __future__ import annotations

import io
import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

pd = pytest.importorskip("pandas", reason="the commands read files with pandas")

from flowers import FAST, NAMES, failed, flowers, payload, runner, succeeded  # noqa: E402
from sklearn.neighbors import NearestNeighbors  # noqa: E402

import drsne  # noqa: E402
from drsne import DRSNE, DenSNE, metrics  # noqa: E402
from drsne.backends.numba.placement import NumbaPlacer  # noqa: E402
from drsne.estimators import memory  # noqa: E402


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flowers().to_csv("flowers.csv", index=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    return runner(capsys)


# What is written.


def test_dropped_columns_reach_no_output(folder, run):
    frame = flowers()
    frame.insert(0, "name", [f"secret{row}" for row in range(60)])
    frame["income, net"] = 12345.0 + np.arange(60)
    frame.to_csv("patients.csv", index=False)
    words = ["--drop", "name", "--drop", '"income, net"', "--explore", "p.html", "--model", "m.drsne", "-o", "o.npz"]
    succeeded(run("embed", "patients.csv", "--label", "species", *words, *FAST))
    page = payload("p.html")
    assert b"secret" not in page.content
    names = page.names
    assert set(NAMES) <= set(names)
    assert not {"name", "income, net"} & set(names)
    assert b"secret" not in (folder / "m.drsne").read_bytes()
    assert b"income" not in (folder / "m.drsne").read_bytes()
    assert not {"name", "income, net"} & set(np.load("o.npz").files)
    assert list(drsne.load("m.drsne").feature_names_in_) == NAMES


def test_dropped_columns_are_not_in_an_h5ad_file(folder, run):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    adata = _cells(anndata)
    adata.raw = adata.copy()
    adata.layers["counts"] = adata.X.copy()
    adata.obs["patient"] = [f"secret{row}" for row in range(60)]
    adata.write_h5ad("cells.h5ad")
    succeeded(run("embed", "cells.h5ad", "-o", "out.h5ad", "--drop", "patient,gene3", "--model", "m.drsne", *FAST))
    found = anndata.read_h5ad("out.h5ad")
    assert "patient" not in found.obs
    for names in (found.var_names, found.raw.var_names):
        assert "gene3" not in names
        assert len(names) == 29
    assert found.layers["counts"].shape == (60, 29)
    assert b"secret" not in (folder / "out.h5ad").read_bytes()
    assert "gene3" not in drsne.load("m.drsne").representation_["var_names"]


@pytest.mark.parametrize(("command", "name"), [("embed", "drsne1"), ("path", "drsne2_w1"), ("transform", "novelty")])
def test_a_label_never_replaces_a_column_of_the_map(folder, run, monkeypatch, command, name):
    words = ["flowers.csv", "-o", "o.csv", "--label", name, "--quiet"]
    if command == "transform":
        succeeded(run("embed", "flowers.csv", "--model", "m.drsne", *FAST))
        words.insert(0, "m.drsne")
    flowers().rename(columns={"species": name}).to_csv("flowers.csv", index=False)
    monkeypatch.setattr("drsne.estimators.drsne.DRSNE.fit", lambda *_: pytest.fail("the fit has begun"))
    failed(run(command, *words), f"two columns called {name!r}")


@pytest.mark.parametrize("kind", [DRSNE, DenSNE])
def test_neighbours_of_new_rows_are_searched_once(folder, run, monkeypatch, kind):
    searched = []

    def counting(X):
        def search(Q, k):
            searched.append(len(Q))
            distances, indices = NearestNeighbors().fit(X).kneighbors(Q, k)
            return indices.astype(np.int32), distances

        return search

    monkeypatch.setattr(NumbaPlacer, "dense_search", staticmethod(counting))
    model = kind(perplexity=8, max_iter=60, random_state=0).fit(flowers()[NAMES])
    model.save("m.drsne")
    new = flowers(n=20, seed=1)
    new.to_csv("new.csv", index=False)
    succeeded(run("transform", "m.drsne", "new.csv", "-o", "o.csv"))
    assert searched == [20]
    expected = {"drsne1": model.transform(new[NAMES])[:, 0], "drsne2": model.transform(new[NAMES])[:, 1]}
    if kind is DRSNE:
        expected["concentration_data"] = model.new_concentration(new[NAMES])
    expected["novelty"] = model.novelty(new[NAMES])
    found = pd.read_csv("o.csv", float_precision="round_trip")
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected), check_exact=True)


def test_a_missing_package_is_said_before_the_input_is_read(folder, run, monkeypatch):
    for option, name, package, extra in (
        ("--plot", "a.png", "matplotlib", "plot"),
        ("-o", "a.pq", "pyarrow", "files"),
        ("-o", "a.feather", "pyarrow", "files"),
        ("-o", "a.h5ad", "anndata", "anndata"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        failed(run("embed", "nothing.csv", option, name), package, f"pip install 'drsne[{extra}]'")


def test_formulas_for_spreadsheets_are_guarded(folder, run):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    kinds = ["=1+1", "+a", "-b", "@c", "\u200a=1", "\uff1d1", "plain", "a=b", "-1.5", "'=d"]
    frame = flowers()[NAMES].assign(**{"=kind": np.resize(kinds, 60)})
    frame.index = pd.Index([f"@{row}" for row in range(60)], name="row")
    frame.to_parquet("formulas.parquet")
    for output in ("o.csv", "o.tsv.gz", "-"):

        def written(*options, output=output):
            words = ["-o", output, "--label", "=kind", "--force", "--quiet", *options]
            out, _ = succeeded(run("embed", "formulas.parquet", *words, *FAST))
            separator = "\t" if "tsv" in output else ","
            return pd.read_csv(io.StringIO(out) if output == "-" else output, sep=separator, dtype=str)

        usual, safe = written(), written("--spreadsheet-safe")
        assert list(usual["=kind"][:10]) == kinds
        assert list(usual["row"][:2]) == ["@0", "@1"]
        assert list(safe["'=kind"][:10]) == [*(f"'{kind}" for kind in kinds[:6]), *kinds[6:]]
        assert list(safe["row"][:2]) == ["'@0", "'@1"]
        numbers = ["drsne1", "drsne2", "concentration_data", "concentration_map", "contrast"]
        pd.testing.assert_frame_equal(safe[numbers], usual[numbers])


def test_symbolic_links_that_lead_to_no_file(folder, run):
    for target in ("gone.csv", "link.csv"):
        (folder / "link.csv").unlink(missing_ok=True)
        try:
            (folder / "link.csv").symlink_to(target)
        except OSError:
            pytest.skip("this system has no symbolic links")
        for words in (
            ("embed", "link.csv", "-o", "o.csv"),
            ("transform", "link.csv", "flowers.csv", "-o", "o.csv"),
            ("evaluate", "flowers.csv", "link.csv", "--quiet"),
            ("explore", "link.csv", "-o", "o.html"),
        ):
            failed(run(*words), f"drsne: link.csv is a symbolic link to {target}")
        failed(run("embed", "flowers.csv", "-o", "link.csv"), "link.csv exists already")
    succeeded(run("embed", "flowers.csv", "-o", "link.csv", "--force", *FAST))
    assert len(pd.read_csv("link.csv")) == 60


# Interrupts.


def test_interrupts_keep_the_maps_that_are_known(folder, run, monkeypatch):
    from drsne.estimators import path

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    def third_is_stopped(*arguments, **options):
        calls.append(arguments)
        outcome = usual(*arguments, **options)
        return outcome._replace(stopped_by="interrupt") if len(calls) == 3 else outcome

    usual, calls = path.minimize, []
    words = ["path", "flowers.csv", "--weights", "0,1,3", "-o", "o.csv", "--explore", "p.html", "--plot", "p.png"]
    with monkeypatch.context() as patch:
        patch.setattr(path, "minimize", third_is_stopped)
        code, _, err = run(*words, *FAST)
        assert code == 130, err
        assert [name for name in pd.read_csv("o.csv") if name.startswith("drsne1")] == ["drsne1_w0", "drsne1_w1"]
        assert (folder / "p.html").exists()
    monkeypatch.setattr("drsne.metrics.evaluation.of_maps", interrupted)
    code, _, err = run(*words, "--force", *FAST)
    assert code == 130, err
    assert "p.png was not drawn" in err
    assert "drsne1_w3" in pd.read_csv("o.csv")
    monkeypatch.setattr("drsne.terms.problem.Problem.of_points", interrupted)
    code, _, err = run("embed", "flowers.csv", "-o", "m.csv", *FAST)
    assert code == 130, err
    assert pd.read_csv("m.csv")["concentration_map"].isna().all()


# Memory.


def test_a_fit_that_is_too_large_is_refused(folder, run, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    for command, more in (("embed", []), ("path", ["--weights", "0,1"])):
        words = [command, "flowers.csv", "-o", "o.csv", "--quiet", "--force", *more, *FAST]
        failed(run(*words), "60 rows and 3 columns", "--force-memory")
        succeeded(run(*words, "--force-memory"))


def test_data_that_are_in_memory_do_not_count_twice(folder, run, monkeypatch):
    """The free memory suffices for what a fit adds, but not for the data once more."""
    X = np.random.default_rng(0).normal(size=(300, 40_000)).astype(np.float32)
    np.save("wide.npy", X)
    added = drsne.memory_estimate(300, 40_000) - memory._BASE - 2 * X.size * 8
    monkeypatch.setattr(memory, "available", lambda: added + 1000)

    def fit(model, X):
        raise ValueError("the fit has begun")

    monkeypatch.setattr(drsne.DRSNE, "fit", fit)
    failed(run("embed", "wide.npy", "-o", "o.csv", "--quiet"), "the fit has begun")


# Warnings.


def test_only_our_warnings_are_shown(folder, run, monkeypatch):
    usual = drsne.DRSNE.fit

    def fit(model, *arguments):
        warnings.warn("of another package", UserWarning, stacklevel=1)
        return usual(model, *arguments)

    monkeypatch.setattr(drsne.DRSNE, "fit", fit)
    words = ["embed", "flowers.csv", "--iterations", "60", "--jobs", "1"]  # too few rows for the perplexity
    _, err = succeeded(run(*words, "-o", "a.csv"))
    assert "Lowered perplexity" in err
    assert "another package" not in err
    assert run(*words, "-o", "b.csv", "--quiet") == (0, "", "")


# Rows of maps.


def test_a_map_may_have_the_rows_that_were_left_out(folder, run):
    frame = flowers()
    frame.loc[[3, 58, 59], "width"] = np.nan  # the last rows, too
    frame.to_csv("gaps.csv", index=False)
    words = ["evaluate", "gaps.csv", "map.npy", "--quiet", "--skip-missing"]
    Y = np.random.default_rng(0).normal(size=(60, 2))
    kept = frame["width"].notna().to_numpy()
    expected = metrics.evaluate(frame.loc[kept, NAMES], Y[kept], random_state=0)
    for rows in (Y, Y[kept]):
        np.save("map.npy", rows)
        assert json.loads(succeeded(run(*words, "--json"))[0]) == pytest.approx(expected)
    for rows in (58, 59, 61):
        np.save("map.npy", np.resize(Y, (rows, 2)))
        failed(run(*words), f"has {rows} rows", "has 60, of which 57 are complete")


def test_scores_that_are_not_defined_are_null(folder, run, monkeypatch):
    monkeypatch.setattr(metrics, "evaluate", lambda *_, **__: {"trustworthiness": 0.5, "stress": float("nan")})
    np.save("map.npy", np.zeros((60, 2)))
    out, _ = succeeded(run("evaluate", "flowers.csv", "map.npy", "--json", "--quiet"))
    assert json.loads(out, parse_constant=lambda word: pytest.fail(word)) == {"trustworthiness": 0.5, "stress": None}


def test_side_columns_of_a_map_may_have_gaps(folder, run):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["UMAP_1", "UMAP_2"])
    frame["age"] = np.where(np.arange(60) % 3, 1.5, np.nan)
    frame.to_csv("umap.csv", index=False)
    succeeded(run("evaluate", "flowers.csv", "umap.csv", "--quiet"))
    succeeded(run("explore", "umap.csv", "-o", "p.html"))


def test_a_matrix_that_embed_wrote_is_a_map(folder, run):
    _, err = succeeded(run("embed", "flowers.csv", "-o", "map.npy", "--model", "m.drsne", "--label", "species", *FAST))
    assert "'species' is not in it" in err
    assert np.load("map.npy").shape == (60, 5)
    np.testing.assert_array_equal(np.load("map.npy")[:, :2], drsne.load("m.drsne").embedding_)
    _, err = succeeded(run("evaluate", "flowers.csv", "map.npy"))
    assert "Scoring the columns x1, x2 of map.npy." in err
    np.save("six.npy", np.zeros((60, 6)))
    failed(run("evaluate", "flowers.csv", "six.npy", "--quiet"), "--map-columns")
    succeeded(run("evaluate", "flowers.csv", "map.npy", "--map-columns", "x3,x4"))
    failed(run("evaluate", "flowers.csv", "map.npy", "--quiet", "--map-columns", "x3,x9"), "'x9'")


def test_the_output_of_a_path_can_be_read_again(folder, run):
    succeeded(run("path", "flowers.csv", "--weights", "0,0.3,1", "-o", "maps.npz", *FAST))
    failed(run("evaluate", "flowers.csv", "maps.npz", "--quiet"), "3 weights", "--map-columns drsne1_w0,drsne2_w0")
    succeeded(run("evaluate", "flowers.csv", "maps.npz", "--map-columns", "drsne1_w0.3,drsne2_w0.3"))


# New rows.


def test_the_label_may_be_a_column_of_the_model(folder, run):
    succeeded(run("embed", "flowers.csv", "--model", "m.drsne", *FAST))
    succeeded(run("transform", "m.drsne", "flowers.csv", "-o", "o.csv", "--label", "width"))
    np.testing.assert_allclose(pd.read_csv("o.csv")["width"], flowers()["width"], rtol=1e-12)


def _cells(anndata, sparse=True):
    """Return cells with 30 genes."""
    counts = np.random.default_rng(0).poisson(1.0, (60, 30)).astype(np.float32)
    adata = anndata.AnnData(sp.csr_matrix(counts) if sparse else counts)
    adata.var_names = [f"gene{place}" for place in range(30)]
    adata.obs_names = [f"cell{row}" for row in range(60)]
    return adata


@pytest.mark.parametrize("sparse", [False, True])
def test_new_cells_are_placed_by_the_names_of_their_genes(folder, run, sparse):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    old = _cells(anndata, sparse)
    old.write_h5ad("old.h5ad")
    succeeded(run("embed", "old.h5ad", "--model", "m.drsne", "-o", "map.csv", *FAST))
    # With more than 50 variables, X_pca would be the default representation.
    more = anndata.AnnData(np.ones((60, 40), np.float32), obs=old.obs[[]])
    more.var_names = [f"other{place}" for place in range(40)]
    new = anndata.concat([more, old[:, ::-1]], axis=1)
    new.obsm["X_pca"] = np.random.default_rng(1).normal(size=(60, 30))
    new.write_h5ad("new.h5ad")
    succeeded(run("transform", "m.drsne", "new.h5ad", "-o", "placed.csv"))
    placed, known = pd.read_csv("placed.csv"), pd.read_csv("map.csv")
    np.testing.assert_allclose(placed[["drsne1", "drsne2"]], known[["drsne1", "drsne2"]], rtol=1e-6)
    assert (placed["novelty"] == 0).all()
    failed(run("transform", "m.drsne", "new.h5ad", "-o", "x.csv", "--use-rep", "X_pca"), "--use-rep must be X", code=2)
    new[:, 5:].copy().write_h5ad("less.h5ad")
    old[:, 5:].copy().write_h5ad("less.h5ad")
    failed(run("transform", "m.drsne", "less.h5ad", "-o", "x.csv", "--quiet"), "gene0")


def test_a_model_of_components_needs_the_same_components(folder, run):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    adata = _cells(anndata)
    adata.obsm["X_pca"] = np.random.default_rng(1).normal(size=(60, 10))
    adata.write_h5ad("old.h5ad")
    succeeded(run("embed", "old.h5ad", "--use-rep", "X_pca", "--model", "m.drsne", *FAST))
    succeeded(run("transform", "m.drsne", "old.h5ad", "-o", "a.csv"))
    assert (pd.read_csv("a.csv")["novelty"] == 0).all()
    adata.obsm["X_pca"] = adata.obsm["X_pca"][:, :9]
    adata.write_h5ad("new.h5ad")
    failed(run("transform", "m.drsne", "new.h5ad", "-o", "b.csv", "--quiet"), "10 columns")
    drsne.DRSNE(perplexity=8, density_neighbors=8, max_iter=60).fit(adata.obsm["X_pca"]).save("plain.drsne")
    failed(run("transform", "plain.drsne", "new.h5ad", "-o", "c.csv", "--quiet"), "--use-rep")
    succeeded(run("transform", "plain.drsne", "new.h5ad", "-o", "c.csv", "--use-rep", "X_pca"))


def test_commands_compute_the_components_that_they_announce(folder, run, monkeypatch):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    anndata.AnnData(np.random.default_rng(0).normal(size=(60, 80)).astype(np.float32)).write_h5ad("cells.h5ad")
    seen = []

    def stop(shape, params, stored):
        seen.append(params["pca_components"])
        raise ValueError("stopped")

    monkeypatch.setattr(memory, "shortage", stop)
    for command in ("embed", "path"):
        code, _, err = run(command, "cells.h5ad", "-o", "o.csv", *FAST)
        assert code == 1
        assert "50 principal components of adata.X" in err
    assert seen == [50, 50]


def test_scaling_of_sparse_data_is_refused(folder, run):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    _cells(anndata).write_h5ad("cells.h5ad")
    failed(run("embed", "cells.h5ad", "-o", "o.csv", "--scale", "--quiet"), "--scale cannot be used with sparse data")


# Files that cannot be read.


def test_a_file_without_permission(folder, run, monkeypatch):
    from pathlib import Path

    usual = Path.open

    def refused(path, *arguments, **options):
        if path.name == "flowers.csv":
            raise PermissionError(13, "Permission denied")
        return usual(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refused)
    failed(run("embed", "flowers.csv", "-o", "o.csv"), "flowers.csv cannot be read", "permission denied")


def test_a_map_from_standard_input(folder, run, monkeypatch):
    text = "UMAP_1,UMAP_2\n" + "".join(f"{row},{row**2}\n" for row in range(60))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    succeeded(run("explore", "-", "-o", "p.html"))
    assert (folder / "p.html").exists()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    succeeded(run("evaluate", "flowers.csv", "-", "--quiet"))
    succeeded(run("embed", "flowers.csv", "--model", "m.drsne", *FAST))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO((folder / "m.drsne").read_bytes())))
    failed(run("explore", "-", "-o", "q.html"), "cannot be read from standard input")
