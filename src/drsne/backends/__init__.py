"""Backends: the loops over points, on the processor or on a device (docs/architecture.md)."""

from drsne.backends.protocol import Backend, DeviceBackend, Kind, NeighborList, Order, PairList

__all__ = ["FEW", "Backend", "DeviceBackend", "Kind", "NeighborList", "Order", "PairList"]

# Number of points below which NumPy and SciPy do what is computed once, or once in several iterations. Compiled code
# would take less time, but a first fit would wait for its compilation.
FEW = 4096
