"""scikit-learn's Digits: 8 x 8 images of handwritten digits."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from drsne_paper.datasets._data import Bundled


def _read() -> tuple[NDArray[Any], NDArray[Any]]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, y


DATASET = Bundled(
    read=_read,
    n_samples=1797,
    n_features=64,
    description="Images of handwritten digits, 8 x 8 pixels with values from 0 to 16; y is the digit.",
    source="scikit-learn's load_digits: the test set of UCI's Optical Recognition of Handwritten Digits (CC BY 4.0).",
)
