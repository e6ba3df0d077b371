"""Run time over the number of points at the paper's settings, of this package's exact and fft engines."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from drsne import datasets as sets
from drsne.backends.numba.threads import Workers
from drsne.datasets import recipes
from drsne.experiments import figures, published, tables
from drsne.experiments.document import Block, Bullets, Figure, Heading, Table, Text
from drsne.experiments.methods import Maps, Method, Ready, Run
from drsne.experiments.methods._drsne import FIXED_KERNEL
from drsne.experiments.rows import Row
from drsne.experiments.studies import PaperStudy
from drsne.experiments.study import USUAL, Asked, Study, check_names

SIZES = (1000, 3000, 5000, 7000, 9000, 11000, 13000)
MORE = (20000, 40000, 70000)  # of the fast engine alone
REPEATS, REPEATS_OF_LARGE, LARGE = 7, 3, 9000  # seven runs of a size, three above LARGE
WARM_UP = 20  # iterations
FIT_FROM = 3000  # points from which on exponents are fitted
LAM, NEIGHBORS, MAX_ITER, SEED = 0.01, 29, 600, 42
QUICK_SIZES, QUICK_REPEATS = (300, 600), 2
ENGINES = {"exact": "our exact engine", "fft": "our fft engine"}
METHODS = ("exact_one", "exact_all", "fft_one", "fft_all")


@lru_cache(maxsize=1)
def _fashion() -> Any:
    """13,000 rows drawn once, standardised, as in the authors' script; the rest of the 70,000, likewise, follows."""
    data = sets.load("fashion_mnist")
    drawn = np.random.RandomState(SEED).choice(len(data.X), max(SIZES), replace=False)
    rest = np.setdiff1d(np.arange(len(data.X)), drawn)
    X = np.concatenate([recipes.standardise(data.X[some]) for some in (drawn, rest)])
    return replace(data, X=X, y=None)


def timed_data(name: str) -> Any:
    """Fashion-MNIST by the number of rows: "fashion_mnist, 3000 rows"."""
    data = _fashion()
    return replace(data, X=data.X[: int(name.split(",")[1].split()[0])])


def quick_data(name: str) -> Any:
    """Some of the 4 Gaussians."""
    return sets.load("gaussians50", n_samples=int(name.split(",")[1].split()[0]))


