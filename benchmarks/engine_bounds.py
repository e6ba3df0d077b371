"""The largest errors of the engines: on constructed maps, and at every iteration of real fits.

    python benchmarks/engine_bounds.py [--quick]

Errors are against all pairs in double precision: of the forces as norms over all points, of the partition sum
relative. The mesh keeps state from one evaluation to the next (when it last checked itself, and what that ruled out),
so each constructed map is evaluated twice: first with a new engine, and after an ordinary map of as many points, whose
check has passed. The larger error counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from data import digits
from report import table, write

from drsne import DRSNE, engines
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers

Map = np.ndarray
MANY = 10_000  # points from which on the adaptive kernel is tried with one kind of scales only
SPANS = np.logspace(-4, 4, 9)


class Setting(NamedTuple):
    """An engine with its options and the bounds that docs/engines.md states for it."""

    label: str
    name: str
    options: dict[str, Any]
    adaptive: bool
    force: float
    partition: float


SETTINGS = [
    Setting("exact", "exact", {}, False, 3e-4, 2e-5),
    Setting("fft", "fft", {}, False, 1.5e-2, 5e-4),
    Setting("fft high", "fft", {"accuracy": "high"}, False, 1e-3, 1e-4),
    Setting("tree", "tree", {}, False, 1e-2, 5e-4),
    Setting("adaptive: fft and tree", "fft", {}, True, 1e-2, 5e-4),
    Setting("adaptive: fft high", "fft", {"accuracy": "high"}, True, 1e-3, 1e-4),
]


def stacks(n: int, count: int, span: float, rng: np.random.Generator) -> Map:
    """Groups of exact duplicates."""
    return rng.uniform(-span / 2, span / 2, (count, 2))[rng.integers(count, size=n)]


def clusters(n: int, radius: float, span: float, rng: np.random.Generator) -> Map:
    return stacks(n, 10, span, rng) + radius * rng.normal(size=(n, 2))


def line(n: int, span: float, angle: float) -> Map:
    return np.linspace(-span / 2, span / 2, n)[:, None] * (np.cos(angle), np.sin(angle))


def ring(n: int, span: float) -> Map:
    t = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    return span / 2 * np.c_[np.cos(t), np.sin(t)]


def lattice(n: int, span: float) -> Map:
    axis = np.linspace(-span / 2, span / 2, round(n**0.5))
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def ordinary(n: int, rng: np.random.Generator) -> Map:
    """A map as in the middle of a fit: about one point per unit of area, or several."""
    centres = 0.25 * n**0.5 * rng.normal(size=(20, 2))
    return centres[rng.integers(20, size=n)] + 0.03 * n**0.5 * rng.normal(size=(n, 2))


def maps(n: int) -> Iterator[tuple[str, str, Map]]:
    """Kind, description and coordinates of every constructed map of about n points."""
    rng = np.random.default_rng(n)
    for span in (1.0, 3.0, 10.0, 40.0, 200.0):
        for count in (10, 100, 1000):
            yield f"{count} stacks", f"span {span:g}", stacks(n, count, span, rng)
        for radius in (1e-3, 1e-2, 0.1, 0.3):
            yield "ten clusters", f"radius {radius:g}, span {span:g}", clusters(n, radius, span, rng)
    for span in (1.0, 5.0, 20.0, 80.0, 400.0, 2000.0):
        yield "line along an axis", f"span {span:g}", line(n, span, 0.0)
        yield "diagonal line", f"span {span:g}", line(n, span, np.pi / 4)
        yield "slanted line", f"span {span:g}", line(n, span, 0.4)
        yield "ring", f"span {span:g}", ring(n, span)
        yield "lattice", f"span {span:g}", lattice(n, span)
    base = ordinary(n, rng)
    yield "ordinary", f"span {np.ptp(base):.3g}", base
    for distance in (100.0, 1e4, 1e6):
        yield "two halves", f"{distance:g} apart", base + distance * (np.arange(n) % 2)[:, None] * (1.0, 0.3)
    for reach in (300.0, 3000.0, 3e4):
        far = base.copy()
        far[: n // 200] = rng.uniform(-reach, reach, (n // 200, 2))
        yield "outliers", f"up to {reach:g}", far
    for span in SPANS:
        yield "uniform noise", f"span {span:g}", rng.uniform(-span / 2, span / 2, (n, 2))


def scales(Y: Map) -> Iterator[tuple[str, np.ndarray]]:
    """Scales of the adaptive kernel, four ways."""
    n, rng = len(Y), np.random.default_rng(0)
    yield "all 1", np.ones(n)
    yield "random", np.exp(0.8 * rng.normal(size=n))
    along = (Y - Y.mean(axis=0)) @ (0.8, 0.6)
    yield "by position", np.exp(np.clip(along / (along.std() or 1.0), -2.0, 2.0))
    yield "e^-3 to e^3", np.exp(rng.uniform(-3.0, 3.0, n))


def errors(result: tuple[float, Map], truth: tuple[float, Map]) -> tuple[float, float]:
    size = float(np.linalg.norm(truth[1]))
    force = float(np.linalg.norm(result[1] - truth[1])) / size if size > 0.0 else 0.0
    return force, abs(result[0] - truth[0]) / truth[0]


class Worst:
    """The largest errors by setting and kind of map, where they were found, and how many were above the bounds."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], list[Any]] = {}

    def add(self, setting: Setting, kind: str, where: str, force: float, partition: float) -> None:
        entry = self.of.setdefault((setting.label, kind), [0.0, "", 0.0, "", 0, 0])
        if force >= entry[0]:
            entry[0:2] = force, where
        if partition >= entry[2]:
            entry[2:4] = partition, where
        entry[4] += 1
        entry[5] += force > setting.force or partition > setting.partition

    def table(self, what: str) -> str:
        """One row per kind of map, one column per setting: force / partition, with the share above the bounds."""
        kinds = list(dict.fromkeys(kind for _, kind in self.of))
        rows = [[kind, *(self._cell(setting, kind) for setting in SETTINGS)] for kind in kinds]
        total = ["bound", *(f"{setting.force:.1e} / {setting.partition:.0e}" for setting in SETTINGS)]
        return table([what, *(setting.label for setting in SETTINGS)], [total, *rows])

    def _cell(self, setting: Setting, kind: str) -> str:
        entry = self.of.get((setting.label, kind))
        if entry is None:
            return ""
        above = f" ({entry[5]} of {entry[4]})" if entry[5] else ""
        return f"{entry[0]:.1e} / {entry[2]:.0e}{above}"

    def where(self) -> str:
        """List the maps of the largest errors that are above a bound."""
        rows = []
        for (label, kind), (force, at, partition, also, _, above) in self.of.items():
            if above:
                rows.append([label, kind, f"{force:.1e}", at, f"{partition:.0e}", also])
        header = ["engine", "kind", "largest force error", "where", "largest partition error", "where"]
        return table(header, rows) if rows else "None."


