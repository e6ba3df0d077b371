"""Stage 0 of a Dask array: its blocks are written to the work folder, because all stages read them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from drsne.distributed.sources import ArrayPart
from drsne.distributed.work import writing
from drsne.io.writing import replacing

STAGE = "input"


def lazy_blocks(array: Any) -> list[Any]:
    """Return the row blocks of a Dask array as delayed objects."""
    whole = array.rechunk({1: -1})
    return list(whole.to_delayed()[:, 0])


def store(block: Any, part: ArrayPart) -> None:
    """Write a block, which Dask has computed, to the file of its partition."""
    if np.ma.is_masked(block):
        raise ValueError(
            f"Block {part.block} of the Dask array must have no masked values. Fill them in, for example with "
            "dask.array.ma.filled, or drop their rows."
        )
    rows = np.asarray(block.toarray() if hasattr(block, "toarray") else block)  # some blocks are sparse
    rows = np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
    path = Path(part.path)
    if rows.shape != (part.n_rows, part.n_columns):
        raise ValueError(
            f"Block {part.block} of the Dask array must have the shape {(part.n_rows, part.n_columns)}, as the array "
            f"says; got {rows.shape}. Compute the array without drsne to find the step that changes it."
        )
    with writing(path), replacing(path) as temporary, temporary.open("wb") as stream:
        # np.save writes through a second stream of C, which loses the end of a file on a full disk without an error.
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(rows))
        stream.write(rows.data)
        stream.flush()
        os.fsync(stream.fileno())
