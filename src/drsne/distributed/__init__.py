"""Maps of data that are larger than memory: landmarks are fitted, and all other rows are placed in their map.

:func:`fit` reads Parquet files or Dask arrays in blocks. It runs in one process, or on the workers of a Dask cluster,
and writes the same bytes in both cases. Every stage keeps its results in a work folder, so a run that was interrupted
continues where it stopped. The stages are in the files ``statistics``, ``landmarks``, ``concentration``,
``landmark_map``, ``placing`` and ``scores``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drsne.distributed.pipeline import Fitted, fit

__all__ = ["Fitted", "fit"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.pipeline"), name)
