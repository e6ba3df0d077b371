"""Checks of what a user passes, and what identifies a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from drsne.distributed.sources import is_dask_array, parquet_files
from drsne.distributed.work import MANIFEST, Work
from drsne.estimators.drsne import DRSNE

_CHANGE_NOTHING = ("n_jobs", "verbose", "callbacks", "keep_affinities")  # parameters that no result depends on


def checked_model(model: DRSNE | None, seed: int) -> DRSNE:
    """Return an estimator with the parameters of the landmarks' map, or raise an error if one is not supported."""
    if model is not None and not isinstance(model, DRSNE):
        raise TypeError(f"model must be a DRSNE or None; got {type(model).__name__}. Pass drsne.DRSNE(...).")
    estimator: DRSNE = DRSNE() if model is None else clone(model)
    if estimator.random_state is None:
        estimator.random_state = seed
    unsupported = {
        "neighbors": estimator.neighbors is not None,
        "pca_components": estimator.pca_components is not None,
        "init": not isinstance(estimator.init, str),
        "metric": callable(estimator.metric) or estimator.metric == "precomputed",
        "random_state": not isinstance(estimator.random_state, int | np.integer),
    }
    for name, wrong in unsupported.items():
        if wrong:
            raise ValueError(
                "model must have a named metric, an integer as random_state, and no neighbors, pca_components or "
                f"array as init in distributed.fit; got {name}={getattr(estimator, name)!r}. Reduce the columns of "
                "the data before, and leave the others at their defaults."
            )
    estimator._check_parameters(estimator.get_params(deep=False), estimator._defaults())
    return estimator


def check_columns(columns: Any, *, array: bool) -> None:
    """Raise an error if the columns are not a list of different names, or if the source has no names."""
    if columns is None:
        return
    if array:
        raise ValueError(
            "columns must be None for a Dask array, whose columns have no names. Choose them with source[:, numbers]."
        )
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns must be a list of names; got {columns!r}. Pass for example columns=['a', 'b'].")
    if not len(columns) or len(set(columns)) < len(columns):
        raise ValueError(
            f"columns must be different names, and at least one; got {list(columns)!r}. Pass None for all columns."
        )


def check_output(output: Path, source: Any) -> None:
    """Raise an error if the results would be mixed with the data or with other files."""
    if not output.name:
        raise ValueError(f"output must be a folder with a name; got {str(output)!r}. Choose another folder.")
    if output.exists() and not output.is_dir():
        raise ValueError(f"output must be a folder; got the file {str(output)!r}. Choose another name.")
    folders = set()
    if not is_dask_array(source):
        folders = {path.resolve().parent for path in parquet_files(source)}
    if output.resolve() in folders:
        raise ValueError(f"output must not be the folder of the data; got {str(output)!r}. Choose another folder.")
    work = Work(output.with_name(output.name + ".work"))
    if not work.is_claimed() and (work.has_results() or (output.is_dir() and any(output.iterdir()))):
        raise ValueError(
            f"output must be a new or empty folder, or that of an unfinished run; {str(output)!r} or "
            f"{str(work.folder)!r} has files, but there is no {MANIFEST} that says which run they belong to. Remove "
            "both folders if they are of an earlier run, or choose another output."
        )


def _text(value: Any) -> str:
    """Return a parameter as text. Equal numbers have the same text, also 10, 10.0 and those of NumPy."""
    if isinstance(value, float | np.floating):
        return repr(int(value) if float(value).is_integer() else float(value))
    return repr(int(value)) if isinstance(value, np.integer) else repr(value)


def identity(estimator: DRSNE, settings: dict[str, Any]) -> dict[str, Any]:
    """Return everything that the results depend on besides the data."""
    import drsne

    params = {name: _text(value) for name, value in estimator.get_params(deep=False).items()}
    kept = {f"model.{name}": value for name, value in params.items() if name not in _CHANGE_NOTHING}
    return {**settings, **kept, "drsne": drsne.__version__}
