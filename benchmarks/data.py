"""Data of the benchmarks, all of them from drsne.datasets: the eight sets of the quality study, and large ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from drsne import datasets
from drsne.datasets import recipes

# The data sets of the paper's main comparison, as large as there, and their titles.
EIGHT = {
    "digits": "Digits",
    "fashion_mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "gaussians50": "4 Gaussians 50-d",
    "pbmc3k": "PBMC",
    "shuttle": "Shuttle",
    "controlled_clusters": "Clusters",
    "helix": "Helix",
}
GENERATED_SEED = 0  # of Clusters and Helix, for which the paper states none
_ROWS, _WAITING = 100_000, 16  # rows that are generated at a time, and blocks that may wait to be scaled


def paper_data(name: str) -> Any:
    """Return one of the EIGHT as a ``drsne.datasets.Data``."""
    if name in ("controlled_clusters", "helix"):
        return datasets.load(name, n_samples=5000, random_state=GENERATED_SEED)
    return recipes.paper(name)


def digits() -> np.ndarray:
    """Return scikit-learn's Digits, standardised: 1797 x 64."""
    return recipes.paper("digits").X


def clusters(n: int = 2000) -> np.ndarray:
    """Return the paper's Controlled Clusters: three 3-D Gaussians of standard deviation 0.2, 0.5 and 1."""
    return datasets.load("controlled_clusters", n_samples=n, random_state=GENERATED_SEED).X


def helix(n: int = 2000) -> np.ndarray:
    """Return the paper's Concentration-Gradient Helix: 3-D, dense at one end."""
    return datasets.load("helix", n_samples=n, random_state=GENERATED_SEED).X


def gaussians50(n: int = 2000) -> np.ndarray:
    """Return what the paper's code calls MNIST: four 50-D Gaussians of variance 0.2 to 2, standardised."""
    return recipes.standardise(datasets.load("gaussians50", n_samples=n, random_state=42).X)


def is_available(name: str) -> bool:
    """Return whether the file of a data set is in the data home."""
    (state,) = [one for one in datasets.states() if one.name == name]
    return state.size > 0


def file_of(folder: Path, name: str) -> Path:
    """Return the file in which :func:`prepare` keeps one of the EIGHT."""
    return folder / f"{name}.npy"


def prepare(names: list[str], folder: Path) -> dict[str, Path]:
    """Write data sets of the EIGHT to a folder, unless they are there, and return their files.

    Data sets that are not available are skipped with a message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name in names:
        path = file_of(folder, name)
        try:
            if not path.exists():
                np.save(path, paper_data(name).X)
        except (OSError, ImportError, ValueError) as error:
            print(f"{name} is not available: {error}")
        else:
            paths[name] = path
    return paths


def _components(X: np.ndarray, d: int = 50) -> np.ndarray:
    from sklearn.decomposition import PCA

    return PCA(d, svd_solver="covariance_eigh").fit_transform(X.astype(np.float32)).astype(np.float32)


def _gaussians(rng: np.random.RandomState, n: int) -> np.ndarray:
    """Return rows of 100 Gaussians in 50 dimensions, whose scales span two decades.

    One thread draws the numbers in a fixed order, and others scale and shift them at the same time.
    """
    centres, scales = 10 * rng.normal(size=(100, 50)), np.logspace(-1, 1, 100)
    which = rng.randint(100, size=n)
    X = np.empty((n, 50), dtype=np.float32)

    def write(begin: int, noise: np.ndarray) -> None:
        groups = which[begin : begin + len(noise)]
        noise *= scales[groups, None]
        noise += centres[groups]
        X[begin : begin + len(noise)] = noise

    waiting: list[Any] = []
    with ThreadPoolExecutor() as threads:
        for begin in range(0, n, _ROWS):
            waiting.append(threads.submit(write, begin, rng.normal(size=(min(_ROWS, n - begin), 50))))
            if len(waiting) == _WAITING:
                waiting.pop(0).result()
        for each in waiting:
            each.result()
    return X


def large(name: str, n: int) -> np.ndarray:
    """Return data of the speed study, float32: 50 principal components of images, Covertype, or 100 Gaussians."""
    rng = np.random.RandomState(0)
    if name == "gaussians":
        return _gaussians(rng, n)
    if name == "covertype":
        X = recipes.standardise(datasets.load("covertype").X).astype(np.float32)
    elif name == "mnist":
        X = _components(datasets.load("mnist").X / np.float32(255))
    else:
        images = [datasets.load(one).X for one in ("mnist", "fashion_mnist")]
        X = _components(np.vstack(images) / np.float32(255))
    return X[np.sort(rng.permutation(len(X))[:n])]
