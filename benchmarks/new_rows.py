"""Place held-out rows in a map of the others, and compare with a fit of all rows, for three packages.

    python benchmarks/new_rows.py [--data digits pbmc3k] [--methods drsne umap]
    python benchmarks/new_rows.py --times                 also time one row and 10,000 rows of MNIST
    python benchmarks/new_rows.py --report

The rules, fixed before the first run:

- Data: Digits, Fashion-MNIST, PBMC, Shuttle, PBMC cells and 5,000 words as in the quality study. On the last two,
  where the automatic contrast is high, drsne also has a contrast of 2 for comparison. A random tenth of the rows is
  held out, with the seeds 3, 4 and 5. Every method has its default settings and this seed.
- A map of nine tenths of the rows is fitted, and the others are placed in it. Another map is fitted to all rows. Both
  maps of all rows are scored.
- The two maps are aligned (translation, rotation, reflection and scale), so that the rows that are in both fits match
  as closely as possible. The distance of a held-out row is that between its two positions, divided by the root mean
  square distance of the points of the map from their mean. The table shows the median over held-out rows and, for
  comparison, over the shared rows, whose positions also differ between the two fits.
- Times: MNIST (50 components), 60,000 rows are fitted and 10,000 are placed. One row is placed 20 times after a first
  call, and the median is shown.

Each fit is a line of results/new_rows.jsonl, so an interrupted study resumes where it stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from data import EXTENDED, large, prepare
from runner import Results, five_scores, made_of, rules, table, write

from drsne import DRSNE

DATA = ("digits", "fashion_mnist", "pbmc3k", "shuttle", "pbmc_cells", "words5k")
EVEN = ("pbmc_cells", "words5k")  # sets on which the contrast is compared with a lower one
SEEDS = (3, 4, 5)
PACKAGES = {"drsne": "drsne", "drsne_2": "drsne", "opentsne": "openTSNE", "umap": "umap"}
TITLES = {"drsne": "drsne", "drsne_2": "drsne, contrast 2", "opentsne": "openTSNE", "umap": "umap-learn"}
SCORES = ("TW", "Cont", "CC", "rho30", "rho5")
ROWS = Results("new_rows", "data", "method", "seed")
TIMES = Results("new_rows_times", "method")


class Fitted:
    """A fitted map that places new rows."""

    def __init__(self, method: str, X: np.ndarray, seed: int) -> None:
        self._method = method
        if method.startswith("drsne"):
            contrast = 2.0 if method == "drsne_2" else "auto"
            self._model: Any = DRSNE(random_state=seed, n_jobs=-1, contrast=contrast).fit(X)
            self.map = self._model.embedding_
        elif method == "umap":
            import umap

            self._model = umap.UMAP(random_state=seed).fit(X)
            self.map = self._model.embedding_
        else:
            import openTSNE

            self._model = openTSNE.TSNE(random_state=seed, n_jobs=-1).fit(X)
            self.map = np.asarray(self._model)

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the places of new rows."""
        return np.asarray(self._model.transform(X))


def distances(Y: np.ndarray, joint: np.ndarray, held: np.ndarray) -> tuple[float, float]:
    """Return the median distances of held-out rows and of training rows between two maps, after an alignment."""
    a, b = Y[~held], joint[~held]
    a_mean, b_mean = a.mean(axis=0), b.mean(axis=0)
    U, s, Vt = np.linalg.svd((b - b_mean).T @ (a - a_mean))
    scale = s.sum() / ((b - b_mean) ** 2).sum()
    aligned = scale * (joint - b_mean) @ (U @ Vt) + a_mean
    moved = np.linalg.norm(aligned - Y, axis=1) / np.sqrt(((a - a_mean) ** 2).sum(axis=1).mean())
    return float(np.median(moved[held])), float(np.median(moved[~held]))


