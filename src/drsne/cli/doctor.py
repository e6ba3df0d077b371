"""The command ``drsne doctor``, which prints what is needed to understand a problem on another machine."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from drsne.cli import Command
from drsne.cli._options import adding

_BASE = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "joblib", "threadpoolctl", "tqdm")
_EXTRAS = ("matplotlib", "pandas", "pyarrow", "anndata", "scanpy", "torch", "dask", "distributed")
_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT", "OMP_WAIT_POLICY")


def run(options: argparse.Namespace) -> int:
    """Print versions, threads, memory, cache and GPU, and run a small fit."""
    import drsne
    from drsne.estimators.memory import available

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    variables = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    free = available()
    lines = {
        "drsne": f"{drsne.__version__} ({os.path.dirname(drsne.__file__)})",
        "Python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "packages": _versions(_BASE),
        "optional": _versions(_EXTRAS),
        "threads": ", ".join([f"{usable} of {os.cpu_count()} cores", *variables]),
        "memory": "unknown" if free is None else f"{free / 1e9:.1f} GB free",
        "cache": _cache(),
        "GPU": _gpu(),
        "fit": _fit(),
    }
    for name, value in lines.items():
        print(f"{name:{max(map(len, lines))}}  {value}")
    return 0 if lines["fit"].startswith("works") else 1


def _versions(names: tuple[str, ...]) -> str:
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} (not installed)")
    return ", ".join(found)


def _cache() -> str:
    """Return where compiled functions are kept, and how many there are."""
    from numba import config

    from drsne.backends.numba import kernels

    folder = Path(config.CACHE_DIR or Path(kernels.__file__).parent / "__pycache__")  # type: ignore[attr-defined]
    count = sum(1 for _ in folder.rglob("*.nbc")) if folder.is_dir() else 0
    writable = os.access(folder if folder.is_dir() else folder.parent, os.W_OK)
    state = "" if writable else ", not writable: every process compiles again, or uses the cache folder of the user"
    return f"{folder} ({count} compiled functions{state})"


def _gpu() -> str:
    if find_spec("torch") is None:
        return "PyTorch is not installed"
    import torch

    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no CUDA device"
    return ", ".join(torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count()))


def _fit() -> str:
    """Return whether a small fit works, and how long it takes."""
    import numpy as np

    from drsne import DRSNE

    start = time.perf_counter()
    try:
        Y = DRSNE(max_iter=50, random_state=0).fit_transform(np.random.default_rng(0).normal(size=(200, 5)))
    except Exception as error:
        return f"fails: {type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    return f"works ({seconds:.1f} s for 200 points and 50 iterations)" if np.isfinite(Y).all() else "fails: not finite"


COMMAND = Command(
    "print versions, settings and the result of a small fit, for a problem report", adding(), run, "  drsne doctor"
)
