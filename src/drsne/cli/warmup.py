"""The command ``drsne warmup``, which compiles what fits need, so that the first fit does not wait for the compiler."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from drsne.cli import Command
from drsne.cli._options import adding

# Numbers of samples: all pairs are summed, a mesh is used, and points are reordered.
_FEW, _SOME, _MANY = 600, 5000, 9000


def run(options: argparse.Namespace) -> int:
    """Run short fits of random points, whose compiled functions numba keeps on disk."""
    from numba import config

    start = time.perf_counter()
    cases = _cases(small=options.small)
    for number, (title, fit) in enumerate(cases.items(), 1):
        print(f"[{number}/{len(cases)}] {title}", file=sys.stderr, flush=True)
        fit()
    folder = config.CACHE_DIR  # type: ignore[attr-defined]
    place = folder or "the folders __pycache__ of the package, or in the cache folder of the user"
    print(f"Compiled in {time.perf_counter() - start:.0f} s. The compiled functions are kept in {place}.")
    return 0


def _cases(*, small: bool) -> dict[str, Callable[[], Any]]:
    """Return short fits that use the functions of most fits, by their titles."""
    import numpy as np

    from drsne import DRSNE, density_path
    from drsne.estimators.constraints import PLAIN

    rng = np.random.default_rng(0)
    few, some, many = (rng.normal(size=(n, 8)) for n in (_FEW, _SOME, _MANY))
    options: dict[str, Any] = {"random_state": 0, "n_jobs": 2, "max_iter": 20, "n_iter_exaggeration": 5}
    cases: dict[str, Callable[[], Any]] = {
        "small maps": lambda: DRSNE(**options).fit(few),
        "small maps without a density term": lambda: DRSNE(**PLAIN, **options).fit(few),
        "a path of weights": lambda: density_path(few, [0.0, 1.0, 100.0], **options),
    }
    large: dict[str, Callable[[], Any]] = {
        "maps of some thousand points": lambda: DRSNE(**options).fit(some),
        "large maps": lambda: DRSNE(**options).fit(many),
        "large maps without a density term": lambda: DRSNE(**PLAIN, **options).fit(many),
    }
    return cases if small else cases | large


COMMAND = Command(
    "compile all functions in advance, so that the first fit is faster",
    adding("--small"),
    run,
    "  drsne warmup --small",
)
