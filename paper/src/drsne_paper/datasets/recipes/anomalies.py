"""The anomaly tasks of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from drsne_paper import checks
from drsne_paper.datasets._data import Data
from drsne_paper.datasets._registry import generator, load
from drsne_paper.datasets.recipes.single_cell import pbmc
from drsne_paper.datasets.recipes.steps import (
    PAPER_SAMPLES,
    PAPER_SEED,
    changed,
    pca,
    smallest_clusters,
    standardise,
    stratified_rows,
)


def shuttle_sample(*, n_samples: int = PAPER_SAMPLES, random_state: Any = PAPER_SEED, data_home: Any = None) -> Data:
    """Return a stratified sample of Shuttle, not scaled. ``y`` is 1 if the class is not 1.

    The rows are drawn with ``stratified_rows``. Origin: the Shuttle loader of the paper's code, in both of its studies.
    5000 rows contain 1070 anomalies. This is a fraction of .214, as in the code; the text states .224.

    Parameters
    ----------
    n_samples : int, default=5000
        The number of rows to draw.
    random_state : int or RandomState, default=42
        Seed or generator used to draw the rows.
    data_home : path, default=None
        The folder of the data files, as for ``drsne_paper.datasets.load``.

    Returns
    -------
    Data
        The data set. ``X`` has shape (n_samples, 9).
    """
    data = load("shuttle", data_home=data_home)
    assert data.y is not None
    rows = stratified_rows(data.y, n_samples, random_state)
    note = f"Here: a stratified sample of {len(rows)} rows; y is 0 for class 1, and 1 for the other classes."
    return changed(data, data.X[rows], (data.y[rows] != 1).astype(np.int64), note)


def fashion_anomalies(*, random_state: Any = PAPER_SEED, data_home: Any = None) -> Data:
    """Return Fashion-MNIST as an anomaly task, not scaled: 4500 rows of class 0, then 500 rows of all other classes.

    Origin: the Fashion loader of the paper's anomaly code. The normal rows come first; the rows are not shuffled.

    Parameters
    ----------
    random_state : int or RandomState, default=42
        Seed or generator used to draw the rows.
    data_home : path, default=None
        The folder of the data files, as for ``drsne_paper.datasets.load``.

    Returns
    -------
    Data
        The data set. ``X`` has shape (5000, 784), and ``y`` has the values 0 and 1.
    """
    data = load("fashion_mnist", data_home=data_home)
    assert data.y is not None
    rng = generator(random_state)
    normal = rng.choice(np.flatnonzero(data.y == 0), 4500, replace=False)
    others = rng.choice(np.flatnonzero(data.y != 0), 500, replace=False)
    note = "Here: 4500 rows of class 0 (y = 0), then 500 rows of the other classes (y = 1)."
    return changed(data, data.X[np.concatenate([normal, others])], np.repeat([0, 1], [4500, 500]), note)


def cifar10_anomalies(name: str = "cifar10", *, data_home: Any = None) -> Data:
    """Return CIFAR-10 as an anomaly task: ``y`` is 1 for class 0 (airplanes) and 0 for the other classes.

    Origin: the CIFAR-10 loader of the paper's anomaly code. According to the text of the paper, one class is normal and
    the others are anomalous. The paper uses the ResNet-50 features, "cifar10_resnet50". They are standardised here and
    reduced with ``pca``. The features of "cifar10" come from another network and are returned unchanged.

    Parameters
    ----------
    name : {"cifar10", "cifar10_resnet50"}, default="cifar10"
        The data set with the features.
    data_home : path, default=None
        The folder of the data files, as for ``drsne_paper.datasets.load``.

    Returns
    -------
    Data
        The data set. ``X`` has shape (5000, 50), and ``y`` marks 476 anomalies.
    """
    checks.choice("name", name, ("cifar10", "cifar10_resnet50"))
    data = load(name, data_home=data_home)
    assert data.y is not None
    X, note = data.X, "Here: y is 1 for class 0, and 0 for the other classes."
    if name == "cifar10_resnet50":
        X, note = pca(standardise(X)), f"{note} 50 principal components of the standardised features."
    return changed(data, X, (data.y == 0).astype(np.int64), note)


def pbmc_anomalies(*, data_home: Any = None) -> Data:
    """Return PBMC3k as an anomaly task. The two smallest clusters of ``pbmc(labels="leiden")`` are anomalous.

    These clusters have 30 cells in total. The data are not rescaled. Origin: the PBMC loader of the paper's anomaly
    code, which uses leidenalg. Release 0.11 of leidenalg finds the same 30 cells, but release 0.12 finds other cells.

    Parameters
    ----------
    data_home : path, default=None
        The folder of the data files, as for ``drsne_paper.datasets.load``.

    Returns
    -------
    Data
        The data set. ``X`` has shape (2700, 50), and ``y`` has the values 0 and 1.
    """
    data = pbmc(labels="leiden", data_home=data_home)
    assert data.y is not None
    note = "Here: y is 1 for the two smallest clusters, and 0 for the other clusters."
    return changed(data, data.X, smallest_clusters(data.y), note)
