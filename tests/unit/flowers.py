"""A small table with a column of text, options for quick maps, and helpers for tests of commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from page import Payload

from drsne import cli

FAST = ["--perplexity", "8", "--neighbors", "8", "--iterations", "60", "--jobs", "1"]
NAMES = ["length", "width", "height"]


def flowers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) * (1, 2, 3), columns=NAMES)
    frame["species"] = np.where(np.arange(n) % 2, "iris", "rosa")
    return frame


def runner(capsys):
    """Return a function that runs a command, and returns its exit code, output and errors."""

    def run(*words):
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as end:  # the parser of the command line
            code = end.code
        return code, *capsys.readouterr()

    return run


def succeeded(done):
    """Return the output and the errors of a command that has succeeded."""
    code, out, err = done
    assert code == 0, err
    return out, err


def failed(done, *parts, code=1):
    """Check that a command has failed with one line that has these parts."""
    found, out, err = done
    assert found == code, (out, err)
    assert out == ""
    assert err.startswith("drsne: ")
    assert "unexpected" not in err
    assert err.count("\n") == 1, err
    for part in parts:
        assert part in err, err


def payload(name):
    """Return the unpacked data of a page."""
    return Payload(Path(name).read_text(encoding="utf-8"))
