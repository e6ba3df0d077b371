"""Data for the benchmarks: four sets that need no file, four that are read from DRSNE_DATA_HOME."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler


def digits() -> np.ndarray:
    """scikit-learn's Digits, standardised: 1797 x 64."""
    return StandardScaler().fit_transform(load_digits().data)


def clusters(n: int = 2000) -> np.ndarray:
    """The paper's Controlled Clusters: three 3-D Gaussians of standard deviation 0.2, 0.5 and 1."""
    rng = np.random.RandomState(0)
    sizes = [n // 3 + (c < n % 3) for c in range(3)]
    parts = zip(((-6, 0, 0), (0, 6, 0), (6, 0, 0)), (0.2, 0.5, 1.0), sizes, strict=True)
    return np.vstack([rng.normal(centre, sigma, (m, 3)) for centre, sigma, m in parts])


def helix(n: int = 2000) -> np.ndarray:
    """The paper's Concentration-Gradient Helix: 3-D, crowded at one end."""
    rng = np.random.RandomState(0)
    u = -np.log(1 - rng.rand(n) * (1 - np.exp(-3.0))) / 3.0
    t = 8 * np.pi * u
    return np.c_[np.cos(t), np.sin(t), 0.35 * t] + rng.normal(0, 0.025, (n, 3))


def gaussians50(n: int = 2000) -> np.ndarray:
    """What the paper's code calls MNIST: four 50-D Gaussians of variance 0.2 to 2, standardised."""
    rng = np.random.RandomState(42)
    parts = [rng.multivariate_normal(5 * rng.randn(50), v * np.eye(50), size=n // 4) for v in np.linspace(0.2, 2.0, 4)]
    X = np.vstack(parts)
    return StandardScaler().fit_transform(X[rng.permutation(len(X))])


def images(name: str, n: int = 5000) -> np.ndarray:
    """The paper's sample of MNIST or Fashion-MNIST, standardised, from ``<name>.npz`` in DRSNE_DATA_HOME."""
    with np.load(Path(os.environ["DRSNE_DATA_HOME"]) / f"{name}.npz") as file:
        X = file["X"]
    rows = np.random.RandomState(42).choice(len(X), n, replace=False)
    return StandardScaler().fit_transform(X[rows].astype(np.float64))


def shuttle(n: int = 5000) -> np.ndarray:
    """The paper's sample of Shuttle, by class, standardised; from ``shuttle.npz`` in DRSNE_DATA_HOME."""
    with np.load(Path(os.environ["DRSNE_DATA_HOME"]) / "shuttle.npz") as file:
        X, y = file["X"], file["y"]
    rng = np.random.RandomState(42)
    classes, counts = np.unique(y, return_counts=True)
    share = n * counts / counts.sum()
    take = np.floor(share).astype(int)
    take[np.argsort(take - share, kind="stable")[: n - take.sum()]] += 1
    rows = [rng.choice(np.flatnonzero(y == c), m, replace=False) for c, m in zip(classes, take, strict=True)]
    rows = np.concatenate(rows)
    rng.shuffle(rows)
    return StandardScaler().fit_transform(X[rows].astype(np.float64))


def pbmc() -> np.ndarray:
    """PBMC3k as in the paper, 50 principal components of 2700 cells; from ``pbmc3k_raw.h5ad`` in DRSNE_DATA_HOME."""
    import scanpy as sc

    cells = sc.read_h5ad(Path(os.environ["DRSNE_DATA_HOME"]) / "pbmc3k_raw.h5ad")
    sc.pp.normalize_total(cells, target_sum=1e4)
    sc.pp.log1p(cells)
    sc.pp.highly_variable_genes(cells, n_top_genes=2000)
    cells = cells[:, cells.var["highly_variable"]].copy()
    sc.pp.scale(cells, max_value=10)
    sc.tl.pca(cells, n_comps=50, svd_solver="arpack")
    return np.asarray(cells.obsm["X_pca"], dtype=np.float64)


def have(name: str) -> bool:
    """Whether ``<name>.npz`` is in DRSNE_DATA_HOME."""
    return (Path(os.environ.get("DRSNE_DATA_HOME", "")) / f"{name}.npz").is_file()


SETS = {"Digits": digits, "Clusters": clusters, "Helix": helix, "4 Gaussians 50-d": gaussians50}
FILES = {"MNIST": "mnist", "Fashion-MNIST": "fashion_mnist"}
# The paper's main comparison, as large as there.
EIGHT = {
    "Digits": digits,
    "Fashion-MNIST": lambda: images("fashion_mnist"),
    "MNIST": lambda: images("mnist"),
    "4 Gaussians 50-d": lambda: gaussians50(5000),
    "PBMC": pbmc,
    "Shuttle": shuttle,
    "Clusters": lambda: clusters(5000),
    "Helix": lambda: helix(5000),
}


def classes(name: str) -> np.ndarray | None:
    """What colours the points of one of the EIGHT: classes, the place along the Helix, or nothing."""
    if name == "Digits":
        return load_digits().target
    if name == "Clusters":
        return np.repeat([0, 1, 2], [1667, 1667, 1666])
    if name == "Helix":
        return -np.log(1 - np.random.RandomState(0).rand(5000) * (1 - np.exp(-3.0))) / 3.0
    if name in FILES:
        with np.load(Path(os.environ["DRSNE_DATA_HOME"]) / f"{FILES[name]}.npz") as file:
            return file["y"][np.random.RandomState(42).choice(len(file["y"]), 5000, replace=False)]
    return None


def file_of(folder: Path, name: str) -> Path:
    """Return the file in which :func:`prepare` keeps one of the EIGHT."""
    return folder / f"{name.replace(' ', '-')}.npy"


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
                np.save(path, EIGHT[name]())
        except (KeyError, OSError, ImportError) as error:
            print(f"{name} is not available: {error!r}")
        else:
            paths[name] = path
    return paths


def load(name: str) -> np.ndarray:
    """A data set by its name in SETS or FILES."""
    return images(FILES[name]) if name in FILES else SETS[name]()


def _file(name: str) -> np.ndarray:
    with np.load(Path(os.environ["DRSNE_DATA_HOME"]) / f"{name}.npz") as file:
        return file["X"]


def _components(X: np.ndarray, d: int = 50) -> np.ndarray:
    return PCA(d, svd_solver="covariance_eigh").fit_transform(X.astype(np.float32)).astype(np.float32)


def large(name: str, n: int) -> np.ndarray:
    """Data of the speed study, float32: 50 principal components of images, Covertype, or a mixture of Gaussians."""
    rng = np.random.RandomState(0)
    if name == "gaussians":  # 100 centres, scales over two decades, 50-d
        centres, scales = 10 * rng.normal(size=(100, 50)), np.logspace(-1, 1, 100)
        which = rng.randint(100, size=n)
        return (centres[which] + scales[which, None] * rng.normal(size=(n, 50))).astype(np.float32)
    if name == "covertype":
        X = StandardScaler().fit_transform(_file("cover_adbench").astype(np.float64)).astype(np.float32)
    elif name == "mnist":
        X = _components(_file("mnist") / np.float32(255))
    else:
        X = _components(np.vstack([_file("mnist"), _file("fashion_mnist")]) / np.float32(255))
    return X[np.sort(rng.permutation(len(X))[:n])]
