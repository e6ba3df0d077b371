"""Quality beside the peers: the paper's seven data sets and real MNIST, all weights, three neighbourhood modes.

    python benchmarks/quality.py [--seeds 0 1 2] [--sets ...] [--methods ...] [--jobs 2]
    python benchmarks/quality.py --report     tables and pictures of what is there

Ours are the maps of drsne.density_path. Settings are chosen on seeds 0 to 2 and reported on seeds 3 to 5. Each map is a
line of results/quality.jsonl, written when its path is scored: a killed study goes on where it stopped. Needs
``pip install 'drsne[peers]'`` and, for PBMC, scanpy; Fashion-MNIST, MNIST, PBMC and Shuttle in DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from data import EIGHT
from joblib import Parallel, delayed
from quality_report import CHOOSING, PATH, ROWS, read, report

from drsne import DRSNE, Objective, density_path
from drsne.graph import nearest
from drsne.metrics import concentration, density
from drsne.metrics._inputs import euclidean
from drsne.metrics.trust import kept, own_neighbors
from drsne.objective import NEIGHBORHOODS
from drsne.parallel import Workers
from drsne.path import WEIGHTS
from drsne.presets import paper

OURS = {f"drsne, {mode}": {"neighborhoods": mode} for mode in NEIGHBORHOODS}
BESIDE = {"drsne, both, no contrast": {"objective": Objective(embedding_weight=0.25)}}  # seeds 0 to 2 only
FITS = "drsne, fits"  # not along a path: lambda = 0 and the default
DENSMAP_WEIGHTS = (0.5, 2.0, 5.0)
PRESET_WEIGHTS = (2e-4, 5e-4, 1e-3, 2e-3, 5e-3)  # printed scale
PEERS = ("t-SNE", "UMAP", "PaCMAP", "DensMAP")
METHODS = (*OURS, FITS, *PEERS, "paper preset", *BESIDE)
TRUST, CONCENTRATION, DENSITY = 10, 29, 30  # neighbours of the three scores


class Scorer:
    """Scores of maps of one data set."""

    def __init__(self, X: np.ndarray) -> None:
        self._rows = np.arange(len(X))
        self._space = euclidean(X)
        with Workers() as workers:
            self._near = nearest(X, CONCENTRATION, metric="euclidean", workers=workers)
            self._kth = nearest(X, DENSITY, metric="euclidean", workers=workers).distances[:, -1]

    def __call__(self, maps: list[np.ndarray]) -> list[dict[str, float]]:
        rows = self._rows
        trust = kept(self._space, np.hstack([own_neighbors(Y, TRUST, rows) for Y in maps]), TRUST, rows)
        return [
            {
                "trustworthiness": float(tw),
                "concentration_correlation": concentration.correlation(self._near, Y, rows),
                "density_rank_correlation": density.correlation(self._kth, Y, DENSITY, rows),
            }
            for tw, Y in zip(trust, maps, strict=True)
        ]


def ours(X: np.ndarray, seed: int, method: str) -> list[np.ndarray]:
    """The maps of a path of lambda."""
    return density_path(X, random_state=seed, keep_affinities=False, **(OURS | BESIDE)[method]).embeddings


def peer(X: np.ndarray, seed: int, method: str, weights: list[float]) -> list[np.ndarray]:
    if method == "t-SNE":
        from sklearn.manifold import TSNE

        return [TSNE(init="pca", random_state=seed).fit_transform(X)]
    if method == "PaCMAP":
        from pacmap import PaCMAP

        return [PaCMAP(random_state=seed).fit_transform(X, init="pca")]
    from umap import UMAP

    if method == "UMAP":
        return [UMAP(random_state=seed).fit_transform(X)]
    return [UMAP(densmap=True, dens_lambda=w, random_state=seed).fit_transform(X) for w in weights]


def preset(X: np.ndarray, seed: int, weights: list[float]) -> list[np.ndarray]:
    return [DRSNE(random_state=seed, **paper(len(X), w, CONCENTRATION)).fit_transform(X) for w in weights]


def run(name: str, path: Path, method: str, weights: list[float], seed: int) -> None:
    warnings.simplefilter("ignore")
    X = np.load(path)
    start = time.perf_counter()
    if method in OURS | BESIDE:
        maps = ours(X, seed, method)
    elif method == FITS:
        maps = [DRSNE(density_weight=w, random_state=seed, keep_affinities=False).fit_transform(X) for w in weights]
    elif method == "paper preset":
        maps = preset(X, seed, weights)
    else:
        maps = peer(X, seed, method, weights)
    seconds = (time.perf_counter() - start) / len(maps)
    scores = Scorer(X)([np.asarray(Y, dtype=np.float64) for Y in maps])
    with ROWS.open("a") as file:
        for w, score in zip(weights, scores, strict=True):
            row = {"set": name, "method": method, "weight": w, "seed": seed, **score, "seconds": round(seconds, 2)}
            if method in OURS | BESIDE:
                row["path"] = PATH
            file.write(json.dumps(row) + "\n")


def wanted(name: str, method: str, seed: int, rows: list[dict[str, Any]]) -> list[float]:
    """Weights that are not there yet."""
    weights: tuple[float, ...] = (0.0,)
    if method in OURS | BESIDE:
        weights = WEIGHTS
    elif method == FITS:
        weights = (0.0, DRSNE().density_weight)
    elif method == "DensMAP":
        weights = DENSMAP_WEIGHTS
    elif method == "paper preset":
        weights = PRESET_WEIGHTS if name == "MNIST" else ()
    there = {row["weight"] for row in rows if (row["set"], row["method"], row["seed"]) == (name, method, seed)}
    return [] if set(weights) <= there else list(weights)


def saved(names: list[str], folder: Path) -> dict[str, Path]:
    """Each data set in a file, made once."""
    folder.mkdir(exist_ok=True)
    paths = {}
    for name in names:
        paths[name] = folder / f"{name.replace(' ', '-')}.npy"
        if not paths[name].exists():
            try:
                np.save(paths[name], EIGHT[name]())
            except (KeyError, OSError, ImportError) as error:
                print(f"{name} is left out: {error!r}")
                del paths[name]
    return paths


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4, 5])
    parser.add_argument("--sets", nargs="*", choices=list(EIGHT), default=list(EIGHT))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "drsne-quality")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        paths = saved(options.sets, options.folder)
        rows = read()
        jobs = [
            (name, paths[name], method, weights, seed)
            for seed in options.seeds
            for method in options.methods
            for name in paths
            if (method in OURS or method == FITS or seed in CHOOSING) and (weights := wanted(name, method, seed, rows))
        ]
        Parallel(n_jobs=options.jobs, verbose=5)(delayed(run)(*job) for job in jobs)
    report()


if __name__ == "__main__":
    main()
