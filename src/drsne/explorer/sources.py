"""The maps of a page. A source is recognised by its attributes, so that other packages' estimators work as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import refuse_cells
from drsne.pl._models import as_model, concentrations_of
from drsne.terms.objective import PROFILE_WEIGHT
from drsne.terms.profile import DEFAULT_SMOOTHING, profile

Array = NDArray[np.float64]
N_NEIGHBORS = 30  # number of neighbours in a map over which its concentration is measured
_FEWEST = 3  # smallest number of rows for which a concentration is measured
_WAY_OUT = (
    "Pass a fitted estimator, a DensityPath, an array of shape (n_samples, 2), or a mapping from names to such arrays."
)


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Maps of the same rows, in the order of the slider."""

    embeddings: list[Array]  # of shape (n_samples, 2)
    titles: list[str]
    ticks: list[str]  # short titles beside the slider
    start: int = 0  # index of the map that is shown first
    scores: dict[str, list[float]] = field(default_factory=dict)  # named as in drsne.metrics.evaluate
    baseline: float = float("nan")  # trustworthiness of the map at lambda = 0, if it is known
    concentrations: list[Array] = field(default_factory=list)  # logs for every map; empty if they cannot be measured
    measured_in: str = "map"  # the neighbours over which these were measured: "data", "map", or "radii" of den-SNE
    input_concentration: Array | None = None  # log relative concentration of the data, if it is known
    weights: list[float] = field(default_factory=list)  # of the maps of a path; empty for other maps
    # Factors on input_concentration that give the concentration that each map should have. They count as 1 if empty.
    contrasts: list[float] = field(default_factory=list)

    @property
    def n_samples(self) -> int:
        """Return the number of rows."""
        return len(self.embeddings[0])


def maps_of(source: Any) -> Maps:
    """Return the maps of any source that :func:`drsne.explorer.page` accepts."""
    source = as_model(source)
    if hasattr(source, "embeddings") and hasattr(source, "weights"):
        maps = _of_path(source)
    elif hasattr(source, "embedding_"):
        maps = _of_model(source)
    elif hasattr(source, "fit"):
        raise ValueError(
            f"source must be fitted; got {type(source).__name__} without embedding_. Call fit first, and pass a method "
            "that stores its map in embedding_."
        )
    elif isinstance(source, Mapping):
        if not source:
            raise ValueError(f"source must hold at least one map; got an empty {type(source).__name__}. {_WAY_OUT}")
        names = [str(name) for name in source]
        maps = Maps(embeddings=_checked(source), titles=names, ticks=names)
    else:
        maps = _single(source, "")
    if not maps.concentrations and maps.n_samples >= _FEWEST:
        n_jobs = getattr(source, "n_jobs", None)
        maps = replace(maps, concentrations=[measured_concentration(Y, n_jobs) for Y in maps.embeddings])
    return maps


def measured_concentration(Y: Array, n_jobs: int | None = None) -> Array:
    """Return the log relative concentration of a map, measured over the nearest neighbours in the map."""
    from joblib import effective_n_jobs
    from scipy.spatial import cKDTree

    centred = Y - Y.mean(axis=0)
    centred /= np.abs(centred).max() or 1.0
    k = min(N_NEIGHBORS, len(Y) - 1)
    distances, _ = cKDTree(centred).query(centred, k + 1, workers=effective_n_jobs(n_jobs))
    return profile(distances[:, 1:].mean(axis=1), 1.0, DEFAULT_SMOOTHING).log  # the first one is the row itself


def with_targets(maps: Maps, input_concentration: Any, contrast: Any) -> Maps:
    """Return maps with the concentration of the data and the contrasts that a user has given, unless they are None."""
    if input_concentration is not None:
        refuse_cells("input_concentration", input_concentration)
        data = np.asarray(input_concentration, dtype=np.float64)
        if data.shape != (maps.n_samples,):
            raise ValueError(
                f"input_concentration must have one number for each of the {maps.n_samples} rows; got shape "
                f"{data.shape}. Pass model.input_concentration_ of a model of the same rows."
            )
        maps = replace(maps, input_concentration=data)
    if contrast is None:
        return maps
    n_maps = len(maps.embeddings)
    values = np.asarray(contrast, dtype=np.float64)
    if values.shape not in ((), (n_maps,)) or not np.isfinite(values).all():
        raise ValueError(
            f"contrast must be a number, or one number for each of the {n_maps} maps; got {contrast!r}. Pass "
            "model.contrast_."
        )
    contrasts = np.broadcast_to(values, n_maps).tolist()
    if not values.ndim and maps.weights:  # above this weight, the default density term is the paper's
        contrasts = [1.0 if weight > PROFILE_WEIGHT else float(values) for weight in maps.weights]
    return replace(maps, contrasts=contrasts)


def _of_path(path: Any) -> Maps:
    ticks = [f"{weight:g}" for weight in path.weights]
    maps = Maps(
        embeddings=_checked(dict(zip(ticks, path.embeddings, strict=True))),
        titles=[f"λ = {tick}" for tick in ticks],
        ticks=ticks,
        scores={name: [float(value) for value in values] for name, values in path.metrics.items()},
        baseline=float(path.baseline),
        weights=[float(weight) for weight in path.weights],
        start=path.best() or 0,
    )
    return with_targets(maps, getattr(path, "input_concentration", None), getattr(path, "contrasts", None))


def _of_model(model: Any) -> Maps:
    data, shown, contrast = concentrations_of(model)
    path = getattr(model, "path_", None)
    if path is not None:
        start = int(np.argmin(np.abs(np.asarray(path.weights) - model.density_weight_)))
        maps = replace(_of_path(path), start=start)
        return with_targets(maps, data, None if maps.contrasts else contrast)
    weight = getattr(model, "density_weight_", None)
    maps = _single(model.embedding_, type(model).__name__ if weight is None else f"λ = {weight:g}")
    if shown is not None:
        over = "map" if getattr(model, "neighborhoods", None) == "embedding" else "data"
        measured_in = "radii" if hasattr(model, "log_radii_") else over
        maps = replace(maps, concentrations=[shown], measured_in=measured_in)
    return with_targets(maps, data, contrast)


def _single(Y: Any, title: str) -> Maps:
    return Maps(embeddings=_checked({"": Y}), titles=[title], ticks=[title])


def _checked(maps: Mapping[Any, Any]) -> list[Array]:
    """Return maps as arrays, after checking that they are finite and two-dimensional and have the same rows."""
    arrays: list[Array] = []
    for name, values in maps.items():
        which = f"the map {name!r}" if name != "" else "the map"
        try:
            Y = np.asarray(getattr(as_model(values), "embedding_", values), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"source must hold numbers; {which} is a {type(values).__name__}. {_WAY_OUT}") from error
        if Y.ndim != 2 or Y.shape[1] != 2 or not len(Y):
            raise ValueError(f"source must have maps of shape (n_samples, 2); {which} has shape {Y.shape}. {_WAY_OUT}")
        if not np.isfinite(Y).all():
            count = int((~np.isfinite(Y)).any(axis=1).sum())
            raise ValueError(
                f"source must have finite maps; {which} has NaN or infinity in {count} rows. Drop these rows from all "
                "maps, labels and columns."
            )
        if arrays and len(Y) != len(arrays[0]):
            raise ValueError(
                f"source must have maps of the same rows; {which} has {len(Y)} rows, and the first map has "
                f"{len(arrays[0])}. Make one page for each set of rows."
            )
        arrays.append(Y)
    return arrays
