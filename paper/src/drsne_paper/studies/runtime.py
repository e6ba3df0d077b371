"""Run time of this package's exact and fft engines over the number of points, at the paper's settings."""

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

from drsne_paper import datasets as sets
from drsne_paper import figures, published, tables
from drsne_paper.datasets import recipes
from drsne_paper.document import Block, Bullets, Figure, Heading, Table, Text
from drsne_paper.methods import Maps, Method, Run, Workspace
from drsne_paper.methods._drsne import fixed_kernel
from drsne_paper.rows import Row
from drsne_paper.studies import PaperStudy
from drsne_paper.study import EVERYTHING, Selection, Study, check_names

SIZES = (1000, 3000, 5000, 7000, 9000, 11000, 13000)
MORE = (20000, 40000, 70000)  # numbers of points for the fast engine only
REPEATS, REPEATS_OF_LARGE, LARGE = 7, 3, 9000  # seven runs for each size, but three above LARGE
WARM_UP = 20  # iterations of the fit that compiles the kernels
FIT_FROM = 3000  # smallest number of points used to fit exponents
LAM, NEIGHBORS, MAX_ITER, SEED = 0.01, 29, 600, 42
QUICK_SIZES, QUICK_REPEATS = (300, 600), 2
ENGINES = {"exact": "our exact engine", "fft": "our fft engine"}
THREADS = {"one": (1, "one thread"), "all": (-1, "all threads")}
METHODS = ("exact_one", "exact_all", "fft_one", "fft_all")
FAST = ("fft_one", "fft_all")


@lru_cache(maxsize=1)
def _fashion() -> Any:
    """Return 13,000 rows, drawn once and standardised as in the authors' script, then the other rows, standardised."""
    data = sets.load("fashion_mnist")
    drawn = np.random.RandomState(SEED).choice(len(data.X), max(SIZES), replace=False)
    rest = np.setdiff1d(np.arange(len(data.X)), drawn)
    X = np.concatenate([recipes.standardise(data.X[some]) for some in (drawn, rest)])
    return replace(data, X=X, y=None)


def timed_data(name: str, *, n_samples: int) -> Any:
    """Return the first rows of Fashion-MNIST."""
    data = _fashion()
    return replace(data, X=data.X[:n_samples])


def quick_data(name: str, *, n_samples: int) -> Any:
    """Return some points of the 4 Gaussians."""
    return sets.load("gaussians50", n_samples=n_samples)


