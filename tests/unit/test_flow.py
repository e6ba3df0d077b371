"""How far the data travel before the search for neighbours, and where the weight of the density term is named."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np

import drsne
from drsne import DRSNE

ROOT = Path(drsne.__file__).parent
MOST_FUNCTIONS, MOST_FILES = 14, 8  # a person who follows X reads these
QUICK = {"perplexity": 5, "density_neighbors": 5, "max_iter": 5}


def stops(X):
    """Return the functions of drsne that have ``X`` as an argument, from ``fit_transform`` to the neighbour search."""
    found = []

    def profile(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)) or (found and found[-1][1] == "nearest"):
            return
        count = code.co_argcount + code.co_kwonlyargcount
        values = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
        stop = code.co_filename, code.co_name
        if stop not in found and any(isinstance(value, np.ndarray) and value.shape == X.shape for value in values):
            found.append(stop)

    model = DRSNE(**QUICK)
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        model.fit_transform(X)
    finally:
        sys.setprofile(before)
    return found


def test_the_data_pass_through_few_functions():
    found = stops(np.random.default_rng(0).normal(size=(97, 7)))
    assert (found[0][1], found[-1][1]) == ("fit_transform", "nearest")
    assert len(found) <= MOST_FUNCTIONS, found
    assert len({file for file, _ in found}) <= MOST_FILES, found


def names(path):
    """Return the parameters, attributes, arguments and keys in the code of a file; texts for readers do not count."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for field in ("id", "attr", "arg", "value"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


def test_few_files_name_the_weight():
    found = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if "density_weight" in set(names(path))]
    assert len(found) <= MOST_FILES, found
