"""Time and score whole fits on a GPU at default settings, searches and special cases, and compare the CPU's scores.

    python benchmarks/gpu.py [--sizes 70000 280000 1000000 10000000] [--seeds 0 1 2] [--again]
    python benchmarks/gpu.py --sizes --search 500000 1000000 --cases 70000 1000000
    python benchmarks/gpu.py --sizes --scores [--devices cuda cpu exact] [--seeds 0 1 2]
    python benchmarks/gpu.py --report                   write only the tables
    python benchmarks/gpu.py --sizes 2000 --search 3000 --cases 600 --device cpu     try the program without a GPU

The rules:

- The time of a fit includes everything from a NumPy array to the map as a NumPy array:
  ``DRSNE(device="cuda").fit(X)``. An earlier fit, whose time does not count, has compiled the GPU kernels. This
  earlier fit uses all rows if there are at most 100,000, and 20,000 of them otherwise. There are three fits of up to
  1,000,000 points, and one fit of more points.
- Up to 1,000,000 points, one more fit with the seed of the last one is made, and the column 'repeats' says whether
  the map is the same, bit for bit.
- Data: MNIST (50 principal components) for 70,000 points, Covertype for 280,000, and 100 Gaussians in 50 dimensions
  for more, all in double precision.
- The parts of a fit are those that it logs with verbose=2, in the last of the fits.
- The floor is a lower bound of the time. The floor of an iteration is the time to read the pairs of points with
  affinities once (8 bytes for each pair), and to read and write 24 numbers of each point, at the measured speed of a
  copy on the device (4.3 TB/s on an H200).
- The floor of a whole fit is the sum of four times. The first is the time to copy the rows to the device, and the map
  and the pairs back, at the measured speed of a copy of a NumPy array. The second is the time of the matrix products
  of the search, at the measured speed of a product of large matrices in single precision. With up to 300,000 rows,
  these are the products of all pairs of rows. With more rows, they are the products of each row with 16,384 others,
  which is the smallest part of the data that the approximate search reads. The third is the time to read the 90
  neighbours of every point with their distances once, and to write the pairs once. The fourth is the sum of the
  floors of all iterations. A floor assumes that nothing waits for anything else, that nothing is read twice, and that
  the sums of the repulsion cost nothing.
- The error of the forces is the norm of their error divided by their norm, for 256 points of the final map. The true
  forces are sums over all pairs.
- Fits are scored on 2,000 sampled points, or on 500 points for data of more than 1,000,000 points. The neighbours are
  searched among all points.
- ``--scores`` compares the means of the scores of three seeds with those of the CPU on Digits, Fashion-MNIST and
  MNIST. With fewer than 300,000 rows, the GPU compares all rows in the search for neighbours, but the CPU does so
  only with fewer than 50,000. For 70,000 rows, the CPU is therefore also run with exact neighbours. These scores are
  those of all points. The first comparison scored 2,000 sampled points, and rho5 of MNIST differed by 0.0052 with
  default settings. The rule was then changed, because scores of all points do not depend on the choice of a sample.
- A search (``--search``) is that of a default fit: 90 neighbours, in double precision, with the copy of the data to
  the device. The data are uniform noise with 20 and with 50 columns, and 100 Gaussians in 50 dimensions. A search among
  20,000 rows has run before. The search measures its own recall on 1,000 rows. Here, the neighbours of 500 other rows
  are compared with those of an exact search in double precision.
- A case (``--cases``) is one fit, after a smaller fit of the same case that has compiled the GPU kernels. In "equal",
  the first 100 rows are replaced with the first one. In "copies", one percent of the rows, in groups of 100, are
  replaced with the first of their group. The smallest scale of the map then needs double precision. (With "equal", it
  does not, because the smallest 0.5 % of the scales are raised to the next one. This was seen after its first run, and
  "copies" was added.) In "plain", plain PyTorch does what the Triton programs do otherwise.

Each fit is a line of results/gpu.jsonl, written when it ends, and again with each score. Fits that were made by the
same version of the package are not repeated without ``--again``. Neither are fits of ``--scores``, of any version,
because the scores on a CPU take an hour. The report says which versions they are of. Maps are kept in a temporary
folder, so that the scores of a stopped study can be added later.
"""

