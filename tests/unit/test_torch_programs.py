"""The compilation of the Triton programs for a GPU, which needs no GPU."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from on_backends import DEVICE
from on_triton import recorded

pytest.importorskip("torch")
pytest.importorskip("triton")

# All programs, for numbers of points that are multiples of 16 and others, as they are on a GPU.
LAUNCHES = """
import numpy as np
from drsne.backends import PairList
from drsne.backends.torch import backend, cells, division, row_losses, steps, tree
cells.compiled = backend.compiled = steps._compiled = lambda values: True
cells.TOP, cells._WIDE, cells._VISITORS, division._BLOCK = 2, 0.9, 2, 32
rng, on = np.random.default_rng(0), backend.TorchBackend("cpu")
REALS = (("single", torch.float32), ("double", torch.float64))
division.counted(torch.rand((3, 128)), torch.arange(128), 128, 32)
for n in (96, 99, 113):
    Y, scales, masses = torch.tensor(rng.normal(size=(n, 2))), torch.rand(n) + 0.5, torch.rand(n) + 0.5
    for given in ((None, None), (scales, masses)):
        at = cells.structure(Y if given[0] is None else cells.raised(Y, scales))
        assert len(at.runs.wide)
        for precision, real in REALS:
            at.kept = None
            for _ in range(2):  # the second time, there are lists
                found = tree.summed_cells(Y, given[0], at, real, given[1])
                at.kept or tree.sums(found, 0.2, 0.25, 2)
            on.repulsion(Y, smoothing=0.0, scales=given[0], precision=precision)
    for _, real in REALS:
        y, near = Y.to(real), torch.tensor(rng.integers(0, n, (n, 3)), dtype=torch.int32)
        pairs = PairList(torch.arange(0, 3 * n + 1, 3), near.reshape(-1), torch.rand(3 * n))
        lengths, directions = torch.empty((2, n), dtype=torch.float64), torch.empty((2, n, 2), dtype=real)
        for share in (0, 1):
            on.lengths(y, near, 0.0, lengths[share], directions[share])
            on.pull_back(y, on.neighbor_list(near), scales, 0.0, directions[share])
        for each in (None, scales):
            on.attraction(y, pairs, 1.1, 0.0, each)
for d in (1, 2, 3):
    field = row_losses.Field(torch.rand((d, 32)).double(), *(torch.rand(s).double() for s in ((d, 32), 32, 32)), 1.0)
    for m in (1, 16, 33):
        row_losses._compiled_sums(field, torch.rand((m, d)).double(), torch.rand(m).double())
    for n, units, given, rest in ((1, None, None, False), (16, True, 0, True), (513, True, 0.01, True)):
        step, units = torch.rand((n, d)).double(), torch.rand(n).double() if units else None
        settings = {"rate": n, "momentum": 1.0 / n, "min_gain": given, "grow_from_rest": rest, "units": units}
        steps.momentum_step(step, step.clone(), step.clone(), **settings)
        adam = {"rate": 1.0, "betas": (0.9, 0.999), "eps": 1e-8, "n_steps": n, "units": units}
        steps.adam_step(step, step.clone(), step.clone(), **adam)
        for longest in (None, 16 / n):
            steps.moved(step, step, units=units, longest=longest, center=True)
print("the same")
"""

# Prints the number of versions of each program with the same constants and options.
COMPILED = """
import json, sys, warnings
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
warnings.simplefilter("error", UserWarning)
class Driver:
    get_current_target = lambda self: GPUTarget("cuda", 90, 32)
    get_current_device = lambda self: 0
    get_current_stream = lambda self, device=None: 0
driver.set_active(Driver())
def given(argument):
    if not isinstance(argument, list):
        return argument
    kind, beyond = argument
    return torch.empty(64, dtype=getattr(torch, kind))[beyond:]  # PyTorch aligns the first one
found = {}
for module, name, arguments, options in json.load(sys.stdin):
    program = getattr(__import__(module, fromlist=[name]), name)
    kernel = program.warmup(*map(given, arguments), grid=(1,), **options)
    kernel = kernel.result() if hasattr(kernel, "result") else kernel
    assert "fp32" not in kernel.src.signature.values(), name  # numbers keep their double precision
    constants = [value for value, each in zip(arguments, program.params) if each.is_constexpr]
    kinds = [each[0] for each in arguments if isinstance(each, list)]
    found.setdefault(json.dumps([name, constants, kinds, options]), set()).add(kernel.hash)
print(json.dumps({name: len(hashes) for name, hashes in found.items()}))
"""


@pytest.mark.slow
@pytest.mark.skipif(DEVICE != "cpu", reason="records programs that the interpreter runs")
def test_programs_are_compiled_once_for_data_of_any_size(tmp_path):
    """Without a warning of Triton. A second version would be compiled during a later fit, which takes seconds."""
    launches = recorded(LAUNCHES, tmp_path / "launches.json")
    names = {name for _, name, _, _ in launches}
    assert {"divide", "cut", "visit", "leaf_sums", "near_sums", "part", "field", "attraction_2d"} <= names
    assert {"momentum_step", "adam_step", "advance", "centre", "extents", "tables", "begin", "pieces"} <= names
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], input=json.dumps(launches), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {name: count for name, count in json.loads(done.stdout).items() if count > 1} == {}
