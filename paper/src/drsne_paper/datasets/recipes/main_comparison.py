"""The data sets of the paper's main comparison, exactly as its methods receive them."""

from __future__ import annotations

from typing import Any

import numpy as np

from drsne_paper import checks
from drsne_paper.datasets._data import Data
from drsne_paper.datasets._registry import load
from drsne_paper.datasets.recipes.anomalies import shuttle_sample
from drsne_paper.datasets.recipes.single_cell import pbmc
from drsne_paper.datasets.recipes.steps import PAPER_SAMPLES, PAPER_SEED, changed, standardise

# "mnist" is the real MNIST; the paper's row "MNIST" is "gaussians50".
_NAMES = ("digits", "fashion_mnist", "mnist", "gaussians50", "pbmc3k", "shuttle", "controlled_clusters", "helix")
_NOT_SCALED = ("controlled_clusters", "helix")


def paper(name: str, *, data_home: Any = None) -> Data:
    """Return a data set of the paper's main comparison, exactly as its methods receive it.

    | name | rows x columns | steps |
    |---|---|---|
    | ``digits`` | 1797 x 64 | standardised |
    | ``fashion_mnist``, ``mnist`` | 5000 x 784 | sampled with seed 42, standardised |
    | ``gaussians50`` | 5000 x 50 | standardised; the paper's row "MNIST", which does not use the real ``mnist`` |
    | ``pbmc3k`` | 2700 x 50 | ``pbmc``, with Louvain labels |
    | ``shuttle`` | 5000 x 9 | ``shuttle_sample``, standardised, float32 |
    | ``controlled_clusters``, ``helix`` | 5000 x 3 | as generated with seed 42 (the paper states no seed) |

    Parameters
    ----------
    name : str
        The name of a data set in this table.
    data_home : path, default=None
        The folder of the data files, as for ``drsne_paper.datasets.load``.

    Returns
    -------
    Data
        The data set. Its description includes the preprocessing.

    Examples
    --------
    >>> from drsne_paper.datasets import recipes
    >>> recipes.paper("digits").X.shape
    (1797, 64)
    """
    checks.choice("name", name, _NAMES, hint="Load other data sets with drsne_paper.datasets.load.")
    if name == "pbmc3k":
        return pbmc(labels="louvain", data_home=data_home)
    if name == "shuttle":
        data = shuttle_sample(data_home=data_home)
    else:
        n_samples = None if name == "digits" else PAPER_SAMPLES
        data = load(name, n_samples=n_samples, random_state=PAPER_SEED, data_home=data_home)
    if name in _NOT_SCALED:
        return data
    X = standardise(data.X)
    note = f"Here: a sample of {len(X)} rows, standardised." if name in ("fashion_mnist", "mnist") else "Standardised."
    return changed(data, X.astype(np.float32) if name == "shuttle" else X, data.y, note)
