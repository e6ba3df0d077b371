"""A small table with a column of text, and options for quick maps of it, for the tests of commands."""

from __future__ import annotations

import numpy as np
import pandas as pd

FAST = ["--perplexity", "8", "--neighbors", "8", "--iterations", "60", "--jobs", "1"]
NAMES = ["length", "width", "height"]


def flowers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) * (1, 2, 3), columns=NAMES)
    frame["species"] = np.where(np.arange(n) % 2, "iris", "rosa")
    return frame
