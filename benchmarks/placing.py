"""Time the placing of new rows: a single row, many rows, and how the time depends on the number of training rows.

    python benchmarks/placing.py [--sizes 10000 70000] [--rows 100000] [--threads 2]

The data are 100 Gaussians in 50 dimensions. A map of the first rows is fitted with one and with two dimensions, and
other rows are placed in it. A single row is placed 50 times after a first call; the median is shown. The memory is the
growth of the peak memory of the process while 10,000 rows and then all rows are placed, after a first call.
"""

from __future__ import annotations

import argparse
import resource
import time
from statistics import median

import numpy as np
from data import large
from report import table, write

from drsne import DRSNE

REPEATS, PART = 50, 10_000


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 70_000])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    X = np.asarray(large("gaussians", max(options.sizes) + options.rows), dtype=np.float64)
    X = X[np.random.default_rng(0).permutation(len(X))]
    new, lines = X[-options.rows :], []
    for n in options.sizes:
        for d in (1, 2):
            model = DRSNE(n_components=d, n_jobs=options.threads, random_state=0, keep_affinities=False).fit(X[:n])
            model.transform(new[:100])
            single = []
            for row in new[:REPEATS]:
                start = time.perf_counter()
                model.transform(row[None])
                single.append(1e3 * (time.perf_counter() - start))
            before = peak()
            model.transform(new[:PART])
            of_part = peak() - before
            start = time.perf_counter()
            model.transform(new)
            seconds = time.perf_counter() - start
            lines.append(
                [f"{n:,}", d, f"{median(single):.1f}", f"{seconds:.1f}", f"{1e6 * seconds / len(new):.0f}",
                 f"{of_part:.0f}", f"{peak() - before:.0f}"]
            )  # fmt: skip
            print(lines[-1], flush=True)
    header = ["training rows", "dimensions", "one row, ms", f"{options.rows:,} rows, s", "microseconds per row"]
    header += [f"MB for {PART:,} rows", f"MB for {options.rows:,} rows"]
    rules = (__doc__ or "").split("\n\n", 2)[2].strip()
    write("placing", "The time to place new rows", "python benchmarks/placing.py", rules, table(header, lines))


if __name__ == "__main__":
    main()
