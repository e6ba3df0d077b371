"""Time fits on a GPU of data in which many rows are equal, beside fits of the same data without equal rows.

    python benchmarks/gpu_equal_rows.py [--sizes 70000 1000000] [--again]
    python benchmarks/gpu_equal_rows.py --sizes 3000 --device cpu      try the program without a GPU
    python benchmarks/gpu.py --report                                  write the tables

The rules, fixed before the first run:

- The data are those of ``gpu.py``. In the second fit, the first 100 rows are replaced with the first one, so that the
  smallest scale of the map needs double precision.
- Two smaller fits, one of them with equal rows, have compiled the GPU kernels before.
"""

from __future__ import annotations

import argparse

import numpy as np
from gpu import data, device_name, fit, wait
from gpu_report import EQUAL, ROWS, data_name, done
from report import host, sources

ROWS_THAT_ARE_EQUAL, SMALL = 100, 20_000


def with_equal_rows(X: np.ndarray, count: int) -> np.ndarray:
    """Return the data with the first rows replaced with the first one."""
    X = X.copy()
    X[:count] = X[0]
    return X


def measure(n: int, device: str, again: bool) -> None:
    """Fit data of one size twice, and write a row."""
    row = {"data": data_name(n), "n": n, "seed": 0, "device": EQUAL + device_name(device)}
    if done(row) is not None and not again:
        return
    X = data(n)
    for name, count in (("without", 1), ("with", ROWS_THAT_ARE_EQUAL)):
        fit(with_equal_rows(X[:: max(1, n // SMALL)], count), 0, device)
        wait(device)
        if device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(device)
        model, seconds = fit(with_equal_rows(X, count), 0, device)
        row |= {f"{name}_s": round(seconds, 2), f"{name}_smallest_scale": float(model.scales_.min())}
        if device.startswith("cuda"):
            row[f"{name}_gb"] = round(torch.cuda.max_memory_allocated(device) / 1e9, 2)
    print(ROWS.append(row | {"sources": sources(), "host": host()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[70_000, 1_000_000])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--again", action="store_true", help="repeat fits that this version has made")
    options = parser.parse_args()
    for n in options.sizes:
        measure(n, options.device, options.again)


if __name__ == "__main__":
    main()
