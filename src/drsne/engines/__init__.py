"""Engines evaluate the repulsion of a map: the partition sum Z and the forces F_i = sum_j w_ij^2 (y_i - y_j).

There is one engine in each file, whose module is listed in ``ENGINES``. It exposes ``ENGINE``, a class that is created
as ``ENGINE(backend, precision=..., **options)``. Besides the methods of :class:`Engine`, the class has

- ``supports(n_components, kind)``, which returns whether it supports such maps on a backend of this kind
  (:class:`drsne.backends.Kind`);
- ``check_options(options)``, which raises an error for wrong options, and ``OPTIONS``, the names of its options;
- ``adaptive``, which says whether it supports the adaptive kernel;
- ``tolerance``, the relative errors of the forces and of the partition sum that the contract test allows.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import Backend, Kind
from drsne.backends.choice import KINDS
from drsne.logs import LOGGER


class Engine(Protocol):
    """The methods of every engine."""

    name: str  # set when it is chosen

    def start(self) -> Any:
        """Return the state of an optimisation that has not begun."""

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None, state: Any = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces ``F`` (n, d) of a map ``Y`` (n, d).

        ``smoothing`` is added to each squared distance. ``scales`` (n,) are those of the adaptive kernel, or None for
        the fixed kernel. ``state`` is the state of the optimisation, which is updated, or None without a state.
        """


# Names and modules. Other distributions can add theirs.
ENGINES = {name: f"drsne.engines.{name}" for name in ("exact", "fft", "tree")}


def names() -> list[str]:
    """Return the names of the engines, which are not imported for that."""
    return sorted(ENGINES)


def load(name: Any) -> Any:
    """Return the class of the engine called ``name``, or raise an error with a suggestion if there is none."""
    checks.choice("engine", name, names())
    return import_module(ENGINES[name]).ENGINE


def resolve(name: str, n_samples: int, n_components: int, kind: Kind, adaptive: bool = False) -> str:
    """Return the name of the engine. "auto" stands for the fastest engine for maps of this size and this kernel."""
    if name != "auto":
        return name
    if n_samples <= kind.crossover[adaptive].get(n_components, np.inf):
        return "exact"
    return kind.large[n_components]


def _able(supports: Callable[[Any], bool]) -> list[str]:
    """Return the names of the engines for which this is true."""
    return [name for name in names() if supports(load(name))]


def _runs(engine: Any, kind: Kind) -> bool:
    """Return whether an engine supports maps of any usual number of dimensions on a backend."""
    return any(engine.supports(n_components, kind) for n_components in (1, 2, 3))


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


def check_dimensions(name: str, n_components: int, kind: Kind) -> None:
    """Raise an error if an engine does not support a backend, or maps with this number of dimensions on it."""
    if name == "auto" or load(name).supports(n_components, kind):
        return
    what, able = f"backend={kind.name!r}", _able(lambda engine: _runs(engine, kind))
    if _runs(load(name), kind):
        elsewhere = any(load(name).supports(n_components, other) for other in KINDS.values())
        what = f"n_components={n_components}" + (f" with {what}" if elsewhere else "")
        able = _able(lambda engine: engine.supports(n_components, kind))
    raise ValueError(f"engine={name!r} does not support {what}. Pass engine='auto' or one of {', '.join(able)}.")


def check_kernel(name: str) -> None:
    """Raise an error for an engine that does not support the adaptive kernel."""
    if name != "auto" and not load(name).adaptive:
        raise ValueError(
            f"engine must be one that supports the adaptive kernel, which this fit uses; got {name!r}. Pass "
            "kernel='fixed' (or an objective with it), engine='auto', or one of "
            f"{', '.join(_able(lambda engine: engine.adaptive))}."
        )


def check_chosen(
    name: str, options: Any, n_samples: int, n_components: int, kind: Kind, adaptive: bool = False
) -> None:
    """Raise an error for options that the engine chosen by "auto" does not support.

    The exact engine ignores them, because it is always accurate enough.
    """
    chosen = resolve(name, n_samples, n_components, kind, adaptive)
    for option in options or {}:
        if chosen == "exact" or option in load(chosen).OPTIONS:
            continue
        able = [
            each
            for each in _able(lambda engine: _runs(engine, kind) and (engine.adaptive or not adaptive))
            if option in load(each).OPTIONS
        ]
        raise ValueError(
            f"engine_options[{option!r}] is not an option of engine={chosen!r}, which {name!r} chooses for "
            f"{n_samples} samples and n_components={n_components}. Omit it"
            + (f", or pass engine={able[0]!r}." if able else f"; backend={kind.name!r} has no engine with this option.")
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
    """Return the engine of a fit. Points with ``masses`` (n,) have engines of their own."""
    kind = backend.kind
    if masses is not None and not kind.weighted_engines:
        from drsne.engines._weighted import WeightedEngine

        theta = 0.0 if name == "exact" else (options or {}).get("theta")
        weighted: Any = WeightedEngine(backend, masses, theta)
        weighted.name = "tree" if n_components <= 3 else "exact"
        return weighted  # type: ignore[no-any-return]
    name = resolve(name, n_samples, n_components, kind, adaptive)
    if name == "exact" and n_samples > kind.slow_from:
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

    Only backends with ``weighted_engines`` have engines of several names for points with ``masses``.
    """
    kind = load(name)
    used = {option: value for option, value in (options or {}).items() if option in kind.OPTIONS}
    if masses is not None:
        from drsne.engines._weighted import ON_DEVICE

        kind, used = ON_DEVICE[name], {**used, "masses": masses}
    engine: Engine = kind(backend, precision=precision, **used)
    return engine
