"""Triton programs: they do what plain PyTorch does, and are compiled once. The interpreter runs them on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types

import pytest
from on_backends import DEVICE

torch = pytest.importorskip("torch")

START = """
import sys
from itertools import product
import numpy as np, torch
torch.set_default_device(sys.argv[1])
from drsne.backends import PairList
from drsne.backends.torch import backend, cells, kernels, lists, row_losses, steps, tree
rng = np.random.default_rng(0)
def both(run):
    results = []
    for compiled in (False, True):
        kernels.compiled = lambda values: compiled
        results.append(run())
    return results
def close(plain, program, error):
    difference, largest = float((plain - program).abs().max()), float(plain.abs().max())
    assert difference <= error * largest, (difference / largest, plain, program)
"""


def run(program, *arguments):
    """Run a program in a process of its own. On a GPU, Triton compiles; on the CPU, its interpreter runs."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", f"{START}{program}\nprint('the same')", DEVICE, *arguments],
        env={**os.environ, **({"TRITON_INTERPRET": "1"} if DEVICE == "cpu" else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "the same", done.stderr


PRECISION = 'real, error = (torch.float32, 1e-5) if sys.argv[2] == "single" else (torch.float64, 1e-12)'

PAIRS = """
n = 97
Y, scales = torch.tensor(rng.normal(size=(n, 2))), torch.tensor(np.exp(0.5 * rng.normal(size=n)))
near = torch.tensor(rng.integers(0, n, (n, 13)), dtype=torch.int32)
pairs = PairList(torch.arange(0, 13 * n + 1, 13), near.reshape(-1), torch.rand(13 * n))
y, u, on = Y.to(real), (1.0 / scales).to(real), backend.TorchBackend(sys.argv[1])
def sums():
    lengths = torch.empty(n, dtype=torch.float64)
    directions, back = torch.empty((2, n, 2), dtype=real)
    on.lengths(y, near, 0.1, lengths, directions)
    on.pull_back(y, on.neighbor_list(near), scales, 0.1, back)
    attraction = [on.attraction(y, pairs, 1.1, 0.0, each)[0] for each in (None, u)]
    potential, forces = backend._over_all(Y, torch.arange(n), scales, 1.1, real)
    return lengths, directions, back, *attraction, torch.cat((potential[None], forces.T))
for plain, program in zip(*both(sums)):
    close(plain, program, error)
"""

# Maps of few leaves, of leaves that fill the highest level, and with leaves so wide that they have many walks.
TREE = """
cells.TOP, lists._SUMMED_TOGETHER, lists._VISITED, lists._VISITORS, lists.LEAVES = 2, 2, 8, 3, 4
cells._WIDE, lists.WIDE_WALK = 1.2, 1.5
def grouped(each):
    return [sorted(each.cells[a:b].tolist()) for a, b in zip(each.start[:-1], each.start[1:])]
walks, wide, stretched = [], 0, []
for n, d, far in ((1, 2, 0), (33, 1, 3), (64, 2, 9), (260, 2, 500), (200, 2, 0)):
    places = rng.normal(size=(n, d))
    places[: n // 9] *= 1 + far
    Y = torch.tensor(places)
    scales, masses = (torch.tensor(np.exp(0.5 * rng.normal(size=n))) for _ in range(2))
    grown = Y * torch.where(torch.arange(n) < n // 3, 2.0, 1.0)[:, None]  # some leaves are stretched
    kernels.compiled = lambda values: False
    at = tree.TorchTree.structure(Y, scales)
    wide += len(at.runs.wide)
    def sums():
        at.kept = None
        found = tree.summed_cells(Y, scales, at, real, masses)
        summed = tree.sums(found, 0.45, 0.15, d)
        again = tree.summed_cells(grown, scales, at, real, masses)
        stretched.append(again.stretched)
        moments = found.summed[:, [0, 1, 2, 9, 10, 11]]
        sizes = [found.sizes, again.sizes, *(torch.tensor(each[4:7]) for each in (found, again))]
        return moments, summed.forces, summed.potential, *sizes
    for plain, program in zip(*both(sums)):
        close(plain, program, error)
    seen = both(lambda: tree.summed_cells(Y, scales, at, real))[1]  # has the number of walks
    expected, listed = both(lambda: lists.lists(seen, 0.2, 0.15))
    assert list(map(grouped, listed)) == list(map(grouped, expected))
    plain, program = (lists.Pieces.of(listed[1], compiled=each) for each in (False, True))
    pieces = int(plain.of_leaf[-1])
    assert plain.of_leaf.tolist() == program.of_leaf.tolist()
    for a, b in zip(plain[:3], program[:3]):
        assert a.tolist() == b[:pieces].tolist()
        assert not b[pieces:].any()
    filled = at.runs.own > 0
    many = filled & (seen.sizes[0] > lists.WIDE_WALK * seen.leaves)
    assert seen.n_walks == int(filled.sum()) + (at.levels[-1] - 1) * int(many.sum())
    walks.append((seen.n_walks, int(filled.sum())))
    # A scale that is not a number is in all summaries above its leaf, so its leaf is near to all others.
    wrong = scales.clone()
    wrong[n // 2] = torch.nan
    near = [set(each) for each in grouped(lists.lists(tree.summed_cells(Y, wrong, at, real), 0.2, 0.15)[1])]
    filled = torch.nonzero(filled)[:, 0].tolist()
    leaf = [each for each in filled if wrong[at.order[at.runs.first[each] :][: at.runs.own[each]]].isnan().any()]
    assert all(set(leaf) <= near[each] for each in filled)
    assert set(filled) <= near[leaf[0]]
assert wide and any(a > b for a, b in walks)
assert any(0.0 < each < 1.0 for each in stretched)
"""


@pytest.mark.slow
@pytest.mark.rotating(5)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("program", [PAIRS, TREE], ids=["pairs", "tree"])
def test_programs_do_what_plain_pytorch_does(program, precision):
    """In double precision for maps in which some scales are very small, for example because rows are repeated."""
    run(PRECISION + program, precision)


DIVISIONS = """
n = 391
cells._WIDE, cells.SMALL_CELL, cells._BLOCK = 1.2, 64, 32
values = torch.tensor(rng.normal(size=(3, 512)), dtype=torch.float32)
values[:, 100:300] = torch.round(values[:, 100:300])  # many equal coordinates
of_slots = torch.randperm(512)
halvings = cells.halved(values, of_slots, 512, 64, in_order=True), cells.counted(values, of_slots, 512, 64)
assert all(torch.equal(plain, program) for plain, program in zip(*halvings))
Y = torch.tensor(np.concatenate([rng.normal(size=(n // 2, 3)), rng.normal(20, 8, (n - n // 2, 3))]))
for d in (1, 3):
    last = None
    for places in (Y[:, :d], 1.1 * Y[:, :d] + 0.3):
        plain, program = both(lambda: cells.structure(places, last))
        assert torch.equal(plain.slots, program.slots)
        assert all(torch.equal(a, b) for a, b in zip(plain.runs, program.runs))
        last = plain
"""

# The interpreter of Triton passes numbers in single precision, so these are numbers that it does not round.
STEPS = """
steps._BLOCK = 32
def same(a, b, error=1e-13):
    assert a.shape == b.shape
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
            same(a, b)
    def adam():
        values = last.clone(), gains.clone()
        settings = {"rate": 2, "betas": (0.5, 0.75), "eps": 2**-20, "n_steps": 3}
        return steps.adam_step(gradient, *values, units=unit, **settings), *values
    for a, b, error in zip(*both(adam), (1e-7, 1e-13, 1e-13)):  # factors on the step are rounded
        same(a, b, error)
    Y = rows(n, d, contiguous)
    for longest, center in product((None, 1.0, 0.0625), (False, True)):
        options = {"units": unit, "longest": longest, "center": center}
        same(*both(lambda: steps.moved(Y, last, **options)))
        for wrong in (torch.nan, torch.inf):
            bad = last.clone()
            bad[n // 2, d - 1] = wrong
            assert both(lambda: steps.moved(Y, bad, **options)) == [None, None]
    large = rows(n, d, True) * 1e200  # the squares are too large for the type
    same(*both(lambda: steps.moved(Y, large, units=unit, longest=1.0, center=True)))
state = [rows(99, 2, False) for _ in range(2)]  # values that are updated in place, in another order in memory
def in_place():
    values = [each.clone(memory_format=torch.preserve_format) for each in state]
    settings = {"rate": 0.5, "momentum": 0.5, "min_gain": 0.125, "grow_from_rest": True}
    return steps.momentum_step(torch.ones((99, 2), dtype=torch.float64), *values, **settings), values[1]
for a, b in zip(*both(in_place)):
    same(a, b)
"""

FIELD = """
row_losses._PAIRS = {"cpu": 1000, "cuda": 1000}  # several parts
for d, n in ((1, 37), (2, 1), (2, 37), (2, 2100), (3, 37)):
    places, (scales, masses) = torch.tensor(rng.normal(size=(d, n)) * 5), torch.tensor(np.exp(rng.normal(size=(2, n))))
    field = row_losses.Field(places, places / 1.1, scales, masses, 1.1)
    Y, a = torch.tensor(rng.normal(size=(70, d)) * 5), torch.tensor(np.exp(rng.normal(size=70)))
    found = row_losses._compiled_sums(field, Y, a)
    close(row_losses._plain_sums(field, Y, a), found, 1e-13)
    for some in (slice(5, 6), slice(3, 67)):
        assert torch.equal(row_losses._compiled_sums(field, Y[some].clone(), a[some].clone()), found[:, some])
"""


@pytest.mark.slow
@pytest.mark.rotating(5)
@pytest.mark.parametrize("name", ["DIVISIONS", "STEPS", "FIELD"])
def test_programs_in_double_precision(name):
    run(globals()[name])


def test_the_types_of_programs(monkeypatch):
    from drsne.backends.torch import kernels

    monkeypatch.setattr(kernels, "TRITON", True)
    for real, there in ((torch.float32, True), (torch.float64, True), (torch.float16, False)):
        assert kernels.compiled(types.SimpleNamespace(is_cuda=True, dtype=real)) is there
    assert not kernels.compiled(torch.zeros(1))


# Puts the launches of all programs into a file: the module and name of each, its arguments and its options. Tensors are
# given by their type and by how many elements they begin after a multiple of 16 bytes.
RECORDED = """
import atexit, json
from triton.runtime.interpreter import InterpretedFunction
launches, run = [], InterpretedFunction.run
def described(argument):
    if not isinstance(argument, torch.Tensor):
        return argument
    return [str(argument.dtype).split(".")[1], argument.data_ptr() % 16 // argument.element_size()]
def recording(self, *arguments, grid, warmup, **options):
    launches.append([self.fn.__module__, self.fn.__name__, [described(each) for each in arguments], options])
    return run(self, *arguments, grid=grid, warmup=warmup, **options)
InterpretedFunction.run = recording
atexit.register(lambda: json.dump(launches, open(sys.argv[2], "w")))
"""

# All programs, for numbers of points that are multiples of 16 and others, as they are on a GPU.
LAUNCHES = """
kernels.compiled = lambda values: True
cells.TOP, cells._WIDE, lists._VISITORS, cells._BLOCK = 2, 0.9, 2, 32
on = backend.TorchBackend("cpu")
REALS = (("single", torch.float32), ("double", torch.float64))
cells.counted(torch.rand((3, 128)), torch.arange(128), 128, 32)
for n in (96, 99, 113):
    Y, scales, masses = torch.tensor(rng.normal(size=(n, 2))), torch.rand(n) + 0.5, torch.rand(n) + 0.5
    for given in ((None, None), (scales, masses)):
        at = tree.TorchTree.structure(Y, given[0])
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
@pytest.mark.rotating(5)
@pytest.mark.skipif(DEVICE != "cpu", reason="records programs that the interpreter runs")
def test_programs_are_compiled_once_for_data_of_any_size(tmp_path):
    """Without a warning of Triton. A second version would be compiled during a later fit, which takes seconds."""
    file = tmp_path / "launches.json"
    run(RECORDED + LAUNCHES, str(file))
    launches = json.loads(file.read_text())
    names = {name for _, name, _, _ in launches}
    assert {"divide", "cut", "visit", "leaf_sums", "near_sums", "part", "field", "attraction_2d"} <= names
    assert {"momentum_step", "adam_step", "advance", "centre", "extents", "tables", "begin", "pieces"} <= names
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], input=json.dumps(launches), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {name: count for name, count in json.loads(done.stdout).items() if count > 1} == {}
