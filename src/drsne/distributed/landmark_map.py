"""Stage 4: the map of the landmarks.

The radii of other rows are estimated from those of the landmarks around them. Half of the rows whose exact radii are
known show by which factor the estimates differ on average, and they are divided by it. The other half shows in stage 7
how accurate they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from drsne.distributed import concentration
from drsne.distributed.landmarks import STAGE as LANDMARKS
from drsne.distributed.work import Work, writing
from drsne.estimators.drsne import DRSNE

STAGE = "landmark_map"
FILE = "model.drsne"
CORRECTING, MEASURING = slice(0, None, 2), slice(1, None, 2)  # the halves of the rows whose exact radii are known


def fit(work: Work, model: DRSNE, n_jobs: Any, verbose: int) -> None:
    """Fit the landmarks, and write the model to a file.

    Weights are relative: their mean is 1, so that the perplexity and the density neighbours are numbers of landmarks.
    """
    found = work.load(work.path(LANDMARKS))
    X, masses = found["X"], found["masses"]
    radii = concentration.radii(work, small_groups=model._objective(1.0).small_groups)
    weights = None if np.ptp(masses) == 0.0 else masses / masses.mean()
    made = clone(model).set_params(n_jobs=n_jobs, verbose=verbose, keep_affinities=False)
    made._fit_landmarks(X, weights, radii[: len(X)])
    if made.stopped_by_ == "interrupt":
        raise KeyboardInterrupt
    _correct(made, work.load(work.path(concentration.QUERIES))["X"][len(X) :], radii[len(X) :])
    made.set_params(verbose=0)
    path = work.folder / FILE
    with writing(path):
        made.save(path)


def _correct(model: DRSNE, rows: Any, exact: NDArray[np.float64]) -> None:
    """Make the estimated radii of new rows unbiased, by the first half of the rows whose ``exact`` radii are known."""
    from drsne.placement.rows import radii

    rows, exact = rows[CORRECTING], exact[CORRECTING]
    if not len(rows):
        return
    reference = model._reference
    assert reference is not None  # the landmarks are rows, not distances
    with model._placer() as placer:
        found, new = radii(reference, rows, placer)
    least = np.finfo(np.float64).tiny
    errors = np.log(np.maximum(exact, least) / np.maximum(found, least))[new]
    if len(errors):
        training = reference.training
        shift = training.correction_shift + float(errors.mean())
        model._reference = replace(reference, training=replace(training, correction_shift=shift))
