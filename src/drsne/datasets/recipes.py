"""What the paper does to its data before a method sees them: named steps, and ``paper(name)`` for rows of its table.

The text of the paper leaves most of this out; the steps are those of the authors' code (where there is none, the
sentence says so).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne import checks
from drsne.datasets._data import Data
from drsne.datasets._registry import generator, load

_PAPER_SAMPLES = 5000
_PAPER_SEED = 42  # of every draw in the authors' code
# The datasets of its main comparison ("mnist" is the real one), and those of them that it does not scale.
_PAPER_NAMES = ("digits", "fashion_mnist", "mnist", "gaussians50", "pbmc3k", "shuttle", "controlled_clusters", "helix")
_NOT_SCALED = ("controlled_clusters", "helix")
_SCANPY_EXTRA = "pip install 'drsne[pbmc]'"


def standardise(X: ArrayLike) -> NDArray[np.float64]:
    """Each column with mean 0 and variance 1 (constant columns become 0): scikit-learn's ``StandardScaler``.

    Origin: every loader of the paper's code but those of PBMC and the synthetic clusters and helix.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        float64.

    Examples
    --------
    >>> from drsne.datasets import recipes
    >>> recipes.standardise([[0, 1], [2, 1]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import StandardScaler

    return np.asarray(StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)))


def pca(X: ArrayLike, n_components: int = 50, random_state: Any = _PAPER_SEED) -> NDArray[np.float64]:
    """Scores on the first principal components: scikit-learn's ``PCA``.

    Origin: the CIFAR-10 loader of the paper's code, after ``standardise``.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data.
    n_components : int, default=50
        How many.
    random_state : int or RandomState, default=42
        Seed of the randomised solver, which scikit-learn takes for large data.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        Scores.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.datasets import recipes
    >>> recipes.pca(np.random.default_rng(0).normal(size=(20, 6)), n_components=2).shape
    (20, 2)
    """
    from sklearn.decomposition import PCA

    data = np.asarray(X)
    count = checks.integer("n_components", n_components, at_least=1)
    if count > min(data.shape):
        raise ValueError(
            f"n_components must be at most {min(data.shape)} for data of shape {data.shape}; got {count}. Lower it."
        )
    return np.asarray(PCA(count, random_state=generator(random_state)).fit_transform(data))


def stratified_rows(y: ArrayLike, n_samples: int, random_state: Any = _PAPER_SEED) -> NDArray[np.intp]:
    """Rows drawn class by class in proportion, then shuffled.

    Every class gives the floor of its share, those with the largest fractions one more; classes are drawn in ascending
    order and without replacement. Origin: the Shuttle loader of the paper's code.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes.
    n_samples : int
        Rows to draw.
    random_state : int or RandomState, default=42
        Seed.

    Returns
    -------
    ndarray of shape (n_samples,)
        Row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.datasets import recipes
    >>> y = np.repeat([0, 1], [30, 10])
    >>> np.bincount(y[recipes.stratified_rows(y, 8)]).tolist()
    [6, 2]
    """
    labels = np.asarray(y)
    count = checks.integer("n_samples", n_samples, at_least=1)
    if count > len(labels):
        raise ValueError(f"n_samples must be at most {len(labels)}, the rows there are; got {count}. Lower it.")
    rng = generator(random_state)
    classes, sizes = np.unique(labels, return_counts=True)
    share = count * sizes / sizes.sum()
    take = np.floor(share).astype(int)
    take[np.argsort(take - share, kind="stable")[: count - take.sum()]] += 1
    drawn = [rng.choice(np.flatnonzero(labels == c), m, replace=False) for c, m in zip(classes, take, strict=True)]
    rows = np.concatenate(drawn)
    rng.shuffle(rows)
    return rows


def shuttle_sample(*, n_samples: int = _PAPER_SAMPLES, random_state: Any = _PAPER_SEED, data_home: Any = None) -> Data:
    """Shuttle by class (``stratified_rows``); ``y`` is 1 where the class is not 1. Not scaled.

    Origin: the Shuttle loader of the paper's code, of both its studies. 5000 rows have 1070 anomalies: the .214 of the
    code, not the .224 of the text.

    Parameters
    ----------
    n_samples : int, default=5000
        Rows to draw.
    random_state : int or RandomState, default=42
        Seed.
    data_home : path, default=None
        As for ``drsne.datasets.load``.

    Returns
    -------
    Data
        ``X`` (n_samples, 9).
    """
    data = load("shuttle", data_home=data_home)
    assert data.y is not None
    rows = stratified_rows(data.y, n_samples, random_state)
    note = f"Here: {len(rows)} rows drawn by class; y is 1 where the class is not 1, else 0."
    return _changed(data, data.X[rows], (data.y[rows] != 1).astype(np.int64), note)


