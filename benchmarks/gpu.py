"""Time and score whole fits on a GPU at default settings, and compare their scores with those of the CPU.

    python benchmarks/gpu.py [--sizes 70000 280000 1000000 10000000] [--seeds 0 1 2]
    python benchmarks/gpu.py --sizes --scores [--devices cuda cpu exact] [--seeds 0 1 2]
    python benchmarks/gpu.py --report                   write only the tables

The rules, fixed before the first run:

- The time of a fit includes everything from a NumPy array to the map as a NumPy array: ``DRSNE(device="cuda").fit(X)``.
  A smaller fit has compiled the Triton programs before. Three fits up to 1,000,000 points, one for more.
- Data: MNIST (50 principal components) for 70,000 points, Covertype for 280,000, and 100 Gaussians in 50 dimensions for
  more, all in double precision.
- The parts of a fit are those that it logs with verbose=2, in the last of the fits.
- The floor of an iteration is the time to read the stored pairs once, and to read and write 24 numbers of each point,
  at 4.3 TB/s, the measured speed of a copy on an H200.
- The error of the forces is that of the tree at the final map, for 256 points, against sums over all pairs. At
  1,000,000 points, it is compared with that of meshes of a fixed number of boxes per axis (50 and 130, as in other
  programs for GPUs), each with three nodes per axis. These have no adaptive kernel, so the fixed kernel is used there.
- Scores: the five scores of 2,000 sampled points, with neighbours among all points; 500 points above 1,000,000.
- ``--scores`` compares the means of the scores of three seeds with those of the CPU on Digits, Fashion-MNIST and MNIST.
  Up to 300,000 rows, the GPU compares all rows in the search for neighbours, but the CPU does so only up to 50,000. For
  70,000 rows, the CPU is therefore also run with exact neighbours.

Each fit is a line of results/gpu.jsonl, written when it ends.
"""

from __future__ import annotations

import argparse
import logging
import re
import time
from typing import Any

import numpy as np
from data import digits, large
from report import Results, table, write

import drsne
from drsne import datasets, metrics
from drsne.logs import LOGGER
from drsne.neighbors.inverted_file import APPROXIMATE_FROM
from drsne.neighbors.search import knn

SIZES = (70_000, 280_000, 1_000_000, 10_000_000)
DATA = {70_000: "mnist", 280_000: "covertype"}  # 100 Gaussians for more points
BANDWIDTH = 4.3e12  # bytes per second
NAMES = {"cuda": "cuda", "cpu": "cpu", "exact": "cpu, exact neighbours"}
ROWS = Results("gpu", "data", "n", "seed", "device")
SCORES = ("trustworthiness", "continuity", "cc", "rho30", "rho5")
PARTS = {
    "neighbours": r"Found .*",
    "affinities": r"Calibrated .*",
    "initial map": r"Made the initial map",
    "t-SNE": r"(\d+) iterations of t-SNE.*",
    "with density": r"(\d+) iterations with the density term.*",
}


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
    model = drsne.DRSNE(random_state=seed, n_jobs=-1, device=device, neighbors=near)
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


def scored(X: np.ndarray, Y: np.ndarray, samples: int, device: str | None) -> dict[str, float]:
    """Return the five scores of a map, computed on the device of the fit."""
    some = {"max_samples": samples, "random_state": 0, "device": device}
    found = (
        metrics.trustworthiness(X, Y, 10, **some),
        metrics.continuity(X, Y, 10, **some),
        metrics.concentration_correlation(X, Y, 29, **some),
        metrics.density_rank_correlation(X, Y, 30, **some),
        metrics.density_rank_correlation(X, Y, 5, **some),
    )
    return {name: round(float(value), 5) for name, value in zip(SCORES, found, strict=True)}


def force_error(Y: np.ndarray, scales: np.ndarray | None, boxes: int | None = None) -> float:
    """Return the error of the forces of the tree, or of a fixed mesh, relative to the forces of some points."""
    from drsne.backends.torch.backend import TorchBackend
    from drsne.engines._check import Sample
    from drsne.engines.tree import TreeEngine

    backend = TorchBackend("cuda")
    places = backend.received(Y.astype(np.float64))
    places, rho = places - places.mean(dim=0), None if scales is None else backend.received(scales)
    if boxes is None:
        _, forces = TreeEngine(backend).repulsion(places, 0.0, rho)
    else:
        forces = backend.received(mesh_forces(places.cpu().numpy(), boxes))
    order = backend.tree.structure(places, rho).order
    return Sample.of(places, order, "single", backend, rho).force_error(forces)


