"""Exact and approximate search: where they cross, and what lists and probes do, for MNIST (50 components) and k = 90.

The last table is the search of a default fit of a million points (100 Gaussians in 50 dimensions).

python benchmarks/search.py [--threads 2]      (needs MNIST in DRSNE_DATA_HOME)
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import large
from report import table, write

from drsne.backends.numba.threads import Workers
from drsne.neighbors import exact, inverted_file
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn

K, SIZES, ROWS = 90, (10_000, 20_000, 35_000, 50_000, 70_000), 2000
LARGE = (250_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    threads = parser.parse_args().threads
    sizes, settings, larger = [], [], []
    with Workers(threads) as workers:

        def timed(X: np.ndarray, all_pairs: bool, **options: int) -> tuple[float, KnnGraph]:
            start = time.perf_counter()
            rows = np.arange(len(X))
            found = (
                exact.exact(X, K, rows, workers) if all_pairs else inverted_file.approximate(X, K, workers, **options)
            )
            return time.perf_counter() - start, found

        def recall(found: KnnGraph, reach: np.ndarray, rows: np.ndarray) -> float:
            return float((found.distances[rows] <= reach).mean())

        for n in SIZES:
            X = large("mnist", n).astype(np.float64)
            timed(X[:2000], True), timed(X[:2000], False)
            (one, truth), (two, found) = timed(X, True), timed(X, False)
            rows = np.linspace(0, n - 1, ROWS).astype(int)
            reach = truth.distances[rows, -1:] * (1 + 1e-9)
            sizes.append([f"{n:,}", f"{one:.2f}", f"{two:.2f}", f"{recall(found, reach, rows):.4f}"])
            print(sizes[-1], flush=True)
        chosen = inverted_file.LISTS_PER_ROOT
        for lists in (1.0, 2.0, 4.0):
            for probes in (8, 16, 32, 64):
                inverted_file.LISTS_PER_ROOT = lists
                seconds, found = timed(X, False, probes=probes)
                settings.append([f"{lists:g}", probes, f"{seconds:.2f}", f"{recall(found, reach, rows):.4f}"])
                print(settings[-1], flush=True)
        inverted_file.LISTS_PER_ROOT = chosen
        for n in LARGE:
            X = large("gaussians", n)
            start = time.perf_counter()
            found = knn(X, K, n_jobs=threads)
            seconds = time.perf_counter() - start
            rows = np.linspace(0, n - 1, ROWS).astype(int)
            reach = exact.exact(X.astype(np.float64), K, rows, workers).distances[:, -1:] * (1 + 1e-9)
            larger.append([f"{n:,}", f"{seconds:.1f}", f"{recall(found, reach, rows):.4f}"])
            print(larger[-1], flush=True)
    write(
        "search",
        "Exact and approximate search",
        "python benchmarks/search.py",
        f"MNIST (50 components), k = {K}, {threads} threads, warm; recall over {ROWS} rows. The approximate search is "
        f"taken from {inverted_file.APPROXIMATE_FROM:,} rows on, with {chosen:g} lists per root of n and "
        f"at most {inverted_file.PROBES} probes: below, the exact answer costs seconds only. Fewer probes are used if "
        "they find 99 % of the neighbours of 200 rows; if the recall is too small, the neighbours are refined or "
        "searched exactly.",
        "## Sizes\n\n" + table(["points", "exact s", "approximate s", "recall"], sizes),
        f"## Lists per root of n, and probes, at {SIZES[-1]:,} points\n\n"
        + table(["lists", "probes at most", "seconds", "recall"], settings),
        "## 100 Gaussians in 50 dimensions, the search of a default fit\n\n"
        + table(["points", "seconds", "recall"], larger),
    )


if __name__ == "__main__":
    main()