def constructed(sizes: tuple[int, ...], workers: Workers) -> Worst:
    worst, exact = Worst(), engines.load("exact")(NumbaBackend(workers), precision="double")
    for n in sizes:
        before = ordinary(n, np.random.default_rng(1))
        for kind, description, Y in maps(n):
            kernels = [("fixed", None), *scales(Y)]
            for label, rho in kernels if n < MANY else kernels[:3:2]:
                truth = exact.repulsion(Y, 0.0, rho)
                for setting in SETTINGS:
                    if setting.adaptive != (rho is not None):
                        continue
                    at = f"n = {n}, {description}" + (f", scales {label}" if setting.adaptive else "")
                    engine = engines.load(setting.name)(NumbaBackend(workers), **setting.options)
                    found = [errors(engine.repulsion(Y, 0.0, rho), truth)]
                    if setting.name == "fft":
                        state = engine.start()
                        engine.repulsion(before[: len(Y)], 0.0, state=state)
                        found.append(errors(engine.repulsion(Y, 0.0, state=state), truth))
                        at += f", {state.used}"
                    force, partition = np.max(found, axis=0)
                    worst.add(setting, kind, at, force, partition)
        print(f"{n} points done", flush=True)
    return worst


@contextmanager
def watched(kind: type, note: Callable[[Any, tuple[float, Map], Map, float, Any], None]) -> Iterator[None]:
    """Tell ``note`` of every evaluation of an engine."""
    plain: Any = kind.repulsion  # type: ignore[attr-defined]

    def repulsion(self: Any, Y: Map, smoothing: float, scales: Any = None, state: Any = None) -> tuple[float, Map]:
        result = plain(self, Y, smoothing, scales, state)
        note(state, result, Y, smoothing, scales)
        return result

    kind.repulsion = repulsion  # type: ignore[attr-defined]
    try:
        yield
    finally:
        kind.repulsion = plain  # type: ignore[attr-defined]


