"""The registry: names, loading by name, and what is at hand."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

import numpy as np

from drsne import checks
from drsne.datasets import _cache
from drsne.datasets._data import Data, Dataset

_NO_DATASETS = {"recipes"}  # modules of this folder that are none, beside the private ones


class State(NamedTuple):
    """What ``states`` says of one dataset."""

    name: str
    state: str
    n_samples: int
    n_features: int
    size: int
    description: str


def names() -> list[str]:
    """Names of the datasets: of the files in this folder, none of which is imported.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from drsne import datasets
    >>> "fashion_mnist" in datasets.names()
    True
    """
    found = (module.name for module in iter_modules(import_module("drsne.datasets").__path__))
    return sorted(name for name in found if not name.startswith("_") and name not in _NO_DATASETS)


def find(name: Any) -> Dataset:
    """The ``DATASET`` of ``datasets/<name>.py``."""
    known = names()
    close = get_close_matches(name, known, n=1, cutoff=0.5) if isinstance(name, str) else []
    checks.choice("name", name, known, hint=f"Did you mean {close[0]!r}?" if close else "")
    dataset: Dataset = import_module(f"drsne.datasets.{name}").DATASET
    return dataset


def load(name: str, *, n_samples: int | None = None, random_state: Any = 42, data_home: Any = None) -> Data:
    """A dataset as it is: not scaled, not reduced. ``drsne.datasets.recipes`` has what the paper does to it.

    Parameters
    ----------
    name : str
        One of ``names()``.
    n_samples : int, default=None
        Generated data: how many rows to make (None: 5000). Otherwise how many to draw, without replacement, by
        ``RandomState(random_state).choice``, which is the paper's draw; None is all of them, in their order.
    random_state : int or RandomState, default=42
        Seed of the generator or of the draw.
    data_home : path, default=None
        Folder of the data files. None: the environment variable ``DRSNE_DATA_HOME``, else ``drsne`` in the user's
        cache directory. What is not there is downloaded into it; what is there is checked and used.

    Returns
    -------
    Data
        ``X``, ``y``, ``name``, ``description``, ``source``.

    Examples
    --------
    >>> from drsne import datasets
    >>> helix = datasets.load("helix", n_samples=300)
    >>> helix.X.shape
    (300, 3)
    """
    dataset = find(name)
    if n_samples is not None:
        n_samples = checks.integer("n_samples", n_samples, at_least=1, hint="Pass None for all rows.")
        if not dataset.endless and n_samples > dataset.n_samples:
            raise ValueError(
                f"n_samples must be at most {dataset.n_samples}, the rows of {name!r}; got {n_samples}. "
                "Lower it, or pass None for all of them."
            )
    X, y, note = dataset.rows(n_samples, generator(random_state), _cache.data_home(data_home))
    description = f"{dataset.description} {note}".strip()
    return Data(X=X, y=y, name=name, description=description, source=dataset.source)


def states(data_home: Any = None) -> list[State]:
    """What is at hand, and what a first ``load`` would have to get. Nothing is decoded, so that it takes no time.

    Parameters
    ----------
    data_home : path, default=None
        Folder of the data files, as for ``load``.

    Returns
    -------
    list of State
        Tuples ``(name, state, n_samples, n_features, size, description)``, one per dataset. ``state`` is "generated",
        "comes with scikit-learn", "in the data home", "to be downloaded", "to be computed", "to be put into the data
        home by hand" or "corrupt"; a file that looks whole may still fail the checksum of ``load``. ``size`` is in
        bytes of the data home, 0 where nothing is there.

    Examples
    --------
    >>> from drsne import datasets
    >>> [s.state for s in datasets.states() if s.name == "spiral"]
    ['generated']
    """
    home = _cache.data_home(data_home)
    out = []
    for name in names():
        dataset = find(name)
        state, size = dataset.state(home)
        out.append(State(name, state, dataset.n_samples, dataset.n_features, size, dataset.description))
    return out


def generator(random_state: Any) -> np.random.RandomState:
    """A RandomState from a seed; data come from a stated seed, so None is refused."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    seed = checks.integer("random_state", random_state, at_least=0, hint="Pass 42 for the paper's data.")
    if seed >= 2**32:
        raise ValueError(f"random_state must be below 2**32; got {seed}. Pass 42 for the paper's data.")
    return np.random.RandomState(seed)
