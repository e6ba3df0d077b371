"""Programs that compare Triton with plain PyTorch, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# Puts the launches of all programs into a file: the module and name of each, its arguments and its options. Tensors are
# given by their type and by how many elements they begin after a multiple of 16 bytes.
RECORDED = """
import atexit, json, sys
import torch
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


def assert_the_same(program, device, *arguments):
    """Run a program that prints "the same". On a GPU, Triton compiles; on the CPU, its interpreter runs."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", program, device, *arguments],
        env={**os.environ, **({"TRITON_INTERPRET": "1"} if device == "cpu" else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "the same", done.stderr


def recorded(program, file):
    """Return the launches of a program that prints "the same", which the interpreter runs."""
    assert_the_same(RECORDED + program, "cpu", str(file))
    return json.loads(file.read_text())
