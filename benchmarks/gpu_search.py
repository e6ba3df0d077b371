"""Time the search for neighbours on a GPU, and measure its recall, on data with and without clusters.

    python benchmarks/gpu_search.py [--sizes 500000 1000000] [--data uniform20 uniform50 gaussians] [--again]
    python benchmarks/gpu_search.py --sizes 3000 --device cpu      try the program without a GPU
    python benchmarks/gpu.py --report                              write the tables

The rules, fixed before the first run:

- The search is that of a default fit: 90 neighbours, in double precision. Data are uniform noise with 20 and with 50
  columns, and 100 Gaussians in 50 dimensions.
- The time includes the copy of the data to the device. A search among 20,000 rows has run before.
- The search measures its own recall on 1,000 rows. Here, the neighbours of 500 other rows are compared with those of
  an exact search in double precision.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import large
from gpu import device_name, wait
from gpu_report import ROWS, SEARCH, done
from runner import sources

NEIGHBORS, CHECKED = 90, 500
DATA = ("uniform20", "uniform50", "gaussians")


def rows_of(name: str, n: int) -> np.ndarray:
    """Return data in double precision."""
    if name == "gaussians":
        return np.asarray(large(name, n), dtype=np.float64)
    return np.random.default_rng(0).random((n, int(name.removeprefix("uniform"))))


def measure(name: str, n: int, device: str, again: bool) -> None:
    """Search the neighbours of all rows, and write a row."""
    import torch

    from drsne.backends.torch.backend import TorchBackend
    from drsne.backends.torch.neighbors import exact

    row = {"data": name, "n": n, "seed": 0, "device": SEARCH + device_name(device)}
    if done(row) is not None and not again:
        return
    X, backend = rows_of(name, n), TorchBackend(device)
    backend.nearest(X[:20_000].copy(), NEIGHBORS, cosine=False)
    wait(device)
    start = time.perf_counter()
    found = backend.nearest(X, NEIGHBORS, cosine=False)
    wait(device)
    seconds = time.perf_counter() - start
    some = torch.as_tensor(np.random.default_rng(1).choice(n, min(n, CHECKED), replace=False), device=device)
    sent = backend.received(X)
    reach = exact(sent - sent.mean(dim=0), NEIGHBORS, sent, some)[1][:, -1:]
    share = float((found.distances[some] <= reach * (1.0 + 1e-9)).to(torch.float64).mean())
    row |= {"total_s": round(seconds, 2), "recall": found.recall, "found": round(share, 5)}
    print(ROWS.append(row | {"sources": sources()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[500_000, 1_000_000])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--again", action="store_true", help="repeat searches that this version has made")
    options = parser.parse_args()
    for n in options.sizes:
        for name in options.data:
            measure(name, n, options.device, options.again)


if __name__ == "__main__":
    main()