def fashion_anomalies(*, random_state: Any = _PAPER_SEED, data_home: Any = None) -> Data:
    """Fashion-MNIST as an anomaly task: 4500 of class 0, then 500 of all others, ``y`` 0 and 1. Not scaled.

    Origin: the Fashion loader of the paper's anomaly code; normal rows first, no shuffle.

    Parameters
    ----------
    random_state : int or RandomState, default=42
        Seed.
    data_home : path, default=None
        As for ``drsne.datasets.load``.

    Returns
    -------
    Data
        ``X`` (5000, 784).
    """
    data = load("fashion_mnist", data_home=data_home)
    assert data.y is not None
    rng = generator(random_state)
    normal = rng.choice(np.flatnonzero(data.y == 0), 4500, replace=False)
    others = rng.choice(np.flatnonzero(data.y != 0), 500, replace=False)
    note = "Here: 4500 rows of class 0 (y = 0), then 500 of the other classes (y = 1)."
    return _changed(data, data.X[np.concatenate([normal, others])], np.repeat([0, 1], [4500, 500]), note)


def cifar10_anomalies(name: str = "cifar10", *, data_home: Any = None) -> Data:
    """CIFAR-10 as an anomaly task: ``y`` is 1 for class 0 (airplanes), else 0. Not rescaled.

    Origin: the CIFAR-10 loader of the paper's anomaly code (its text has one normal class and the rest anomalous). The
    paper has ResNet-50's features, "cifar10_resnet50", here ``standardise``d and reduced by ``pca``; "cifar10", those
    of another network, comes so.

    Parameters
    ----------
    name : {"cifar10", "cifar10_resnet50"}, default="cifar10"
        Whose features.
    data_home : path, default=None
        As for ``drsne.datasets.load``.

    Returns
    -------
    Data
        ``X`` (5000, 50); ``y`` has 476 anomalies.
    """
    checks.choice("name", name, ("cifar10", "cifar10_resnet50"))
    data = load(name, data_home=data_home)
    assert data.y is not None
    X, note = data.X, "Here: y is 1 where the class is 0, else 0."
    if name == "cifar10_resnet50":
        X, note = pca(standardise(X)), f"{note} 50 principal components of the standardised features."
    return _changed(data, X, (data.y == 0).astype(np.int64), note)


def pbmc(
    *,
    labels: str | None = None,
    n_components: int = 50,
    graph_neighbors: int = 15,
    graph_components: int | None = None,
    graph_method: str = "umap",
    data_home: Any = None,
) -> Data:
    """PBMC3k as principal components, by scanpy: ``pip install 'drsne[pbmc]'``.

    No cell or gene is dropped; counts per cell scaled to 10,000; log(1 + x); the 2000 most variable genes; scaled, cut
    off at 10; 50 components (arpack), not rescaled. Labels are clusters of the 15-neighbour graph at resolution 1.0,
    seed 42. Origin: the PBMC loaders of the paper's code (main comparison: Louvain; anomalies: Leiden; its ablations
    take other components and graphs). How many clusters there are depends on the versions of these packages.

    Parameters
    ----------
    labels : {"louvain", "leiden"}, default=None
        Clusters to take as ``y``; None for none. Louvain is that of the package louvain (``pip install
        'drsne[louvain]'``) where it is installed, else that of igraph, which finds nearly the same clusters.
        Leiden is igraph's.
    n_components : int, default=50
        Principal components.
    graph_neighbors : int, default=15
        Neighbours in the graph that is clustered.
    graph_components : int, default=None
        Components that the graph is made of; None for all.
    graph_method : {"umap", "gauss"}, default="umap"
        How scanpy weighs the edges of the graph.
    data_home : path, default=None
        As for ``drsne.datasets.load``.

    Returns
    -------
    Data
        ``X`` (2700, n_components), float32; ``y`` integers or None.
    """
    from importlib.util import find_spec

    count = checks.integer("n_components", n_components, at_least=1)
    if labels is not None:
        checks.choice("labels", labels, ("louvain", "leiden"), also=" or None")
        _needed("leidenalg", _SCANPY_EXTRA, f"labels={labels!r}")  # brings igraph
    scanpy = _needed("scanpy", _SCANPY_EXTRA, "The PBMC recipe")
    from anndata import AnnData

    data = load("pbmc3k", data_home=data_home)
    cells = AnnData(X=data.X)
    scanpy.pp.normalize_total(cells, target_sum=1e4)
    scanpy.pp.log1p(cells)
    scanpy.pp.highly_variable_genes(cells, n_top_genes=2000)
    cells = cells[:, cells.var["highly_variable"]].copy()
    with warnings.catch_warnings():  # it tells that centred data are no longer sparse, as is meant
        warnings.filterwarnings("ignore", message="zero-centering a sparse", category=UserWarning)
        scanpy.pp.scale(cells, max_value=10)
    scanpy.tl.pca(cells, n_comps=count, svd_solver="arpack")
    y, note = None, f"{count} principal components by scanpy; y is None."
    if labels is not None:
        scanpy.pp.neighbors(
            cells,
            n_neighbors=checks.integer("graph_neighbors", graph_neighbors, at_least=2),
            n_pcs=graph_components,
            method=checks.choice("graph_method", graph_method, ("umap", "gauss")),
            random_state=_PAPER_SEED,
        )
        by = " (by igraph)"
        if labels == "leiden":
            # leidenalg's clusters change with its version; igraph's do not, and have the authors' two smallest.
            scanpy.tl.leiden(
                cells, resolution=1.0, random_state=_PAPER_SEED, flavor="igraph", n_iterations=2, directed=False
            )
        elif find_spec("louvain") is not None:
            scanpy.tl.louvain(cells, resolution=1.0, random_state=_PAPER_SEED)
            by = ""
        else:
            with _igraph_seeded(_PAPER_SEED):  # scanpy does not hand a seed on to it
                scanpy.tl.louvain(cells, flavor="igraph")  # has the resolution 1.0 alone
        y = cells.obs[labels].to_numpy().astype(np.int64)
        note = f"{count} principal components by scanpy; y is its {labels} clusters{by}."
    return Data(
        X=np.asarray(cells.obsm["X_pca"]),
        y=y,
        name="pbmc3k",
        description=f"PBMC3k, 2700 blood cells: {note}",
        source=data.source,
    )


