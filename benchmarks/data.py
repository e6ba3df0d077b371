"""Data for the benchmarks: four sets that need no file, two that are read from DRSNE_DATA_HOME."""

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
    parts = zip(((-6, 0, 0), (0, 6, 0), (6, 0, 0)), (0.2, 0.5, 1.0), (n // 3, n // 3, n - 2 * (n // 3)), strict=True)
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


def have(name: str) -> bool:
    """Whether ``<name>.npz`` is in DRSNE_DATA_HOME."""
    return (Path(os.environ.get("DRSNE_DATA_HOME", "")) / f"{name}.npz").is_file()


SETS = {"Digits": digits, "Clusters": clusters, "Helix": helix, "4 Gaussians 50-d": gaussians50}
FILES = {"MNIST": "mnist", "Fashion-MNIST": "fashion_mnist"}


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
