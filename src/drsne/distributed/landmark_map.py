"""Stage 4: the map of the landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from drsne.distributed import concentration
from drsne.distributed.landmarks import STAGE as LANDMARKS
from drsne.distributed.work import Work, writing
from drsne.estimators.drsne import DRSNE

STAGE = "landmark_map"
FILE = "model.drsne"


def fit(work: Work, model: DRSNE, n_jobs: Any, verbose: int) -> None:
    """Fit the landmarks, and write the model to a file.

    Weights are relative: their mean is 1, so that the perplexity and the density neighbours are numbers of landmarks.
    """
    found = work.load(work.path(LANDMARKS))
    X, masses = found["X"], found["masses"]
    radii = concentration.radii(work, small_groups=model._objective(1.0).small_groups)[: len(X)]
    weights = None if np.ptp(masses) == 0.0 else masses / masses.mean()
    made = clone(model).set_params(n_jobs=n_jobs, verbose=verbose, keep_affinities=False)
    made._fit_landmarks(X, weights, radii)
    if made.stopped_by_ == "interrupt":
        raise KeyboardInterrupt
    made.set_params(verbose=0)
    path = work.folder / FILE
    with writing(path):
        made.save(path)
