"""Engines evaluate the repulsion of a map: the partition sum Z and the forces F_i = sum_j w_ij^2 (y_i - y_j).

There is one engine in each file. ``engines/<name>.py`` exposes ``ENGINE``, a class that is created as
``ENGINE(backend, precision=..., **options)``. Besides the methods of :class:`Engine`, it has two more methods.
``supports(n_components, backend)`` returns whether it supports such maps on a backend, and
``check_options(options)`` raises an error for wrong options. It also has four attributes. ``adaptive`` says whether it
supports the adaptive kernel, ``backends`` holds the names of the backends on which it runs, and ``OPTIONS`` holds the
names of its options. ``tolerance`` holds the relative errors of the forces and of the partition sum that the contract
test allows. The registry reads only file names, so listing the engines does not import them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import Backend
from drsne.logs import LOGGER
from drsne.registry import Registry


class Engine(Protocol):
    """The methods of every engine."""

    name: str  # set when it is chosen

    def start(self) -> Any:
        """Return the state of an optimisation that has not begun."""
        ...

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None, state: Any = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces ``F`` (n, d) of a map ``Y`` (n, d).

        ``scales`` (n,) are those of the adaptive kernel, or None for the fixed kernel. ``state`` is the state of the
        optimisation, which is updated. If it is None, the map is evaluated without a state.
        """
        ...


REGISTRY: Registry[Any] = Registry("drsne.engines", "ENGINE", parameter="engine")
names, load = REGISTRY.names, REGISTRY.load

# Largest number of points for which "auto" sums over all pairs, by the number of dimensions of the map, for the fixed
# and for the adaptive kernel (benchmarks/engines.py). In two dimensions the tree is already faster from about 1,500
# points on, but by less than a millisecond, and it takes seconds to compile in a first fit.
CROSSOVER = {1: 2000, 2: 2500, 3: 2500}
ADAPTIVE_CROSSOVER = {1: 1500, 2: 2500, 3: 1500}
_ABOVE = {1: "fft", 2: "fft", 3: "tree"}


MANY_FOR_ALL_PAIRS = 50_000  # largest number of points for which sums over all pairs take a reasonable time
_TORCH_CROSSOVER = 2500  # the same with PyTorch, which has a tree for one and two dimensions


def resolve(name: str, n_samples: int, n_components: int, adaptive: bool = False, backend: str = "numba") -> str:
    """Return the name of the engine. "auto" stands for the fastest engine for maps of this size and this kernel."""
    if name != "auto":
        return name
    if backend == "torch":
        return "tree" if n_components <= 2 and n_samples > _TORCH_CROSSOVER else "exact"
    crossover = ADAPTIVE_CROSSOVER if adaptive else CROSSOVER
    if n_components not in _ABOVE or n_samples <= crossover[n_components]:
        return "exact"
    return _ABOVE[n_components]


def check_options(name: str, options: Any) -> None:
    """Raise an error for wrong or unknown options. With "auto", at least one engine must know each option."""
    if options is None:
        return
    if not isinstance(options, dict):
        raise TypeError(
            f"engine_options must be a dict or None; got {options!r}. Pass, for example, {{'accuracy': 'high'}}."
        )
    engines = [load(each) for each in (names() if name == "auto" else [name]) if options]
    known = sorted({option for engine in engines for option in engine.OPTIONS})
    for option in options:
        if option not in known:
            raise ValueError(
                f"engine_options must name options of engine={name!r}; got {option!r}. "
                + (f"It has the options {', '.join(known)}." if known else "It has none. Pass engine_options=None.")
            )
    for engine in engines:
        engine.check_options(options)


def check_dimensions(name: str, n_components: int, backend: str = "numba") -> None:
    """Raise an error if an engine does not support a backend, or maps with this number of dimensions on it."""
    if name == "auto":
        return
    if backend not in load(name).backends:
        able = [other for other in names() if backend in load(other).backends]
        raise ValueError(
            f"engine={name!r} does not support backend={backend!r}. Pass engine='auto' or one of {', '.join(able)}."
        )
    if not load(name).supports(n_components, backend):
        able = [other for other in names() if load(other).supports(n_components, backend)]
        raise ValueError(
            f"engine={name!r} does not support n_components={n_components}"
            + (f" with backend={backend!r}" if load(name).supports(n_components) else "")
            + f". Pass engine='auto' or one of {', '.join(able)}."
        )


def check_kernel(name: str) -> None:
    """Raise an error for an engine that does not support the adaptive kernel."""
    if name != "auto" and not load(name).adaptive:
        able = [other for other in names() if load(other).adaptive]
        raise ValueError(
            f"engine must be one that supports the adaptive kernel, which this fit uses; got {name!r}. Pass "
            f"kernel='fixed' (or an objective with it), engine='auto', or one of {', '.join(able)}."
        )


def check_chosen(
    name: str, options: Any, n_samples: int, n_components: int, adaptive: bool = False, backend: str = "numba"
) -> None:
    """Raise an error for options that the engine chosen by "auto" does not support.

    The exact engine ignores them, because it is always accurate enough.
    """
    chosen = resolve(name, n_samples, n_components, adaptive, backend)
    for option in options or {}:
        if chosen != "exact" and option not in load(chosen).OPTIONS:
            able = [
                each
                for each in names()
                if option in load(each).OPTIONS
                and (load(each).adaptive or not adaptive)
                and backend in load(each).backends
            ]
            raise ValueError(
                f"engine_options[{option!r}] is not an option of engine={chosen!r}, which {name!r} chooses for "
                f"{n_samples} samples and n_components={n_components}. Omit it"
                + (
                    f", or pass engine={able[0]!r}."
                    if able
                    else f"; backend={backend!r} has no engine with this option."
                )
            )


def chosen(
    name: str,
    options: dict[str, Any] | None,
    backend: Any,
    n_samples: int,
    n_components: int,
    *,
    precision: str,
    adaptive: bool = False,
    masses: Any = None,
) -> Engine:
    """Return the engine of a fit. Points with ``masses`` have engines of their own."""
    if masses is not None and backend.name == "numba":
        from drsne.engines._weighted import WeightedEngine

        theta = 0.0 if name == "exact" else (options or {}).get("theta")
        weighted: Any = WeightedEngine(backend, masses, theta)
        weighted.name = "tree" if n_components <= 3 else "exact"
        return weighted  # type: ignore[no-any-return]
    name = resolve(name, n_samples, n_components, adaptive, backend.name)
    if backend.name == "torch" and name == "exact" and n_samples > MANY_FOR_ALL_PAIRS:
        checks.warn(
            f"PyTorch sums over all pairs of {n_samples} points for n_components={n_components}, which takes long. "
            "Pass n_components=2, or backend='numba' without a device."
        )
    LOGGER.debug("Engine %r with the %s kernel", name, "adaptive" if adaptive else "fixed")
    engine = build(name, backend, precision=precision, options=options, masses=masses)
    engine.name = name
    return engine


def build(name: str, backend: Backend, *, precision: str, options: Any = None, masses: Any = None) -> Engine:
    """Return an engine with the options that it supports; other options are ignored.

    ``masses`` (n,) are those of the points, or None if all are 1. Only the backend of PyTorch has engines of several
    names for points with masses; that of numba has one, :class:`drsne.engines._weighted.WeightedEngine`.
    """
    kind = load(name)
    used = {option: value for option, value in (options or {}).items() if option in kind.OPTIONS}
    if masses is not None:
        from drsne.engines._weighted import ON_DEVICE

        kind, used = ON_DEVICE[name], {**used, "masses": masses}
    engine: Engine = kind(backend, precision=precision, **used)
    return engine
