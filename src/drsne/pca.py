"""Reduction of data with many features to principal components, if ``pca_components`` is set."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import products as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.queries import hashes
from drsne.precision import NEARLY_DOUBLE, SINGLE, rounded, unit_scale

_GRAIN = 64  # number of rows per block
_ROWS_AT_ONCE = 4096
AUTO = 50  # number of components for "auto"
_NARROW = 2000  # largest number of features for which the full covariance is decomposed
_ORDINARY = 2.0**100  # scale of the data below which covariances do not overflow
_FAR = 1e4  # distance from the origin, in standard deviations of the data, at which a covariance loses digits


def reduced(X: Any, components: int | str, workers: Workers) -> tuple[Any, Any]:
    """Return scikit-learn's PCA of ``X`` and the scores, or None and ``X`` if there is nothing to reduce.

    The scores are rounded to single precision unless rows that differ would then be equal. In this case, more of their
    bits are kept, and the components are rounded instead, because their last bits depend on the number of BLAS threads.
    """
    pca = fitted_pca(X, components)
    if pca is None:
        return None, X
    exact = _exact_scores(pca, X, workers)
    if _n_distinct(exact, SINGLE) < _n_distinct(exact, NEARLY_DOUBLE):
        pca.components_, pca.score_bits_ = rounded(pca.components_), NEARLY_DOUBLE
        exact = _exact_scores(pca, X, workers)
    return pca, rounded(exact, pca.score_bits_)


def _n_distinct(rows: NDArray[np.float64], bits: int) -> int:
    """Return the number of different rows after rounding."""
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    return len(np.unique(np.concatenate([hashes(rounded(rows[at : at + _ROWS_AT_ONCE], bits)) for at in starts])))


def fitted_pca(X: Any, components: int | str) -> Any:
    """Return scikit-learn's PCA of ``X``, or None if there is nothing to reduce."""
    from sklearn.decomposition import PCA

    n, d = X.shape
    count = min(AUTO, n) if components == "auto" else int(components)
    if components == "auto" and d <= AUTO:
        return None
    solver = "covariance_eigh" if d <= _NARROW else ("arpack" if sp.issparse(X) else "randomized")
    most = min(n, d) - (solver == "arpack")
    if count > most:
        checks.warn(
            f"Lowered pca_components from {count} to {most}, because X has only {n} samples and {d} features. Pass a "
            "smaller value to avoid this warning."
        )
        count = most
    if _is_constant(X):
        return None
    pca = PCA(n_components=count, svd_solver=solver, random_state=0)
    pca.score_bits_ = SINGLE  # number of significant bits of scores
    return pca.fit(X) if sp.issparse(X) or _is_ordinary(X) else _fitted_rescaled(pca, X)


def _is_constant(X: Any) -> bool:
    if sp.issparse(X):
        return bool((X.max(axis=0) - X.min(axis=0)).count_nonzero() == 0)
    return bool((X[0] == X).all())


def _is_ordinary(X: Any) -> bool:
    scale = unit_scale(X)
    if not 1.0 / _ORDINARY < scale < _ORDINARY:
        return False
    return bool(np.abs(X.mean(axis=0)).max() < _FAR * X.std(axis=0).max())


def _fitted_rescaled(pca: Any, X: Any) -> Any:
    """Fit the PCA to centred data at unit scale, and convert it to the units and the origin of ``X``."""
    scale = unit_scale(X)
    Z = X / scale
    mean = Z.mean(axis=0)
    Z -= mean
    second = unit_scale(Z)
    pca.fit(Z / second)
    pca.mean_ = (pca.mean_ * second + mean) * scale
    with np.errstate(over="ignore", under="ignore"):
        unit = np.float64(second * scale)
        pca.singular_values_ = pca.singular_values_ * unit
        for name in ("explained_variance_", "noise_variance_"):
            setattr(pca, name, getattr(pca, name) * unit * unit)
    return pca


def scores(pca: Any, X: Any, workers: Workers) -> NDArray[np.float64]:
    """Return the components of ``X``.

    The components of a row do not depend on the other rows, unlike those of a matrix product. They are rounded, because
    the last bits depend on the units of the data, but the map must not.
    """
    return rounded(_exact_scores(pca, X, workers), pca.score_bits_)


def _exact_scores(pca: Any, X: Any, workers: Workers) -> NDArray[np.float64]:
    out = np.empty((X.shape[0], len(pca.components_)))
    fitted = pca.mean_, np.ascontiguousarray(pca.components_)
    if sp.issparse(X):
        parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float64, copy=False)
        workers.run(kernels.sparse_scores, X.shape[0], *parts, *fitted, out, grain=_GRAIN)
    else:
        workers.run(kernels.scores, X.shape[0], X.astype(np.float64, copy=False), *fitted, out, grain=_GRAIN)
    return out
