"""Stage 7: the scores of the map on a sample of the rows, and the accuracy of the concentrations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import metrics
from drsne.distributed import concentration
from drsne.distributed.landmark_map import MEASURING
from drsne.distributed.landmarks import STAGE as LANDMARKS
from drsne.distributed.placing import columns_of, model_of
from drsne.distributed.sources import Part
from drsne.distributed.statistics import STAGE as SAMPLE
from drsne.distributed.statistics import spread
from drsne.distributed.work import Work

STAGE = "scores"
SHOWN = (
    "trustworthiness",
    "continuity",
    "concentration_correlation",
    "density_rank_correlation",
    "local_density_rank_correlation",
)


def score(work: Work, parts: Sequence[Part], output: Path, n_scored: int, n_checked: int, seed: int) -> dict[str, Any]:
    """Return the scores of a sample in its own map, and the errors of the concentrations of some of its rows.

    Scores that are not defined are None, because JSON has no NaN.
    """
    sample = work.load(work.path(SAMPLE))
    written = output_rows(parts, output, sample["parts"], sample["rows"])
    rows = np.random.default_rng([seed, *STAGE.encode()]).permutation(len(written))[:n_scored]
    model = model_of(work, None)
    Y = written[:, : model.embedding_.shape[1]]
    found = metrics.evaluate(sample["X"][rows], Y[rows], random_state=seed, metric=model.metric)
    scores = {name: found[name] if np.isfinite(found[name]) else None for name in SHOWN}
    return {
        "rows": int(sample["count"]),
        "landmarks": len(model.embedding_),
        "scored_rows": len(rows),
        "scores": scores,
        "concentration": _accuracy(work, model, written, n_checked),
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


def output_rows(parts: Sequence[Part], output: Path, numbers: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the output for some rows, given by their partitions (ascending) and their numbers in them."""
    from pyarrow.parquet import read_table

    found = []
    for number in np.unique(numbers):
        table = read_table(output / parts[number].name)
        values = np.column_stack([table.column(name).to_numpy() for name in table.column_names])
        found.append(values[rows[numbers == number]])
    return np.concatenate(found)


def _accuracy(work: Work, model: Any, written: NDArray[np.float64], n_checked: int) -> dict[str, float]:
    """Return the errors of the concentrations of rows that are not landmarks, against an exact search."""
    landmarks = work.load(work.path(LANDMARKS))["X"]
    radii = concentration.radii(work, small_groups=model._objective(1.0).small_groups)[len(landmarks) :]
    training = model._reference.training
    exact = training.concentration.at(np.log(np.maximum(radii + training.added, np.finfo(np.float64).tiny)))
    columns = columns_of(model)
    checked = written[spread(len(written), n_checked)]
    new = checked[:, columns.index("novelty")] > 0.0
    errors = (checked[:, columns.index("concentration_data")] - exact)[MEASURING][new[MEASURING]]
    if not len(errors):
        return {"checked_rows": 0}
    return {
        "checked_rows": len(errors),
        "bias": float(errors.mean()),
        "standard_error_of_bias": float(errors.std() / np.sqrt(len(errors))),
        "root_mean_square_error": float(np.sqrt((errors**2).mean())),
    }
