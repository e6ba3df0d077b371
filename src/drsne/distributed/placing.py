"""Stages 4 to 6: the map of the landmarks, the places of all rows, and the scores of a sample of them.

The radii of other rows are estimated from those of the landmarks around them. Half of the rows whose exact radii are
known show by which factor the estimates differ on average, and they are divided by it. The other half shows how
accurate they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from drsne import metrics
from drsne.backends.choice import PROCESSOR
from drsne.distributed import concentration
from drsne.distributed.sources import Part, fingerprint
from drsne.distributed.work import LANDMARKS, OUTPUT, QUERIES, SCORES, STATISTICS, Work, reading, writing
from drsne.estimators.drsne import DRSNE
from drsne.estimators.functions import load
from drsne.io.writing import replacing
from drsne.metrics.evaluation import NAMES
from drsne.placement.rows import radii

MODEL = "model.drsne"  # the file of the landmarks' map
CORRECTING, MEASURING = slice(0, None, 2), slice(1, None, 2)  # the halves of the rows whose exact radii are known
CONCENTRATIONS = ("concentration_data", "concentration_map")
NOVELTY = "novelty"
_LEAST = np.finfo(np.float64).tiny
_SHOWN = NAMES[:5]  # the scores of neighbours and of density


def fit(work: Work, model: DRSNE, n_jobs: Any, verbose: int) -> None:
    """Fit the landmarks, and write the model to a file."""
    found = work.load(work.path(LANDMARKS))
    X, masses = found["X"], found["masses"]
    exact = concentration.radii(work, small_groups=model._objective(1.0).small_groups)
    # With a mean of 1, the perplexity and the density neighbours are numbers of landmarks.
    weights = None if np.ptp(masses) == 0.0 else masses / masses.mean()
    made = clone(model).set_params(n_jobs=n_jobs, verbose=verbose, keep_affinities=False)
    made._fit_landmarks(X, weights, exact[: len(X)])
    if made.stopped_by_ == "interrupt":
        raise KeyboardInterrupt
    _correct(made, work.load(work.path(QUERIES))["X"][len(X) :], exact[len(X) :])
    made.set_params(verbose=0)
    path = work.folder / MODEL
    with writing(path):
        made.save(path)


def _correct(model: DRSNE, rows: Any, exact: NDArray[np.float64]) -> None:
    """Make the estimated radii of new rows unbiased, by the first half of the rows whose ``exact`` radii are known."""
    rows, exact = rows[CORRECTING], exact[CORRECTING]
    if not len(rows):
        return
    reference = model._reference
    assert reference is not None  # the landmarks are rows, not distances
    with model._placer() as placer:
        found, new = radii(reference, rows, placer)
    errors = np.log(np.maximum(exact, _LEAST) / np.maximum(found, _LEAST))[new]
    if len(errors):
        training = reference.training
        shift = training.correction_shift + float(errors.mean())
        model._reference = replace(reference, training=replace(training, correction_shift=shift))


@lru_cache(maxsize=1)
def _model(path: str, version: tuple[int, ...]) -> DRSNE:
    """Return a model; a worker reads the file once."""
    with reading(Path(path)):
        model: DRSNE = load(path)
    return model


def model_of(work: Work, n_jobs: Any) -> DRSNE:
    """Return the model of the landmarks. It places rows on the processor, because some workers may have no GPU."""
    path = work.folder / MODEL
    return _model(str(path), work.version(path)).set_params(n_jobs=n_jobs, **PROCESSOR)


def columns_of(model: DRSNE) -> list[str]:
    """Return the names of the columns of the output."""
    return [f"drsne{axis + 1}" for axis in range(model.embedding_.shape[1])] + [*CONCENTRATIONS, NOVELTY]


def is_complete(part: Part, number: int, work: Work, output: Path) -> bool:
    """Return whether the file of a partition is as it was written."""
    record = work.path(OUTPUT, number, "json")
    try:
        known = work.load_json(record)
        found = None if known is None else fingerprint(output / part.name, known)
    except (OSError, ValueError):
        return False
    if found is None or found["sha256"] != known["sha256"]:
        return False
    if found != known:  # the file was copied or touched
        work.save_json(record, found)
    return True


def place(part: Part, number: int, work: Work, output: Path, n_jobs: Any) -> None:
    """Write the places of the rows of a partition, and a record of the file."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    model = model_of(work, n_jobs)
    names = columns_of(model)
    schema = pa.schema([(name, pa.float64()) for name in names])
    path = output / part.name
    with writing(path), replacing(path) as temporary, ParquetWriter(temporary, schema) as writer:
        for block in part.blocks():
            found = model._described(block, dtype=np.float64, in_map=model.concentration_)
            made = (*found.places.T, found.concentration, found.concentration_map, found.novelty)
            writer.write_table(pa.table(dict(zip(names, made, strict=True)), schema=schema))
    work.save_json(work.path(OUTPUT, number, "json"), fingerprint(path))