def compared(X: np.ndarray, method: str, seed: int) -> dict[str, Any]:
    """Return the scores of the two maps of all rows, and the distances between them."""
    held = np.zeros(len(X), bool)
    held[np.random.default_rng(seed).permutation(len(X))[: len(X) // 10]] = True
    Y = np.empty((len(X), 2))
    fitted = Fitted(method, X[~held], seed)
    start = time.perf_counter()
    Y[~held], Y[held] = fitted.map, fitted.place(X[held])
    seconds = time.perf_counter() - start
    joint = Fitted(method, X, seed).map
    of_held, of_training = distances(Y, joint, held)
    return {
        "placed": dict(zip(SCORES, five_scores(X, Y), strict=True)),
        "joint": dict(zip(SCORES, five_scores(X, joint), strict=True)),
        "distance": of_held,
        "distance_of_training_rows": of_training,
        "seconds": {"transform": seconds},
    }


def timed(method: str) -> dict[str, Any]:
    """Return the seconds of one row and of 10,000 rows of MNIST."""
    X = large("mnist", 70_000)
    order = np.random.default_rng(0).permutation(len(X))
    fitted, new = Fitted(method, X[order[:60_000]], 0), X[order[60_000:]]
    fitted.place(new[:1])
    one = []
    for i in range(20):
        start = time.perf_counter()
        fitted.place(new[i : i + 1])
        one.append(time.perf_counter() - start)
    fitted.place(new[:100])
    start = time.perf_counter()
    fitted.place(new)
    return {"seconds": {"one": float(np.median(one)), "many": time.perf_counter() - start}}


def run(names: list[str], methods: list[str], folder: Path) -> None:
    """Run what is missing."""
    done = ROWS.keys()
    for name, path in prepare(names, folder).items():
        X = np.load(path)
        for seed in SEEDS:
            for method in methods:
                wanted = {"data": name, "method": method, "seed": seed}
                if ROWS.key(wanted) not in done and (method != "drsne_2" or name in EVEN):
                    row = ROWS.append({**wanted, **compared(X, method, seed)})
                    print(name, method, seed, row["placed"], row["joint"], row["distance"], flush=True)


def report() -> None:
    """Write the tables."""
    rows, lines = ROWS.read(), []
    for name in DATA:
        for method, title in TITLES.items():
            found = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            if found:
                pairs = [
                    f"{np.mean([row['placed'][score] for row in found]):.3f} / "
                    f"{np.mean([row['joint'][score] for row in found]):.3f}"
                    for score in SCORES
                ]
                worst = [max(abs(row["placed"][score] - row["joint"][score]) for row in found) for score in SCORES]
                moved = [f"{np.mean([row[key] for row in found]):.3f}" for key in _DISTANCES]
                lines.append([EXTENDED[name], title, *pairs, f"{max(worst[0], worst[1], worst[3], worst[4]):.3f}",
                              f"{worst[2]:.3f}", *moved])  # fmt: skip
    times = [
        [TITLES[row["method"]], f"{1e3 * row['seconds']['one']:.1f}", f"{row['seconds']['many']:.1f}"]
        for row in TIMES.read()
    ]
    header = ["data", "method", *SCORES, "largest difference", "of CC", "distance", "of shared rows"]
    write(
        "new_rows",
        "New rows in a fitted map",
        "python benchmarks/new_rows.py --times",
        f"The rules:\n\n{rules(__doc__, 'Each fit is a line')}",
        "Scores of the map with placed rows / of the map fitted to all rows, means over three seeds. The largest "
        "difference is over TW, continuity, rho30 and rho5 of all seeds.",
        table(header, lines),
        "Times with MNIST: 60,000 rows in the map.",
        table(["method", "one row, ms", "10,000 rows, s"], times),
        f"These times are from rows of:\n\n{made_of(TIMES.read())}",
        rows=rows,
    )


_DISTANCES = ("distance", "distance_of_training_rows")


def main() -> None:
    """Run what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="+", choices=list(PACKAGES), default=list(PACKAGES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the data are kept")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    methods = [name for name in options.methods if importlib.util.find_spec(PACKAGES[name]) is not None]
    if not options.report:
        warnings.simplefilter("ignore")
        run(options.data, methods, options.folder)
        for method in methods if options.times else ():
            done = TIMES.keys()
            if TIMES.key({"method": method}) not in done:
                print(TIMES.append({"method": method, **timed(method)}), flush=True)
    report()


if __name__ == "__main__":
    main()
