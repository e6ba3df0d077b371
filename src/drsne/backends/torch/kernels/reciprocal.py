"""The reciprocal of a number, in one instruction on GPUs by NVIDIA."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

if triton.knobs.runtime.interpret or torch.version.hip is not None:

    @triton.jit
    def reciprocal(x):
        """Return 1 / x."""
        return 1.0 / x

else:

    @triton.jit
    def reciprocal(x):
        """Return 1 / x. In single precision, it is for normal numbers and has an error of one unit in the last place.

        A division takes eight instructions, because it also has to be right for very large and very small numbers.
        """
        if x.dtype == tl.float32:
            found = tl.inline_asm_elementwise(
                "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
            )
        else:
            found = 1.0 / x
        return found
