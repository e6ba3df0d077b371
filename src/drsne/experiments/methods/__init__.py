"""Methods that are compared: one a file, ``methods/<name>.py``, which exposes ``METHOD``.

A method varies one parameter over a grid. The registry reads file names only, so listing methods imports none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn

Array = NDArray[np.float64]
T = TypeVar("T")
_LATELY = 2  # affinities of all pairs of 5000 points take 700 MB


class Run(NamedTuple):
    """One map."""

    value: Any  # of what the grid varies: a number, a tuple of numbers, or None
    embedding: Array
    seconds: dict[str, float]  # "neighbors" and "optimization", as far as they can be told apart
    found: Mapping[str, Any] = MappingProxyType({})  # what the method chose or measured itself, for the record


class Ready:
    """The data, and what runs on them share: found once, kept."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self._kept: dict[Any, Any] = {}
        self._lately: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What ``make`` returns, made at the first call with ``key``."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def lately(self, key: Any, make: Callable[[], T]) -> T:
        """The same for what takes much memory: of such things only the last few that were asked for are kept."""
        found: T = self._lately.pop(key) if key in self._lately else make()
        self._lately[key] = found
        while len(self._lately) > _LATELY:
            del self._lately[next(iter(self._lately))]
        return found

    def neighbors(self, k: int) -> tuple[KnnGraph, float]:
        """The ``k`` nearest neighbours (as many as there are), and the seconds that the search took."""
        k = min(k, len(self.X) - 1)

        def search() -> tuple[KnnGraph, float]:
            start = time.perf_counter()
            graph = knn(self.X, k)
            return graph, time.perf_counter() - start

        return self.once(("neighbors", k), search)


Maps = Callable[[Ready, Sequence[Any], int], Iterator[Run]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method with its grid."""

    title: str  # as in the paper's tables
    parameter: str | tuple[str, ...] | None = None  # what the grid varies: one thing, several at once, or nothing
    grid: tuple[Any, ...] = (None,)
    maps: Maps  # (data, values, seed) -> a Run for each value
    settings: dict[str, Any] = field(default_factory=dict)  # all other parameters, for the record
    together: bool = False  # whether the values of a grid are one run, such as a path
    seeded: bool = True  # whether maps depend on the seed
    needs: tuple[str, ...] = ()  # modules that must be importable
    extra: str = "experiments"  # what brings them


def names() -> list[str]:
    """Names of the methods in this folder."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def find(name: str) -> Method:
    """The method in ``methods/<name>.py``, whether or not it can be run here."""
    checks.choice("method", name, tuple(names()))
    method: Method = import_module(f"drsne.experiments.methods.{name}").METHOD
    return method


def load(name: str) -> Method:
    """The method in ``methods/<name>.py``; an error that names the extra where a package is missing."""
    method = find(name)
    check(name, method)
    return method


def check(name: str, method: Method) -> None:
    """An error that names the extra where a package is missing."""
    missing = [module for module in method.needs if find_spec(module) is None]
    if missing:
        raise ImportError(
            f"method {name!r} needs {', '.join(missing)}: pip install 'drsne[{method.extra}]', or leave it out of "
            "methods."
        )


def each(fit: Callable[[Array, Any, int], Any]) -> Maps:
    """Maps of a function ``(X, value, seed) -> map``, one after the other; all the time counts as optimisation."""

    def maps(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
        for value in values:
            start = time.perf_counter()
            Y = np.asarray(fit(ready.X, value, seed), dtype=np.float64)
            yield Run(value, Y, {"optimization": time.perf_counter() - start})

    return maps
