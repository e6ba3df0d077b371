"""Time and score whole fits at default settings: ours, plain t-SNE and the peers, in one run.

    python benchmarks/fit_time.py [--sizes 5000 70000] [--repeats 3] [--methods drsne drsne_plain densmap umap]
    python benchmarks/fit_time.py --report

MNIST (50 principal components) from DRSNE_DATA_HOME, on every core that a method can use. Each fit is in a process of
its own after a fit of the same method on 5,000 points, which compiles what the method compiles. Methods take turns,
so that a change of the machine's speed meets all of them. The maps are scored after the clock has stopped: the five
scores of 2,000 sampled points, with neighbours among all points. Each fit is a line of results/fit_time.jsonl,
written when it ends. Packages that are not installed are skipped with a message.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from report import Results, machine, table, write

ROWS = Results("fit_time", "method", "n", "repeat")
METHODS = {
    "drsne": ("drsne", "DRSNE()", "drsne.DRSNE(random_state=seed, n_jobs=-1, keep_affinities=False)"),
    "drsne_plain": (
        "drsne",
        "DRSNE(density_weight=0)",
        "drsne.DRSNE(density_weight=0, random_state=seed, n_jobs=-1, keep_affinities=False)",
    ),
    "densmap": ("umap", "densMAP", "umap.UMAP(densmap=True, n_jobs=-1)"),
    "umap": ("umap", "UMAP", "umap.UMAP(n_jobs=-1)"),
}
PROGRAM = """
import json, sys, time, warnings
import numpy as np
import {package}
warnings.simplefilter("ignore")
X, seed = np.load(sys.argv[1]), int(sys.argv[2])
small = X[:: max(1, len(X) // 5000)][:5000]  # enough for all packages to take the code of large data
({call}).fit(small)
if "drsne" in sys.modules and len(X) > len(small):
    ({call}).set_params(max_iter=20).fit(X[:10000])
start = time.perf_counter()
Y = ({call}).fit_transform(X)
seconds = time.perf_counter() - start
from drsne import metrics
sample = dict(max_samples=2000, random_state=0)
scores = dict(
    trustworthiness=metrics.trustworthiness(X, Y, 10, **sample),
    continuity=metrics.continuity(X, Y, 10, **sample),
    cc=metrics.concentration_correlation(X, Y, 29, **sample),
    rho30=metrics.density_rank_correlation(X, Y, 30, **sample),
    rho5=metrics.density_rank_correlation(X, Y, 5, **sample),
)
scores = {{name: round(float(score), 5) for name, score in scores.items()}}
print(json.dumps(dict(seconds=dict(total=round(seconds, 2)), **scores)))
"""
SCORES = {"trustworthiness": "TW", "continuity": "Cont", "cc": "CC", "rho30": "rho30", "rho5": "rho5"}
SEEDS = (3, 4, 5)


def data(n: int, folder: Path) -> Path:
    """Return the file of the data, made if it is not there."""
    from data import large

    path = folder / f"mnist-{n}.npy"
    if not path.exists():
        np.save(path, large("mnist", n))
    return path


def timed(method: str, path: Path, seed: int) -> dict[str, float]:
    """Return the seconds and the scores of one fit, made in a process of its own."""
    package, _, call = METHODS[method]
    program = PROGRAM.format(package=package, call=call)
    done = subprocess.run([sys.executable, "-c", program, str(path), str(seed)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{method} failed on {path.name}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(rows: list[dict[str, Any]]) -> None:
    sizes = sorted({row["n"] for row in rows})
    lines = []
    for method, (_, title, _) in METHODS.items():
        cells: list[str] = [title]
        for n in sizes:
            found = [row["seconds"]["total"] for row in rows if (row["method"], row["n"]) == (method, n)]
            plain = [row["seconds"]["total"] for row in rows if (row["method"], row["n"]) == ("drsne_plain", n)]
            cells += [f"{np.median(found):.1f} ({len(found)})" if found else "-"]
            cells += [f"{np.median(found) / np.median(plain):.2f}" if found and plain else "-"]
        lines.append(cells)
    header = ["method", *(cell for n in sizes for cell in (f"n = {n}: seconds (repeats)", "times plain t-SNE"))]
    text = "Medians of whole fits, default settings, the search for neighbours included, compiled code warm."
    scores = "Means over the same fits. Scores of 2,000 sampled points, with neighbours among all points."
    lines_of_scores = []
    for n in sizes:
        for method, (_, title, _) in METHODS.items():
            found = [row for row in rows if (row["method"], row["n"]) == (method, n)]
            if found:
                cells = [f"{np.mean([row[name] for row in found]):.4f}" for name in SCORES]
                lines_of_scores.append([n, title, *cells])
    shown = table(["n", "method", *SCORES.values()], lines_of_scores)
    write("fit_time", "Whole fits", "python benchmarks/fit_time.py", text, table(header, lines), scores, shown)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[5000, 70000])
    parser.add_argument("--repeats", type=int, default=len(SEEDS))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    rows = ROWS.read()
    there = {(row["method"], row["n"], row["repeat"]) for row in rows}
    for n in [] if options.report else options.sizes:
        for repeat in range(options.repeats):
            for method in options.methods:
                if (method, n, repeat) in there:
                    continue
                if importlib.util.find_spec(METHODS[method][0]) is None:
                    print(f"{method} is skipped: the package {METHODS[method][0]} is not installed.")
                    continue
                found = timed(method, data(n, options.folder), SEEDS[repeat % len(SEEDS)])
                row = {"method": method, "n": n, "repeat": repeat, **found, "machine": machine()}
                rows.append(ROWS.append(row))
                print(f"{method}, n = {n}, repeat {repeat}: {found['seconds']['total']:.1f} s", flush=True)
    report(rows)


if __name__ == "__main__":
    main()
