"""Functions that treat NumPy arrays and PyTorch tensors alike.

Formulas that are not loops over pairs are written once, with the functions of :func:`namespace`. PyTorch is never
imported here: a tensor can only exist if it has been imported already.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGE = 2**26  # number of bytes above which the memory for a copy is made by several threads
_TOUCHED_BY = 8  # number of these threads


def namespace(values: Any) -> Any:
    """Return the module with the functions of an array: numpy or torch."""
    return np if isinstance(values, np.ndarray) else sys.modules["torch"]


def host(values: Any) -> NDArray[Any]:
    """Return an array as a NumPy array."""
    if isinstance(values, np.ndarray):
        return values
    if values.device.type == "cpu" or values.numel() * values.element_size() < _LARGE:
        return np.asarray(values.cpu().numpy())
    torch = sys.modules["torch"]
    out = torch.empty(values.shape, dtype=values.dtype)
    parts = out.view(-1).chunk(_TOUCHED_BY)
    with ThreadPoolExecutor(_TOUCHED_BY) as pool:
        list(pool.map(lambda part: part.zero_(), parts))  # a copy to new memory is limited by the first access to it
    return np.asarray(out.copy_(values).numpy())


def cast(values: Any, dtype: Any) -> Any:
    """Return an array converted to a type of NumPy or of its own namespace."""
    if isinstance(values, np.ndarray):
        return values.astype(dtype, copy=False)
    torch = sys.modules["torch"]
    return values.to(dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name))


def empty(shape: tuple[int, ...], like: Any, dtype: Any = None) -> Any:
    """Return an uninitialised array in the namespace, on the device and, without ``dtype``, of the type of another."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, like.dtype if dtype is None else dtype)
    return cast(like.new_empty(0), like.dtype if dtype is None else dtype).new_empty(shape)


def same_kind(values: NDArray[Any], like: Any) -> Any:
    """Return a NumPy array in the namespace and on the device of another array."""
    return values if isinstance(like, np.ndarray) else sys.modules["torch"].as_tensor(values, device=like.device)


def along_rows(table: Any, columns: Any) -> Any:
    """Return the entries of a table (n, k) in these ``columns`` (n, m) of each row."""
    return np.take_along_axis(table, columns, axis=1) if isinstance(table, np.ndarray) else table.gather(1, columns)


def taken(values: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Return some rows of an array as a NumPy array."""
    if isinstance(values, np.ndarray):
        return np.asarray(values[rows])
    return host(values[same_kind(rows.astype(np.int64), values)])


def divided(values: Any, unit: float) -> Any:
    """Return values divided by a number whose inverse may overflow."""
    return values / unit if isinstance(values, np.ndarray) else values / values.new_full((), unit)


def medians(table: Any) -> Any:
    """Return the median of every row of a table."""
    if isinstance(table, np.ndarray):
        return np.median(table, axis=1)
    m = table.shape[1]
    ascending = table.sort(dim=1).values
    return 0.5 * (ascending[:, (m - 1) // 2] + ascending[:, m // 2])


def inner(a: Any, b: Any) -> float:
    """Return the sum of the products of the entries of two arrays."""
    return float(np.vdot(a, b) if isinstance(a, np.ndarray) else a.reshape(-1).dot(b.reshape(-1)))


def norm(values: Any) -> float:
    """Return the Euclidean norm of all entries. It does not depend on the number of BLAS threads."""
    if isinstance(values, np.ndarray):
        return float(np.sqrt(np.einsum("ij,ij->", values, values)))
    return float(sys.modules["torch"].linalg.vector_norm(values))
