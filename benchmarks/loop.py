"""Time 1000 iterations at n = 5000: ours, and plain PyTorch O(n^2) autograd loops of our objective and the authors'.

    python benchmarks/loop.py [--threads 2] [--n 5000]      (needs torch: pip install 'drsne[benchmark]')

One process, the same data and number of threads; neighbours and affinities are not timed. The loops
are timed over some iterations, ours over whole runs. Scores are those of the engine "auto" takes, of all
pairs, and of both loops run to their ends.
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

import numpy as np
import torch
from data import gaussians50, is_available, large
from report import table, write
from torch_loop import DenseLoop, TorchLoop

from drsne import DRSNE
from drsne.backends.numba.threads import Workers
from drsne.estimators import base
from drsne.initialization import pca
from drsne.metrics import evaluate
from drsne.neighbors.search import knn
from drsne.optimize.defaults import default_schedule

WEIGHT, K, ITERATIONS = 2.0, 30, 1000


def fitted(X: np.ndarray, threads: int, graph: object, seed: int, engine: str) -> tuple[DRSNE, float]:
    """Return a fit and the seconds of its iterations."""
    taken = []
    minimize = base.minimize

    def timed(*arguments: object, **options: object) -> object:
        start = time.perf_counter()
        outcome = minimize(*arguments, **options)
        taken.append(time.perf_counter() - start)
        return outcome

    with patch.object(base, "minimize", timed):
        model = DRSNE(
            density_weight=WEIGHT, density_neighbors=K, max_iter=ITERATIONS, engine=engine, n_jobs=threads,
            neighbors=graph, random_state=seed,
        ).fit(X)  # fmt: skip
    return model, taken[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--n", type=int, default=5000)
    options = parser.parse_args()
    n, threads = options.n, options.threads
    torch.set_num_threads(threads)
    X = (large("mnist", n) if is_available("mnist") else gaussians50(n)).astype(np.float64)
    graph = knn(X, 90, n_jobs=threads)
    fitted(X[:3000], threads, None, 0, "auto")  # compiles
    rows, scores = [], {}
    for engine in ("auto", "exact"):
        runs = [fitted(X, threads, graph, seed, engine) for seed in range(3)]
        found = [evaluate(X, model.embedding_) for model, _ in runs]
        scores[engine] = {key: np.mean([each[key] for each in found]) for key in found[0]}
        seconds = float(np.median([taken for _, taken in runs]))
        rows.append([f"drsne, {runs[0][0].engine_}", 1e3 * seconds / ITERATIONS, scores[engine]])
    model = runs[0][0]
    dense = DenseLoop(model.affinities_.toarray(), graph.indices[:, :K], model.input_concentration_)
    dense.seconds(model.embedding_, WEIGHT, 2)
    ours = 1e3 * dense.seconds(model.embedding_, WEIGHT, 10)
    loop = TorchLoop(X, k=K)
    loop.run(WEIGHT / n, 0, 3, warmup=0)
    ms = 1e3 * loop.run(WEIGHT / n, 0, 10, warmup=0)[1] / 10
    print("timed; now the loops to their ends, for their scores", flush=True)
    with Workers(threads) as workers:
        start = pca(X, 2, np.random.RandomState(0), workers)
    numbers = {"n_iter_exaggeration": 250, "early_exaggeration": 12.0, "learning_rate": "auto"}
    schedule = default_schedule(n, max_iter=ITERATIONS, density=True, **numbers)
    rows.append(["PyTorch, our objective and schedule", ours, evaluate(X, dense.run(start, schedule, WEIGHT))])
    Y = loop.run(WEIGHT / n, 0, ITERATIONS, warmup=50)[0]
    rows.append(["PyTorch, the authors' objective and schedule", ms, evaluate(X, Y)])
    first = rows[0][1]
    lines = [
        [name, f"{ms:.1f}", f"{ms / first:.0f} x"]
        + ([f"{found['trustworthiness']:.4f}", f"{found['concentration_correlation']:.4f}"] if found else ["", ""])
        for name, ms, found in rows
    ]
    write(
        "loop",
        f"{ITERATIONS} iterations at n = {n}",
        "python benchmarks/loop.py",
        f"Milliseconds per iteration, {threads} threads, PyTorch {torch.__version__}; scores: means over three seeds, "
        "of the loops of one.",
        table(["", "ms per iteration", "ratio", "TW", "CC"], lines),
    )


if __name__ == "__main__":
    main()
