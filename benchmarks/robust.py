"""Every weight, every k, every perplexity: finite maps, and a loss that the density phase never raises.

    python benchmarks/robust.py [--jobs 2]

Digits and Helix; each fit is a line of results/robust.jsonl, so that a killed study continues where it stopped.
"""

from __future__ import annotations

import argparse
import itertools
import os

import numpy as np
from data import EIGHT, paper_data
from joblib import Parallel, delayed
from report import Results, table, write

from drsne import DRSNE, metrics
from drsne.presets import ADAPTIVE_SHARE

WEIGHTS, NEIGHBORS, PERPLEXITIES = (0.0, 1.0, 10.0, 100.0, 1000.0), (5, 15, 30, 100, 300), (5.0, 30.0, 100.0)
SETS = ("digits", "helix")
KEY = ("dataset", "weight", "k", "perplexity")
KERNEL = "adaptive"  # of the default; part of each row, so that rows of the fixed kernel are not mistaken for these
RESULTS = Results("robust", "kernel", *KEY)


def fit(name: str, weight: float, k: int, perplexity: float) -> None:
    X = paper_data(name).X
    model = DRSNE(density_weight=weight, density_neighbors=k, perplexity=perplexity, random_state=0).fit(X)
    history = model.history_
    loss = history["kl"] + weight * history["concentration"]
    joined = int(np.searchsorted(history["iteration"], model.max_iter - round(ADAPTIVE_SHARE * model.max_iter)))
    row = dict(zip(KEY, (name, weight, k, perplexity), strict=True)) | {
        "kernel": KERNEL,
        "finite": bool(np.isfinite(model.embedding_).all()),
        "joined": float(loss[joined]),
        "final": model.kl_divergence_ + weight * model.concentration_loss_,
        "trustworthiness": metrics.trustworthiness(X, model.embedding_, max_samples=1000, random_state=0),
        "concentration": model.concentration_loss_,
    }
    RESULTS.append(row)


def read() -> list[dict]:
    """Return the rows of the default kernel."""
    return [row for row in RESULTS.read() if row["kernel"] == KERNEL]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    there = {tuple(row[key] for key in KEY) for row in read()}
    every = list(itertools.product(SETS, WEIGHTS, NEIGHBORS, PERPLEXITIES))
    Parallel(n_jobs=options.jobs, verbose=5)(delayed(fit)(*job) for job in every if job not in there)
    rows = read()
    if len(rows) < len(every):
        raise SystemExit(f"{len(every) - len(rows)} of {len(every)} fits have no row.")
    found = {tuple(row[key] for key in KEY): row for row in rows}
    worst = max(row["final"] / row["joined"] for row in rows)
    parts = []
    for name, perplexity in itertools.product(SETS, PERPLEXITIES):
        lines = [
            [f"{w:g}"]
            + [
                "{joined:.3g} > {final:.3g} ({trustworthiness:.3f})".format(**found[name, w, k, perplexity])
                for k in NEIGHBORS
            ]
            for w in WEIGHTS
        ]
        parts.append(
            f"## {EIGHT[name]}, perplexity {perplexity:g}\n\n"
            + table(["lambda", *(f"k = {k}" for k in NEIGHBORS)], lines)
        )
    write(
        "robust",
        "Every weight, every k, every perplexity",
        "python benchmarks/robust.py",
        f"{len(rows)} fits, {sum(row['finite'] for row in rows)} with finite maps; the final loss is at most "
        f"{worst:.3f} of the loss when the density term joined. Cells: that > final loss (trustworthiness).",
        *parts,
        rows=rows,
    )


if __name__ == "__main__":
    main()