def timed(engine: str, n_jobs: int) -> Maps:
    """Whole fits, the search for neighbours included; a short one before has every kernel compiled."""

    def maps(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
        from drsne import DRSNE

        n = len(ready.X)
        around: dict[str, Any] = {"threads": Workers(n_jobs).n_threads, "machine": _machine()}
        model = DRSNE(
            density_weight=LAM * n,
            density_neighbors=NEIGHBORS,
            objective=FIXED_KERNEL["input"],
            max_iter=MAX_ITER,
            engine=engine,
            init="random",
            random_state=SEED,
            n_jobs=n_jobs,
            keep_affinities=False,
        )
        short = clone(model).set_params(max_iter=WARM_UP)
        ready.once(("warm", engine, n_jobs), lambda: short.fit(ready.X).n_iter_)
        for value in values:
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
            start = time.perf_counter()
            Y = model.fit_transform(ready.X)
            yield Run(value, Y, {"total": time.perf_counter() - start}, around | {"load": round(load, 2)})

    return maps


@lru_cache(maxsize=1)
def _machine() -> str:
    """The processor, as far as the system tells."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("model name")]
    return named[0] if named else platform.machine()


def variants() -> dict[str, Method]:
    """Both engines, on one thread and on all."""
    fixed = {"lam": LAM, "k": NEIGHBORS, "max_iter": MAX_ITER, "random_state": SEED}
    out = {}
    for engine, title in ENGINES.items():
        for label, n_jobs in (("one", 1), ("all", -1)):
            out[f"{engine}_{label}"] = Method(
                title=f"{title}, {'one thread' if label == 'one' else 'all threads'}",
                maps=timed(engine, n_jobs),
                settings={"engine": engine, "threads": label, **fixed},
            )
    return out


class Runtime(PaperStudy):
    """What ``drsne reproduce runtime`` runs and writes."""

    name = "runtime"
    description = "seconds of our exact and fft engines over the number of points, one thread and all"
    alone = True
    keeps_maps = False

    def parts(self, asked: Asked = USUAL) -> tuple[Study, ...]:
        """A study for each number of points; its seeds are repeats."""
        check_names("datasets", asked.datasets, ("gaussians50",) if asked.quick else ("fashion_mnist",))
        chosen = check_names("methods", asked.methods, METHODS)
        set_name = "gaussians50" if asked.quick else "fashion_mnist"
        out = []
        for n in QUICK_SIZES if asked.quick else (*SIZES, *MORE):
            repeats = QUICK_REPEATS if asked.quick else REPEATS if n <= LARGE else REPEATS_OF_LARGE
            some = tuple(name for name in chosen if n <= max(SIZES) or name.startswith("fft"))
            if some:
                out.append(
                    Study(
                        name="runtime, quick" if asked.quick else "runtime",
                        datasets=(f"{set_name}, {n} rows",),
                        methods=some,
                        seeds=tuple(asked.seeds) if asked.seeds else tuple(range(repeats)),
                        scores=(),
                        data=quick_data if asked.quick else timed_data,
                        sample=asked.sample,
                        variants=variants(),
                    )
                )
        return tuple(out)

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Seconds over n, on logarithmic axes."""
        found = seconds(parts, rows)
        curves = {variants()[name].title: _medians(at) for name, at in found.items()}
        if curves:
            figure = figures.run_times(curves, published.timing())
            figures.save(figure, folder / "figure_runtime.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Medians, exponents, and the authors' times for scale."""
        found = seconds(parts, rows)
        out: list[Block] = [Heading("Run time", 1), Text(_INTRODUCTION)]
        if not found:
            return out + tables.failures(rows)
        sizes = sorted({n for at in found.values() for n in at})
        known = variants()
        body = []
        for n in sizes:
            line = [str(n)]
            for at in found.values():
                values = at.get(n)
                line.append("-" if not values else f"{np.median(values):.2f} ({len(values)})")
            theirs = published.timing().get(n)
            body.append([*line, "-" if theirs is None else f"{theirs:.1f}"])
        header = [
            "points",
            *(known[name].title for name in found),
            "the paper's program, as published (another machine)",
        ]
        caption = "Median seconds of a fit, with the number of runs in brackets, by the number of points"
        out.append(Table(header, body, caption))
        told = [
            f"{known[name].title}: {exponent:.2f}"
            for name, at in found.items()
            if (exponent := fitted(_medians(at))) is not None
        ]
        later, all_sizes = fitted(published.timing()), fitted(published.timing(), least=0)
        if told:
            out += [
                Text(f"Exponents of n, fitted to the medians from {FIT_FROM} points on:"),
                Bullets([*told, f"the paper's published times: {later:.2f}, from all sizes {all_sizes:.2f}"]),
            ]
        out += _around([row["found"] for row in rows if row.get("found")])
        out.append(Figure("figure_runtime.png", _CAPTION))
        return out + tables.failures(rows)


STUDY = Runtime()

_INTRODUCTION = (
    "Made by `drsne reproduce runtime`. This study times this package's exact and fft engines at the paper's settings; "
    "the paper's own program was not timed. The runs are whole fits of Fashion-MNIST (784 columns, standardised), "
    "search for neighbours included, with lambda .01 as printed, 29 neighbours, 600 iterations and one seed, as in the "
    "authors' timing; schedule, optimiser and affinities are this package's. Medians in seconds, with the number of "
    "runs; before them an unmeasured short fit of every size has the kernels compiled. The paper's times are medians "
    "of seven runs of its own O(n^2) program, as published, on a machine that it does not name: they give a scale, "
    "not a comparison."
)
_CAPTION = (
    "Seconds of a fit over the number of points: this package's exact and fft engines at the paper's settings (lines), "
    "and the times that the paper publishes for its own program on another machine (dashed). The paper's program was "
    "not timed here."
)


def _around(found: list[dict[str, Any]]) -> list[Block]:
    """The machine, and how busy it was."""
    machines, loads = sorted({str(one["machine"]) for one in found}), [one["load"] for one in found]
    told = (
        f"All threads: {max(one['threads'] for one in found)} ({', '.join(machines)}). Before the runs the machine "
        f"had a load of {min(loads):.1f} to {max(loads):.1f}, the run before counted in."
    )
    return [Text(told)]


def seconds(parts: Sequence[Study], rows: list[Row]) -> dict[str, dict[int, list[float]]]:
    """Seconds of all runs by method and number of points."""
    wanted = {part.datasets[0] for part in parts}
    out: dict[str, dict[int, list[float]]] = {}
    for method in METHODS:
        for row in rows:
            if row["method"] == method and row["dataset"] in wanted and not row["error"]:
                n = int(row["dataset"].split(",")[1].split()[0])
                out.setdefault(method, {}).setdefault(n, []).append(row["seconds"]["total"])
    return out


def _medians(at: dict[int, list[float]]) -> dict[int, float]:
    return {n: float(np.median(values)) for n, values in sorted(at.items())}


def fitted(times: dict[int, float], least: int = FIT_FROM) -> float | None:
    """The exponent of n from ``least`` points on, or None for fewer than two sizes."""
    some = {n: t for n, t in times.items() if n >= least}
    if len(some) < 2:
        return None
    return float(np.polyfit(np.log(list(some)), np.log(list(some.values())), 1)[0])
