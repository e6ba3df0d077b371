"""Programs that compare Triton with plain PyTorch, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def assert_the_same(program, device):
    """Run a program that prints "the same". On a GPU, Triton compiles; on the CPU, its interpreter runs."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", program, device],
        env={**os.environ, **({"TRITON_INTERPRET": "1"} if device == "cpu" else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "the same", done.stderr
