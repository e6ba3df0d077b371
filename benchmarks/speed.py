"""Compare speed and quality with the peers, in one process tree, on the same data and threads.

    python benchmarks/speed.py [--threads 2] [--plan mnist|large|million|all] [--methods ...]
    python benchmarks/speed.py --report     write only the table and the picture

Each run is a process of its own and one line of results/speed.jsonl, written when it ends: a killed study continues
where it stopped. Needs ``pip install 'drsne[peers]'``, and MNIST, Fashion-MNIST and Covertype in DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import large
from report import Results, machine, write

ROWS = Results("speed", "dataset", "n", "method", "threads")
ITERATIONS = 750  # of every t-SNE: 250 with early exaggeration, openTSNE's default
PLANS = {
    "mnist": [("mnist", n) for n in (70_000, 1_000, 5_000, 20_000)],
    "large": [("covertype", n) for n in (10_000, 30_000, 100_000, 286_048)] + [("mnist+fashion", 140_000)],
    "million": [("gaussians", 1_000_000)],
}


class Clock:
    """Seconds by phase; ``wrap`` counts a function of a module as a phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def wrap(self, module: Any, name: str, phase: str) -> None:
        function = getattr(module, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

        setattr(module, name, timed)


def ours(X: np.ndarray, threads: int, clock: Clock, P: Path, **options: Any) -> Any:
    from drsne import DRSNE

    return DRSNE(n_jobs=threads, random_state=0, max_iter=ITERATIONS, keep_affinities=False, **options).fit_transform(X)


def ours_given_p(X: np.ndarray, threads: int, clock: Clock, P: Path) -> Any:
    """Run only the optimisation, on the affinities that openTSNE is also given."""
    from drsne import Objective, engines, initialization
    from drsne.backends.numba.backend import NumbaBackend
    from drsne.backends.numba.threads import Workers
    from drsne.objectives.drsne import DRSNEProblem
    from drsne.optimization.loop import minimize
    from drsne.presets import default_schedule

    A, n = affinities_of(P, len(X)), len(X)
    with Workers(threads) as workers:
        engine = engines.build(engines.resolve("auto", n, 2), NumbaBackend(workers), precision="single")
        start = initialization.pca(X.astype(np.float64), 2, np.random.RandomState(0), workers)
        schedule = default_schedule(
            n,
            max_iter=ITERATIONS,
            n_iter_exaggeration=250,
            early_exaggeration=12.0,
            learning_rate="auto",
            density=False,
        )
        begin = time.perf_counter()
        problem = DRSNEProblem(
            Objective(), P=A, neighbors=np.zeros((n, 1), np.int32), target=np.zeros(n), weight=0.0, engine=engine,
            backend=NumbaBackend(workers),
        )  # fmt: skip
        Y = minimize(problem, start, schedule).embedding
        clock.seconds["optimisation"] = time.perf_counter() - begin
    return Y


def open_tsne_given_p(X: np.ndarray, threads: int, clock: Clock, P: Path) -> Any:
    import openTSNE
    from openTSNE.affinity import PrecomputedAffinities

    affinities = PrecomputedAffinities(affinities_of(P, len(X)).astype(np.float64))
    start = openTSNE.initialization.pca(X, random_state=0)
    begin = time.perf_counter()
    Y = openTSNE.TSNE(n_jobs=threads, random_state=0, negative_gradient_method="fft").fit(
        affinities=affinities, initialization=start
    )
    clock.seconds["optimisation"] = time.perf_counter() - begin
    return np.asarray(Y)


def open_tsne(X: np.ndarray, threads: int, clock: Clock, P: Path) -> Any:
    import openTSNE

    begin = time.perf_counter()
    affinities = openTSNE.affinity.PerplexityBasedNN(X, perplexity=30, n_jobs=threads, random_state=0)
    clock.seconds["neighbours"] = time.perf_counter() - begin
    start = openTSNE.initialization.pca(X, random_state=0)
    begin = time.perf_counter()
    tsne = openTSNE.TSNE(n_jobs=threads, random_state=0, negative_gradient_method="fft")
    Y = tsne.fit(affinities=affinities, initialization=start)
    clock.seconds["optimisation"] = time.perf_counter() - begin
    return np.asarray(Y)


def umap(X: np.ndarray, threads: int, clock: Clock, P: Path, **options: Any) -> Any:
    import umap

    fitted = umap.UMAP(n_jobs=threads, **options).fit(X)
    return fitted.embedding_


def pacmap(X: np.ndarray, threads: int, clock: Clock, P: Path) -> Any:
    import pacmap

    return pacmap.PaCMAP().fit_transform(X)


def scikit_learn(X: np.ndarray, threads: int, clock: Clock, P: Path) -> Any:
    from sklearn.manifold import TSNE as SklearnTSNE

    return SklearnTSNE(n_jobs=threads, random_state=0, max_iter=ITERATIONS).fit_transform(X)


class Timed(NamedTuple):
    """A method whose runs are timed."""

    title: str
    function: Callable[..., Any]
    modules: tuple[str, ...]  # whose import is timed
    distribution: str  # whose version is recorded
    options: dict[str, Any] = {}  # noqa: RUF012
    phases: tuple[tuple[str, str, str], ...] = ()  # functions that count as phases: module, name, phase
    has_kl: bool = True  # whether the KL divergence of its maps is measured
    given: bool = False  # whether it is the optimisation alone, on given affinities

    @property
    def ours(self) -> bool:
        """Return whether the method is one of this package."""
        return self.distribution == "drsne"


_OURS: dict[str, Any] = {"modules": ("drsne", "drsne.estimators.drsne"), "distribution": "drsne"}
_FIT: dict[str, Any] = {
    **_OURS,
    "function": ours,
    "phases": (
        ("drsne.estimators.preparation", "nearest", "neighbours"),
        ("drsne.estimators.base", "minimize", "optimisation"),
    ),
}
_OPEN: dict[str, Any] = {"modules": ("openTSNE",), "distribution": "openTSNE"}
_UMAP: dict[str, Any] = {
    "function": umap,
    "modules": ("umap",),
    "distribution": "umap-learn",
    "phases": (("umap.umap_", "nearest_neighbors", "neighbours"),),
    "has_kl": False,
}
METHODS = {
    "drsne_given": Timed("drsne, given P", ours_given_p, given=True, **_OURS),
    "opentsne_given": Timed("openTSNE, given P", open_tsne_given_p, given=True, **_OPEN),
    "drsne_plain": Timed("drsne, lambda = 0", options={"density_weight": 0.0, "density_neighbors": 30}, **_FIT),
    "drsne_30": Timed("drsne, k = 30", options={"density_weight": 2.0, "density_neighbors": 30}, **_FIT),
    "drsne_300": Timed("drsne, k = 300", options={"density_weight": 2.0, "density_neighbors": 300}, **_FIT),
    "opentsne": Timed("openTSNE", open_tsne, **_OPEN),
    "pacmap": Timed("PaCMAP", pacmap, ("pacmap",), "pacmap", has_kl=False),
    "umap": Timed("umap-learn", **_UMAP),
    "densmap": Timed("densMAP", options={"densmap": True}, **_UMAP),
    "sklearn": Timed("scikit-learn TSNE", scikit_learn, ("sklearn.manifold",), "scikit-learn"),
}
OURS = ("drsne_plain", "drsne_30", "drsne_300")
LIMIT = {"mnist": tuple(METHODS), "covertype": OURS, "mnist+fashion": OURS, "gaussians": OURS[1:2]}


def affinities_of(path: Path, n: int) -> Any:
    """Return the common P, as float32 CSR."""
    from scipy.sparse import csr_matrix

    with np.load(path) as file:
        return csr_matrix((file["data"], file["indices"], file["indptr"]), shape=(n, n))


def prepare(name: str, n: int, folder: Path, threads: int) -> tuple[Path, Path]:
    """Return the files with the data and the common P, which are made once."""
    from drsne.affinities import DEFAULT_CALIBRATION, affinities
    from drsne.backends.numba.threads import Workers
    from drsne.neighbors.search import knn

    X_file, P_file = folder / f"{name}-{n}.npy", folder / f"{name}-{n}-P.npz"
    if not X_file.exists():
        np.save(X_file, large(name, n))
    if not P_file.exists():
        graph = knn(np.load(X_file), min(90, n - 1), n_jobs=threads)
        with Workers(threads) as workers:
            P = affinities(graph, 30.0, DEFAULT_CALIBRATION, workers, np.float32).P
        np.savez(P_file, data=P.data, indices=P.indices, indptr=P.indptr)
    return X_file, P_file


def kl_divergence(Y: np.ndarray, P: Any, threads: int) -> float:
    """Return the KL of a map on ``P``, with the partition over all pairs (by the mesh at high accuracy for many)."""
    from drsne import engines
    from drsne.backends.numba.backend import NumbaBackend
    from drsne.backends.numba.threads import Workers

    Y, n = np.asarray(Y, dtype=np.float64), len(Y)
    with Workers(threads) as workers:
        kind = ("exact", {}) if n <= 150_000 else ("fft", {"accuracy": "high"})
        Z = engines.load(kind[0])(NumbaBackend(workers), **kind[1]).repulsion(Y, 0.0)[0]
    total = 0.0
    for start in range(0, n, 10_000):
        part = P[start : start + 10_000].tocoo()
        p = part.data.astype(np.float64)
        d = ((Y[start + part.row] - Y[part.col]) ** 2).sum(axis=1)
        total += float((p * (np.log(p) + np.log1p(d))).sum())
    return total + float(P.data.sum(dtype=np.float64)) * float(np.log(Z))


def one(job: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a run: import, compilation on a small sample, the fit, its scores."""
    method = METHODS[job["method"]]
    function, options = method.function, method.options
    X, P = np.load(job["X"]), Path(job["P"])
    begin = time.perf_counter()
    for module in method.modules:
        import_module(module)
    imported = time.perf_counter() - begin
    begin, small = time.perf_counter(), X[:5000]  # umap-learn searches approximately from 4096 rows on
    if not method.given:
        function(small, job["threads"], Clock(), P, **options)
    else:
        small_P = Path(job["X"]).with_suffix(".small.npz")
        A = affinities_of(P, len(X))[: len(small)][:, : len(small)].tocsr()
        A.sort_indices()
        np.savez(small_P, data=A.data / A.data.sum(), indices=A.indices, indptr=A.indptr)
        function(small, job["threads"], Clock(), small_P, **options)
    if function is ours:  # the search that only many rows take
        from drsne.neighbors.search import knn

        knn(small, 30, method="approximate", n_jobs=job["threads"])
    warmed = time.perf_counter() - begin
    clock = Clock()
    for module, name, phase in method.phases:
        clock.wrap(import_module(module), name, phase)
    begin = time.perf_counter()
    Y = function(X, job["threads"], clock, P, **options)
    total = time.perf_counter() - begin
    found = {"import": imported, "warm-up": warmed, **clock.seconds, "total": total, "peak": peak_memory()}
    return found | scores(X, Y, P, job)


def peak_memory() -> int:
    """Return the peak memory in bytes. (getrusage would report that of the parent if it is larger.)"""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def scores(X: np.ndarray, Y: np.ndarray, P: Path, job: dict[str, Any]) -> dict[str, float]:
    from drsne.metrics import evaluate

    some = min(len(X), 2000 if len(X) < 500_000 else 300)
    found = evaluate(X, Y, max_samples=some, random_state=0)
    if METHODS[job["method"]].has_kl:
        found["kl"] = kl_divergence(Y, affinities_of(P, len(X)), job["threads"])
    return found


def run(name: str, n: int, method: str, threads: int, folder: Path) -> dict[str, Any]:
    """Return the row of one run in its own process: its results, or why it failed."""
    X, P = prepare(name, n, folder, threads)
    job = {"dataset": name, "n": n, "method": method, "threads": threads}
    environment = os.environ | {f"{each}_NUM_THREADS": str(threads) for each in ("OMP", "OPENBLAS", "NUMBA", "MKL")}
    command = [sys.executable, __file__, "--one", json.dumps(job | {"X": str(X), "P": str(P)})]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    row = job | {"machine": machine(), "version": version(METHODS[method].distribution)}
    try:
        return row | json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return row | {"error": (done.stderr or done.stdout).strip()[-600:]}


def study(plan: list[tuple[str, int]], methods: list[str] | None, threads: int, folder: Path) -> None:
    done = {(row["dataset"], row["n"], row["method"], row["threads"]) for row in ROWS.read() if "error" not in row}
    jobs = [(s, n, m) for s, n in plan for m in LIMIT[s] if methods is None or m in methods]
    left = [job for job in jobs if (*job, threads) not in done]
    for at, (name, n, method) in enumerate(left, 1):
        print(f"[{at}/{len(left)}] {name} {n} {method} ...", flush=True)
        row = ROWS.append(run(name, n, method, threads, folder))
        print("   ", {key: row[key] for key in ("total", "optimisation", "kl", "error") if key in row}, flush=True)


def report() -> None:
    from speed_report import sections

    write("speed", "Speed compared with the peers", "python benchmarks/speed.py", *sections(ROWS.read()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", choices=[*PLANS, "all"], default="all")
    parser.add_argument("--sizes", type=int, nargs="*", help="only these numbers of points")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "drsne-speed")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        try:
            print(json.dumps(one(json.loads(options.one))))
        except Exception:
            traceback.print_exc()
            sys.exit(1)
        return
    if not options.report:
        options.folder.mkdir(exist_ok=True)
        plan = [pair for name, pairs in PLANS.items() for pair in pairs if options.plan in (name, "all")]
        plan = [pair for pair in plan if not options.sizes or pair[1] in options.sizes]
        study(plan, options.methods, options.threads, options.folder)
    report()


if __name__ == "__main__":
    main()
