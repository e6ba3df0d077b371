"""The data are the ones they claim to be: counts, formulas, and the paper's figures that depend on nothing else."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
from at_hand import need
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors

from drsne_paper import datasets
from drsne_paper.datasets import recipes
from drsne_paper.datasets._cache import data_home


def centroid_distance(X):
    return np.linalg.norm(X - X.mean(axis=0), axis=1)


COUNTS = {
    "digits": [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
    "gaussians50": [1250] * 4,
    "controlled_clusters": [1667, 1667, 1666],
    "spiral": [4749, 251],
}
FILE_COUNTS = {
    "fashion_mnist": [7000] * 10,
    "mnist": [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958],
    "shuttle": [45586, 50, 171, 8903, 3267, 10, 13],
    "thyroid": [3480, 291],
    "cifar10": [476, 487, 527, 523, 486, 504, 485, 509, 503, 500],
    "covertype": [283301, 2747],
}


@pytest.mark.parametrize("name", [*COUNTS, *FILE_COUNTS])
def test_class_counts(name):
    if name in FILE_COUNTS:
        need(name)
    values, counts = np.unique(datasets.load(name).y, return_counts=True)
    assert counts.tolist() == {**COUNTS, **FILE_COUNTS}[name]
    assert values[0] == (1 if name == "shuttle" else 0)


def test_pbmc_counts_and_labels(tmp_path):
    pytest.importorskip("h5py", reason="pbmc3k is read by h5py")
    need("pbmc3k")
    data = datasets.load("pbmc3k")
    assert data.X.shape == (2700, 32738)
    assert data.X.dtype == np.float32
    assert data.X.nnz == 2_286_884
    assert data.X.sum(dtype=np.float64) == 6_390_631
    if data.y is not None:
        labels = dict(zip(*np.unique(data.y, return_counts=True), strict=True))
        assert labels["Naive CD4 T"] == 697
        assert labels["Platelet"] == 14
        assert labels["not annotated"] == 62
        assert "Seurat" in data.description
    (tmp_path / "pbmc3k_raw.h5ad").symlink_to(data_home() / "pbmc3k_raw.h5ad")
    alone = datasets.load("pbmc3k", data_home=tmp_path)
    assert alone.y is None
    assert "pbmc3k_annotations.csv" in alone.description
    (tmp_path / "pbmc3k_annotations.csv").write_text("barcode,seurat_annotations\nAAACATACAACCAC-1,B\n")
    with pytest.raises(datasets.CorruptFileError, match=r"pbmc3k_annotations.csv .*checksum"):
        datasets.load("pbmc3k", data_home=tmp_path)


def test_clusters_have_the_stated_spread():
    data = datasets.load("controlled_clusters", n_samples=30000)
    for c, (centre, sigma) in enumerate(zip([(-6, 0, 0), (0, 6, 0), (6, 0, 0)], (0.2, 0.5, 1.0), strict=True)):
        part = data.X[data.y == c]
        assert np.allclose(part.mean(axis=0), centre, atol=5 * sigma / np.sqrt(len(part)))
        assert np.allclose(part.std(axis=0), sigma, rtol=0.03)


def test_gaussians_have_the_stated_spread():
    data = datasets.load("gaussians50")
    spread = [data.X[data.y == c].var(axis=0).mean() for c in range(4)]
    assert np.allclose(spread, [0.2, 0.8, 1.4, 2.0], rtol=0.02)
    centres = np.array([data.X[data.y == c].mean(axis=0) for c in range(4)])
    assert 4.0 < centres.std() < 6.0
    assert len(set(data.y[:100])) == 4  # shuffled


def test_helix_lies_on_its_curve_and_thins_out():
    data = datasets.load("helix", n_samples=200_000)  # enough to tell a decay of 3 from 2.9
    u = data.X[:, 2] / 0.35 / (8 * np.pi)
    residual = data.X[:, :2] - np.column_stack([np.cos(8 * np.pi * u), np.sin(8 * np.pi * u)])
    # Noise in z moves the angle by 1 / 0.35 of it, which adds to that in x and y: 2 + 1 / 0.35^2 variances.
    assert np.isclose((residual**2).sum(axis=1).mean(), 0.025**2 * (2 + 1 / 0.35**2), rtol=0.02)
    counts = np.bincount(data.y, minlength=10)
    assert data.y.max() == 9
    edges = 1 - np.exp(-3 * np.linspace(0, 1, 11))
    expected = 200_000 * np.diff(edges) / edges[-1]
    assert (np.abs(counts - expected) < 4.5 * np.sqrt(expected)).all()
    inside = np.abs(10 * u - np.round(10 * u)) > 0.1  # away from the borders, which noise blurs
    assert np.array_equal(data.y[inside], np.clip(np.floor(10 * u[inside]), 0, 9).astype(int))


def test_draws_are_the_papers():
    need("fashion_mnist")
    whole, some = datasets.load("fashion_mnist"), datasets.load("fashion_mnist", n_samples=5000)
    rows = np.random.RandomState(42).choice(70000, 5000, replace=False)
    assert some.X.shape == (5000, 784)
    assert np.array_equal(some.X, whole.X[rows])
    assert np.array_equal(some.y, whole.y[rows])


# AUPRC in the data themselves, from the paper's result files: distance to the mean, or, for the spiral, the sum of
# distances to 50 neighbours. They depend on every row, so a loader that reproduces them is right.
def test_shuttle_gives_the_papers_score():
    need("shuttle")
    data = recipes.shuttle_sample()
    assert data.X.shape == (5000, 9)
    assert data.y.sum() == 1070
    assert abs(average_precision_score(data.y, centroid_distance(recipes.standardise(data.X))) - 0.609) < 1e-3


def test_thyroid_gives_the_papers_score():
    need("thyroid")
    data = datasets.load("thyroid")
    assert abs(average_precision_score(data.y, centroid_distance(recipes.standardise(data.X))) - 0.1029) < 1e-3


def test_fashion_anomalies_give_the_papers_score():
    need("fashion_mnist")
    data = recipes.fashion_anomalies()
    assert data.X.shape == (5000, 784)
    assert data.y.tolist() == [0] * 4500 + [1] * 500
    assert abs(average_precision_score(data.y, centroid_distance(recipes.standardise(data.X))) - 0.459) < 1e-3


def test_airplanes_are_the_anomalies_of_cifar10(monkeypatch):
    need("cifar10")
    data = recipes.cifar10_anomalies()
    classes = datasets.load("cifar10")
    assert np.array_equal(data.X, classes.X)
    assert np.array_equal(data.y, classes.y == 0)
    assert data.y.sum() == 476
    X, y = np.random.RandomState(0).randn(200, 60), np.arange(200) % 10
    wide = datasets.Data(X=X, y=y, name="cifar10_resnet50", description="Wide.", source="here")
    monkeypatch.setattr(recipes.anomalies, "load", lambda name, data_home: {"cifar10_resnet50": wide}[name])
    reduced = recipes.cifar10_anomalies("cifar10_resnet50")
    assert np.array_equal(reduced.X, recipes.pca(recipes.standardise(wide.X)))
    assert reduced.y.sum() == 20
    assert "50 principal components" in reduced.description
    with pytest.raises(ValueError, match=r"name must .* got 'cifar100'"):
        recipes.cifar10_anomalies("cifar100")


def test_spiral_gives_the_papers_score():
    data = datasets.load("spiral")
    X = recipes.standardise(data.X)
    distances, _ = NearestNeighbors(n_neighbors=51).fit(X).kneighbors(X)
    assert abs(average_precision_score(data.y, distances[:, 1:].sum(axis=1)) - 0.689) < 1e-3


PAPER = {
    "digits": (1797, 64),
    "fashion_mnist": (5000, 784),
    "mnist": (5000, 784),
    "gaussians50": (5000, 50),
    "shuttle": (5000, 9),
    "controlled_clusters": (5000, 3),
    "helix": (5000, 3),
}


@pytest.mark.parametrize("name", PAPER)
def test_rows_of_the_papers_table(name):
    if name in FILE_COUNTS:
        need(name)
    data = recipes.paper(name)
    assert data.name == name
    assert data.X.shape == PAPER[name]
    assert data.y.shape == PAPER[name][:1]
    mean, deviation = data.X.mean(axis=0, dtype=np.float64), data.X.std(axis=0, dtype=np.float64)
    scaled = np.allclose(mean, 0, atol=1e-5) and np.allclose(deviation[deviation > 0], 1, atol=1e-5)
    assert scaled == (name not in ("controlled_clusters", "helix"))
    assert scaled == ("tandardised" in data.description)
    assert data.X.dtype == (np.float32 if name == "shuttle" else np.float64)
    if name == "shuttle":
        assert np.bincount(data.y).tolist() == [3930, 1070]


def test_pbmc_of_the_papers_table():
    for package in ("h5py", "scanpy", "leidenalg"):
        pytest.importorskip(package, reason=f"the PBMC recipe needs {package}")
    need("pbmc3k")
    data = recipes.paper("pbmc3k")
    assert data.X.shape == (2700, 50)
    variances = data.X.var(axis=0)
    assert (np.diff(variances) <= 0).all()  # components in order, not rescaled
    assert variances[0] > 10 * variances[-1]
    assert "louvain clusters" in data.description
    sizes = np.sort(np.bincount(data.y))[::-1]  # in the paper 1188, 463, 456, 354, 188, 34 and 17
    assert 6 <= len(sizes) <= 8
    assert abs(sizes[0] - 1188) < 50


def test_pbmc_clusters_are_asked_for_as_in_the_paper(monkeypatch):
    """With a clustering of ours in place of the real one, which is not among the packages of the tests."""
    for package in ("h5py", "scanpy"):
        pytest.importorskip(package, reason=f"the PBMC recipe needs {package}")
    need("pbmc3k")
    import scanpy

    asked = {}

    def leiden(cells, *, resolution, random_state, **by):
        asked.update(resolution=resolution, random_state=random_state, graph=cells.obsp["connectivities"].shape, **by)
        asked["n_neighbors"] = cells.uns["neighbors"]["params"]["n_neighbors"]
        sizes = np.repeat(["0", "1", "2", "3"], [2000, 670, 20, 10])
        cells.obs["leiden"] = scanpy.AnnData(obs={"leiden": sizes}).obs["leiden"].astype("category").to_numpy()

    def neighbors(cells, *, method, **by):
        asked["method"] = method  # umap-learn would compile for half a minute
        made(cells, method="gauss", **by)

    names, made = {"resolution", "random_state", "flavor", "n_iterations", "directed"}, scanpy.pp.neighbors
    assert names <= set(inspect.signature(scanpy.tl.leiden).parameters)
    monkeypatch.setattr(scanpy.tl, "leiden", leiden)
    monkeypatch.setattr(scanpy.pp, "neighbors", neighbors)
    monkeypatch.setitem(sys.modules, "leidenalg", scanpy)
    data = recipes.pbmc_anomalies()
    by_igraph = {"flavor": "igraph", "n_iterations": 2, "directed": False}
    of_graph = {"graph": (2700, 2700), "n_neighbors": 15, "method": "umap"}
    assert asked == {"resolution": 1.0, "random_state": 42} | of_graph | by_igraph
    assert np.flatnonzero(data.y).tolist() == list(range(2670, 2700))
    assert "two smallest" in data.description


def test_pbmc_anomalies_are_those_of_the_paper():
    """30 cells, and AUPRC without a map as in the authors' files, for all detectors."""
    for package in ("h5py", "scanpy", "leidenalg"):
        pytest.importorskip(package, reason=f"the PBMC recipe needs {package}")
    need("pbmc3k")
    from drsne.anomaly import evaluate_anomaly

    data = recipes.pbmc_anomalies()
    assert int(data.y.sum()) == 30
    found = evaluate_anomaly(recipes.standardise(data.X), data.y)
    expected = {"knn": 0.543, "lof": 0.362, "isolation_forest": 0.257, "centroid": 0.551}
    assert {name: scores["auprc"] for name, scores in found.items()} == pytest.approx(expected, abs=2e-3)