def mesh_forces(Y: np.ndarray, boxes: int) -> np.ndarray:
    """Return the repulsive forces of the fixed kernel by interpolation on a mesh with three nodes per box and axis."""
    low, width = Y.min(axis=0), (np.ptp(Y, axis=0).max() * (1 + 1e-9)) / boxes
    inside = (Y - low) / width
    box = np.minimum(inside.astype(np.int64), boxes - 1)
    at = np.array([1, 3, 5]) / 6
    others = [np.delete(at, c) for c in range(3)]
    weights = np.stack(
        [np.prod([(inside - box - o) / (at[c] - o) for o in others[c]], axis=0) for c in range(3)], axis=2
    )  # (n, axis, node)
    m = 3 * boxes
    nodes = [(3 * box[:, 0] + i) * m + 3 * box[:, 1] + j for i in range(3) for j in range(3)]
    shares = [weights[:, 0, i] * weights[:, 1, j] for i in range(3) for j in range(3)]
    step = np.minimum(np.arange(2 * m), 2 * m - np.arange(2 * m)) * width / 3
    kernel = np.fft.rfft2((1.0 + step[:, None] ** 2 + step[None, :] ** 2) ** -2)

    def potential(charges: np.ndarray) -> np.ndarray:
        mesh = sum(
            np.bincount(node, weights=share * charges, minlength=m * m)
            for node, share in zip(nodes, shares, strict=True)
        )
        padded = np.zeros((2 * m, 2 * m))
        padded[:m, :m] = mesh.reshape(m, m)
        field = np.fft.irfft2(np.fft.rfft2(padded) * kernel, s=(2 * m, 2 * m))[:m, :m].ravel()
        return sum(share * field[node] for node, share in zip(nodes, shares, strict=True))

    mass = potential(np.ones(len(Y)))
    return np.stack([mass * y - potential(y) for y in Y.T], axis=1)


