"""Stages 5 and 6: the places and concentrations of all rows, in one Parquet file for each partition."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from drsne.backends.choice import PROCESSOR
from drsne.distributed.landmark_map import FILE
from drsne.distributed.sources import Part, fingerprint
from drsne.distributed.work import Work, reading, writing
from drsne.estimators.drsne import DRSNE
from drsne.estimators.functions import load
from drsne.io.writing import replacing

STAGE = "output"
CONCENTRATIONS = ("concentration_data", "concentration_map")
NOVELTY = "novelty"


@lru_cache(maxsize=1)
def _model(path: str, version: tuple[int, ...]) -> DRSNE:
    """Return a model; a worker reads the file once."""
    with reading(Path(path)):
        model: DRSNE = load(path)
    return model


def model_of(work: Work, n_jobs: Any) -> DRSNE:
    """Return the model of stage 4.

    It places rows on the processor, also if a GPU has fitted it, because not every worker may have one, and the places
    of all rows have to be computed in the same way.
    """
    path = work.folder / FILE
    model = _model(str(path), work.version(path))
    model.set_params(n_jobs=n_jobs, **PROCESSOR)
    return model


def columns_of(model: DRSNE) -> list[str]:
    """Return the names of the columns of the output."""
    return [f"drsne{axis + 1}" for axis in range(model.embedding_.shape[1])] + [*CONCENTRATIONS, NOVELTY]


def _record(number: int) -> str:
    """Return the name of the record of a partition's file in the work folder."""
    return f"{STAGE}/{number:06d}"


def is_complete(part: Part, number: int, work: Work, output: Path) -> bool:
    """Return whether the file of a partition is as it was written."""
    try:
        known = work.load_json(_record(number))
        if known is None:
            return False
        found = fingerprint(output / part.name, known)
    except (OSError, ValueError):
        return False
    if found["sha256"] != known["sha256"]:
        return False
    if found != known:  # the file was copied or touched
        work.save_json(_record(number), found)
    return True


def place(part: Part, number: int, work: Work, output: Path, n_jobs: Any) -> int:
    """Write the places of the rows of a partition and a record of the file, and return the number of rows."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    model = model_of(work, n_jobs)
    names = columns_of(model)
    schema = pa.schema([(name, pa.float64()) for name in names])
    path, count = output / part.name, 0
    with writing(path), replacing(path) as temporary, ParquetWriter(temporary, schema) as writer:
        for block in _described(part, model):
            writer.write_table(pa.table(dict(zip(names, block.T, strict=True)), schema=schema))
            count += len(block)
    work.save_json(_record(number), fingerprint(path))
    return count


def _described(part: Part, model: DRSNE) -> Any:
    for block in part.blocks():
        found = model._described(block, dtype=np.float64, in_map=model.concentration_)
        yield np.column_stack([found.places, found.concentration, found.concentration_map, found.novelty])
