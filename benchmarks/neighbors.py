"""Neighbour search: ours compared with scikit-learn, faiss, usearch and pynndescent, on MNIST (50 components), k = 90.

    python benchmarks/neighbors.py [--sizes 10000 20000 50000 70000]

Each search runs in a process of its own: import, a first small search (compilation), the search itself twice (are the
answers equal?), recall against the exact answer. Needs ``pip install 'drsne[peers]'`` and MNIST in DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from data import large
from runner import table, write

K = 90


def drsne_exact(X: np.ndarray, k: int) -> np.ndarray:
    from drsne.neighbors.search import knn

    return knn(X, k, method="exact", n_jobs=-1).indices


def drsne_approximate(X: np.ndarray, k: int) -> np.ndarray:
    from drsne.neighbors.search import knn

    return knn(X, k, method="approximate", n_jobs=-1).indices


def scikit_learn(X: np.ndarray, k: int) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=-1).fit(X).kneighbors(return_distance=False)


def faiss_ivf(X: np.ndarray, k: int) -> np.ndarray:
    import faiss

    lists = int(2 * np.sqrt(len(X)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], lists)
    index.train(X)
    index.add(X)
    index.nprobe = 32
    return without_self(index.search(X, k + 1)[1])


def faiss_hnsw(X: np.ndarray, k: int) -> np.ndarray:
    import faiss

    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.add(X)
    index.hnsw.efSearch = 2 * k
    return without_self(index.search(X, k + 1)[1])


def usearch(X: np.ndarray, k: int) -> np.ndarray:
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq", expansion_search=2 * k)
    index.add(np.arange(len(X)), X)
    return without_self(np.asarray(index.search(X, k + 1).keys, dtype=np.int64))


def pynndescent(X: np.ndarray, k: int) -> np.ndarray:
    from pynndescent import NNDescent

    return without_self(NNDescent(X, n_neighbors=k + 1, random_state=0, n_jobs=-1).neighbor_graph[0])


def without_self(indices: np.ndarray) -> np.ndarray:
    own = indices == np.arange(len(indices))[:, None]
    own[~own.any(axis=1), -1] = True
    return indices[~own].reshape(len(indices), -1)


SEARCHES = {
    "drsne, exact": (drsne_exact, "drsne", None),
    "drsne, approximate": (drsne_approximate, "drsne", None),
    "scikit-learn, brute force": (scikit_learn, "sklearn.neighbors", None),
    "faiss-cpu, IVF (32 probes)": (faiss_ivf, "faiss", "faiss-cpu"),
    "faiss-cpu, HNSW (M = 16)": (faiss_hnsw, "faiss", "faiss-cpu"),
    "usearch, HNSW": (usearch, "usearch.index", "usearch"),
    "pynndescent": (pynndescent, "pynndescent", "pynndescent"),
}


def one(name: str, X_file: str, truth_file: str) -> dict[str, float]:
    search, module, _ = SEARCHES[name]
    X, truth = np.load(X_file), np.load(truth_file)
    start = time.perf_counter()
    __import__(module)
    imported = time.perf_counter() - start
    start = time.perf_counter()
    search(X[:1000], 10)
    first = time.perf_counter() - start
    start = time.perf_counter()
    found = search(X, K)
    seconds = time.perf_counter() - start
    rows = np.linspace(0, len(X) - 1, min(2000, len(X))).astype(int)
    recall = np.mean([len(np.intersect1d(found[i], truth[i])) for i in rows]) / K
    same = bool(np.array_equal(found, search(X, K)))
    return {"import": imported, "first": first, "seconds": seconds, "recall": recall, "same": same}


def megabytes(name: str | None) -> str:
    """Return the installed size of a package's own files."""
    if name is None:
        return "0"
    files = distribution(name).files or []
    return f"{sum(Path(file.locate()).stat().st_size for file in files if Path(file.locate()).is_file()) / 1e6:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 70_000])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one)))
        return
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for n in options.sizes:
            X_file, truth_file = f"{folder}/{n}.npy", f"{folder}/{n}-truth.npy"
            np.save(X_file, large("mnist", n))
            np.save(truth_file, drsne_exact(np.load(X_file), K))
            rows = []
            for name, (_, _, package) in SEARCHES.items():
                command = [sys.executable, __file__, "--one", name, X_file, truth_file]
                done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
                try:
                    got = json.loads(done.stdout.splitlines()[-1])
                except (IndexError, ValueError):
                    rows.append([name, megabytes(package), "failed", "", "", "", ""])
                    continue
                same = "yes" if got["same"] else "no"
                times = [f"{got[key]:.1f}" for key in ("import", "first", "seconds")]
                rows.append([name, megabytes(package), *times, f"{got['recall']:.4f}", same])
                print(n, rows[-1], flush=True)
            header = ["search", "MB installed", "import s", "first small search s", "search s", "recall at 90"]
            parts.append(f"## {n:,} points\n\n" + table([*header, "twice the same"], rows))
    write("neighbors", "Neighbour search", "python benchmarks/neighbors.py", *parts)


if __name__ == "__main__":
    main()
