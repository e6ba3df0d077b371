"""Compiled array functions over row ranges: no classes, no validation, one concern a file.

A kernel ends in ``(block, lo, hi)`` and writes rows ``lo`` to ``hi`` of its outputs and slot
``block`` of its partial sums; :class:`drsne.backends.numba.threads.Workers` runs it over fixed blocks, so that the
result does not depend on the number of threads. A kernel calls only functions of its own file: the
on-disk cache of numba does not notice an edit elsewhere.
"""
