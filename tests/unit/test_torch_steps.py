"""Steps of the optimisers by Triton programs and by plain PyTorch."""

from __future__ import annotations

import pytest
from on_backends import DEVICE
from on_triton import assert_the_same

pytest.importorskip("torch")

# The interpreter of Triton passes numbers in single precision, so these are numbers that it does not round.
PROGRAM = """
import sys
from itertools import product
import numpy as np, torch
torch.set_default_device(sys.argv[1])
from drsne.backends.torch import steps
rng = np.random.default_rng(0)
steps._BLOCK = 32
def both(run):
    results = []
    for compiled in (False, True):
        steps._compiled = lambda values: compiled
        results.append(run())
    return results
def close(a, b, error=1e-13):
    assert a.shape == b.shape
    assert torch.equal(a.isnan(), b.isnan())
    assert torch.allclose(a, b, rtol=error, atol=0.1 * error, equal_nan=True), (a - b).abs().max()
def rows(n, d, contiguous):
    values = torch.tensor(rng.normal(size=(n, d)))
    return values if contiguous else values.T.contiguous().T
cases = product((1, 2, 3), (False, True), (False, True), (None, 0.125))
for d, units, contiguous, given in (case for case in cases if case[0] == 2 or case[1] != case[2]):
    n = int(rng.integers(1, 90))
    gradient, last, gains = rows(n, d, contiguous), rows(n, d, True), torch.tensor(rng.uniform(0.05, 2.0, (n, d)))
    last[rng.random((n, d)) < 0.2] = 0.0
    gradient[rng.random((n, d)) < 0.2] = 0.0
    gradient[rng.random((n, d)) < 0.05] = torch.nan
    unit = torch.tensor(rng.uniform(0.5, 2.0, 2 * n))[:: 1 if contiguous else 2][:n] if units else None
    for from_rest, momentum in product((False, True), (0.75, 0)):
        def step():
            values = last.clone(), gains.clone()
            settings = {"rate": 2, "momentum": momentum, "min_gain": given, "grow_from_rest": from_rest}
            found = steps.momentum_step(gradient, *values, units=unit, **settings)
            assert found is values[0]
            return values
        for a, b in zip(*both(step)):
            close(a, b)
    def adam():
        values = last.clone(), gains.clone()
        settings = {"rate": 2, "betas": (0.5, 0.75), "eps": 2**-20, "n_steps": 3}
        return steps.adam_step(gradient, *values, units=unit, **settings), *values
    for a, b, error in zip(*both(adam), (1e-7, 1e-13, 1e-13)):  # factors on the step are rounded
        close(a, b, error)
    Y = rows(n, d, contiguous)
    for longest, center in product((None, 1.0, 0.0625), (False, True)):
        options = {"units": unit, "longest": longest, "center": center}
        close(*both(lambda: steps.moved(Y, last, **options)))
        for wrong in (torch.nan, torch.inf):
            bad = last.clone()
            bad[n // 2, d - 1] = wrong
            assert both(lambda: steps.moved(Y, bad, **options)) == [None, None]
    large = rows(n, d, True) * 1e200  # the squares are too large for the type
    close(*both(lambda: steps.moved(Y, large, units=unit, longest=1.0, center=True)))
state = [rows(99, 2, False) for _ in range(2)]  # values that are updated in place, in another order in memory
for a, b in zip(*both(lambda: (steps.momentum_step(
    rows(99, 2, True) * 0 + 1, *(values := [each.clone(memory_format=torch.preserve_format) for each in state]),
    rate=0.5, momentum=0.5, min_gain=0.125, grow_from_rest=True), values[1]))):
    close(a, b)
print("the same")
"""


@pytest.mark.slow
def test_triton_programs_do_what_plain_pytorch_does():
    assert_the_same(PROGRAM, DEVICE)
