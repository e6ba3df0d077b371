"""Compiled functions that process ranges of rows of arrays. They validate nothing.

The last parameters of a kernel are ``(block, lo, hi)``. It writes rows ``lo`` to ``hi`` of its outputs and slot
``block`` of its partial sums. The decorator turns it into a loop over fixed blocks (``_turns``), which
:class:`drsne.backends.numba.threads.Workers` runs on its threads, so the result does not depend on the number of
threads. A kernel calls only functions of its own file, because the on-disk cache of
numba does not notice changes in other files.
"""