from __future__ import annotations

import argparse
import logging
import re
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from data import digits, large
from gpu_report import (
    CASE,
    CASES,
    NAMES,
    NEIGHBORS,
    PARTS,
    ROWS,
    SCORED,
    SCORES,
    SEARCH,
    SIZES,
    data_name,
    done,
    write_report,
)
from runner import five_scores, rules, sources

import drsne
from drsne.logs import LOGGER
from drsne.neighbors.inverted_file import APPROXIMATE_FROM
from drsne.neighbors.search import knn
from drsne_paper import datasets

SMALL = 100_000  # largest number of points for which a fit of the same data compiles
SAMPLE = 20_000  # number of points of other fits and searches that compile
SEARCHED = ("uniform20", "uniform50", "gaussians")  # data of searches
CHECKED = 500  # number of rows whose neighbours are compared
N_EQUAL, SHARE = 100, 0.01  # equal rows in a group, and the share of the rows that are in such groups


class _Log(logging.Handler):
    """The times of the parts of a fit, from its log."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}
        self.iterations: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        for part, pattern in PARTS.items():
            found = re.fullmatch(rf"{pattern} \(([0-9.]+) s\)", text)
            if found:
                *iterations, seconds = found.groups()
                self.seconds[part] = round(self.seconds.get(part, 0.0) + float(seconds), 2)
                if iterations:
                    self.iterations[part] = self.iterations.get(part, 0) + int(iterations[0])


def fit(
    X: np.ndarray, seed: int, device: str | None, log: _Log | None = None, near: Any = None
) -> tuple[drsne.DRSNE, float]:
    """Return a fitted model and the seconds that the fit took."""
    backend = "numba" if device is None else "torch"
    model = drsne.DRSNE(random_state=seed, n_jobs=-1, device=device, backend=backend, neighbors=near)
    if log is not None:
        LOGGER.addHandler(log)
        LOGGER.setLevel(logging.DEBUG)
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    if log is not None:
        LOGGER.removeHandler(log)
        LOGGER.setLevel(logging.WARNING)
    return model, seconds


def scored(X: np.ndarray, Y: np.ndarray, samples: int | None, device: str | None) -> dict[str, float]:
    """Return the five scores of a map, computed on the device of the fit."""
    found = five_scores(X, Y, max_samples=samples, random_state=0, device=device)
    return {name: round(value, 5) for name, value in zip(SCORES, found, strict=True)}


def force_error(Y: np.ndarray, scales: np.ndarray, device: str) -> float:
    """Return the error of the forces of the tree, relative to the forces of some points."""
    from drsne.backends.torch.backend import TorchBackend
    from drsne.engines._check import Sample
    from drsne.engines.tree import TreeEngine

    backend = TorchBackend(device)
    places, rho = backend.received(Y.astype(np.float64)), backend.received(scales)
    places = places - places.mean(dim=0)
    _, forces = TreeEngine(backend).repulsion(places, 0.0, rho)
    order = backend.tree.structure(places, rho).order
    return Sample.of(places, order, "single", backend, rho).force_error(forces)


@lru_cache(maxsize=1)
def data(n: int) -> np.ndarray:
    """Return the data of this size."""
    return np.asarray(large(data_name(n), n), dtype=np.float64)


def device_name(device: str) -> str:
    """Return the name under which the rows of a device are kept."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else f"{device}, PyTorch"


