"""Neighbour search in data that an inverted file cannot divide: Gaussian noise, and sums of word vectors; k = 90.

    python benchmarks/search_noise.py [--sizes 100000 400000] [--data noise20 noise100 words] [--methods ...]

Rows are written to results/search_noise.jsonl, one for each data set, size and method, and those that are there are not
measured again; ``--report`` only writes the table. ``--results search_noise_16`` keeps the rows of two cores of a
machine with 16, to which the program was pinned with taskset. pynndescent is skipped with a message if it is not
installed.

Rules: two threads; every method has searched 2000 rows before, so nothing is compiled; the recall is that of 1000 rows,
against the exact neighbours; ties count as found. With more than 100,000 rows, the exact search is timed on 5000 rows,
and its time is multiplied. The approximate search is timed without the exact search that follows a recall below .9. CPU
seconds are those of all threads: on a machine that others use, compare these.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from report import Results, table, write

from drsne.backends.numba.threads import Workers
from drsne.neighbors import descent, inverted_file
from drsne.neighbors.exact import Points, exact
from drsne.neighbors.inverted_file import Lists

K, THREADS, CHECKED, TIMED, WHOLE = 90, 2, 1000, 5000, 100_000
SIZES = (100_000, 400_000)
DATA = {
    "noise20": "noise, 20 dimensions",
    "noise100": "noise, 100 dimensions",
    "words": "sums of 6 of 20,000 word vectors, 100 dimensions, normalised",
}


def make(name: str, n: int) -> np.ndarray:
    """Return the data. Words are drawn with probabilities proportional to 1 / rank, as in texts."""
    rng = np.random.default_rng(1)
    if name != "words":
        return rng.normal(size=(n, int(name.removeprefix("noise"))))
    vectors, weights = rng.normal(size=(20_000, 100)), 1.0 / np.arange(1, 20_001)
    words = rng.choice(len(weights), size=(n, 6), p=weights / weights.sum())
    sums = np.sum([vectors[column] for column in words.T], axis=0)
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def drsne_exact(X: np.ndarray, workers: Workers) -> np.ndarray:
    return exact(X, K, np.arange(len(X)), workers).indices


def drsne_approximate(X: np.ndarray, workers: Workers) -> np.ndarray:
    least, inverted_file._LEAST_RECALL = inverted_file._LEAST_RECALL, 0.0  # never followed by the exact search
    found = inverted_file.approximate(X, K, workers).indices
    inverted_file._LEAST_RECALL = least
    return found


def lists(probes: int) -> Callable[[np.ndarray, Workers], np.ndarray]:
    """Return the search in the nearest lists, without refinement."""

    def search(X: np.ndarray, workers: Workers) -> np.ndarray:
        points = Points.of(X)
        return inverted_file._searched(points, Lists.of(points.centred, probes, workers), K, workers).indices

    return search


def pynndescent(X: np.ndarray, workers: Workers) -> np.ndarray:
    from pynndescent import NNDescent

    found = NNDescent(X.astype(np.float32), n_neighbors=K + 1, random_state=0, n_jobs=THREADS).neighbor_graph[0]
    return found[:, 1:]


METHODS: dict[str, Callable[[np.ndarray, Workers], np.ndarray]] = {
    "drsne, exact": drsne_exact,
    "drsne, approximate": drsne_approximate,
    "drsne, 32 lists only": lists(32),
    "drsne, 128 lists only": lists(128),
    "pynndescent": pynndescent,
}


def warm(method: str, X: np.ndarray, workers: Workers) -> None:
    """Search a few rows, and refine their neighbours, so that everything is compiled."""
    rounds, descent._ROUNDS = descent._ROUNDS, 0
    METHODS[method](X, workers)
    descent._ROUNDS = rounds


def measure(X: np.ndarray, method: str, truth: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Return the times and the recall of a method."""
    with Workers(THREADS) as workers:
        warm(method, X[:2000], workers)
        share = len(X) > WHOLE and method == "drsne, exact"
        wall, processor = time.perf_counter(), time.process_time()
        if share:
            exact(X, K, np.linspace(0, len(X) - 1, TIMED).astype(np.intp), workers)
        else:
            found = METHODS[method](X, workers)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    factor = len(X) / TIMED if share else 1.0
    return {"wall": factor * wall, "cpu": factor * processor, "recall": 1.0 if share else recall(X, found, truth)}


