"""Measure how fits scale with the number of threads, for each phase, and compare with the limits of the machine.

    python benchmarks/threads.py [--data mnist gaussians] [--threads 16 8 4 2 1]
    python benchmarks/threads.py --report

On MNIST (70,000 points), a whole default fit is timed. With a million points (100 Gaussians in 50 dimensions), each
phase has 100 iterations. Neighbours are found before the clock starts, and a short fit has compiled all code. Two loops
show the best possible scaling: one is limited by arithmetic, and the other by the bandwidth of the memory. A row of
results/threads.jsonl is written after every fit, and fits that are there are not repeated. Maps of all numbers of
threads are compared bit by bit. ``--report`` only writes the tables from these rows.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
from data import large
from report import Results, table, write

from drsne import DRSNE
from drsne.backends.numba.kernels._compile import kernel
from drsne.backends.numba.threads import Workers
from drsne.logs import LOGGER
from drsne.neighbors import knn
from drsne.optimize.defaults import default_schedule, iterations

SIZES = {"mnist": 70_000, "gaussians": 1_000_000}
TITLES = {
    "mnist": "MNIST, 70,000 points, whole fit",
    "gaussians": "100 Gaussians, 1,000,000 points, 100 iterations per phase",
}
THREADS = (16, 8, 4, 2, 1)
EACH = 100  # iterations of each phase for the larger data
ROWS = Results("threads", "data", "threads", "cores")


@kernel
def compute(out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Sum numbers that are never in memory."""
    total = 0.0
    for i in range(lo, hi):
        x = 1.0 + 1e-9 * i
        for _ in range(200):
            x = 1.0 / (x + 1e-3)
        total += x
    out[block] = total


@kernel
def stream(values, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Sum an array."""
    total = 0.0
    for i in range(lo, hi):
        total += values[i]
    out[block] = total


class Phases(logging.Handler):
    """The seconds of the phases of a fit, from its log records."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[int, str, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record of a phase."""
        if str(record.msg).startswith("%d iterations") and isinstance(record.args, tuple):
            n_iter, kind, _, seconds = record.args
            self.taken.append((int(n_iter), str(kind), float(seconds)))  # type: ignore[arg-type]


def bounds(threads: int) -> dict[str, float]:
    """Return the seconds of the two sums."""
    values, out, taken = np.ones(2**28, np.float32), np.empty(256), {}
    with Workers(threads) as workers:
        for name, arguments in (("compute", (compute, 2**19, out)), ("stream", (stream, len(values), values, out))):
            seconds = []
            for _ in range(4):
                start = time.perf_counter()
                workers.run(*arguments)
                seconds.append(time.perf_counter() - start)
            taken[name] = min(seconds)
    return taken


def schedule(name: str) -> Any:
    """Return the default schedule, with a fixed number of iterations in each phase for the larger data."""
    if name == "mnist":
        return None
    model = DRSNE()
    usual = default_schedule(
        SIZES[name],
        max_iter=iterations(model.max_iter, adaptive=True),
        n_iter_exaggeration=model.n_iter_exaggeration,
        early_exaggeration=model.early_exaggeration,
        learning_rate=model.learning_rate,
        density=True,
        adaptive=True,
    )
    return replace(usual, phases=tuple(_shortened(phase) for phase in usual.phases))


def _shortened(phase: Any) -> Any:
    """Return a phase of ``EACH`` iterations."""
    release, ramp, scale_ramp = (min(each, EACH) for each in (phase.release, phase.ramp, phase.scale_ramp))
    return replace(phase, n_iter=EACH, release=release, ramp=ramp, scale_ramp=scale_ramp)


def fit(name: str, X: np.ndarray, neighbors: Any, threads: int) -> dict[str, Any]:
    """Return the seconds of a fit, those of its phases, and a digest of the map."""
    phases = Phases()
    LOGGER.addHandler(phases)
    LOGGER.setLevel(logging.DEBUG)
    start = time.perf_counter()
    model = DRSNE(random_state=0, n_jobs=threads, neighbors=neighbors, schedule=schedule(name)).fit(X)
    seconds = time.perf_counter() - start
    LOGGER.removeHandler(phases)
    digest = hashlib.sha256(model.embedding_.tobytes()).hexdigest()[:12]
    return {"seconds": {"total": seconds}, "phases": phases.taken, "digest": digest}


def run(names: list[str], threads: list[int]) -> None:
    """Run the fits that are missing."""
    there, cores = ROWS.keys(), os.cpu_count()
    for name in names:
        missing = [m for m in threads if ROWS.key({"data": name, "threads": m, "cores": cores}) not in there]
        if not missing:
            continue
        X = large(name, SIZES[name])
        neighbors = knn(X, 90, n_jobs=-1)
        sample = X[: SIZES["mnist"]]
        short = DRSNE(max_iter=50, random_state=0, n_jobs=-1, neighbors=knn(sample, 90, n_jobs=-1))
        short.fit(sample)  # compiles what a fit needs
        for count in missing:
            found = fit(name, X, neighbors, count)
            row = {"data": name, "threads": count, "cores": cores, **found, "bounds": bounds(count)}
            ROWS.append(row)
            print(name, count, f"{found['seconds']['total']:.2f} s", found["phases"], row["bounds"], flush=True)


def report() -> None:
    """Write the tables."""
    parts = []
    rows = ROWS.read()
    for name, title in TITLES.items():
        for machine in sorted({row["machine"] for row in rows if row["data"] == name}):
            found = sorted((row for row in rows if (row["data"], row["machine"]) == (name, machine)), key=_threads)
            one = found[0]
            lines = []
            for row in found:
                phases = [
                    f"{1e3 * after[2] / after[0]:.1f} ({before[2] / after[2]:.1f})"
                    for before, after in zip(one["phases"], row["phases"], strict=True)
                ]
                limits = [f"{one['bounds'][key] / row['bounds'][key]:.1f}" for key in ("compute", "stream")]
                ratio = f"{one['seconds']['total'] / row['seconds']['total']:.1f}"
                lines.append([row["threads"], f"{row['seconds']['total']:.1f}", ratio, *phases, *limits])
            header = [f"{n_iter} iterations {kind}, ms each" for n_iter, kind, _ in one["phases"]]
            same = "the same bits" if len({row["digest"] for row in found}) == 1 else "DIFFERENT bits"
            parts += [
                f"## {title}\n\n{machine}. All maps have {same}.",
                table(["threads", "s", "times as fast", *header, "computing", "memory"], lines),
            ]
    rules = (__doc__ or "").split("\n\n", 2)[2].strip()
    legend = (
        "Numbers in brackets, and the last two columns, say how many times as fast as one thread. The last two columns "
        "are the limits of the machine: those of a loop that only computes, and of a loop that only reads memory."
    )
    write("threads", "Fits on many threads", "python benchmarks/threads.py", rules, legend, *parts, rows=rows)


def _threads(row: dict[str, Any]) -> int:
    return int(row["threads"])


def main() -> None:
    """Run what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--threads", type=int, nargs="+", default=list(THREADS))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        run(options.data, [count for count in options.threads if count <= (os.cpu_count() or 1)])
    report()


if __name__ == "__main__":
    main()