def score(work: Work, parts: Sequence[Part], output: Path, n_scored: int, n_checked: int, seed: int) -> dict[str, Any]:
    """Return the scores of a sample, None for those not defined, and the errors of concentrations of some rows."""
    sample = work.load(work.path(STATISTICS))
    written = _output_rows(parts, output, sample["parts"], sample["rows"])
    rows = np.random.default_rng([seed, *SCORES.encode()]).permutation(len(written))[:n_scored]
    model = model_of(work, None)
    Y = written[rows, : model.embedding_.shape[1]]
    found = metrics.evaluate(sample["X"][rows], Y, random_state=seed, metric=model.metric)
    return {
        "rows": int(sample["count"]),
        "landmarks": len(model.embedding_),
        "scored_rows": len(rows),
        "scores": {name: found[name] if np.isfinite(found[name]) else None for name in _SHOWN},
        "concentration": _accuracy(work, model, written[concentration.spread(len(written), n_checked)]),
    }


def report(found: dict[str, Any]) -> str:
    """Return the scores as text."""
    lines = [f"{found['rows']} rows, {found['landmarks']} landmarks. Scores of {found['scored_rows']} rows:"]
    for name, value in found["scores"].items():
        lines.append(f"  {name.replace('_', ' ')}: {'not defined' if value is None else f'{value:.4f}'}")
    accuracy = found["concentration"]
    if accuracy["checked_rows"]:
        lines.append(
            f"Log concentrations of {accuracy['checked_rows']} rows have a root mean square error of "
            f"{accuracy['root_mean_square_error']:.3f} and a bias of {accuracy['bias']:.3f}."
        )
    return "\n".join(lines)


def _output_rows(parts: Sequence[Part], output: Path, numbers: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the output for some rows, given by their partitions (ascending) and their numbers in them."""
    import pandas as pd

    found = []
    for number in np.unique(numbers):
        table = pd.read_parquet(output / parts[number].name)
        found.append(table.to_numpy()[rows[numbers == number]])
    return np.concatenate(found)


def _accuracy(work: Work, model: Any, checked: NDArray[np.float64]) -> dict[str, float]:
    """Return the errors of the concentrations of rows that are not landmarks, against an exact search."""
    landmarks = len(model.embedding_)
    exact = concentration.radii(work, small_groups=model._objective(1.0).small_groups)[landmarks:]
    training = model._reference.training
    expected = training.concentration.at(np.log(np.maximum(exact + training.added, _LEAST)))
    columns = columns_of(model)
    new = checked[:, columns.index(NOVELTY)] > 0.0
    errors = (checked[:, columns.index(CONCENTRATIONS[0])] - expected)[MEASURING][new[MEASURING]]
    if not len(errors):
        return {"checked_rows": 0}
    return {
        "checked_rows": len(errors),
        "bias": float(errors.mean()),
        "standard_error_of_bias": float(errors.std() / np.sqrt(len(errors))),
        "root_mean_square_error": float(np.sqrt((errors**2).mean())),
    }
