"""Principal components before the search for neighbours, for wide data; only where asked for."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from drsne import _checks
from drsne._rounding import rounded

AUTO = 50  # components of "auto"
_NARROW = 2000  # features up to which the covariance is decomposed whole


def fitted_pca(X: Any, components: int | str) -> Any:
    """scikit-learn's PCA of ``X``, or None where there is nothing to reduce."""
    from sklearn.decomposition import PCA

    n, d = X.shape
    wanted = min(AUTO, n) if components == "auto" else int(components)
    if components == "auto" and d <= AUTO:
        return None
    if wanted > min(n, d):
        _checks.warn(f"Lowered pca_components from {wanted} to {min(n, d)}: {n} samples of {d} features.")
        wanted = min(n, d)
    solver = "covariance_eigh" if d <= _NARROW else ("arpack" if sp.issparse(X) else "randomized")
    if solver == "arpack" and wanted == min(n, d):
        wanted -= 1  # its limit
    return PCA(n_components=wanted, svd_solver=solver, random_state=0).fit(X)


def scores(pca: Any, X: Any) -> Any:
    """Components of ``X``, rounded: how a library's products were summed must not reach the map."""
    return rounded(pca.transform(X))
