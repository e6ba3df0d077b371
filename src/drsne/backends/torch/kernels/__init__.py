"""Triton programs for a GPU. Each has a counterpart in plain PyTorch, with which the tests compare it.

Numbers that change with the size of the data, and pointers into the rows of an array, are not specialised. Otherwise
Triton would compile a program again, which takes seconds, whenever one of them happens to be a multiple of 16.
"""

# Whether products and sums are fused. This is always given, because the default depends on the version of Triton, and
# some versions warn without it.
FUSED = {"enable_fp_fusion": True}
ROUNDED = {"enable_fp_fusion": False}
