"""Time what an iteration costs apart from the number of points, and its share of an iteration on small data.

    python benchmarks/overhead.py [--threads 2] [--repeat 5]

An iteration of 100 points needs hardly any arithmetic, so its time is that of Python, of calling compiled functions
and of handing work to threads. The same engine is timed on 1,000 to 5,000 points. The share is an upper bound, because
the 100 points need some arithmetic too.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from data import gaussians50
from report import table, write

from drsne import DRSNE
from drsne.estimators import base

SIZES, TINY, PERPLEXITY = (1000, 2000, 5000), 100, 10


def milliseconds(X: np.ndarray, engine: str, threads: int) -> tuple[float, str]:
    """Return the milliseconds of an iteration of a whole default fit, and the engine that was used."""
    seconds = []
    minimize = base.minimize

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        outcome = minimize(*arguments, **options)
        seconds.append(time.perf_counter() - start)
        return outcome

    with patch.object(base, "minimize", timed):
        model = DRSNE(perplexity=PERPLEXITY, engine=engine, n_jobs=threads, random_state=0).fit(X)
    return 1000 * sum(seconds) / model.n_iter_, model.engine_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    lines = []
    for n in SIZES:
        X = gaussians50(n)
        _, engine = milliseconds(X, "auto", options.threads)  # compiles what is needed
        milliseconds(X[:TINY], engine, options.threads)
        whole, tiny = [], []
        for _ in range(options.repeat):
            whole.append(milliseconds(X, engine, options.threads)[0])
            tiny.append(milliseconds(X[:TINY], engine, options.threads)[0])
        lines.append([f"{n:,}", engine, f"{median(whole):.2f}", f"{median(tiny):.3f}",
                      f"{100 * median(tiny) / median(whole):.0f} %"])  # fmt: skip
        print(lines[-1], flush=True)
    write(
        "overhead",
        "Python's share of an iteration",
        "python benchmarks/overhead.py",
        f"Milliseconds of an iteration of a default fit with perplexity {PERPLEXITY}, medians of {options.repeat} fits "
        f"with {options.threads} threads. An iteration of {TINY} points needs hardly any arithmetic, so its time is an "
        "upper bound of what Python, calls of compiled functions and threads cost in every iteration.",
        table(["points", "engine", "ms per iteration", f"ms with {TINY} points", "share at most"], lines),
    )


if __name__ == "__main__":
    main()