def recall(X: np.ndarray, found: np.ndarray, truth: tuple[np.ndarray, np.ndarray]) -> float:
    rows, reach = truth
    near = [np.linalg.norm(X[found[i]] - X[i], axis=1) <= far * (1 + 1e-9) for i, far in zip(rows, reach, strict=True)]
    return float(np.mean(near))


def reached(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the checked rows, and the distances of their k-th neighbours."""
    rows = np.linspace(0, len(X) - 1, CHECKED).astype(np.intp)
    with Workers(THREADS) as workers:
        return rows, exact(X, K, rows, workers).distances[:, -1]


def tables(results: Results) -> list[str]:
    """Return a table for each data set that has rows."""
    rows = {(row["data"], row["n"], row["method"]): row for row in results.read()}
    parts = []
    for name, title in DATA.items():
        lines = []
        for method in METHODS:
            got = [rows.get((name, n, method)) for n in SIZES]
            if not any(got):
                continue
            line: list[str] = [method]
            for row in got:
                line += (
                    ["", "", ""]
                    if row is None
                    else [f"{row[key]:.0f}" for key in ("wall", "cpu")] + [f"{row['recall']:.3f}"]
                )
            small, large = got
            growth = [
                f"{math.log(large[key] / small[key], SIZES[1] / SIZES[0]):.2f}" if small and large else ""
                for key in ("wall", "cpu")
            ]
            lines.append([*line, *growth])
        header = [f"{what}, {n:,}" for n in SIZES for what in ("s", "CPU s", "recall")]
        if lines:
            parts.append(
                f"### {title[0].upper()}{title[1:]}\n\n"
                + table(["method", *header, "exponent", "exponent, CPU"], lines)
            )
    return parts


def report() -> None:
    """Write the tables of both machines."""
    write(
        "search_noise",
        "Neighbour search in data without lists",
        "python benchmarks/search_noise.py",
        f"k = {K}, {THREADS} threads, warm; recall of {CHECKED} rows. CPU seconds are those of all threads. The "
        f"exponent is that of the growth of the time from {SIZES[0]:,} to {SIZES[1]:,} rows. With {SIZES[1]:,} rows, "
        f"the exact search was timed on {TIMED} rows, and its time was multiplied by {SIZES[1] // TIMED}. The "
        "approximate search of drsne compares each row with 32 lists and then refines the neighbours. 'Lists only' "
        "leaves out the refinement. The times do not include the exact search that follows a recall below .9. Other "
        "programs may have run at the same time.",
        "## A machine with two cores",
        "The rows of the approximate search of noise in 100 dimensions were measured by the same functions in another "
        "program, because other programs disturbed this one at that time.",
        *tables(_results("search_noise")),
        "## Two cores of a machine with 16",
        "Rows of drsne are those of commit 7429d2a, which compared all neighbours in every round of the refinement. "
        "Since then, rounds after the first one compare the nearest nine tenths.",
        *tables(_results("search_noise_16")),
        rows=[*_results("search_noise").read(), *_results("search_noise_16").read()],
    )


def _results(name: str) -> Results:
    return Results(name, "data", "n", "method")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--data", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--report", action="store_true", help="only write the table")
    parser.add_argument("--results", choices=["search_noise", "search_noise_16"], default="search_noise")
    options = parser.parse_args()
    results = _results(options.results)
    there = results.keys()
    missing = [
        (name, n, method)
        for n in options.sizes
        for name in options.data
        for method in options.methods
        if results.key({"data": name, "n": n, "method": method}) not in there
    ]
    for name, n in [] if options.report else dict.fromkeys((name, n) for name, n, _ in missing):
        X = make(name, n)
        truth = reached(X)
        for method in [one[2] for one in missing if one[:2] == (name, n)]:
            try:
                got = measure(X, method, truth)
            except ImportError as error:
                print(f"{method} is not available: {error}")
                continue
            print(results.append({"data": name, "n": n, "method": method, **got}), flush=True)
    report()


if __name__ == "__main__":
    main()
