"""Time and score TorchDR on the GPU and on the data of gpu.py.

    python benchmarks/gpu_peers.py [--sizes 70000 280000 1000000] [--methods umap umap_given infotsne] [--limit 120]
    python benchmarks/gpu_peers.py --sizes 1500 --device cpu        try the program without a GPU
    python benchmarks/gpu.py --report                               write the tables

The rules, fixed before the first run:

- Every method is called with its defaults, a seed and the device. ``umap`` and ``infotsne`` are TorchDR's methods that
  scale, because they sum the repulsion over a sample of the points. Its t-SNE sums it over all pairs.
- TorchDR's default search needs FAISS. Where FAISS is not installed, KeOps is used, and without KeOps plain PyTorch,
  which keeps all distances in memory. The rows say which one it was. ``umap_given`` is TorchDR's UMAP after the search
  of this package, which is part of its time.
- The time includes everything from an array in single precision to the map as a NumPy array. A fit of 5,000 points in
  the same process has compiled what is compiled. There is one fit, in a process of its own, which is stopped after
  --limit seconds, the smaller fit included.
- Scores are those of gpu.py. A failure, or the limit, is kept as the row of the fit.

TorchDR is not a dependency: ``pip install torchdr``, and faiss-gpu or pykeops if there is one for the system. A method
that has a row is not run again without ``--again``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import types
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

METHODS = {"umap": ("UMAP", False), "umap_given": ("UMAP", True), "infotsne": ("InfoTSNE", False)}
TITLES = {"umap": "TorchDR UMAP", "umap_given": "TorchDR UMAP, our search", "infotsne": "TorchDR InfoTSNE"}
SIZES = (70_000, 280_000, 1_000_000)
SMALL = 5_000  # number of points of the fit that compiles
SEARCHES = {"faiss": "faiss", "pykeops": "keops"}  # packages and the names of TorchDR's backends


def searches() -> list[str | None]:
    """Return the backends of TorchDR whose packages are installed, the best one first. None is plain PyTorch."""
    return [*(name for package, name in SEARCHES.items() if importlib.util.find_spec(package)), None]


def import_torchdr() -> Any:
    """Import TorchDR. It imports Matplotlib for plots, which are not needed here, so that may be missing."""
    if importlib.util.find_spec("matplotlib") is None:
        for name in ("matplotlib", "matplotlib.pylab", "matplotlib.pyplot"):
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__spec__ = ModuleSpec(name, None)  # without one, looking for the module is an error
    import torchdr

    return torchdr


def model_of(method: str, device: str, search: str | None) -> Any:
    """Return the model of a method."""
    name, given = METHODS[method]
    model = getattr(import_torchdr(), name)(backend=None if given else search, device=device, random_state=0)
    if given:
        model.affinity_in._distance_matrix = partial(our_search, device)
    return model


def our_search(device: str, X: Any, k: int, return_indices: bool = True) -> Any:
    """Return squared distances and neighbours on the device, as TorchDR's own search does."""
    import torch

    from drsne.backends.torch.backend import TorchBackend

    found = TorchBackend(device).nearest(X.to(device, torch.float64), int(k), cosine=False)
    return (found.distances**2).to(X.dtype), found.indices.to(torch.int64)


def fit(method: str, files: tuple[Path, Path], device: str, plain: bool) -> dict[str, Any]:
    """Fit a model to the rows of a file, save the map, and return what was measured.

    With ``plain``, the search is that of plain PyTorch, whatever is installed.
    """
    import torch

    X, on_gpu = np.load(files[0]), device.startswith("cuda")
    small, usable = np.ascontiguousarray(X[:: max(1, len(X) // SMALL)][:SMALL]), [None] if plain else searches()
    while True:
        try:
            model_of(method, device, usable[0]).fit_transform(small)
            break
        except Exception as error:
            print(f"search by {usable[0]}: {type(error).__name__}: {error}", file=sys.stderr)
            if len(usable) == 1:
                raise
            usable.pop(0)
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    Y = np.asarray(model_of(method, device, usable[0]).fit_transform(X))
    found: dict[str, Any] = {"total_s": round(time.perf_counter() - start, 2)}
    np.save(files[1], Y)
    if on_gpu:
        found["peak_gb"] = round(torch.cuda.max_memory_allocated(device) / 1e9, 2)
    return found | {"search": "ours" if METHODS[method][1] else usable[0] or "PyTorch"}


def measured(method: str, files: tuple[Path, Path], device: str, limit: float) -> dict[str, Any]:
    """Return the results of a fit in a process of its own, or the reason why there are none."""
    words = [sys.executable, __file__, "--fit", method, *map(str, files), "--device", device]
    for more in ([], ["--plain"]):
        try:
            done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"error": f"stopped after {limit:.0f} s, with a smaller fit"}
        print(done.stderr[-2000:], file=sys.stderr)
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found | ({"note": "after a crash with another search"} if more else {})
        if done.returncode > 0:
            break
        print(f"killed by signal {-done.returncode}", file=sys.stderr)  # a library crashed, so it is not used again
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"ended with {done.returncode}"
    reason = f"killed by signal {-done.returncode}" if done.returncode < 0 else reason
    return {"error": reason.replace("|", "/")[:200]}


def measure(n: int, methods: list[str], device: str, limit: float, again: bool) -> None:
    """Fit data of one size by several methods, and write a row for each."""
    from gpu import data, device_name, scored
    from gpu_report import PEER, ROWS, data_name
    from runner import sources

    there = set() if again else {row["key"] for row in ROWS.read() if "cc" in row or "error" in row}
    row = {"data": data_name(n), "n": n, "seed": 0}
    rows = {method: row | {"device": f"{PEER}{device_name(device)}, {method}"} for method in methods}
    if all(ROWS.key(each) in there for each in rows.values()):
        return
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "X.npy", Path(folder) / "Y.npy"
        np.save(files[0], data(n).astype(np.float32))
        for method, each in rows.items():
            if ROWS.key(each) in there:
                continue
            found = measured(method, files, device, limit)
            package = {"package": "torchdr", "version": version("torchdr"), "sources": sources()}
            each = ROWS.append(each | found | package | {"method": TITLES[method]})
            print(each, flush=True)
            if "total_s" in found:
                ROWS.append(each | scored(data(n), np.load(files[1]), 2000 if n <= 1_000_000 else 500, device))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a process is stopped")
    parser.add_argument("--again", action="store_true", help="repeat fits that have a row")
    parser.add_argument("--fit", nargs=3, metavar=("METHOD", "DATA", "MAP"), help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        method, rows, places = options.fit
        print(json.dumps(fit(method, (Path(rows), Path(places)), options.device, options.plain)))
        return
    if importlib.util.find_spec("torchdr") is None:
        sys.exit("TorchDR is not installed: pip install torchdr")
    for n in options.sizes:
        measure(n, options.methods, options.device, options.limit, options.again)


if __name__ == "__main__":
    main()
