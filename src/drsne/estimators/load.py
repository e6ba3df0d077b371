"""Loading of saved models."""

from __future__ import annotations

import os
from typing import Any

from drsne.estimators.densne import DenSNE
from drsne.estimators.drsne import DRSNE
from drsne.estimators.path import DensityPath
from drsne.io.models import loaded


def load(path: str | os.PathLike[str], X: Any = None) -> Any:
    """Load a model that was saved with ``model.save(path)``.

    Parameters
    ----------
    path : str or path
        The file.
    X : array-like or sparse matrix, default=None
        The training data, for a model that was saved with ``include_data=False``. They must be the same rows in the
        same order and of the same type, which is verified with a checksum. Without them, the model is loaded, but it
        cannot place new rows.

    Returns
    -------
    DRSNE or DenSNE
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or has a newer format than this version of drsne can read.
    ValueError
        If ``X`` are not the training data.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> import drsne
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = drsne.DRSNE(perplexity=10, density_neighbors=10, max_iter=100, random_state=0).fit(X)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.drsne")
    >>> model.save(path)
    >>> bool((drsne.load(path).transform(X[:3]) == model.embedding_[:3]).all())
    True
    """
    return loaded(path, {"DRSNE": DRSNE, "DenSNE": DenSNE}, {"DensityPath": DensityPath}, X)
