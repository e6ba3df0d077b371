"""The function ``memory_estimate``."""

from __future__ import annotations

from typing import Any

from drsne import checks
from drsne.estimators import memory
from drsne.estimators.drsne import DRSNE


def memory_estimate(n_samples: int, n_features: int, **params: Any) -> int:
    """Return an estimate of the peak memory of ``DRSNE(**params).fit(X)``, in bytes.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of ``X``, which is assumed to be dense.
    **params
        Parameters of :class:`drsne.DRSNE`. Parameters that are not passed have their default values.

    Returns
    -------
    int
        Peak memory in bytes, including the interpreter and its libraries. It is accurate to within about a third. With
        a device such as "cuda", it is the memory of this device.

    Examples
    --------
    >>> import drsne
    >>> drsne.memory_estimate(1_000_000, 50) < 8e9
    True
    """
    n = checks.integer("n_samples", n_samples, at_least=1)
    d = checks.integer("n_features", n_features, at_least=1)
    return memory.estimate(n, d, DRSNE(**params)._checked_parameters())
