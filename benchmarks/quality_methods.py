"""Methods of the quality study: how each is called, and which of its settings are run.

A setting is a dict of parameters, such as ``{"dens_lambda": 2.0}``. The empty dict is a call without arguments other
than the seed. Packages are imported when a method is run, so the list can be read without them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drsne.estimators.path import WEIGHTS

Params = dict[str, Any]


class Fitted(NamedTuple):
    """One map."""

    params: Params
    embedding: np.ndarray  # (n, 2)
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method with the settings that are run."""

    title: str
    maps: Callable[[np.ndarray, Sequence[Params], int], Iterator[Fitted]]  # (X, settings, seed)
    grid: tuple[Params, ...] = ({},)
    default: Params | None = None  # the setting that is compared in the table of defaults, if any
    rival: bool = False  # whether every setting of the grid is compared with our path
    distribution: str = "drsne"  # the distribution whose version is recorded
    per_job: int = 1  # settings that one job runs, because they share work


def each(fit: Callable[[np.ndarray, int, Params], Any]) -> Callable[..., Iterator[Fitted]]:
    """Return a function that makes the maps of several settings one after the other."""

    def maps(X: np.ndarray, settings: Sequence[Params], seed: int) -> Iterator[Fitted]:
        for params in settings:
            start = time.perf_counter()
            embedding = np.asarray(fit(X, seed, params))
            yield Fitted(params, embedding, time.perf_counter() - start)

    return maps


def fit_drsne(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of ``drsne.DRSNE`` with default settings, except for ``params``."""
    from drsne import DRSNE

    return DRSNE(random_state=seed, **params).fit_transform(X)


def fit_densne(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of ``drsne.DenSNE`` with default settings."""
    from drsne import DenSNE

    return DenSNE(random_state=seed, **params).fit_transform(X)


def fit_sklearn(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of scikit-learn's t-SNE."""
    from sklearn.manifold import TSNE

    return TSNE(random_state=seed, **params).fit_transform(X)


def fit_umap(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of umap-learn, which runs on one thread whenever a seed is given."""
    from umap import UMAP

    return UMAP(random_state=seed, n_jobs=1, **params).fit_transform(X)


def fit_densmap(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of umap-learn with its density term."""
    return fit_umap(X, seed, {"densmap": True, **params})


def fit_pacmap(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of PaCMAP."""
    from pacmap import PaCMAP

    return PaCMAP(random_state=seed, **params).fit_transform(X)


def fit_scalemap(X: np.ndarray, seed: int, params: Params) -> Any:
    """Return the map of ScaleMAP, called as its documentation shows."""
    from scaleMAP import UMAP

    return UMAP(scalemap=True, random_state=seed, n_jobs=1, **params).fit_transform(X)


def path_maps(X: np.ndarray, settings: Sequence[Params], seed: int) -> Iterator[Fitted]:
    """Make all maps of ``drsne.density_path`` with default settings.

    Each map starts from the one before, so the path is always run as a whole, and its time is divided equally.
    """
    from drsne import density_path

    start = time.perf_counter()
    path = density_path(X, random_state=seed, keep_affinities=False)
    share = (time.perf_counter() - start) / len(path.weights)
    for weight, embedding in zip(path.weights, path.embeddings, strict=True):
        yield Fitted({"density_weight": float(weight)}, embedding, share)


def of_the_paper_study(name: str) -> Callable[..., Iterator[Fitted]]:
    """Return a function that makes the maps of ``drsne.experiments.methods.<name>``."""

    def maps(X: np.ndarray, settings: Sequence[Params], seed: int) -> Iterator[Fitted]:
        from drsne.experiments.methods import Ready, load

        method = load(name)
        parameter = str(method.parameter)
        for run in method.maps(Ready(X), [params[parameter] for params in settings], seed):
            yield Fitted({parameter: run.value}, run.embedding, sum(run.seconds.values()))

    return maps


def grid_of(parameter: str, *values: float) -> tuple[Params, ...]:
    """Return one setting for each value of a parameter."""
    return tuple({parameter: value} for value in values)


DENSNE_GRID = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0)  # as in the study of the paper
PAPER_GRID = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1)  # likewise

METHODS = {
    "drsne": Method(title="drsne", maps=each(fit_drsne), default={}),
    "drsne_path": Method(
        title="drsne, path", maps=path_maps, grid=grid_of("density_weight", *WEIGHTS), per_job=len(WEIGHTS)
    ),
    "drsne_plain": Method(
        title="drsne, plain t-SNE",
        maps=each(fit_drsne),
        grid=grid_of("density_weight", 0),
        default={"density_weight": 0},
    ),
    "sklearn_tsne": Method(
        title="scikit-learn t-SNE", maps=each(fit_sklearn), default={}, distribution="scikit-learn"
    ),
    "umap": Method(title="UMAP", maps=each(fit_umap), default={}, distribution="umap-learn"),
    "pacmap": Method(title="PaCMAP", maps=each(fit_pacmap), default={}, distribution="pacmap"),
    "scalemap": Method(
        title="ScaleMAP",
        maps=each(fit_scalemap),
        grid=grid_of("scale_lambda", 0.25, 0.5, 0.75, 1.0),
        default={"scale_lambda": 1.0},
        rival=True,
        distribution="scalemap",
    ),
    "densmap": Method(
        title="densMAP",
        maps=each(fit_densmap),
        grid=grid_of("dens_lambda", 0.1, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0),
        default={"dens_lambda": 2.0},
        rival=True,
        distribution="umap-learn",
    ),
    "densne": Method(title="DenSNE", maps=each(fit_densne), default={}, rival=True),
    "densne_program": Method(
        title="DenSNE, settings of its program",
        maps=of_the_paper_study("densne"),
        grid=grid_of("density_weight", *DENSNE_GRID),
        rival=True,
        per_job=5,
    ),
    "paper_code": Method(
        title="the paper's code", maps=of_the_paper_study("drsne_code"), grid=grid_of("lam", *PAPER_GRID), rival=True,
        per_job=2,
    ),
}  # fmt: skip
OURS, PATH, PLAIN = "drsne", "drsne_path", "drsne_plain"
DEFAULTS = {name: method for name, method in METHODS.items() if method.default is not None}
RIVALS = {name: method for name, method in METHODS.items() if method.rival}
