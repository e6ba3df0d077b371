"""Methods that are compared. There is one method in each file: ``methods/<name>.py`` exposes ``METHOD``.

A method varies one parameter, or several at once, over a grid. Listing the methods imports none of the packages that
they need: method files import them when a map is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from drsne_paper.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from drsne_paper._private import KnnGraph

    Array = NDArray[np.float64]
else:
    Array = Any  # so that listing methods does not import numpy
T = TypeVar("T")
_RECENT = 2  # number of large results that are kept; affinities of all pairs of 5000 points take 700 MB
_NEIGHBORS_PER_PERPLEXITY = 3.0  # with fewer neighbours, the estimators lower the perplexity


class Run(NamedTuple):
    """One run of a method: a map, or numbers about the data."""

    value: Any  # value from the grid: a number, a tuple of numbers and words, or None
    embedding: Array | None  # None for a run that makes no map
    seconds: dict[str, float]  # "neighbors" and "optimization", if they can be measured separately
    details: Mapping[str, Any] = MappingProxyType({})  # values that the method chose or measured, for the row


class Workspace:
    """The data of several runs, with the results that these runs share."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self._kept: dict[Any, Any] = {}
        self._recent: dict[Any, Any] = {}

    def cached(self, key: Any, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which is called once for each ``key``."""
        if key not in self._kept:
            self._kept[key] = make()
        out: T = self._kept[key]
        return out

    def cached_recent(self, key: Any, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which needs much memory: only the results that were used last are kept."""
        out: T = self._recent.pop(key) if key in self._recent else make()
        self._recent[key] = out
        while len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
        return out

    def neighbors(self, k: int) -> tuple[KnnGraph, float]:
        """Return the ``k`` nearest neighbours (all other points if there are fewer), and the seconds of the search."""
        from drsne_paper._private import knn

        k = min(k, len(self.X) - 1)

        def search() -> tuple[KnnGraph, float]:
            start = time.perf_counter()
            graph = knn(self.X, k)
            return graph, time.perf_counter() - start

        return self.cached(("neighbors", k), search)

    def require(self, *, perplexity: float = 1.0, density_neighbors: int = 0) -> None:
        """Raise an error if the data have too few points for these settings.

        The estimators would lower the settings with a warning, and the row would state settings that were not used.
        """
        most = len(self.X) - 1
        largest = max(1.0, most / _NEIGHBORS_PER_PERPLEXITY)
        if perplexity > largest:
            raise ValueError(
                f"perplexity must be at most {largest:g} for {most + 1} points; got {perplexity:g}. Lower it."
            )
        if density_neighbors > most:
            raise ValueError(
                f"density_neighbors must be at most {most} for {most + 1} points; got {density_neighbors}. Lower it."
            )


Maps = Callable[[Workspace, Sequence[Any], int], Iterator[Run]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method with its grid."""

    title: str  # the title in the paper's tables
    parameter: str | tuple[str, ...] | None = None  # the parameter that the grid varies, several parameters, or None
    grid: tuple[Any, ...] = (None,)
    maps: Maps  # (workspace, values, seed) -> a Run for each value
    settings: Mapping[str, Any] = field(default_factory=dict)  # all other parameters, which are recorded in rows
    together: bool = False  # whether all values of the grid are computed in one run, such as a path
    seeded: bool = True  # whether maps depend on the seed
    needs: tuple[str, ...] = ()  # modules that must be installed
    extra: str = "peers"  # the extra of this package that installs them


NAMES = (
    "densmap",
    "densne",
    "drsne",
    "drsne_adaptive",
    "drsne_both",
    "drsne_code",
    "drsne_text",
    "high_d",
    "pacmap",
    "pca",
    "tsne",
    "umap",
)
REGISTRY: Registry[Method] = Registry("drsne_paper.methods", "METHOD", "method", NAMES)


def names() -> list[str]:
    """Return the names of the methods."""
    return REGISTRY.names()


def find(name: str) -> Method:
    """Return the method in ``methods/<name>.py``, whether or not the packages that it needs are installed."""
    return REGISTRY.load(name)


def load(name: str) -> Method:
    """Return the method in ``methods/<name>.py``. If a package is missing, raise an error that names the extra."""
    method = find(name)
    check(name, method)
    return method


def missing(method: Method) -> list[str]:
    """Return the modules that a method needs but that are not installed."""
    return [module for module in method.needs if find_spec(module) is None]


def check(name: str, method: Method) -> None:
    """If a package is missing, raise an error that names the extra."""
    if modules := missing(method):
        raise ImportError(
            f"method {name!r} needs {', '.join(modules)}: pip install './paper[{method.extra}]', or leave it out of "
            "methods."
        )


def each(fit: Callable[[Array, Any, int], Any]) -> Maps:
    """Return the maps of a function ``(X, value, seed) -> map``; all its time counts as optimisation."""

    def maps(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
        import numpy as np

        for value in values:
            start = time.perf_counter()
            Y = np.asarray(fit(workspace.X, value, seed), dtype=np.float64)
            yield Run(value, Y, {"optimization": time.perf_counter() - start})

    return maps
