"""Principal components before the search for neighbours, for wide data; only where asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from drsne import checks
from drsne.precision import rounded, unit_scale

AUTO = 50  # components of "auto"
_NARROW = 2000  # features up to which the covariance is decomposed whole
_ORDINARY = 2.0**100  # a scale of data that covariances hold
_FAR = 1e4  # distance from the origin, in spreads of the data, at which a covariance loses digits


def fitted_pca(X: Any, components: int | str) -> Any:
    """scikit-learn's PCA of ``X``, or None where there is nothing to reduce."""
    from sklearn.decomposition import PCA

    n, d = X.shape
    wanted = min(AUTO, n) if components == "auto" else int(components)
    if components == "auto" and d <= AUTO:
        return None
    solver = "covariance_eigh" if d <= _NARROW else ("arpack" if sp.issparse(X) else "randomized")
    most = min(n, d) - (solver == "arpack")
    if wanted > most:
        checks.warn(f"Lowered pca_components from {wanted} to {most}: {n} samples of {d} features.")
        wanted = most
    if _is_constant(X):
        return None
    pca = PCA(n_components=wanted, svd_solver=solver, random_state=0)
    return pca.fit(X) if sp.issparse(X) or _is_ordinary(X) else _fitted_with_care(pca, X)


def _is_constant(X: Any) -> bool:
    if sp.issparse(X):
        return bool((X.max(axis=0) - X.min(axis=0)).count_nonzero() == 0)
    return bool((X[0] == X).all())


def _is_ordinary(X: Any) -> bool:
    scale = unit_scale(X)
    if not 1.0 / _ORDINARY < scale < _ORDINARY:
        return False
    return bool(np.abs(X.mean(axis=0)).max() < _FAR * X.std(axis=0).max())


def _fitted_with_care(pca: Any, X: Any) -> Any:
    """The PCA of data of extreme scale or far from the origin, by way of data that are neither."""
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


def scores(pca: Any, X: Any) -> Any:
    """Components of ``X``, rounded: how a library's products were summed must not reach the map."""
    return rounded(pca.transform(X))
