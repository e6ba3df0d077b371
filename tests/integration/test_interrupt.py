"""Ctrl-C in a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

CODE = """
import sys, warnings
import numpy as np
from drsne import DRSNE

def told(iteration, embedding, losses):
    if iteration == 5:
        print("running", flush=True)

model = DRSNE(max_iter=10**6, n_jobs={n_jobs}, callbacks=told, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(np.random.default_rng(0).normal(size=(600, 4)))
assert np.isfinite(model.embedding_).all() and 5 <= model.n_iter_ < 10**6
print([str(w.message) for w in caught])
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_map(n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", CODE.format(n_jobs=n_jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "running"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "embedding_ is the last map" in out
