"""Descriptions of the parameters and attributes that DRSNE and DenSNE have in common, each written once.

A line such as ``{metric, init}`` in the docstring of a class with the decorator :func:`shared` stands for the
descriptions of these names.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

_DESCRIPTIONS = """\
n_components : int, default=2
    Number of dimensions of the map.
metric : str or callable, default="euclidean"
    Metric of the distances between samples: any metric that scikit-learn's nearest neighbours accept, or
    "precomputed" if ``X`` is a distance matrix or a sparse graph of distances to neighbours.
init : {"pca", "random"} or array of shape (n_samples, n_components), default="pca"
    Positions of the points before the first iteration. "pca" stands for the principal components of the data. With
    ``metric="precomputed"``, it stands for the classical scaling of a distance matrix or for a diffusion map of a
    graph. An array is used unchanged, so a fit can be continued from an earlier map.
neighbors : (indices, distances), sparse matrix or None, default=None
    Precomputed neighbours of every sample, which replace the search for neighbours. Either two arrays of shape
    (n_samples, m), or a sparse graph of distances, such as the result of :func:`sklearn.neighbors.kneighbors_graph`
    with ``mode="distance"``. In the arrays, the neighbours of a sample can be in any order and may include the
    sample itself; missing neighbours have index -1. If ``neighbors`` is given, ``metric`` is ignored.
pca_components : int, "auto" or None, default=None
    Number of principal components that replace ``X`` in the search for neighbours and in the initial map. "auto"
    means 50 if ``X`` has more than 50 features, and no reduction otherwise. If None, ``X`` is not reduced.
engine : {"auto", "exact", "fft", "tree", "coarse"}, default="auto"
    How the repulsion is summed: over all pairs ("exact"), on a mesh ("fft", 1-D and 2-D maps) or over a tree
    ("tree", up to 3-D). "auto" chooses the fastest of these for the number of samples and dimensions. "coarse" is
    the less accurate tree of den-SNE's program (2-D, fixed kernel), for comparisons with it.
engine_options : dict, default=None
    Options of the engine: ``accuracy`` ("normal" or "high") for "fft", and ``theta`` for "tree" and "coarse".
early_exaggeration : float, default=12.0
    Factor on the attractive forces during early exaggeration.
learning_rate : float or "auto", default="auto"
    Learning rate of the iterations without the density term, in the units of scikit-learn. "auto" stands for
    ``max(n_samples / exaggeration / 4, 50)``.
keep_affinities : bool, default=True
    Whether to keep ``affinities_``, which is by far the largest attribute.
n_jobs : int, default=None
    Number of threads, as in joblib: None means 1, and -1 means all cores. The map does not depend on the number of
    threads.
backend : {"numba", "torch"}, default="numba"
    What computes the fit. "numba" uses the cores of the processor. "torch" uses PyTorch (``pip install
    'drsne[torch]'``), on a GPU if there is one. Maps of the two are equally good but not the same.
device : {None, "cpu", "cuda", "cuda:1", ...}, default=None
    Device of PyTorch. A CUDA device implies ``backend="torch"``. None stands for the first GPU with
    ``backend="torch"``, or for the processor if there is none. The same seed gives the same map on the same device.
    New rows are placed on the same device, or by numba on a machine without it.
random_state : int, RandomState, Generator or None, default=None
    Seed of the random numbers in the initial map. The same seed gives the same map.
verbose : int, default=0
    If 1, a progress bar is shown on standard error. If 2, every step is also logged with the time that it took,
    through :mod:`logging` under the name "drsne".
embedding_ : ndarray of shape (n_samples, n_components)
    The map.
affinities_ : csr_matrix of shape (n_samples, n_samples)
    Symmetric affinities ``p_ij``, which sum to one. They are stored only if ``keep_affinities`` is True.
precisions_ : ndarray of shape (n_samples,)
    Precision ``beta_i`` of every sample, where ``p_j|i`` is proportional to ``exp(-beta_i d_ij^2)``.
    It is infinite for a sample whose neighbours are nearer than about 1e-154.
n_iter_ : int
    Number of iterations that were run.
stopped_by_ : {"callback", "interrupt", "overflow"} or None
    What ended the fit early, or None if it was completed.
engine_ : str
    Name of the engine that was used.
knn_recall_ : float or None
    With ``backend="torch"``, the fraction of the nearest neighbours that an approximate search found, measured on
    1000 rows. None if the search was exact or was not done by PyTorch.
pca_ : sklearn.decomposition.PCA or None
    The fitted PCA, or None if the data were not reduced.
n_features_in_ : int
    Number of features seen during ``fit``.
feature_names_in_ : ndarray of str
    Names of the features seen during ``fit``, if ``X`` has feature names.
"""
_ENTRIES = {entry.split(" : ")[0]: entry.rstrip() for entry in re.split(r"\n(?=\S)", _DESCRIPTIONS)}
_LINE = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)


def shared(kind: Kind) -> Kind:
    """Replace the lines of names in the docstring of a class by their descriptions, and return the class."""
    if kind.__doc__ is not None:  # Python can leave docstrings out
        kind.__doc__ = _LINE.sub(_described, kind.__doc__)
    return kind


def _described(match: re.Match[str]) -> str:
    return "\n".join(indent(_ENTRIES[name], match[1]) for name in match[2].split(", "))
