"""Triton programs for a GPU. Each has a counterpart in plain PyTorch, with which the tests compare it.

Numbers that change with the size of the data, and pointers into the rows of an array, are not specialised. Otherwise
Triton would compile a program again, which takes seconds, whenever one of them happens to be a multiple of 16. Files
with programs are imported when one of them is first used, because Triton may be missing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

TRITON = find_spec("triton") is not None
# Whether products and sums are fused. This is always given, because the default depends on the version of Triton, and
# some versions warn without it.
FUSED = {"enable_fp_fusion": True}
ROUNDED = {"enable_fp_fusion": False}


def compiled(values: Tensor) -> bool:
    """Return whether there are Triton programs for these values. Without Triton, plain PyTorch is used."""
    return bool(TRITON and values.is_cuda and values.dtype in (torch.float32, torch.float64))


def grid(count: int, size: int) -> tuple[int]:
    """Return the number of programs for so many rows, each of which takes ``size`` rows."""
    return (-(-count // size),)


def __getattr__(name: str) -> Any:
    if name not in ("cells", "expansion", "steps", "sums", "tree", "visits"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
