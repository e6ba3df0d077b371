"""The study behind the default: kernel, schedule of its scale, neighbourhoods, weight and winsorised target.

    python benchmarks/kernel.py --data FOLDER [--jobs 2] [--settings ...] [--sets ...] [--seeds ...]
    python benchmarks/kernel.py --report

The rule, written down before the rows of results/kernel.jsonl were made. A setting qualifies if all of the following
hold for means over the seeds 0, 1 and 2 of the fit:

- on each of the eight sets, trustworthiness and continuity are at most .0075 below those of plain t-SNE, three
  quarters of the .01 that we allow, so that other seeds stay within it;
- the groups of the families "three" and "six" (data seeds 0 to 9, fit seed 0) and of Controlled Clusters (fit seeds 0
  to 2 and 10 to 18, because its counts vary more between seeds than the bound is wide) have on average at most 0.5
  pieces more than plain t-SNE's, each family and Clusters by itself;
- the Helix is not torn: no jump along its height in any of the three maps (``tears``);
- a group of 14 points with three times the standard deviation of the sparsest group is not drawn tighter than the
  other groups: its median 5-neighbour distance in the map is at least the median of theirs;
- the full range of the map is at most twice its 1-99 % range on each of the eight sets.

Among those that qualify, the default is the setting with the largest mean of CC, rho30 and rho5 over the eight sets;
ties within .002 go to the smaller weight, then to the shorter time. Schedules are compared by the same rule, at
weight 1 with both neighbourhoods. The data sets called "further" are reported and choose nothing. The figures that
are published come from the seeds 3, 4 and 5 (``benchmarks/quality.py``, and ``--seeds 3 4 5`` here for the pieces).

What came before. Two earlier schedules were tried in the same way, and their rows are in results/kernel_earlier.jsonl.
With them Clusters had three to seven pieces more than plain t-SNE on twelve seeds, and a kernel that adapts from the
first iteration tore the Helix twice in every map. Both were learned from the seeds 0 to 2 and 10 to 18, so the
schedules that are compared here were proposed after seeing these seeds. The seeds 3 to 5 played no part.

Each map is a line of results/kernel.jsonl, written when it is scored: a killed study goes on where it stopped. FOLDER
holds the eight sets as .npy files, as ``benchmarks/quality.py --prepare`` makes them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from families import MADE, pieces
from joblib import Parallel, delayed
from report import RESULTS

Array = np.ndarray
ROWS = RESULTS / "kernel.jsonl"
EIGHT = ("Digits", "Fashion-MNIST", "MNIST", "4-Gaussians-50-d", "PBMC", "Shuttle", "Clusters", "Helix")
FAMILIES = tuple(f"{family}-{seed}" for family in ("three", "six") for seed in range(10))
SMALL = tuple(f"three-and-14-{seed}" for seed in range(3)) + tuple(f"three-and-14-apart-{seed}" for seed in range(3))
FURTHER = ("twenty", "rings", "swiss", "Covertype", "CIFAR-10")
CHOOSING, REPORTED = (0, 1, 2), (3, 4, 5)
MORE = tuple(range(10, 19))  # further fit seeds of Clusters
FIVE = ("trustworthiness", "continuity", "cc", "rho30", "rho5")

# Iterations: early exaggeration, plain t-SNE, density term. The exaggeration is released gradually over the first
# iterations of the second part. "growth" says when the scale of the kernel grows, "ramp" over how many iterations.
CHOSEN = {"growth": "ramp", "ramp": 125, "iterations": [75, 825, 100], "release": 175}
BASE = {"kernel": "adaptive", "neighborhoods": "both", "weight": 1.0, "quantile": 0.01, "local": True, **CHOSEN}
SCHEDULES: dict[str, dict[str, Any]] = {
    "grows over 125 iterations": BASE,
    "grows over 60 iterations": {**BASE, "ramp": 60},
    "grows over 175 iterations": {**BASE, "ramp": 175},
    "density term in 150 iterations": {**BASE, "iterations": [75, 775, 150]},
    "half the rate": {**BASE, "rate": 1.0},
    "steps in map units": {**BASE, "local": False},
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "plain t-SNE": {"kernel": "fixed", "weight": 0.0},
    "default before": {"kernel": "fixed", "neighborhoods": "input", "weight": 2.1, "quantile": 0.0},
    "fixed kernel, both, 1": {"kernel": "fixed", "neighborhoods": "both", "weight": 1.0, "quantile": 0.0},
    "both, 0.6": {**BASE, "weight": 0.6},
    "both, 1": BASE,
    "both, 1.5": {**BASE, "weight": 1.5},
    "input, 1": {**BASE, "neighborhoods": "input"},
    "embedding, 1": {**BASE, "neighborhoods": "embedding"},
    "both, 1, no clip": {**BASE, "quantile": 0.0},
    "both, 1, clip 0.5 %": {**BASE, "quantile": 0.005},
    "both, 1, clip 2 %": {**BASE, "quantile": 0.02},
}
SETTINGS = {**SCHEDULES, **OBJECTIVES}


def load(name: str, folder: Path) -> tuple[Array, Array | None]:
    """Return a data set and the group of every point, where it has groups."""
    family, _, seed = name.rpartition("-")
    if family in MADE:
        return MADE[family](int(seed))
    if name in MADE:
        return MADE[name](0)
    groups = np.repeat([0, 1, 2], [1667, 1667, 1666]) if name == "Clusters" else None
    X = np.load(folder / f"{name}.npy")
    return X, np.zeros(len(X), dtype=int) if name == "Helix" else groups


def tears(X: Array, Y: Array) -> int:
    """Count the places where the map of the Helix jumps, of 250 bins of equal counts along its height.

    A jump is a step between the centres of successive bins of more than six times the median step of the ten bins on
    either side.
    """
    centres = np.array([Y[bin].mean(axis=0) for bin in np.array_split(np.argsort(X[:, 2]), 250)])
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    usual = [np.median(steps[max(0, i - 10) : i + 11]) for i in range(len(steps))]
    return int((steps > 6 * np.array(usual)).sum())


def scores(X: Array, Y: Array, groups: Array | None, quantile: float) -> dict[str, Any]:
    """Return the five scores of a map, its range, the contrast that it shows and the pieces of the groups."""
    from sklearn.neighbors import NearestNeighbors

    from drsne import metrics

    Y = np.asarray(Y, dtype=np.float64)
    row: dict[str, Any] = {
        "trustworthiness": metrics.trustworthiness(X, Y, 10),
        "continuity": metrics.continuity(X, Y, 10),
        "cc": metrics.concentration_correlation(X, Y, 29),
        "rho30": metrics.density_rank_correlation(X, Y, 30),
        "rho5": metrics.density_rank_correlation(X, Y, 5),
    }
    low, high = np.quantile(Y, 0.01, axis=0), np.quantile(Y, 0.99, axis=0)
    row["range"] = float((np.ptp(Y, axis=0) / (high - low)).max())

    def log_distance(A: Array) -> Array:
        return np.log(NearestNeighbors(n_neighbors=31).fit(A).kneighbors(A)[0][:, -1])

    data = log_distance(X)
    data = np.clip(data, *np.quantile(data, (0.01, 0.99)))
    row["contrast"] = float(log_distance(Y).std() / data.std())
    if groups is not None:
        row["pieces"] = pieces(Y, groups)
        if groups.max() == 3 and (groups == 3).sum() == 14:
            fifth = NearestNeighbors(n_neighbors=6).fit(Y).kneighbors(Y)[0][:, -1]
            row["fifth"] = [float(np.median(fifth[groups == group])) for group in range(4)]
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()}


def model(setting: dict[str, Any], n: int, seed: int, neighbors: Any) -> Any:
    """Return the estimator of a setting."""
    from drsne import DRSNE, Objective
    from drsne.objectives.drsne import NEIGHBORHOODS
    from drsne.presets import default_schedule

    weight, adaptive = setting["weight"], setting["kernel"] == "adaptive"
    reading = NEIGHBORHOODS[setting.get("neighborhoods", "input")]
    contrasted = adaptive or reading.contrasted
    objective = Objective(
        kernel=setting["kernel"],
        input_weight=reading.input_weight,
        embedding_weight=reading.embedding_weight,
        input_exponent="auto" if contrasted else 1.0,
        target_quantile=setting.get("quantile", 0.0),
    )
    schedule = default_schedule(
        n,
        max_iter=1000,
        n_iter_exaggeration=250,
        early_exaggeration=12.0,
        learning_rate="auto",
        density=weight > 0,
    )
    if adaptive:
        phases = zip(schedule.phases, setting["iterations"], strict=True)
        early, plain, last = (replace(phase, n_iter=n_iter) for phase, n_iter in phases)
        adam = replace(last.optimizer, rate=setting.get("rate", 2.0))
        last = replace(last, ramp=round(0.3 * last.n_iter), optimizer=adam)
        plain = replace(plain, exaggeration_from=12.0, release=setting["release"])
        growth = setting["growth"]
        if growth != "start":
            early = replace(early, scale=0.0)
        if growth == "ramp":
            plain = replace(plain, scale_ramp=setting.get("ramp", 125))
        elif growth == "density":
            plain, last = replace(plain, scale=0.0), replace(last, scale_ramp=last.ramp)
        schedule = replace(schedule, phases=(early, plain, last), local_steps=setting["local"])
    return DRSNE(
        density_weight=weight,
        objective=objective,
        schedule=schedule,
        neighbors=neighbors,
        keep_affinities=False,
        random_state=seed,
    )


def run(name: str, label: str, seed: int, folder: Path, rows: Path, maps: Path | None) -> None:
    warnings.simplefilter("ignore")
    from drsne.neighbors.search import knn

    X, groups = load(name, folder)
    setting = SETTINGS[label]
    kept = folder / "neighbors" / f"{name}.npz"
    if kept.exists():
        with np.load(kept) as file:
            neighbors = (file["indices"], file["distances"])
    else:
        neighbors = tuple(knn(X, 90))
    start = time.perf_counter()
    fitted = model(setting, len(X), seed, neighbors).fit(X)
    seconds = time.perf_counter() - start
    row = {"set": name, "setting": setting, "seed": seed, **scores(X, fitted.embedding_, groups, 0.01)}
    row |= {"kl": round(fitted.kl_divergence_, 5), "seconds": round(seconds, 2)}
    if name == "Helix":
        row["tears"] = tears(X, fitted.embedding_)
    if maps is not None:
        maps.mkdir(exist_ok=True)
        np.save(maps / f"{name}_{label.replace(' ', '-')}_{seed}.npy", fitted.embedding_.astype(np.float32))
    with rows.open("a") as file:
        file.write(json.dumps(row) + "\n")


def key(name: str, setting: dict[str, Any], seed: int) -> str:
    return json.dumps([name, seed, setting], sort_keys=True)


def read() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def seeds_of(name: str, seeds: list[int]) -> list[int]:
    """Return the fit seeds of a data set; the families differ by the seed of the data."""
    if name not in EIGHT:
        return [0]
    return [*seeds, *MORE] if name == "Clusters" and tuple(seeds) == CHOOSING else seeds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, nargs="*", default=list(CHOOSING))
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--sets", nargs="*", default=[*EIGHT, *FAMILIES, *SMALL, *FURTHER])
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--maps", type=Path)
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further map after so many minutes")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        there = {key(row["set"], row["setting"], row["seed"]) for row in read()}
        jobs = []
        for label, name in product(options.settings, options.sets):
            made = name in FAMILIES + SMALL or name in MADE
            for seed in seeds_of(name, options.seeds) if made or (options.data / f"{name}.npy").exists() else ():
                this = key(name, SETTINGS[label], seed)
                if this not in there:
                    there.add(this)
                    jobs.append((name, label, seed, options.data, options.rows, options.maps))
        until = time.time() + 60 * options.minutes

        def guarded(job: tuple[Any, ...]) -> None:
            if time.time() < until:
                run(*job)

        Parallel(n_jobs=options.jobs, verbose=1)(delayed(guarded)(job) for job in jobs)
    if options.rows == ROWS:
        from kernel_report import report

        report()


if __name__ == "__main__":
    main()
