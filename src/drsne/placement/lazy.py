"""New rows in Dask arrays and data frames: each block is placed when Dask computes it.

The model is one object of Dask's graph. A worker receives it once, and all blocks on that worker share what is derived
from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from drsne.placement.place import Description


def is_lazy(X: Any) -> bool:
    """Return whether an object is an array or a data frame of Dask. Dask is not imported for this."""
    return type(X).__module__.startswith(("dask.array", "dask.dataframe", "dask_expr")) and hasattr(X, "ndim")


def lazily(model: Any, method: str, X: Any, names: Sequence[str] | None) -> Any:
    """Return the result of a method of a fitted model for lazy rows.

    ``names`` are the names of the columns of the result, or None if it has one number for each row.
    """
    import dask

    n_features = (X.shape[1] if hasattr(X, "chunks") else len(X.columns)) if X.ndim == 2 else 1
    if X.ndim != 2 or n_features != model.n_features_in_:
        raise ValueError(
            f"X must have two dimensions and the {model.n_features_in_} columns of the training data; got "
            f"{X.ndim} dimensions and {n_features} columns. Pass the same columns as in fit."
        )
    shared = dask.delayed(model, pure=True, traverse=False)
    if hasattr(X, "chunks"):
        return _of_array(shared, method, X, names)
    model._validated(X._meta)  # names and types are known before anything is computed
    return _of_frame(shared, method, X, names)


def _of_array(shared: Any, method: str, X: Any, names: Sequence[str] | None) -> Any:
    X = X.rechunk({1: -1})
    dtype = np.dtype(np.float32 if names is not None and X.dtype == np.float32 else np.float64)
    if names is None:
        options = {"drop_axis": 1, "chunks": (X.chunks[0],), "meta": np.empty(0, dtype)}
    else:
        options = {"chunks": (X.chunks[0], (len(names),)), "meta": np.empty((0, len(names)), dtype)}
    return X.map_blocks(_block, shared, method, dtype=dtype, **options)


def _block(rows: Any, model: Any, method: str) -> Any:
    return np.asarray(getattr(model, method)(rows))


def _of_frame(shared: Any, method: str, X: Any, names: Sequence[str] | None) -> Any:
    import pandas as pd

    index = X._meta.index
    if names is None:
        meta: Any = pd.Series(np.empty(0), index=index, name=method)
    else:
        plain = all(isinstance(dtype, np.dtype) for dtype in X.dtypes)  # others are converted to double precision
        single = plain and np.result_type(*X.dtypes) == np.float32  # also with small integers and booleans
        meta = pd.DataFrame(np.empty((0, len(names)), np.float32 if single else np.float64), index, list(names))
    return X.map_partitions(_frame, shared, method, None if names is None else list(names), meta=meta)


def _frame(rows: Any, model: Any, method: str, names: list[str] | None) -> Any:
    import pandas as pd

    found = _block(rows, model, method)
    return pd.Series(found, rows.index, name=method) if names is None else pd.DataFrame(found, rows.index, names)


def uncontained(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose lazy results stay lazy.

    If pandas or polars is chosen with ``set_output``, scikit-learn converts what ``transform`` returns to a data frame
    in memory.
    """
    inner = inspect.unwrap(transform)

    @wraps(transform)
    def method(self: Any, X: Any) -> Any:
        return inner(self, X) if is_lazy(X) else transform(self, X)

    return method


def described_lazily(model: Any, X: Any) -> Description:
    """Return the places, the concentration and the novelty of the rows of a Dask array, computed block by block."""
    import dask

    from drsne.placement.place import Description

    shared = dask.delayed(model, pure=True, traverse=False)
    found = dask.compute(*(dask.delayed(_described)(block, shared) for block in X.rechunk({1: -1}).to_delayed().flat))
    return Description(*map(np.concatenate, zip(*found, strict=True)))


def _described(rows: Any, model: Any) -> Description:
    found: Description = model._described(rows)
    return found
