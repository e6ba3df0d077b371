"""The registry of data sets: lists their names, loads them by name, and shows which are available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from drsne_paper import checks
from drsne_paper.datasets import _cache
from drsne_paper.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    from drsne_paper.datasets._data import Data, Dataset

NAMES = (
    "cifar10",
    "cifar10_resnet50",
    "controlled_clusters",
    "covertype",
    "digits",
    "fashion_mnist",
    "gaussians50",
    "helix",
    "mnist",
    "pbmc3k",
    "shuttle",
    "spiral",
    "thyroid",
)
REGISTRY: Registry[Dataset] = Registry("drsne_paper.datasets", "DATASET", "name", NAMES)
find = REGISTRY.load


class State(NamedTuple):
    """An entry in the result of ``states``."""

    name: str
    state: str
    n_samples: int
    n_features: int
    size: int
    description: str


def names() -> list[str]:
    """Return the names of the data sets. The files of the data sets are not imported.

    Returns
    -------
    list of str
        The names in alphabetical order.

    Examples
    --------
    >>> from drsne_paper import datasets
    >>> "fashion_mnist" in datasets.names()
    True
    """
    return REGISTRY.names()


def load(name: str, *, n_samples: int | None = None, random_state: Any = 42, data_home: Any = None) -> Data:
    """Return the raw data, neither scaled nor reduced. ``drsne_paper.datasets.recipes`` has the paper's preprocessing.

    Parameters
    ----------
    name : str
        The name of the data set, one of ``names()``.
    n_samples : int, default=None
        For generated data, the number of rows to generate. If None, generate 5000 rows. For other data, the number of
        rows to draw without replacement, with ``RandomState(random_state).choice`` as in the paper. If None, return
        all rows in their original order.
    random_state : int or RandomState, default=42
        Seed or generator used to generate or draw the rows.
    data_home : path, default=None
        The folder of the data files. If None, use the folder named by the environment variable ``DRSNE_DATA_HOME`` or,
        if it is not set, ``drsne`` in the user's cache directory. Missing files are downloaded into this folder.
        Existing files are checked and used.

    Returns
    -------
    Data
        The data set, with ``X``, ``y``, ``name``, ``description`` and ``source``.

    Examples
    --------
    >>> from drsne_paper import datasets
    >>> helix = datasets.load("helix", n_samples=300)
    >>> helix.X.shape
    (300, 3)
    """
    dataset = find(name)
    if n_samples is not None:
        n_samples = checks.integer("n_samples", n_samples, at_least=1, hint="Pass None to load all rows.")
        if not dataset.endless and n_samples > dataset.n_samples:
            raise ValueError(
                f"n_samples must be at most {dataset.n_samples}, the number of rows of {name!r}; got {n_samples}. "
                "Lower n_samples, or pass None to load all rows."
            )
    from drsne_paper.datasets._data import Data

    X, y, note = dataset.rows(n_samples, generator(random_state), _cache.data_home(data_home))
    description = f"{dataset.description} {note}".strip()
    return Data(X=X, y=y, name=name, description=description, source=dataset.source)


def states(data_home: Any = None) -> list[State]:
    """Return a list of all data sets that shows which are available and which must be downloaded.

    No file is decoded.

    Parameters
    ----------
    data_home : path, default=None
        The folder of the data files. If None, use the folder named by the environment variable ``DRSNE_DATA_HOME`` or,
        if it is not set, ``drsne`` in the user's cache directory.

    Returns
    -------
    list of State
        A tuple ``(name, state, n_samples, n_features, size, description)`` for each data set. ``state`` is "generated",
        "comes with scikit-learn", "in the data home", "to be downloaded", "to be computed", "to be put into the data
        home by hand" or "corrupt". A file that looks complete may still have a wrong checksum when it is loaded.
        ``size`` is the size of the file in bytes, or 0 if there is no file.

    Examples
    --------
    >>> from drsne_paper import datasets
    >>> [s.state for s in datasets.states() if s.name == "spiral"]
    ['generated']
    """
    home = _cache.data_home(data_home)
    listed = []
    for name in names():
        dataset = find(name)
        state, size = dataset.state(home)
        listed.append(State(name, state, dataset.n_samples, dataset.n_features, size, dataset.description))
    return listed


def generator(random_state: Any) -> np.random.RandomState:
    """Return a RandomState. None is not allowed, because data sets must be reproducible."""
    import numpy as np

    if isinstance(random_state, np.random.RandomState):
        return random_state
    seed = checks.integer("random_state", random_state, at_least=0, hint="Pass 42 to get the paper's data.")
    if seed >= 2**32:
        raise ValueError(f"random_state must be below 2**32; got {seed}. Pass 42 to get the paper's data.")
    return np.random.RandomState(seed)
