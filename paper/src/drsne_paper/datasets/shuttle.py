"""Statlog (Shuttle): sensor readings of the space shuttle in seven classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import Npz, arff, npz


def _convert(parts: Sequence[bytes]) -> bytes:
    table = np.array(arff(parts[0]), dtype=np.float64).astype(np.int32)
    return npz(X=table[:, :9], y=table[:, 9].astype(np.int8))


DATASET = Stored(
    file="shuttle.npz",
    format=Npz(),
    n_samples=58000,
    n_features=9,
    description="Nine sensor readings of the space shuttle; y is the class, 1 to 7. Class 1 has 79 % of the rows.",
    source="UCI's Statlog (Shuttle), CC BY 4.0, from OpenML (shuttle, version 1); 43,500 training, 14,500 test rows.",
    # Checksums of shuttle.trn and shuttle.tst. For each file, two of these public repositories have identical copies:
    # abhijeetborole/multilayerperceptron, ljewett/one-hot-and-ready and ssmcnatt/assignments. On the paper's sample of
    # these data, the detectors reproduce the scores of the paper.
    sha256="dc9a829d4a0b7d8142fa9b98c295f6a3ccffe0c4ee839c2a842702974770a1ec",
    hashed=(("X", "<i4"), ("y", "|i1")),
    urls=("https://www.openml.org/data/download/4965262/shuttle.arff",),
    convert=_convert,
)
