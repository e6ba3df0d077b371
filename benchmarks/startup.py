"""Time what a new user waits for: import, first fit with an empty kernel cache, first fit in a new process.

python benchmarks/startup.py [--repeat 3]
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

from report import table, write

IMPORT = "import time; t = time.perf_counter(); import drsne; print(time.perf_counter() - t)"
DEPENDENCIES = """
import time
t = time.perf_counter()
import numba
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
print(time.perf_counter() - t)
"""
CLASS = "import time; t = time.perf_counter(); from drsne import DRSNE; print(time.perf_counter() - t)"
FIT = """
import time
t = time.perf_counter()
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
X = StandardScaler().fit_transform(load_digits().data)
from drsne import DRSNE
from drsne.estimators import base as _estimator
minimize, taken = _estimator.minimize, []
def timed(*arguments, **options):
    start = time.perf_counter()
    outcome = minimize(*arguments, **options)
    taken.append(time.perf_counter() - start)
    return outcome
_estimator.minimize = timed
DRSNE(random_state=0, n_jobs=2).fit(X)
total = time.perf_counter() - t
print(total, total - taken[0])
"""
WARMUP = [sys.executable, "-m", "drsne", "warmup", "--small"]


def seconds(code: str, cache: str) -> list[float]:
    """Return what ``code`` prints when it runs in a new process with the kernel cache in ``cache``."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    return [float(value) for value in done.stdout.split()]


def _compile_bytecode() -> None:
    """Compile the package to bytecode, as pip does when it installs a wheel."""
    spec = importlib.util.find_spec("drsne")
    assert spec is not None
    assert spec.origin is not None
    compileall.compile_dir(os.path.dirname(spec.origin), quiet=1)


def shown(taken: list[float], digits: int = 2) -> str:
    """Return the smallest time and the median."""
    return f"{min(taken):.{digits}f} ({median(taken):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    _compile_bytecode()
    cold, warm, imports, others, classes, commands, warmed = [], [], [], [], [], [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(FIT, cache))
            warm.append(seconds(FIT, cache))
            imports.append(seconds(IMPORT, cache)[0])
            others.append(seconds(DEPENDENCIES, cache)[0])
            classes.append(seconds(CLASS, cache)[0])
        with tempfile.TemporaryDirectory() as cache:
            start = time.perf_counter()
            subprocess.run(WARMUP, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
            commands.append(time.perf_counter() - start)
            warmed.append(seconds(FIT, cache))
    rows = [
        ["import drsne", shown(imports, 4), ""],
        ["numba and the parts of scikit-learn that the fit below imports", shown(others), ""],
        ["from drsne import DRSNE (numpy, scipy, scikit-learn, numba)", shown(classes), ""],
        *(
            [label, shown([a for a, _ in taken]), shown([b for _, b in taken])]
            for label, taken in (
                ("cold first fit: empty kernel cache", cold),
                ("warm first fit: a new process, cached kernels", warm),
                ("first fit after `drsne warmup --small`", warmed),
            )
        ),
        ["`drsne warmup --small`, with an empty kernel cache", shown(commands), ""],
    ]
    write(
        "startup",
        "Start-up",
        "python benchmarks/startup.py",
        f"Seconds: the fastest of {repeat}, and the median. Other programs on the machine only make them slower, so "
        "the fastest is the best estimate. Only the base packages are installed; scikit-learn imports pandas if it is "
        "there. Fits are of Digits (1797 x 64), default settings, two threads, with all imports and the loading of the "
        "data. In a cold fit, some kernels are compiled during the optimisation.",
        table(["", "seconds", "without the optimisation"], rows),
    )


if __name__ == "__main__":
    main()
