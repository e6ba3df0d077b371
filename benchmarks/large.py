"""The default schedule and the neighbourhood modes on large data: MNIST-70k and 100,000 rows of Covertype.

    python benchmarks/large.py [--threads 2]

Scores are of 5000 sampled points. Each fit is a line of results/large.jsonl, so that a killed study continues where it
stopped. Needs mnist.npz and cover_adbench.npz in DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from data import large
from report import Results, table, write

from drsne import DRSNE, Adam, metrics
from drsne.neighbors.search import knn
from drsne.presets import ADAPTIVE_SHARE, default_schedule

ROWS = Results("large", "dataset", "default", "variant")
DEFAULT = {"kernel": "adaptive", "weight": DRSNE().density_weight}  # part of each row: others have another default
SETS = {"mnist": 70_000, "covertype": 100_000}
# Of the last phase; the other variants are whole estimators.
SCHEDULES: dict[str, dict[str, Any]] = {
    "rate": {"optimizer": Adam(rate=1.0, betas=(0.8, 0.999))},
    "no_ramp": {"ramp": 0, "optimizer": Adam(rate=1.0, betas=(0.9, 0.999))},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"density_weight": 0},
    "default": {},
    **{name: {} for name in SCHEDULES},
    "embedding": {"neighborhoods": "embedding"},
    "input": {"neighborhoods": "input"},
    "fixed": {"kernel": "fixed"},
}
TITLES = {
    "plain": "lambda = 0",
    "default": "default",
    "rate": "rate 1",
    "no_ramp": "no ramp, rate 1, betas (0.9, 0.999)",
    "embedding": 'neighborhoods="embedding"',
    "input": 'neighborhoods="input"',
    "fixed": 'kernel="fixed"',
}


def schedule(n: int, variant: str) -> Any:
    if variant not in SCHEDULES:
        return None
    numbers = {"n_iter_exaggeration": 250, "early_exaggeration": 12.0, "learning_rate": "auto"}
    usual = default_schedule(n, max_iter=1000, density=True, share=ADAPTIVE_SHARE, adaptive=True, **numbers)
    return replace(usual, phases=(*usual.phases[:-1], replace(usual.phases[-1], **SCHEDULES[variant])))


def run(name: str, variant: str, X: np.ndarray, neighbors: Any, threads: int) -> dict[str, Any]:
    options = {"random_state": 0, "n_jobs": threads, "neighbors": neighbors, "keep_affinities": False}
    model = DRSNE(schedule=schedule(len(X), variant), **VARIANTS[variant], **options)
    start = time.perf_counter()
    Y = model.fit_transform(X)
    seconds = time.perf_counter() - start
    sample = {"max_samples": 5000, "random_state": 0}
    return {
        "dataset": name,
        "variant": variant,
        "default": DEFAULT,
        "seconds": {"total": round(seconds, 1)},
        "trustworthiness": metrics.trustworthiness(X, Y, 10, **sample),
        "concentration_correlation": metrics.concentration_correlation(X, Y, 29, **sample),
        "density_rank_correlation": metrics.density_rank_correlation(X, Y, 30, **sample),
    }


def read() -> list[dict[str, Any]]:
    return [row for row in ROWS.read() if row["default"] == DEFAULT]


def report() -> None:
    parts = []
    for name, n in SETS.items():
        found = {row["variant"]: row for row in read() if row["dataset"] == name}
        scores = (
            "{trustworthiness:.4f} {concentration_correlation:.3f} {density_rank_correlation:.3f} {seconds[total]:.0f}"
        )
        lines = [
            [TITLES[variant], *scores.format(**found[variant]).split()] for variant in VARIANTS if variant in found
        ]
        parts.append(f"## {name}, {n} points\n\n" + table(["variant", "TW", "CC", "rho_S", "seconds"], lines))
    write(
        "large",
        "Schedule and modes on large data",
        "python benchmarks/large.py",
        f"lambda = {DRSNE().density_weight:g}, k = {DRSNE().density_neighbors}, neighbours given, 1000 iterations, one "
        "seed. TW at 10, CC at 29, rho_S at 30 neighbours, of 5000 sampled points. Seconds are of the fit without the "
        "search.",
        *parts,
        rows=read(),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    there = {(row["dataset"], row["variant"]) for row in read()}
    for name, n in SETS.items():
        missing = [variant for variant in VARIANTS if (name, variant) not in there]
        if not missing:
            continue
        X = large(name, n)
        neighbors = tuple(knn(X, 90, n_jobs=options.threads))
        DRSNE(max_iter=50, neighborhoods="both", neighbors=neighbors).fit(X)  # compiles, or loads what is compiled
        for variant in missing:
            print(f"{name}, {variant} ...", flush=True)
            ROWS.append(run(name, variant, X, neighbors, options.threads))
    report()


if __name__ == "__main__":
    main()
