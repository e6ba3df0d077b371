"""Compiled functions that process ranges of rows of arrays. They validate nothing.

The last arguments of a kernel are ``(block, lo, hi)``. It writes rows ``lo`` to ``hi`` of its outputs and slot
``block`` of its partial sums. :class:`drsne.backends.numba.threads.Workers` runs it over fixed blocks, so the result
does not depend on the number of threads. A kernel calls only functions of its own file, because the on-disk cache of
numba does not notice changes in other files.
"""
