"""Engines: their error on maps from all phases, crossovers, final maps, and the parts of an iteration.

    python benchmarks/engines.py [--quick] [--parts errors adaptive crossovers finals iteration]

Parts that are not asked for keep what the results file has; each section says where it was made. Maps come from a run
on MNIST (10,000 points) if DRSNE_DATA_HOME has it, else on Gaussians. Errors are against all pairs in double precision:
of the forces as norms over all points, of the partition sum relative.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from data import gaussians50, is_available, large
from runner import RESULTS, machine, table

from drsne import DRSNE, engines
from drsne.backends.numba import KIND
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.metrics import evaluate
from drsne.neighbors.search import knn
from drsne.preparation import Settings, prepared

PHASES = {0: "start", 20: "opening", 60: "growing", 249: "exaggerated", 320: "let go", 999: "final"}


def best(call: Callable[[], Any], repeat: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds, the least of some."""
    call()
    times = []
    for _ in range(repeat):
        start = clock()
        call()
        times.append(clock() - start)
    return 1e3 * min(times)


def random_scales(n: int) -> np.ndarray:
    """Scales of the adaptive kernel that differ as much as those of MNIST."""
    return np.exp(0.75 * np.random.default_rng(0).normal(size=n))


def maps(n: int) -> dict[str, np.ndarray]:
    """Maps from all phases of a fit, and two made from the last one."""
    X = large("mnist", n) if is_available("mnist") else gaussians50(n)
    kept: dict[int, np.ndarray] = {}

    def keep(iteration: int, Y: np.ndarray, losses: dict[str, float]) -> None:
        if iteration in PHASES:
            kept[iteration] = Y

    model = DRSNE(density_weight=0.0, random_state=0, n_jobs=-1, callbacks=keep).fit(X)
    start = 1e-4 * np.random.default_rng(0).normal(size=model.embedding_.shape)
    found = {"start": start} | {PHASES[at]: Y for at, Y in sorted(kept.items())}
    final = found["final"] = np.asarray(model.embedding_, dtype=np.float64)
    rng = np.random.default_rng(0)
    found["final, ten outliers"] = np.vstack([final[10:], rng.uniform(-900, 900, (10, 2))])
    apart = final.copy()
    apart[: len(apart) // 2] += (2000.0, 0.0)
    found["two halves 2000 apart"] = apart
    far = final.copy()
    far[: len(far) // 2] += (1e6, 0.0)
    found["two halves a million apart"] = far
    # Fifty clusters, exaggerated: most points amid a crowd that pulls on them from all sides alike.
    centres = 10 * rng.normal(size=(50, 20))
    X = centres[rng.integers(50, size=n)] + rng.normal(size=(n, 20))
    DRSNE(density_weight=0.0, random_state=0, n_jobs=-1, callbacks=keep, max_iter=500).fit(X)
    found["fifty clusters, exaggerated"] = kept[249]
    return found


def errors(engine: Any, Y: np.ndarray, truth: tuple[float, np.ndarray], scales: Any = None) -> tuple[float, float]:
    Z, F = engine.repulsion(Y, 0.0, scales)
    return float(np.linalg.norm(F - truth[1]) / np.linalg.norm(truth[1])), abs(Z - truth[0]) / truth[0]


def accuracy(found: dict[str, np.ndarray], workers: Workers, *, adaptive: bool = False) -> str:
    rows = []
    kinds = (("fft", {}), ("fft", {"accuracy": "high"}), ("tree", {}))
    for name, Y in found.items():
        rho = random_scales(len(Y)) if adaptive else None
        truth = engines.load("exact")(NumbaBackend(workers), precision="double").repulsion(Y, 0.0, rho)
        exact = engines.load("exact")(NumbaBackend(workers))
        all_pairs = best(lambda Y=Y, exact=exact, rho=rho: exact.repulsion(Y, 0.0, rho), 2)
        row = [name, f"{np.ptp(Y, axis=0).max():.3g}", f"{all_pairs:.1f}"]
        for kind, options in kinds[1:] if adaptive else kinds:
            engine = engines.load(kind)(NumbaBackend(workers), **options)
            force, partition = errors(engine, Y, truth, rho)
            state = engine.start()
            ms = best(lambda engine=engine, Y=Y, rho=rho, state=state: engine.repulsion(Y, 0.0, rho, state))
            used = f" ({state.used})" if kind == "fft" and not adaptive else ""
            row += [f"{force:.1e}", f"{partition:.1e}", f"{ms:.1f}{used}"]
        rows.append(row)
    header = ["map", "span", "exact ms"]
    names = ("fft high", "fft and tree") if adaptive else ("fft", "fft high", "tree")
    header += [f"{name} {what}" for name in names for what in ("force", "partition", "ms")]
    return table(header, rows)


def crossovers(quick: bool) -> str:
    """One evaluation by engine, with one thread and with two; the adaptive kernel has all pairs and the tree."""
    sizes = (500, 1000, 1500, 2000, 2500, 3000, 4000, 6000) if not quick else (500, 2000)
    rng = np.random.default_rng(0)
    rows = []
    for d in (1, 2, 3):
        for n in sizes:
            # As in a finished map: some clusters, about one point per unit of area at 5000 points.
            centres = 40.0 * rng.normal(size=(20, d))
            Y = centres[rng.integers(20, size=n)] + 5.0 * rng.normal(size=(n, d))
            row: list[Any] = [d, n]
            for name, adaptive in (("exact", 0), ("fft", 0), ("tree", 0), ("exact", 1), ("tree", 1)):
                rho = random_scales(n) if adaptive else None
                row.append(" / ".join(_by_threads(name, Y, rho)) if engines.load(name).supports(d, KIND) else "")
            rows.append([*row, engines.resolve("auto", n, d, KIND), engines.resolve("auto", n, d, KIND, adaptive=True)])
    header = ["dimensions", "n", "exact", "fft", "tree", "adaptive exact", "adaptive tree", "auto", "auto, adaptive"]
    return table(header, rows)


def _by_threads(name: str, Y: np.ndarray, rho: Any) -> list[str]:
    """Milliseconds with one thread and with two."""
    times = []
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            engine = engines.load(name)(NumbaBackend(workers))
            state = engine.start()
            times.append(f"{best(lambda engine=engine, state=state: engine.repulsion(Y, 0.0, rho, state), 9):.2f}")
    return times


class _Nothing:
    """An engine without repulsion, to time what else an iteration does."""

    def start(self) -> None:
        return None

    def repulsion(
        self, Y: np.ndarray, smoothing: float, scales: Any = None, state: Any = None
    ) -> tuple[float, np.ndarray]:
        return 1.0, np.zeros_like(Y)


def iteration(quick: bool) -> str:
    """What the parts of an iteration take late in a fit, with one thread, and in units of the mesh."""
    n, n_iter = (5000, 20) if quick else (70_000, 50)
    X = large("mnist", n) if is_available("mnist") else gaussians50(n)
    settings = {"neighbors": knn(X, 90, n_jobs=-1), "random_state": 0, "n_jobs": -1}
    Y = DRSNE(density_weight=1.0, max_iter=500, **settings).fit(X).embedding_.astype(np.float64)
    taken: dict[str, float] = {}
    with Workers(1) as workers:
        for mode in ("input", "both"):
            model = DRSNE(neighborhoods=mode, **settings)
            objective, settings = model._objective(1.0), Settings.of(model.get_params())
            problem = prepared(settings, X.astype(np.float64), [objective], 1.0, workers)[objective]
            problem.engine = _Nothing()

            def steps(problem: Any = problem, **options: float) -> float:
                state = problem.start()
                arranged = problem.reorder(Y, state).reordered(Y)
                start = time.process_time()
                for at in range(n_iter):
                    problem.evaluate(arranged, state=state, iteration=at, ordered=True, **options)
                return 1e3 * (time.process_time() - start) / n_iter

            steps(density=1.0)
            taken["attraction, fixed kernel"] = steps(density=0.0, scale=0.0)
            taken["attraction, adaptive kernel"] = steps(density=0.0)
            label = f'density term, neighborhoods="{mode}", with searching and listing neighbours'
            taken[label] = steps(density=1.0) - taken["attraction, adaptive kernel"]
        rho = problem.scales_at(1.0)
        for label, name, scales in (
            ("mesh, fixed kernel", "fft", None),
            ("tree, fixed kernel", "tree", None),
            ("tree, adaptive kernel", "tree", rho),
        ):
            engine = engines.load(name)(NumbaBackend(workers))
            evaluate = partial(engine.repulsion, Y, 0.0, scales, engine.start())
            taken[label] = best(evaluate, 5, time.process_time)
    unit = taken["mesh, fixed kernel"]
    rows = [[label, f"{ms:.1f}", f"{ms / unit:.2f}"] for label, ms in taken.items()]
    return table(["part", "ms", "in units of the mesh"], rows)


def finals(quick: bool) -> str:
    """Final KL (with the partition over all pairs) and trustworthiness, by engine; mean over seeds."""
    n, seeds = (2000, 1) if quick else (5000, 3)
    X = large("mnist", n) if is_available("mnist") else gaussians50(n)
    graph = knn(X, 90, n_jobs=-1)
    rows = []
    for weight in (0.0, 2.0):
        for name, options in (("exact", None), ("fft", None), ("fft", {"accuracy": "high"}), ("tree", None)):
            kls, losses, trusts = [], [], []
            for seed in range(seeds):
                model = DRSNE(
                    density_weight=weight, engine=name, engine_options=options, random_state=seed, n_jobs=-1,
                    neighbors=graph, init="pca",
                ).fit(X)  # fmt: skip
                trusts.append(evaluate(X, model.embedding_)["trustworthiness"])
                kls.append(model.kl_divergence_)
                losses.append(model.concentration_loss_)
            label = name + (" high" if options else "")
            rows.append([weight, label, f"{np.mean(kls):.4f}", f"{np.mean(losses):.4f}", f"{np.mean(trusts):.4f}"])
    return table(["lambda", "engine", "KL", "concentration loss", "trustworthiness"], rows)


HEADINGS = {
    "errors": "Errors on maps from all phases",
    "adaptive": "Errors of the adaptive kernel",
    "crossovers": "Crossovers",
    "finals": "Final maps",
    "iteration": "Parts of an iteration",
}


def kept() -> dict[str, str]:
    """Sections of the results file as it is, by heading; each says where it was made."""
    file = RESULTS / "engines.md"
    if not file.exists():
        return {}
    head, *sections = file.read_text().split("\n## ")
    made = head.split("\n\n")[1] if "\n\n" in head else ""
    found = {}
    for section in sections:
        heading, _, text = section.partition("\n\n")
        found[heading] = text.strip() if text.startswith("Made") else f"{made}\n\n{text.strip()}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=list(HEADINGS), default=list(HEADINGS))
    given = parser.parse_args()
    quick, parts = given.quick, set(given.parts)
    sections: dict[str, str] = {}
    if parts & {"errors", "adaptive"}:
        found = maps(3000 if quick else 10_000)
        with Workers(-1) as workers:
            if "errors" in parts:
                sections["errors"] = accuracy(found, workers)
            if "adaptive" in parts:
                sections["adaptive"] = "Scales of log-standard deviation 0.75, at random.\n\n"
                sections["adaptive"] += accuracy(found, workers, adaptive=True)
    if "crossovers" in parts:
        sections["crossovers"] = "Milliseconds of an evaluation, with one thread / with two.\n\n" + crossovers(quick)
    if "iteration" in parts:
        text = "MNIST late in a fit with the density term, one thread, processor time.\n\n"
        sections["iteration"] = text + iteration(quick)
    if "finals" in parts:
        sections["finals"] = "MNIST (5000), 1000 iterations, means over three seeds.\n\n" + finals(quick)
    made = f"Made by `python benchmarks/engines.py` on: {machine()}."
    fresh = {HEADINGS[part]: f"{made}\n\n{text}" for part, text in sections.items()}
    every = {**kept(), **fresh}
    text = "\n\n".join(f"## {heading}\n\n{every[heading]}" for heading in HEADINGS.values() if heading in every)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "engines.md").write_text(f"# Engines\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