def timed(engine: str, n_jobs: int) -> Maps:
    """Time whole fits, including the search for neighbours. A short fit compiles every kernel beforehand."""

    def maps(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
        from joblib import cpu_count
        from sklearn.base import clone

        from drsne import DRSNE

        workspace.require(perplexity=30.0, density_neighbors=NEIGHBORS)
        n = len(workspace.X)
        machine: dict[str, Any] = {"threads": n_jobs if n_jobs > 0 else cpu_count(), "machine": _machine()}
        model = DRSNE(
            density_weight=LAM * n,
            density_neighbors=NEIGHBORS,
            objective=fixed_kernel("input"),
            max_iter=MAX_ITER,
            engine=engine,
            init="random",
            random_state=SEED,
            n_jobs=n_jobs,
            keep_affinities=False,
        )
        short = clone(model).set_params(max_iter=WARM_UP)
        workspace.cached(("warm", engine, n_jobs), lambda: short.fit(workspace.X).n_iter_)
        for value in values:
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
            start = time.perf_counter()
            Y = model.fit_transform(workspace.X)
            yield Run(value, Y, {"total": time.perf_counter() - start}, machine | {"load": round(load, 2)})

    return maps


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return the name of the processor, or its architecture if the system does not give a name."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("model name")]
    return named[0] if named else platform.machine()


def variants() -> dict[str, Method]:
    """Return both engines as methods, on one thread and on all threads."""
    fixed = {"lam": LAM, "k": NEIGHBORS, "max_iter": MAX_ITER, "random_state": SEED}
    out = {}
    for engine, title in ENGINES.items():
        for label, (n_jobs, threads) in THREADS.items():
            out[f"{engine}_{label}"] = Method(
                title=f"{title}, {threads}",
                maps=timed(engine, n_jobs),
                settings={"engine": engine, "threads": label, **fixed},
            )
    return out


class Runtime(PaperStudy):
    """What ``drsne reproduce runtime`` runs and writes."""

    name = "runtime"
    description = "seconds of our exact and fft engines over the number of points, one thread and all"
    sequential = True
    keeps_maps = False

    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return a study for each number of points. Its seeds stand for repetitions."""
        quick = selection.quick
        datasets = check_names("datasets", selection.datasets, ("gaussians50",) if quick else ("fashion_mnist",))
        methods = check_names("methods", selection.methods, METHODS)
        out = []
        for n in QUICK_SIZES if quick else (*SIZES, *MORE):
            repeats = QUICK_REPEATS if quick else REPEATS if n <= LARGE else REPEATS_OF_LARGE
            some = tuple(name for name in methods if n <= max(SIZES) or name in FAST)
            if some:
                out.append(
                    Study(
                        name="runtime",
                        datasets=datasets,
                        data_params={"n_samples": n},
                        methods=some,
                        seeds=tuple(selection.seeds) if selection.seeds else tuple(range(repeats)),
                        scores=(),
                        data=quick_data if quick else timed_data,
                        sample=selection.sample,
                        variants=variants(),
                    )
                )
        return tuple(out)

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the figure of run time over n, on logarithmic axes."""
        curves = {variants()[name].title: _medians(at) for name, at in seconds(rows).items()}
        if curves:
            figure = figures.run_times(curves, published.timing())
            figures.save(figure, folder / "figure_runtime.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return the median times, the exponents and, for comparison, the authors' times."""
        found = seconds(rows)
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
        exponents = [
            f"{known[name].title}: {exponent:.2f}"
            for name, at in found.items()
            if (exponent := fitted(_medians(at))) is not None
        ]
        later, all_sizes = fitted(published.timing()), fitted(published.timing(), least=0)
        if exponents:
            out += [
                Text(f"Exponents of n, fitted to the medians of {FIT_FROM} points and more:"),
                Bullets([*exponents, f"the paper's published times: {later:.2f}, from all sizes {all_sizes:.2f}"]),
            ]
        out.append(_conditions([row["details"] for row in rows if row.get("details")]))
        out.append(Figure("figure_runtime.png", _CAPTION))
        return out + tables.failures(rows)


STUDY = Runtime()

_INTRODUCTION = (
    "Made by `drsne reproduce runtime`. This study times this package's exact and fft engines at the paper's settings; "
    "the paper's own program was not timed. The runs are whole fits of Fashion-MNIST (784 columns, standardised), "
    "including the search for neighbours, with lambda .01 as printed, 29 neighbours, 600 iterations and one seed, as "
    "in the authors' timing; schedule, optimiser and affinities are this package's. The table has medians in seconds, "
    "with the number of runs. A short fit that is not timed compiles the kernels for every size. The paper's times are "
    "medians of seven runs of its own O(n^2) program, as published, on a machine that it does not name: they give a "
    "scale, not a comparison."
)
_CAPTION = (
    "Seconds of a fit over the number of points: this package's exact and fft engines at the paper's settings (lines), "
    "and the times that the paper publishes for its own program on another machine (dashed). The paper's program was "
    "not timed here."
)


def _conditions(details: list[dict[str, Any]]) -> Block:
    """Return a sentence about the machine, and about how busy it was."""
    machines, loads = sorted({str(one["machine"]) for one in details}), [one["load"] for one in details]
    return Text(
        f"All threads: {max(one['threads'] for one in details)} ({', '.join(machines)}). Before the runs the machine "
        f"had a load of {min(loads):.1f} to {max(loads):.1f}, which includes the previous run."
    )


def seconds(rows: Sequence[Row]) -> dict[str, dict[int, list[float]]]:
    """Return the seconds of all runs, for each method and number of points."""
    out: dict[str, dict[int, list[float]]] = {}
    for method in METHODS:
        for row in rows:
            if row["method"] == method and not row["error"]:
                out.setdefault(method, {}).setdefault(row["data"]["n_samples"], []).append(row["seconds"]["total"])
    return out


def _medians(at: dict[int, list[float]]) -> dict[int, float]:
    return {n: float(np.median(values)) for n, values in sorted(at.items())}


def fitted(times: dict[int, float], least: int = FIT_FROM) -> float | None:
    """Return the exponent of n, fitted to sizes of at least ``least`` points; None for fewer than two such sizes."""
    some = {n: t for n, t in times.items() if n >= least}
    if len(some) < 2:
        return None
    return float(np.polyfit(np.log(list(some)), np.log(list(some.values())), 1)[0])
