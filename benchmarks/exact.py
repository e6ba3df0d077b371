"""Seconds per 100 iterations of the exact engine, compared with a plain PyTorch O(n^2) autograd loop.

    python benchmarks/exact.py          (needs torch: pip install 'drsne[benchmark]')

One process, the same number of threads for both, the same data; setup (neighbours, affinities) is not timed.
"""

from __future__ import annotations

import argparse
import time

import torch
from data import digits, gaussians50
from report import table, write
from torch_loop import TorchLoop

from drsne import DRSNE
from drsne.presets import paper


class Clock:
    """Times of iterations, taken by a callback."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, iteration: int, *_: object) -> None:
        self.times.append(time.perf_counter())

    def per_100(self, first: int) -> float:
        """Return the seconds of 100 iterations, measured from iteration ``first`` on."""
        return 100 * (self.times[-1] - self.times[first]) / (len(self.times) - 1 - first)


def ours(X, n_jobs: int, **options) -> float:
    """Return the seconds of 100 iterations with the density term and losses, which a fit computes every tenth time."""
    clock = Clock()
    model = DRSNE(random_state=0, n_jobs=n_jobs, callbacks=clock, **options)
    model.fit(X)
    return clock.per_100(len(clock.times) // 2 + 1)


def plain(X, n_jobs: int) -> float:
    """Return the seconds of 100 iterations of whole fits, from two lengths, each the best of three; no callback."""
    best = {100: float("inf"), 400: float("inf")}
    for iterations in (*best, *best, *best):
        start = time.perf_counter()
        DRSNE(random_state=0, n_jobs=n_jobs, max_iter=iterations).fit(X)
        best[iterations] = min(best[iterations], time.perf_counter() - start)
    return (best[400] - best[100]) / 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    threads = parser.parse_args().threads
    rows = []
    for name, X in (("Digits", digits()), ("4 Gaussians 50-d", gaussians50(5000))):
        loop = TorchLoop(X)
        DRSNE(max_iter=20, random_state=0).fit(X)  # compiles
        DRSNE(**paper(len(X), 0.005, 29, max_iter=60), random_state=0).fit(X)
        for n_jobs in threads:
            torch.set_num_threads(n_jobs)
            loop.run(0.005, 0, 3, warmup=0)
            reference = loop.run(0.005, 0, 30, warmup=0)[1] / 30 * 100
            default = plain(X, n_jobs)
            preset = ours(X, n_jobs, **paper(len(X), 0.005, 29, max_iter=150))
            rows.append(
                [
                    f"{name}, n = {len(X)}",
                    n_jobs,
                    f"{default:.3f}",
                    f"{preset:.3f}",
                    f"{reference:.2f}",
                    f"{reference / default:.0f} x",
                    f"{reference / preset:.0f} x",
                ]
            )
            print(rows[-1], flush=True)
    header = ["data", "threads", "drsne", "drsne, paper preset", "PyTorch", "ratio", "ratio, preset"]
    write(
        "exact",
        "Exact engine",
        "python benchmarks/exact.py",
        "Seconds per 100 iterations. drsne: the default (half of the iterations with the density term, k = 30); paper "
        "preset: the authors' objective in double precision, losses computed at every iteration; PyTorch "
        f"{torch.__version__}: a plain autograd loop of the same objective in single precision (k = 29).",
        table(header, rows),
    )


if __name__ == "__main__":
    main()
