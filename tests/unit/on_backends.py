"""Engines on backends: every engine on numba's, and all pairs on every other backend."""

from __future__ import annotations

from drsne import engines
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.backends.numpy import NumpyBackend

ENGINES = [("numba", name) for name in engines.names()] + [("numpy", "exact")]
ADAPTIVE_ENGINES = [(backend, name) for backend, name in ENGINES if engines.load(name).adaptive]


def backend_of(name):
    return NumpyBackend() if name == "numpy" else NumbaBackend(Workers())


def engine_of(name, backend="numba", *, workers=None, **options):
    found = backend_of(backend) if workers is None else NumbaBackend(workers)
    return engines.load(name)(found, **options)
