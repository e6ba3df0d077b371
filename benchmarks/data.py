"""Data of the benchmarks: the eight sets of the paper, sets whose radii differ little, noise, and large sets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from drsne_paper import datasets
from drsne_paper.datasets import recipes
from drsne_paper.datasets._cache import data_home

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
# Data whose radii differ little, as in most text embeddings and single cells, and two kinds of noise.
EVEN = {
    "words20k": "20,000 words",
    "words5k": "5,000 words",
    "pbmc_cells": "PBMC cells",
    "4eq": "4eq cells",
    "cifar10_effnet": "CIFAR-10 features",
}
NOISES = {"sphere": "Sphere 11-d", "ball": "Ball 30-d"}
EXTENDED = EIGHT | EVEN | NOISES
MEAN_OVER = tuple(name for name in EXTENDED if name not in NOISES and name != "words5k")  # words are counted once
GENERATED_SEED = 0  # of Clusters and Helix, for which the paper states none
_ROWS, _WAITING = 100_000, 16  # rows that are generated at a time, and blocks that may wait to be scaled


def paper_data(name: str) -> Any:
    """Return one of the EIGHT as a ``drsne_paper.datasets.Data``."""
    if name in ("controlled_clusters", "helix"):
        return datasets.load(name, n_samples=5000, random_state=GENERATED_SEED)
    return recipes.paper(name)


def words(n: int | None = None) -> datasets.Data:
    """Return the GloVe vectors of the n most frequent words, or of all 20,000, with length one."""
    with np.load(_file("words20k.npz")) as file:
        X = file["X"][:n].astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return datasets.Data(X=X, y=None, name="words20k", description="GloVe 6B.100d, length one", source="GloVe 6B.100d")


def cells(counts: Any) -> np.ndarray:
    """Return 50 principal components of the log counts of 2,000 variable genes, which are not scaled."""
    import scanpy

    scanpy.pp.filter_genes(counts, min_cells=3)
    scanpy.pp.normalize_total(counts, target_sum=1e4)
    scanpy.pp.log1p(counts)
    scanpy.pp.highly_variable_genes(counts, n_top_genes=2000)
    scanpy.pp.pca(counts, n_comps=50)
    return np.asarray(counts.obsm["X_pca"], dtype=np.float64)


def pbmc_cells() -> datasets.Data:
    """Return the annotated cells of PBMC3k with their types."""
    import anndata
    import pandas as pd

    types = pd.read_csv(_file("pbmc3k_annotations.csv")).set_index("barcode")["seurat_annotations"]
    counts = anndata.read_h5ad(_file("pbmc3k_raw.h5ad"))
    counts = counts[counts.obs_names.isin(types.index)].copy()
    y = types.loc[counts.obs_names].to_numpy().astype(str)
    return datasets.Data(X=cells(counts), y=y, name="pbmc_cells", description="Cells with types", source="10x Genomics")


def four_cells() -> datasets.Data:
    """Return the four types of purified blood cells of Zheng et al. (2017): 3994 x 100."""
    X, y = np.load(_file("4eq_log_pca.npy")), np.load(_file("4eq_labels.npy"))
    return datasets.Data(X=X, y=y, name="4eq", description="100 principal components", source="Zheng et al. 2017")


def effnet() -> datasets.Data:
    """Return features of images of CIFAR-10 by an EfficientNet: 5000 x 50."""
    with np.load(_file("cifar10_effnet_features.npz")) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(int)
    return datasets.Data(X=X, y=y, name="cifar10_effnet", description="50 principal components", source="CIFAR-10")


def noise(name: str) -> datasets.Data:
    """Return points with uniform density on a sphere, or those of a Gaussian."""
    X = np.random.default_rng(GENERATED_SEED).normal(size=(3000, 11 if name == "sphere" else 30))
    if name == "sphere":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return datasets.Data(X=X, y=None, name=name, description=NOISES[name], source="generated")


def extended_data(name: str) -> datasets.Data:
    """Return one of the EXTENDED sets."""
    others = {
        "words20k": words,
        "words5k": lambda: words(5000),
        "pbmc_cells": pbmc_cells,
        "4eq": four_cells,
        "cifar10_effnet": effnet,
        "sphere": lambda: noise("sphere"),
        "ball": lambda: noise("ball"),
    }
    return others[name]() if name in others else paper_data(name)


def _file(name: str) -> Path:
    """Return a file of the data home, or raise an error that says how to get it."""
    file = data_home() / name
    if not file.is_file():
        raise FileNotFoundError(f"{name} is not in {file.parent}. Set DRSNE_DATA_HOME to the folder that holds it.")
    return file


def digits() -> np.ndarray:
    """Return scikit-learn's Digits, standardised: 1797 x 64."""
    return recipes.paper("digits").X


def gaussians50(n: int = 2000) -> np.ndarray:
    """Return what the paper's code calls MNIST: four 50-D Gaussians of variance 0.2 to 2, standardised."""
    return recipes.standardise(datasets.load("gaussians50", n_samples=n, random_state=42).X)


def is_available(name: str) -> bool:
    """Return whether the file of a data set is in the data home."""
    (state,) = [one for one in datasets.states() if one.name == name]
    return state.size > 0


def prepare(names: list[str], folder: Path) -> dict[str, Path]:
    """Write EXTENDED sets to a folder, unless they are there, and return their files.

    Data sets that are not available are skipped with a message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name in names:
        path = folder / f"{name}.npy"
        try:
            if not path.exists():
                np.save(path, extended_data(name).X)
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
