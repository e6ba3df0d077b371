"""Engines on backends: every engine on numba's, those of PyTorch on a device, and all pairs on every other backend.

The device of PyTorch is that of the environment variable DRSNE_TEST_DEVICE, or the CPU.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np

from drsne import engines
from drsne.backends.choice import KINDS
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.backends.numpy import NumpyBackend

TORCH = importlib.util.find_spec("torch") is not None
DEVICE = os.environ.get("DRSNE_TEST_DEVICE", "cpu")
ENGINES = [
    *((kind.name, name) for kind in KINDS.values() for name in engines.names() if kind.name == "numba" or TORCH),
    ("numpy", "exact"),
]


def supported(on, d=2, *_):
    """Return whether an engine on a backend, as in ``ENGINES``, supports maps of ``d`` dimensions."""
    backend, name = on
    return engines.load(name).supports(d, KINDS.get(backend, NumpyBackend.kind))


ENGINES = [on for on in ENGINES if supported(on)]


def torch_backend():
    from drsne.backends.torch.backend import TorchBackend

    return TorchBackend(DEVICE)


def backend_of(name):
    if name == "torch":
        return torch_backend()
    return NumpyBackend() if name == "numpy" else NumbaBackend(Workers())


def engine_of(name, backend="numba", *, workers=None, **options):
    found = backend_of(backend) if workers is None else NumbaBackend(workers)
    engine = engines.load(name)(found, **options)
    return EngineOnArrays(engine, found) if backend == "torch" else engine


def _there(values, backend):
    """Return an argument with tensors in place of NumPy arrays."""
    if isinstance(values, np.ndarray):
        return backend.received(values)
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(_there(each, backend) for each in values))
    return values


def _here(values):
    """Return a result with NumPy arrays in place of tensors."""
    if hasattr(values, "cpu"):
        return values.cpu().numpy()
    if isinstance(values, tuple):
        parts = [_here(each) for each in values]
        return type(values)(*parts) if hasattr(values, "_fields") else tuple(parts)
    return values


class OnArrays:
    """A backend of tensors that is called with NumPy arrays, which it also changes in place."""

    def __init__(self, backend):
        self._backend = backend

    def __getattr__(self, name):
        method = getattr(self._backend, name)

        def called(*arguments, **named):
            given = [*arguments, *named.values()]
            sent = [_there(each, self._backend) for each in given]
            keywords = dict(zip(named, sent[len(arguments) :], strict=True))
            result = _here(method(*sent[: len(arguments)], **keywords))
            for before, after in zip(given, sent, strict=True):
                if isinstance(before, np.ndarray):
                    before[...] = _here(after)
            return result

        return called


class EngineOnArrays:
    """An engine on tensors that is called with NumPy arrays."""

    def __init__(self, engine, backend):
        self._engine, self._backend = engine, backend
        self.start, self.tolerance = engine.start, engine.tolerance

    def repulsion(self, Y, smoothing, scales=None, state=None):
        sent = [None if each is None else self._backend.received(each) for each in (Y, scales)]
        Z, F = self._engine.repulsion(sent[0], smoothing, sent[1], state)
        return Z, _here(F)
