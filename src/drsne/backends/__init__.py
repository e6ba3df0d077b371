"""Backends: the loops over points, on the processor with numba or on a device with PyTorch.

``protocol`` declares what a backend has, and ``choice`` chooses and makes backends. ``numba`` and ``torch`` are the
backends of fits. ``numpy`` has the loops of a fit in a few lines of NumPy each and sums over all pairs: it is the
readable reference for the tests. Formulas for whole arrays are written once for arrays and tensors (``arrays``).
"""

from drsne.backends.protocol import Backend, DeviceBackend, Kind, NeighborList, Order, PairList

__all__ = ["FEW", "Backend", "DeviceBackend", "Kind", "NeighborList", "Order", "PairList"]

# Number of points below which NumPy and SciPy do what is computed once, or once in several iterations. Compiled code
# would take less time, but a first fit would wait for its compilation.
FEW = 4096
