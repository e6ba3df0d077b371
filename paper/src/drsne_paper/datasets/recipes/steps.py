"""Single steps of preprocessing: scaling, principal components, stratified samples and smallest clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne_paper import checks
from drsne_paper.datasets._data import Data
from drsne_paper.datasets._registry import generator

PAPER_SAMPLES = 5000
PAPER_SEED = 42  # seed of every random sample in the authors' code


def standardise(X: ArrayLike) -> NDArray[np.float64]:
    """Scale each column to mean 0 and variance 1 with scikit-learn's ``StandardScaler``. Constant columns become 0.

    Origin: all loaders of the paper's code, except those of PBMC, the synthetic clusters and the helix.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        The scaled data, as float64.

    Examples
    --------
    >>> from drsne_paper.datasets import recipes
    >>> recipes.standardise([[0, 1], [2, 1]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import StandardScaler

    return np.asarray(StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)))


def pca(X: ArrayLike, n_components: int = 50, random_state: Any = PAPER_SEED) -> NDArray[np.float64]:
    """Project data onto their first principal components with scikit-learn's ``PCA``.

    Origin: the CIFAR-10 loader of the paper's code, after ``standardise``.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.
    n_components : int, default=50
        The number of principal components.
    random_state : int or RandomState, default=42
        Seed or generator for the randomised solver, which scikit-learn uses for large data.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        The projected data.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne_paper.datasets import recipes
    >>> recipes.pca(np.random.default_rng(0).normal(size=(20, 6)), n_components=2).shape
    (20, 2)
    """
    from sklearn.decomposition import PCA

    data = np.asarray(X)
    count = checks.integer("n_components", n_components, at_least=1)
    if count > min(data.shape):
        raise ValueError(
            f"n_components must be at most {min(data.shape)} for data of shape {data.shape}; got {count}. Lower "
            "n_components."
        )
    return np.asarray(PCA(count, random_state=generator(random_state)).fit_transform(data))


def stratified_rows(y: ArrayLike, n_samples: int, random_state: Any = PAPER_SEED) -> NDArray[np.intp]:
    """Return the indices of a stratified sample of rows, in random order.

    The number of rows drawn from each class is proportional to the size of the class, rounded down. The classes with
    the largest remainders get one more row. Rows are drawn without replacement, and the classes are processed in
    ascending order. Origin: the Shuttle loader of the paper's code.

    Parameters
    ----------
    y : array-like of shape (n,)
        The class of each row.
    n_samples : int
        The number of rows to draw.
    random_state : int or RandomState, default=42
        Seed or generator used to draw the rows.

    Returns
    -------
    ndarray of shape (n_samples,)
        The indices of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne_paper.datasets import recipes
    >>> y = np.repeat([0, 1], [30, 10])
    >>> np.bincount(y[recipes.stratified_rows(y, 8)]).tolist()
    [6, 2]
    """
    labels = np.asarray(y)
    count = checks.integer("n_samples", n_samples, at_least=1)
    if count > len(labels):
        raise ValueError(f"n_samples must be at most {len(labels)}, the number of rows; got {count}. Lower n_samples.")
    rng = generator(random_state)
    classes, sizes = np.unique(labels, return_counts=True)
    share = count * sizes / sizes.sum()
    take = np.floor(share).astype(int)
    take[np.argsort(take - share, kind="stable")[: count - take.sum()]] += 1
    drawn = [rng.choice(np.flatnonzero(labels == c), m, replace=False) for c, m in zip(classes, take, strict=True)]
    rows = np.concatenate(drawn)
    rng.shuffle(rows)
    return rows


def smallest_clusters(labels: ArrayLike, n_clusters: int = 2) -> NDArray[np.int64]:
    """Return 1 for the rows in the smallest clusters and 0 for the other rows.

    Origin: the PBMC loader of the paper's anomaly code.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The cluster of each row.
    n_clusters : int, default=2
        The number of clusters that count as anomalous. If clusters have the same size, those with smaller labels come
        first.

    Returns
    -------
    ndarray of shape (n,)
        The labels: 1 for anomalous rows, 0 for normal rows.

    Examples
    --------
    >>> from drsne_paper.datasets import recipes
    >>> recipes.smallest_clusters(["a", "a", "a", "b", "c", "c"]).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    values, sizes = np.unique(np.asarray(labels), return_counts=True)
    count = checks.integer("n_clusters", n_clusters, at_least=1)
    if count >= len(values):
        raise ValueError(
            f"n_clusters must be smaller than {len(values)}, the number of clusters; got {count}. Lower n_clusters."
        )
    rare = values[np.argsort(sizes, kind="stable")[:count]]
    return np.isin(np.asarray(labels), rare).astype(np.int64)


def changed(data: Data, X: Any, y: Any, note: str) -> Data:
    """Return ``data`` with new arrays ``X`` and ``y``, and with ``note`` added to the description."""
    return Data(X=X, y=y, name=data.name, description=f"{data.description} {note}", source=data.source)