def wait(device: str) -> None:
    """Wait until a device has finished."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


@lru_cache(maxsize=1)
def rates(device: str) -> dict[str, float]:
    """Return the bytes per second of copies on the device and to it, and the operations per second of products."""
    import torch

    large_enough = device.startswith("cuda")
    rows, size = (8192, 2**29) if large_enough else (1024, 2**24)

    def fastest(run: Callable[[], Any]) -> float:
        seconds = []
        for _ in range(6):
            wait(device)
            start = time.perf_counter()
            run()
            wait(device)
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    values = torch.ones(size, dtype=torch.float64, device=device)
    others, host = torch.empty_like(values), np.ones(size // 4)
    matrix = torch.rand((rows, rows), device=device)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    found = {
        "copy": 16 * size / fastest(lambda: others.copy_(values)),
        "to_device": 2 * size / fastest(lambda: torch.tensor(host, device=device)),
        "product": 2 * rows**3 / fastest(lambda: matrix @ matrix),
    }
    torch.set_float32_matmul_precision(before)
    return {name: float(f"{rate:.3g}") for name, rate in found.items()}


def compile_programs(X: np.ndarray, device: str) -> None:
    """Make a fit that compiles what later fits use."""
    fit(X if len(X) <= SMALL else X[:: len(X) // SAMPLE], 0, device)


def measure(n: int, seeds: list[int], device: str, again: bool) -> None:
    """Fit data of one size, and write a row for each seed. Add the scores of the last one."""
    rows = [{"data": data_name(n), "n": n, "seed": seed, "device": device_name(device)} for seed in seeds]
    missing = [row for row in rows if again or done(row) is None]
    if missing:
        compile_programs(data(n), device)
    for row in missing:
        print(_timed(row, device), flush=True)
    last = done(rows[-1])
    if last is not None and "repeats" not in last and n <= 1_000_000 and _map_file(last).exists():
        with np.load(_map_file(last)) as kept:
            same = np.array_equal(fit(data(n), last["seed"], device)[0].embedding_, kept["Y"])
        last = ROWS.append(last | {"repeats": same})
    if last is not None and "cc" not in last and _map_file(last).exists():
        _add_scores(last, device)


def _timed(row: dict[str, Any], device: str) -> dict[str, Any]:
    """Make a fit, write its row and keep its map."""
    X, log = data(row["n"]), _Log()
    model, measured = _measured(X, row["seed"], device, log)
    row = row | measured | {"parts": log.seconds, "iterations": log.iterations}
    row |= {"recall": model.knn_recall_, "pairs": int(model.affinities_.nnz), "kl": round(model.kl_divergence_, 4)}
    row |= {"columns": X.shape[1], "sources": sources(), "drsne": drsne.__version__}
    ROWS.append(row)  # the measurement of the rates and the scores may be stopped
    _map_file(row).parent.mkdir(exist_ok=True)
    np.savez(_map_file(row), Y=model.embedding_, scales=model.scales_)
    del model
    return ROWS.append(row | {"rates": rates(device)})


def _measured(X: np.ndarray, seed: int, device: str, log: _Log | None = None) -> tuple[drsne.DRSNE, dict[str, float]]:
    """Return a fitted model, and the seconds and the peak memory of the fit."""
    import torch

    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    model, seconds = fit(X, seed, device, log)
    found = {"total_s": round(seconds, 2)}
    return model, found | ({"peak_gb": round(torch.cuda.max_memory_allocated(device) / 1e9, 2)} if on_gpu else {})


def _map_file(row: dict[str, Any]) -> Path:
    return Path(tempfile.gettempdir()) / "drsne_gpu_maps" / f"{ROWS.key(row)}-{sources()}.npz"


def _add_scores(row: dict[str, Any], device: str) -> None:
    """Add the errors of the forces and the scores to the row of a fit whose map was kept, one after the other."""
    n = row["n"]
    with np.load(_map_file(row)) as kept:
        Y, scales = kept["Y"], kept["scales"]
    if "force_error" not in row:
        row = ROWS.append(row | {"force_error": force_error(Y, scales, device)})
    row = ROWS.append(row | scored(data(n), Y, 2000 if n <= 1_000_000 else 500, device))
    print({name: row[name] for name in SCORES}, flush=True)


def compare(seeds: list[int], devices: list[str], again: bool) -> None:
    """Fit three data sets on the GPU and on the CPU, and write a row for each fit."""
    there = set() if again else {row["key"] for row in ROWS.read() if row.get("scored") == row["n"]}
    sets = {"digits": digits(), "mnist": large("mnist", 70_000), "fashion_mnist": _reduced("fashion_mnist")}
    for name, X in sets.items():
        X = np.asarray(X, dtype=np.float64)
        exact = knn(X, 90, method="exact", n_jobs=-1) if "exact" in devices and len(X) >= APPROXIMATE_FROM else None
        for seed in seeds:
            for device in devices:
                row = {"data": name, "n": len(X), "seed": seed, "device": SCORED + NAMES[device]}
                if ROWS.key(row) in there or (device == "exact" and exact is None):
                    continue
                model, seconds = fit(
                    X, seed, "cuda" if device == "cuda" else None, near=tuple(exact) if device == "exact" else None
                )
                row |= {"total_s": round(seconds, 2), "kl": round(model.kl_divergence_, 4), "sources": sources()}
                row |= {"scored": len(X)} | scored(X, model.embedding_, None, "cuda" if device == "cuda" else None)
                print(row, flush=True)
                ROWS.append(row)


def _reduced(name: str) -> np.ndarray:
    """Return 50 principal components of a data set."""
    X = np.asarray(datasets.load(name).X, dtype=np.float64)
    X -= X.mean(axis=0)
    return X @ np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :50]


def search(name: str, n: int, device: str, again: bool) -> None:
    """Search the neighbours of all rows, and write a row."""
    import torch

    from drsne.backends.torch.backend import TorchBackend
    from drsne.backends.torch.neighbors import exact

    row = {"data": name, "n": n, "seed": 0, "device": SEARCH + device_name(device)}
    if done(row) is not None and not again:
        return
    columns = name.removeprefix("uniform")
    X = (
        np.random.default_rng(0).random((n, int(columns)))
        if columns != name
        else np.asarray(large(name, n), np.float64)
    )
    backend = TorchBackend(device)
    backend.nearest(X[:SAMPLE].copy(), NEIGHBORS, cosine=False)
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


def fit_case(case: str, n: int, device: str, again: bool) -> None:
    """Fit the data of a case, and write a row."""
    from drsne.backends.torch import kernels

    row = {"data": data_name(n), "n": n, "seed": 0, "device": f"{CASE}{case} on {device_name(device)}"}
    if done(row) is not None and not again:
        return
    triton = kernels.TRITON
    if case == "plain":
        kernels.TRITON = False
    fit(with_copies(case, data(n)[:: max(1, n // SAMPLE)]), 0, device)
    wait(device)
    model, measured = _measured(with_copies(case, data(n)), 0, device)
    kernels.TRITON = triton
    row |= {"case": case, **measured, "smallest_scale": float(model.scales_.min())}
    row |= {"extent": float(np.ptp(model.embedding_, axis=0).max())}
    row |= {"kl": round(model.kl_divergence_, 4), "concentration": round(model.concentration_loss_, 4)}
    print(ROWS.append(row | {"sources": sources()}), flush=True)


def with_copies(case: str, X: np.ndarray) -> np.ndarray:
    """Return the data of a case."""
    X = X.copy()
    if case == "equal":
        X[:N_EQUAL] = X[0]
    if case == "copies":
        some = np.random.default_rng(0).permutation(len(X))[: max(1, round(SHARE * len(X) / N_EQUAL)) * N_EQUAL]
        groups = some.reshape(-1, N_EQUAL)
        X[groups] = X[groups[:, :1]]
    return X


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="numbers of points that are fitted")
    parser.add_argument("--search", type=int, nargs="+", default=[], help="numbers of points that are searched")
    parser.add_argument("--cases", type=int, nargs="+", default=[], help="numbers of points of the special cases")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--device", default="cuda", help="device of PyTorch; cpu tries the program without a GPU")
    parser.add_argument("--again", action="store_true", help="repeat fits that this version has made")
    parser.add_argument("--scores", action="store_true", help="compare the scores of the GPU and of the CPU")
    parser.add_argument("--devices", nargs="+", choices=list(NAMES), default=list(NAMES), help="devices of --scores")
    parser.add_argument("--report", action="store_true", help="write only the tables")
    options = parser.parse_args()
    if not options.report:
        for n in sorted(options.sizes):
            measure(n, options.seeds if n <= 1_000_000 else options.seeds[:1], options.device, options.again)
        for n, name in product(options.search, SEARCHED):
            search(name, n, options.device, options.again)
        for n, case in product(options.cases, CASES):
            fit_case(case, n, options.device, options.again)
        if options.scores:
            compare(options.seeds, options.devices, options.again)
    write_report(rules(__doc__, "Each fit"))


if __name__ == "__main__":
    main()