def test_clusters_by_igraph_are_the_same_at_every_call():
    igraph = pytest.importorskip("igraph", reason="clusters need igraph")
    graph = igraph.Graph.Erdos_Renyi(n=300, m=900)

    def clusters():
        with recipes.single_cell.igraph_seed(42):
            return graph.community_multilevel().membership

    assert all(clusters() == clusters() for _ in range(5))
    assert len({tuple(graph.community_multilevel().membership) for _ in range(10)}) > 1  # without a seed


def test_stratified_rows_keep_the_shares():
    y = np.repeat([5, 1, 9], [50, 33, 17])
    rows = recipes.stratified_rows(y, 10, random_state=0)
    assert len(set(rows)) == 10
    # shares 3.3, 5 and 1.7: the largest fraction gets the row that the floors leave
    assert dict(zip(*np.unique(y[rows], return_counts=True), strict=True)) == {1: 3, 5: 5, 9: 2}
    assert not np.array_equal(y[rows], np.sort(y[rows]))
    assert sorted(recipes.stratified_rows(y, 100)) == list(range(100))
    with pytest.raises(ValueError, match=r"n_samples must .*100.* got 101"):
        recipes.stratified_rows(y, 101)


def test_smallest_clusters():
    labels = np.repeat([3, 0, 7, 1], [4, 9, 2, 6])
    assert np.array_equal(recipes.smallest_clusters(labels) == 1, np.isin(labels, [3, 7]))
    with pytest.raises(ValueError, match=r"n_clusters must .* got 4"):
        recipes.smallest_clusters(labels, 4)


