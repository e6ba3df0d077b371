"""Maps of data that are larger than memory: landmarks are fitted, and all other rows are placed in their map.

:func:`fit` reads Parquet files or Dask arrays in blocks. It runs in one process, or on the workers of a Dask cluster,
and writes the same bytes in both cases. Every stage keeps its results in a work folder, so a run that was interrupted
continues where it stopped. ``stages`` runs the stages, which are in ``landmarks``, ``concentration`` and ``placing``.
"""

from drsne.distributed.pipeline import Fitted, fit

__all__ = ["Fitted", "fit"]
