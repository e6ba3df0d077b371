"""The pages that commands write: their payloads are unpacked and compared with the data."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the commands read files with pandas")

from flowers import FAST, payload  # noqa: E402

import drsne  # noqa: E402
from drsne import cli  # noqa: E402
from drsne.cli import _files  # noqa: E402
from drsne.explorer.columns import DATA, MAP, RESIDUAL  # noqa: E402

QUIET = [*FAST, "--quiet"]
NAMES = ["petal length", "petal width", "sepal length"]


@pytest.fixture
def iris(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)) * (1, 2, 3), columns=NAMES)
    frame["species"] = np.where(np.arange(60) % 2, "setosa", "virginica")
    frame["label"] = [f"plant {row}" for row in range(60)]
    frame.to_csv("iris.csv", index=False)
    return frame


def page(*words):
    assert cli.main([*words, *([] if words[0] == "explore" else FAST)]) == 0
    return payload(words[words.index("--explore") + 1] if "--explore" in words else words[words.index("-o") + 1])


def test_a_page_has_the_label_by_its_name_and_all_columns(iris):
    found = page("embed", "iris.csv", "--label", "species", "--explore", "p.html", "--model", "m.drsne")
    assert found.names[found.meta["label"]] == "species"
    assert found.column("species") == list(iris["species"])
    assert found.column("label") == list(iris["label"])  # another column may have the usual name of the label
    for name in NAMES:
        np.testing.assert_array_equal(found.column(name), iris[name])
    model = drsne.load("m.drsne")
    expected = model.concentration_ - model.contrast_ * model.input_concentration_
    np.testing.assert_allclose(found.column(RESIDUAL), expected - np.median(expected), atol=1e-5)


def test_a_page_has_only_some_of_many_columns(iris, monkeypatch, capsys):
    monkeypatch.setattr(_files, "_MOST_COLUMNS", 2)
    words = ["embed", "iris.csv", "--explore", "p.html", *FAST]
    assert cli.main(words) == 0
    assert set(NAMES) & set(payload("p.html").names) == set(NAMES[:2])
    assert "the first 2 of the 3 columns" in capsys.readouterr().err


def test_a_page_names_rows_by_their_numbers_in_the_file(iris):
    iris.loc[[2, 30], "petal width"] = np.nan
    iris.to_csv("gaps.csv", index=False)
    found = page("embed", "gaps.csv", "--skip-missing", "--explore", "p.html")
    assert found.meta["names"] == [str(row) for row in range(60) if row not in (2, 30)]
    assert found.column("label") == [f"plant {row}" for row in range(60) if row not in (2, 30)]


def test_a_page_has_the_reliability(iris):
    iris.rename(columns={"petal width": "reliability"}).to_csv("iris.csv", index=False)
    found = page("embed", "iris.csv", "--explore", "p.html", "--model", "m.drsne", "--reliability")
    np.testing.assert_array_equal(found.column("reliability"), iris["petal width"])  # a column of the data
    expected = drsne.metrics.reliability(drsne.load("m.drsne"))
    np.testing.assert_allclose(found.column("reliability of the position"), expected, atol=1e-5)
    assert "reliability of the position" not in page("embed", "iris.csv", "--explore", "q.html").names


def test_a_page_of_a_path_has_concentrations_and_residuals(iris):
    found = page("path", "iris.csv", "--weights", "0,1,100", "--explore", "p.html", "-o", "maps.csv")
    maps = pd.read_csv("maps.csv")
    np.testing.assert_allclose(found.column(DATA), maps["concentration_data"], atol=1e-6)
    path = drsne.density_path(
        iris[NAMES], [0, 1, 100], perplexity=8, density_neighbors=8, max_iter=60, random_state=0, n_jobs=1
    )
    assert path.contrasts.tolist()[2] == 1.0
    for at, contrast in enumerate(path.contrasts):
        expected = found.column(MAP, at) - contrast * path.input_concentration
        np.testing.assert_allclose(found.column(RESIDUAL, at), expected - np.median(expected), atol=2e-3)
    # The table of the path has the same page, but no scores.
    again = page("explore", "maps.csv", "-o", "q.html")
    assert [each["title"] for each in again.meta["maps"]] == ["λ = 0", "λ = 1", "λ = 100"]
    for at in range(3):
        np.testing.assert_allclose(again.column(RESIDUAL, at), found.column(RESIDUAL, at), atol=2e-3)
        for axis in "xy":
            numbers = (each.meta["maps"][at][axis] for each in (again, found))
            np.testing.assert_array_equal(*(each.arrays[n] for each, n in zip((again, found), numbers, strict=True)))


def test_the_concentrations_of_a_map_file_become_a_residual(iris):
    first = page("embed", "iris.csv", "--label", "species", "--explore", "p.html", "-o", "map.csv")
    found = page("explore", "map.csv", "--label", "species", "-o", "q.html")
    assert found.names[found.meta["label"]] == "species"
    assert "concentration_data" not in found.names
    for name in (DATA, MAP, RESIDUAL):
        np.testing.assert_allclose(found.column(name), first.column(name), atol=1e-5)


def test_several_maps_on_one_page(iris):
    page("embed", "iris.csv", "--explore", "p.html", "-o", "map.csv", "--model", "m.drsne")
    umap = pd.DataFrame({"UMAP_1": np.arange(60.0), "UMAP_2": np.arange(60.0) ** 2, "day": np.arange(60.0)})
    umap.to_csv("umap.csv", index=False)
    found = page("explore", "umap.csv", "map.csv", "m.drsne", "--label", "day", "-o", "q.html")
    assert [each["title"] for each in found.meta["maps"]] == ["umap", "map", "m"]
    assert found.column("day") == [str(row) for row in range(60)]
    umap[:50].to_csv("umap.csv", index=False)
    assert cli.main(["explore", "m.drsne", "umap.csv", "-o", "r.html"]) == 1


def test_the_map_of_an_h5ad_file(iris):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    adata = anndata.AnnData(iris[NAMES].to_numpy())
    adata.obs_names = iris["label"]
    adata.obs["kind"] = pd.Categorical(iris["species"])
    adata.obsm["X_umap"] = np.c_[np.arange(60.0), np.arange(60.0) ** 2]
    adata.write_h5ad("cells.h5ad")
    first = page("embed", "cells.h5ad", "--explore", "p.html", "-o", "out.h5ad")
    found = page("explore", "out.h5ad", "--label", "kind", "-o", "q.html")
    assert found.meta["names"] == list(iris["label"])
    assert found.column("kind") == list(iris["species"])
    np.testing.assert_array_equal(*(each.arrays[each.meta["maps"][0]["x"]] for each in (first, found)))
    np.testing.assert_allclose(found.column(RESIDUAL), first.column(RESIDUAL), atol=1e-5)
    other = page("explore", "out.h5ad", "--use-rep", "X_umap", "-o", "r.html")
    placed = other.arrays[other.meta["maps"][0]["x"]]
    assert (np.diff(placed.astype(float)) >= 0).all()
    assert cli.main(["evaluate", "out.h5ad", "out.h5ad", "--use-rep", "X", "--map-rep", "X_umap", "--quiet"]) == 0


def test_pages_of_files_that_lack_something(iris, capsys):
    assert cli.main(["embed", "iris.csv", "--model", "m.drsne", *QUIET]) == 0
    assert cli.main(["explore", "m.drsne", "--label", "species"]) == 2
    assert "--label cannot be used with m.drsne" in capsys.readouterr().err
    assert page("explore", "m.drsne", "-o", "p.html").meta["title"] == "m"
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    adata = anndata.AnnData(iris[NAMES].to_numpy())
    adata.obsm["X_umap"] = np.zeros((60, 2))
    adata.write_h5ad("cells.h5ad")
    capsys.readouterr()
    assert cli.main(["explore", "cells.h5ad"]) == 1
    err = capsys.readouterr().err
    assert "'X_umap'" in err
    assert "--use-rep" in err


def test_columns_can_be_left_out_of_a_page_of_maps(iris, capsys):
    frame = pd.DataFrame({"x": np.arange(9.0), "y": np.arange(9.0), "kind": "a", "name": "secret"})
    frame.to_csv("map.csv", index=False)
    assert "name" in page("explore", "map.csv", "-o", "p.html").names
    assert "name" not in page("explore", "map.csv", "--drop", "name", "-o", "q.html").names
    for words, meant in ((["--drop", "names"], "name"), (["--label", "king"], "kind")):
        assert cli.main(["explore", "map.csv", *words]) == 1
        assert f"Did you mean '{meant}'?" in capsys.readouterr().err