def test_pca_scores():
    X = np.random.default_rng(0).normal(size=(60, 5)) * [5, 4, 3, 2, 1]
    scores = recipes.pca(X, 3)
    _, values, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    assert np.allclose(np.abs(scores), np.abs((X - X.mean(axis=0)) @ axes[:3].T))
    assert np.allclose(np.linalg.norm(scores, axis=0), values[:3])
    with pytest.raises(ValueError, match=r"n_components must .* got 6"):
        recipes.pca(X, 6)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (
            {"name": "minst"},
            ValueError,
            r"name must .*got 'minst'\. .*'mnist'",
        ),
        ({"name": "recipes"}, ValueError, "name must .*got 'recipes'"),
        ({"name": 3}, ValueError, "name must .*got 3"),
        ({"name": "helix", "n_samples": 0}, ValueError, "n_samples must .*got 0"),
        ({"name": "helix", "n_samples": 2.5}, ValueError, "n_samples must .*got 2.5"),
        ({"name": "helix", "n_samples": "all"}, TypeError, "n_samples must .*got 'all'"),
        ({"name": "digits", "n_samples": 1798}, ValueError, "n_samples must .*1797.*'digits'; got 1798"),
        ({"name": "helix", "random_state": -1}, ValueError, "random_state must .*got -1"),
        ({"name": "helix", "random_state": None}, TypeError, "random_state must .*got None"),
        ({"name": "helix", "random_state": 2**32}, ValueError, "random_state must .*got 4294967296"),
        ({"name": "helix", "data_home": 5}, TypeError, "data_home must .*got 5"),
    ],
)
def test_wrong_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        datasets.load(**arguments)


def test_the_papers_table_has_eight_rows():
    with pytest.raises(ValueError, match=r"name must .*got 'thyroid'"):
        recipes.paper("thyroid")
    with pytest.raises(ValueError, match=r"labels must .*'leiden'.*got 'kmeans'"):
        recipes.pbmc(labels="kmeans")