def measure(n: int, seeds: list[int]) -> None:
    """Fit data of one size, and write a row for each seed."""
    import torch

    name = DATA.get(n, "gaussians")
    X = np.asarray(large(name, n), dtype=np.float64)
    fit(X[:: max(1, n // 20_000)], 0, "cuda")  # compiles
    for seed in seeds:
        torch.cuda.reset_peak_memory_stats()
        log = _Log()
        model, seconds = fit(X, seed, "cuda", log)
        row: dict[str, Any] = {"data": name, "n": n, "seed": seed, "device": torch.cuda.get_device_name()}
        row |= {"total_s": round(seconds, 2), "parts": log.seconds, "iterations": log.iterations}
        row |= {"peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2), "recall": model.knn_recall_}
        row |= {"pairs": int(model.affinities_.nnz), "kl": round(model.kl_divergence_, 4)}
        print(row, flush=True)
        try:
            if seed == seeds[-1]:
                row["force_error"] = force_error(model.embedding_, model.scales_)
                if n == 1_000_000:
                    errors = {f"{boxes} boxes": force_error(model.embedding_, None, boxes) for boxes in (50, 130)}
                    row["fixed_kernel_errors"] = {"tree": force_error(model.embedding_, None), **errors}
                row |= scored(X, model.embedding_, 2000 if n <= 1_000_000 else 500, "cuda")
        finally:  # an interruption of the scores keeps the times
            ROWS.append(row)


def compare(seeds: list[int], devices: list[str]) -> None:
    """Fit three data sets on the GPU and on the CPU, and write a row for each fit."""
    done = ROWS.keys()
    sets = {"digits": digits(), "mnist": large("mnist", 70_000), "fashion_mnist": _reduced("fashion_mnist")}
    for name, X in sets.items():
        X = np.asarray(X, dtype=np.float64)
        exact = knn(X, 90, method="exact", n_jobs=-1) if "exact" in devices and len(X) >= APPROXIMATE_FROM else None
        for seed in seeds:
            for device in devices:
                row = {"data": name, "n": len(X), "seed": seed, "device": "scores on " + NAMES[device]}
                if ROWS.key(row) in done or (device == "exact" and exact is None):
                    continue
                model, seconds = fit(
                    X, seed, "cuda" if device == "cuda" else None, near=tuple(exact) if device == "exact" else None
                )
                row |= {"total_s": round(seconds, 2), "kl": round(model.kl_divergence_, 4)}
                row |= scored(X, model.embedding_, 2000, "cuda" if device == "cuda" else None)
                print(row, flush=True)
                ROWS.append(row)


def _reduced(name: str) -> np.ndarray:
    """Return 50 principal components of a data set."""
    X = np.asarray(datasets.load(name).X, dtype=np.float64)
    X -= X.mean(axis=0)
    return X @ np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :50]


def report() -> None:
    """Write the tables."""
    rows = ROWS.read()
    timed = [row for row in rows if not row["device"].startswith("scores")]
    lines, scores = [], []
    for n in SIZES:
        mine = [row for row in timed if row["n"] == n]
        if not mine:
            continue
        last, seconds = mine[-1], sorted(row["total_s"] for row in mine)
        step = 1e3 * last["parts"]["t-SNE"] / last["iterations"]["t-SNE"]
        floor = 1e3 * (8 * last["pairs"] + 24 * 8 * n) / BANDWIDTH
        middle = seconds[len(seconds) // 2]
        parts = [f"{last['parts'].get(part, 0.0):.2f}" for part in PARTS]
        recall = "exact" if last["recall"] is None else f"{last['recall']:.3f}"
        error = f"{last['force_error']:.4f}" if "force_error" in last else "-"
        total = f"{middle:.1f} ({seconds[0]:.1f} to {seconds[-1]:.1f})" if len(seconds) > 1 else f"{middle:.1f}"
        lines.append(
            [f"{n:,}", last["data"], total, *parts, f"{step:.2f}", f"{floor:.2f}", last["peak_gb"], recall, error]
        )
        if "cc" in last:
            scores.append([f"{n:,}", *(f"{last[name]:.4f}" for name in SCORES)])
    header = ["n", "data", "s, median (range)", *PARTS, "ms per t-SNE iteration", "floor, ms", "GB", "recall", "error"]
    parts_of_report = [
        "The rules:\n\n" + (__doc__ or "").split("\n\n", 3)[3].split("\n\nEach fit")[0],
        "## Whole fits\n\nSeconds, with the parts of the last fit. 'Error' is that of the forces.",
        table(header, lines),
        "## Scores of these fits",
        table(["n", *SCORES], scores),
    ]
    meshes = [row["fixed_kernel_errors"] for row in timed if "fixed_kernel_errors" in row]
    if meshes:
        parts_of_report += [
            "## Errors of the forces of the fixed kernel, at the map of 1,000,000 points",
            table(["sums over", "error"], [[name, f"{error:.4f}"] for name, error in meshes[-1].items()]),
        ]
    compared = [row for row in rows if row["device"].startswith("scores")]
    if compared:
        body = []
        for name in dict.fromkeys(row["data"] for row in compared):
            for device in NAMES.values():
                mine = [row for row in compared if row["data"] == name and row["device"] == f"scores on {device}"]
                if mine:
                    means = [f"{np.mean([row[score] for row in mine]):.4f}" for score in SCORES]
                    spread = [f"{np.std([row[score] for row in mine]):.4f}" for score in SCORES]
                    both = [f"{m} ({s})" for m, s in zip(means, spread, strict=True)]
                    body.append([name, device, len(mine), *both, f"{np.median([row['total_s'] for row in mine]):.1f}"])
        parts_of_report += [
            "## GPU and CPU\n\nMeans of the scores over seeds (standard deviations), and the median of the seconds. "
            "The first fit on the CPU compiles.",
            table(["data", "device", "seeds", *SCORES, "s"], body),
        ]
    devices = ", ".join(dict.fromkeys(row["device"] for row in timed))
    write("gpu", f"Fits on a GPU ({devices})", "python benchmarks/gpu.py", *parts_of_report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--devices", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    for size in [] if options.report else options.sizes:
        measure(size, options.seeds if size <= 1_000_000 else options.seeds[:1])
    if options.scores:
        compare(options.seeds, options.devices)
    report()
