"""The initial map: principal components, random numbers, or an array passed by the user.

"pca" stands for the leading principal components, scaled to a standard deviation of 1e-4. A little noise separates
duplicates and makes the result depend on the seed. If the data have fewer dimensions than the map, the missing
components are noise. Distance matrices start from classical scaling, which computes the same components from distances,
and neighbour graphs start from a diffusion map of the affinities. All of these use our own subspace iteration, because
the rounding of library factorisations depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import FEW
from drsne.backends.numba.kernels import products as kernels
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.precision import rounded, unit_scale

Array = NDArray[np.float64]
SCALE = 1e-4  # standard deviation of an initial map
_JITTER = 0.01  # standard deviation of the noise that is added to principal components, in units of SCALE
_OUTLIER = 5.0  # scores are clipped at this multiple of their 90th percentile
_PARTS = 64  # largest number of partial sums of a product
_OVERSAMPLE = 6  # number of extra vectors in the subspace iteration (oversampling)
_MAX_ITERATIONS = 60  # largest number of steps of the subspace iteration
_TOLERANCE = 1e-6  # change of the eigenvalues, relative to the largest one, at which the iteration stops


def random(n_samples: int, n_components: int, rng: np.random.RandomState) -> Array:
    """Return independent normal coordinates with a standard deviation of 1e-4."""
    return np.asarray(rng.normal(0.0, SCALE, size=(n_samples, n_components)))


def checked_init(init: Any, n_samples: int, n_components: int) -> Array:
    """Return a copy of the initial map that the user passed, or raise an error if it cannot be used."""
    from sklearn.utils import check_array

    checks.refuse_other_data("init", init)
    try:
        wrong = sp.issparse(init) or np.ndim(init) != 2
    except ValueError:  # the rows have different lengths
        wrong = True
    if wrong:
        raise ValueError(
            f"init must be 'pca', 'random' or an array of shape (n_samples, n_components); got {init!r}. "
            "Pass one row per sample."
        )
    Y = check_array(init, dtype=np.float64, order="C", copy=True, ensure_min_samples=0, input_name="init")
    if Y.shape != (n_samples, n_components):
        raise ValueError(
            f"init must have shape (n_samples, n_components)={(n_samples, n_components)}; got {Y.shape}. "
            "Pass one row per sample, or init='pca'."
        )
    if n_samples > 1 and (Y[0] == Y).all():
        raise ValueError(
            f"init must not put all points in the same place, because no force can separate them; got {Y[0]} for "
            "every sample. Pass init='random'."
        )
    return np.asarray(Y)


def pca(X: Any, n_components: int, rng: np.random.RandomState, workers: Workers) -> Array:
    """Return an initial map made from the leading principal components of a dense or sparse matrix."""
    return as_start(_sparse_scores(X, n_components) if sp.issparse(X) else _scores(X, n_components, workers), rng)


def classical_scaling(D: Array, n_components: int, rng: np.random.RandomState, workers: Workers) -> Array:
    """Return an initial map made from the classical scaling of a distance matrix."""
    B = (D / unit_scale(D)) ** 2
    B -= B.mean(axis=0)
    B -= B.mean(axis=1, keepdims=True)
    V, values = _leading(lambda V: _gram_times(B, V, workers), B.shape[1], n_components)
    # The eigenvalues of the operator are the squares of those of B. The coordinates are scaled by the square roots of
    # the eigenvalues of B.
    return as_start(_padded(V * values**0.25, n_components), rng)


def diffusion(P: sp.csr_matrix, n_components: int, rng: np.random.RandomState) -> Array:
    """Return an initial map made from the leading non-trivial eigenvectors of the random walk on ``P``."""
    mass = np.asarray(P.sum(axis=1)).ravel()
    root = np.sqrt(np.maximum(mass, np.finfo(np.float64).tiny))
    walk = sp.csr_matrix(sp.diags(1.0 / root) @ P @ sp.diags(1.0 / root))
    trivial = (root / np.linalg.norm(root))[:, None]

    def twice(V: Array) -> Array:
        V = V - trivial * (trivial * V).sum(axis=0)
        return np.asarray(walk @ (walk @ V))

    V, _ = _leading(twice, P.shape[0], n_components)
    return as_start(_padded(V / root[:, None], n_components), rng)


def as_start(scores: Array, rng: np.random.RandomState) -> Array:
    """Return scores as an initial map.

    The scores are scaled, outliers are clipped, empty columns are filled with noise, and jitter is added. The result is
    rounded, because its last bits depend on the units of the data, but the map must not.
    """
    noise = rng.normal(0.0, 1.0, size=scores.shape)
    Y = scores - np.median(scores, axis=0)
    bound = _OUTLIER * np.quantile(np.abs(Y), 0.9, axis=0)
    Y = np.where(bound > 0, np.clip(Y, -bound, bound), Y)
    Y -= Y.mean(axis=0)
    spread = Y.std(axis=0)
    if spread[0] > 0:
        Y /= spread.max()
    empty = spread <= 1e-7 * spread.max()
    Y = np.where(empty, noise, Y + _JITTER * noise)
    return rounded(SCALE * Y)


def _scores(X: Array, n_components: int, workers: Workers) -> Array:
    Z = X / unit_scale(X)
    Z -= Z.mean(axis=0)
    Z /= unit_scale(Z)
    V, _ = _leading(lambda V: _gram_times(Z, V, workers), Z.shape[1], n_components)
    if len(Z) < FEW:
        return _padded(Z @ V, n_components)
    out = np.empty((len(Z), V.shape[1]))
    workers.run(kernels.times, len(Z), Z, V, out)
    return _padded(out, n_components)


def _sparse_scores(X: sp.csr_matrix, n_components: int) -> Array:
    Z = sp.csr_matrix(X, dtype=np.float64, copy=True)
    Z.data /= unit_scale(X.data)  # a division, because the inverse overflows for the smallest numbers
    mean = np.asarray(Z.mean(axis=0)).ravel()

    def gram_times(V: Array) -> Array:
        U = Z @ V - (mean[:, None] * V).sum(axis=0)
        return np.asarray(Z.T @ U - mean[:, None] * U.sum(axis=0))

    V, _ = _leading(gram_times, Z.shape[1], n_components)
    return _padded(np.asarray(Z @ V - (mean[:, None] * V).sum(axis=0)), n_components)


def _padded(scores: Array, n_components: int) -> Array:
    """Return the scores, with added columns of zeros if the data have fewer dimensions than the map."""
    missing = n_components - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing))) if missing > 0 else scores


def _gram_times(X: Array, V: Array, workers: Workers) -> Array:
    if len(X) < FEW:  # BLAS has one thread during a fit
        return np.asarray(X.T @ (X @ V))
    grain = max(256, len(X) // _PARTS)
    parts = np.empty((n_blocks(len(X), grain), *V.shape))
    workers.run(kernels.gram_times, len(X), X, V, parts, grain=grain)
    return np.asarray(parts.sum(axis=0))


def _leading(operator: Callable[[Array], Array], size: int, count: int) -> tuple[Array, Array]:
    """Return the leading eigenvectors (size, count) and eigenvalues of a positive operator, by subspace iteration."""
    columns = min(size, count + _OVERSAMPLE)
    V = _orthonormal(np.random.RandomState(0).normal(size=(size, columns)))
    count = min(count, columns)
    values = np.zeros(columns)
    for _ in range(_MAX_ITERATIONS):
        W = operator(V)
        small = (V[:, :, None] * W[:, None, :]).sum(axis=0)
        previous, (values, rotation) = values, np.linalg.eigh(0.5 * (small + small.T))
        values, rotation = values[::-1], rotation[:, ::-1]
        V = _orthonormal((W[:, :, None] * rotation).sum(axis=1))
        change = np.abs(values - previous)[:count].max()
        if change <= _TOLERANCE * max(values[0], np.finfo(np.float64).tiny):
            break
    V = V[:, :count]
    largest = np.abs(V).argmax(axis=0)
    return V * np.where(V[largest, np.arange(count)] < 0, -1.0, 1.0), np.maximum(values[:count], 0.0)


def _orthonormal(V: Array) -> Array:
    """Return orthonormal columns by Gram-Schmidt, applied twice for accuracy; columns that vanish are set to zero."""
    V = V.copy()
    norms = np.sqrt((V * V).sum(axis=0))
    for c in range(V.shape[1]):
        for _ in range(2):
            for b in range(c):
                V[:, c] -= (V[:, b] * V[:, c]).sum() * V[:, b]
        norm = np.sqrt((V[:, c] ** 2).sum())
        V[:, c] = V[:, c] / norm if norm > 1e-12 * norms[c] and norm > 0 else 0.0
    return V
