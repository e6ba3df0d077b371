"""Time fits on a GPU of data in which many rows are equal, and fits without the Triton programs.

    python benchmarks/gpu_cases.py [--sizes 70000 1000000] [--cases usual equal copies plain] [--again]
    python benchmarks/gpu_cases.py --sizes 600 --device cpu      try the program without a GPU
    python benchmarks/gpu.py --report                            write the tables

The rules:

- The data are those of ``gpu.py``. There is one fit of each case and size.
- ``equal``: the first 100 rows are replaced with the first one.
- ``copies``: one percent of the rows, in groups of 100, are replaced with the first of their group. The smallest scale
  of the map then needs double precision. (With ``equal``, it does not, because the smallest 0.5 % of the scales are
  raised to the next one. This was seen after its first run, and ``copies`` was added.)
- ``plain``: plain PyTorch does what the Triton programs do otherwise.
- A smaller fit of the same case has compiled the GPU kernels before.
"""

from __future__ import annotations

import argparse

import numpy as np
from gpu import data, device_name, fit, wait
from gpu_report import CASE, CASES, ROWS, data_name, done
from runner import sources

N_EQUAL, SMALL = 100, 20_000
SHARE = 0.01  # share of the rows that are in groups of equal rows


def rows_of(case: str, X: np.ndarray) -> np.ndarray:
    """Return the data of a case."""
    X = X.copy()
    if case == "equal":
        X[:N_EQUAL] = X[0]
    if case == "copies":
        some = np.random.default_rng(0).permutation(len(X))[: max(1, round(SHARE * len(X) / N_EQUAL)) * N_EQUAL]
        groups = some.reshape(-1, N_EQUAL)
        X[groups] = X[groups[:, :1]]
    return X


def measure(case: str, n: int, device: str, again: bool) -> None:
    """Fit data of one size, and write a row."""
    from drsne.backends.torch import cells, steps

    row = {"data": data_name(n), "n": n, "seed": 0, "device": f"{CASE}{case} on {device_name(device)}"}
    if done(row) is not None and not again:
        return
    triton = cells.TRITON, steps.TRITON
    if case == "plain":
        cells.TRITON = steps.TRITON = False
    X = data(n)
    fit(rows_of(case, X[:: max(1, n // SMALL)]), 0, device)
    wait(device)
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    model, seconds = fit(rows_of(case, X), 0, device)
    row |= {"case": case, "total_s": round(seconds, 2), "smallest_scale": float(model.scales_.min())}
    row |= {"extent": float(np.ptp(model.embedding_, axis=0).max())}
    row |= {"kl": round(model.kl_divergence_, 4), "concentration": round(model.concentration_loss_, 4)}
    if device.startswith("cuda"):
        row["peak_gb"] = round(torch.cuda.max_memory_allocated(device) / 1e9, 2)
    cells.TRITON, steps.TRITON = triton
    print(ROWS.append(row | {"sources": sources()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[70_000, 1_000_000])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--again", action="store_true", help="repeat fits that this version has made")
    options = parser.parse_args()
    for n in options.sizes:
        for case in options.cases:
            measure(case, n, options.device, options.again)


if __name__ == "__main__":
    main()