def fitted(n: int) -> dict[str, np.ndarray]:
    """Data whose maps are hard: duplicates, tight clusters, curves; and Digits."""
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 1.0, n)
    rows = {count: 5 * rng.normal(size=(count, 10))[rng.integers(count, size=n)] for count in (100, 10)}
    tight = rows[10] + 0.01 * rng.normal(size=(n, 10))
    circle = np.c_[np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)]
    return {
        "100 groups of duplicates": rows[100],
        "ten groups of duplicates": rows[10],
        "ten tight clusters": tight,
        "a line": np.c_[t, 2 * t, -t] + 1e-4 * rng.normal(size=(n, 3)),
        "a ring": np.c_[circle, 0.01 * rng.normal(size=n)],
        "Digits": digits(),
    }


def inside(n: int, max_iter: int, workers: Workers) -> Worst:
    worst, exact = Worst(), engines.load("exact")(NumbaBackend(workers), precision="double")
    for name, X in fitted(n).items():
        for setting in SETTINGS[1:]:  # all pairs have no state
            count = iter(range(10**9))

            def note(
                state: Any, result: Any, Y: Map, smoothing: float, rho: Any, *, s=setting, c=count, name=name
            ) -> None:
                used = getattr(state, "used", "tree")
                truth = exact.repulsion(Y, smoothing, rho)
                worst.add(s, name, f"evaluation {next(c)}, {used}", *errors(result, truth))

            with watched(engines.load(setting.name), note):
                DRSNE(
                    engine=setting.name,
                    engine_options=setting.options or None,
                    density_weight=1.0 if setting.adaptive else 0.0,
                    max_iter=max_iter,
                    n_iter_exaggeration=max_iter // 4,
                    random_state=0,
                    n_jobs=workers.n_threads,
                ).fit(X)
        print(f"{name} done", flush=True)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small maps and short fits")
    quick = parser.parse_args().quick
    sizes, n, max_iter = ((2000,), 1000, 100) if quick else ((2000, 6000, 20_000), 2500, 400)
    with Workers(-1) as workers:
        on_maps = constructed(sizes, workers)
        in_fits = inside(n, max_iter, workers)
    legend = "Largest error of the forces / of the partition sum, and how many evaluations were above a bound."
    write(
        "engine_bounds",
        "Largest errors of the engines",
        "python benchmarks/engine_bounds.py" + (" --quick" if quick else ""),
        f"## Constructed maps\n\n{', '.join(map(str, sizes))} points. {legend}\n\n" + on_maps.table("map"),
        "### Where the bounds are exceeded\n\n" + on_maps.where(),
        f"## Inside fits\n\n{n} points (Digits 1797), {max_iter} iterations, every evaluation. {legend}\n\n"
        + in_fits.table("data"),
        "### Where the bounds are exceeded in a fit\n\n" + in_fits.where(),
    )


if __name__ == "__main__":
    main()