@contextmanager
def _igraph_seeded(seed: int) -> Iterator[None]:
    import random

    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)


def smallest_clusters(labels: ArrayLike, n_clusters: int = 2) -> NDArray[np.int64]:
    """1 for members of the smallest clusters, 0 for others. Origin: the PBMC loader of the paper's anomaly code.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Clusters.
    n_clusters : int, default=2
        How many clusters count as anomalous; of equally small ones the first in order.

    Returns
    -------
    ndarray of shape (n,)
        0 and 1.

    Examples
    --------
    >>> from drsne.datasets import recipes
    >>> recipes.smallest_clusters(["a", "a", "a", "b", "c", "c"]).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    values, sizes = np.unique(np.asarray(labels), return_counts=True)
    count = checks.integer("n_clusters", n_clusters, at_least=1)
    if count >= len(values):
        raise ValueError(
            f"n_clusters must be smaller than {len(values)}, the clusters there are; got {count}. Lower it."
        )
    rare = values[np.argsort(sizes, kind="stable")[:count]]
    return np.isin(np.asarray(labels), rare).astype(np.int64)


def pbmc_anomalies(*, data_home: Any = None) -> Data:
    """PBMC3k as an anomaly task: ``pbmc(labels="leiden")``, the two smallest clusters anomalous. Not rescaled.

    They have 30 cells. Origin: the PBMC loader of the paper's anomaly code, which clusters with leidenalg; its release
    0.11 finds these 30 as well, 0.12 other ones.

    Parameters
    ----------
    data_home : path, default=None
        As for ``drsne.datasets.load``.

    Returns
    -------
    Data
        ``X`` (2700, 50); ``y`` 0 and 1.
    """
    data = pbmc(labels="leiden", data_home=data_home)
    assert data.y is not None
    return _changed(data, data.X, smallest_clusters(data.y), "Here: y is 1 for the two smallest of them, else 0.")


def paper(name: str, *, data_home: Any = None) -> Data:
    """A dataset of the paper's main comparison, exactly as its methods get it.

    | name | rows x columns | steps |
    |---|---|---|
    | ``digits`` | 1797 x 64 | standardised |
    | ``fashion_mnist``, ``mnist`` | 5000 x 784 | a draw with seed 42, standardised |
    | ``gaussians50`` | 5000 x 50 | standardised; the paper's row "MNIST", where the real ``mnist`` does not occur |
    | ``pbmc3k`` | 2700 x 50 | ``pbmc``, with Louvain labels |
    | ``shuttle`` | 5000 x 9 | ``shuttle_sample``, standardised, float32 |
    | ``controlled_clusters``, ``helix`` | 5000 x 3 | as they are, seed 42 (the paper states none) |

    Parameters
    ----------
    name : str
        One of those.
    data_home : path, default=None
        As for ``drsne.datasets.load``.

    Returns
    -------
    Data
        ``X``, ``y``, and a description that says what was done.

    Examples
    --------
    >>> from drsne.datasets import recipes
    >>> recipes.paper("digits").X.shape
    (1797, 64)
    """
    checks.choice("name", name, _PAPER_NAMES, hint="The other datasets are not in the paper's main comparison.")
    if name == "pbmc3k":
        return pbmc(labels="louvain", data_home=data_home)
    if name == "shuttle":
        data = shuttle_sample(data_home=data_home)
    else:
        sampled = None if name == "digits" else _PAPER_SAMPLES
        data = load(name, n_samples=sampled, random_state=_PAPER_SEED, data_home=data_home)
    if name in _NOT_SCALED:
        return data
    X = standardise(data.X)
    drawn = f"Here: {len(X)} rows drawn, standardised." if name in ("fashion_mnist", "mnist") else "Standardised."
    return _changed(data, X.astype(np.float32) if name == "shuttle" else X, data.y, drawn)


def _needed(module: str, mend: str, what: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs {module}: {mend}.") from error


def _changed(data: Data, X: Any, y: Any, note: str) -> Data:
    return Data(X=X, y=y, name=data.name, description=f"{data.description} {note}", source=data.source)
