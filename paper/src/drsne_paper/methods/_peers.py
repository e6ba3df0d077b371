"""Calls of other authors' programs: one function ``(X, seed, **parameters) -> map`` for each, on one thread.

Studies and benchmarks vary different parameters of the same programs; :func:`peer` makes a method of each combination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drsne_paper.methods import Array, Method, each

Fit = Callable[..., Any]


def peer(
    title: str,
    fit: Fit,
    *,
    parameter: str | tuple[str, ...] | None = None,
    grid: tuple[Any, ...] = (None,),
    settings: dict[str, Any] | None = None,
    **method: Any,
) -> Method:
    """Return a method that calls ``fit`` with fixed settings and with the values of ``parameter``.

    Parameters
    ----------
    title : str
        The name of the method in tables.
    fit : callable
        A function of this module, ``(X, seed, **parameters) -> map``.
    parameter : str or tuple of str, default=None
        The parameter that the grid varies, or several; None for a method that is run once.
    grid : tuple, default=(None,)
        The values of the parameter; tuples if there are several parameters.
    settings : dict, default=None
        The other parameters of ``fit``; those that are not given keep the defaults of the program.
    **method
        Other fields of :class:`~drsne_paper.methods.Method`, such as ``needs``.

    Returns
    -------
    Method
        The method.
    """
    fixed = dict(settings or {})

    def fitted(X: Array, value: Any, seed: int) -> Any:
        if isinstance(parameter, tuple):
            varied = dict(zip(parameter, value, strict=True))
        else:
            varied = {} if parameter is None else {parameter: value}
        return fit(X, seed, **fixed, **varied)

    return Method(title=title, parameter=parameter, grid=grid, maps=each(fitted), settings=fixed, **method)


def tsne(X: Array, seed: int, **parameters: Any) -> Any:
    """Return a map of scikit-learn's t-SNE."""
    from sklearn.manifold import TSNE

    return TSNE(random_state=seed, **parameters).fit_transform(X)


def umap(X: Array, seed: int, **parameters: Any) -> Any:
    """Return a map computed by umap-learn, which uses one thread whenever a seed is given."""
    from umap import UMAP

    return UMAP(random_state=seed, n_jobs=1, **_with_whole_neighbors(parameters)).fit_transform(X)


def densmap(X: Array, seed: int, **parameters: Any) -> Any:
    """Return a map computed by umap-learn with its density term."""
    return umap(X, seed, densmap=True, **parameters)


def pacmap(X: Array, seed: int, **parameters: Any) -> Any:
    """Return a map computed by PaCMAP."""
    from pacmap import PaCMAP

    return PaCMAP(random_state=seed, **_with_whole_neighbors(parameters)).fit_transform(X)


def scalemap(X: Array, seed: int, **parameters: Any) -> Any:
    """Return a map computed by ScaleMAP, called as its documentation shows."""
    from scaleMAP import UMAP

    return UMAP(scalemap=True, random_state=seed, n_jobs=1, **parameters).fit_transform(X)


def _with_whole_neighbors(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with ``n_neighbors`` converted to an integer, as these programs require."""
    if "n_neighbors" in parameters:
        parameters = parameters | {"n_neighbors": int(parameters["n_neighbors"])}
    return parameters
