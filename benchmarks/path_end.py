"""Find the last weight of the default path.

    python benchmarks/path_end.py [--jobs 16] [--folder FOLDER] [--rows FILE] [--datasets helix] [--seeds 0 1 2]

The rule: above a weight of 70, each weight is twice the previous one. The path ends at the first weight whose double
raises the concentration correlation (29 neighbours, mean over seeds 0, 1 and 2 and over the eight data sets of
benchmarks/quality.py) by less than .0001. At the end of the path, the map thus shows density as well as it can. The
rule uses no scores of other methods, but it was stated after similar maps, with 100 iterations at each weight, had been
compared with them.

The program follows a path to a weight of 2240 and prints the scores of all maps. It writes results/path_end.md if all
data sets and seeds have been run. TW is trustworthiness at 10 neighbours, CC is the concentration correlation at 29
neighbours, and rho30 and rho5 are the density rank correlations at 30 and 5 neighbours. The range is the full range of
the map divided by its 1-99 % range. It is large if a few points lie far outside.

Each path is a line of the file of --rows, written when it is scored: a killed run continues where it stopped. The
folder of --folder can hold the data as <title>.npy, or as <title>-raw.npz with an array X that is standardised, with
"-" for the spaces of the title. Other data sets are loaded as in benchmarks/quality.py.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from data import EIGHT, paper_data
from joblib import Parallel, delayed, parallel_config
from report import RESULTS, table, write

from drsne import density_path, metrics
from drsne.estimators.path import WEIGHTS
from drsne.terms.objective import PROFILE_WEIGHT
from drsne_paper.datasets import recipes
from drsne_paper.rows import Row, Rows, key, provenance

PATH = (*(weight for weight in WEIGHTS if weight <= PROFILE_WEIGHT), 140.0, 280.0, 560.0, 1120.0, 2240.0)
SEEDS = (0, 1, 2)
LEAST = 1e-4  # rise of the mean concentration correlation from a weight to the next, before the end of the path
COLUMNS = {"concentration_correlation": "CC", "trustworthiness": "TW", "rho30": "rho30", "rho5": "rho5"}


def load(name: str, folder: Path) -> np.ndarray:
    """Return one of the EIGHT, from a file in the folder if there is one."""
    stem = EIGHT[name].replace(" ", "-")
    if (folder / f"{stem}.npy").exists():
        return np.load(folder / f"{stem}.npy").astype(np.float64)
    if (folder / f"{stem}-raw.npz").exists():
        with np.load(folder / f"{stem}-raw.npz") as arrays:
            return recipes.standardise(arrays["X"].astype(np.float64))
    return np.asarray(paper_data(name).X, np.float64)


def scores(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    """Return the scores of a map, and its full range divided by its 1-99 % range."""
    low, high = np.quantile(Y, (0.01, 0.99), axis=0)
    return {
        "trustworthiness": float(metrics.trustworthiness(X, Y, 10)),
        "concentration_correlation": float(metrics.concentration_correlation(X, Y, 29)),
        "rho30": float(metrics.density_rank_correlation(X, Y, 30)),
        "rho5": float(metrics.density_rank_correlation(X, Y, 5)),
        "range": float(np.ptp(Y, axis=0).max() / (high - low).max()),
    }


def key_of(name: str, seed: int) -> str:
    return key({"study": "path_end", "dataset": name, "seed": seed, "weights": list(PATH)})


def follow(name: str, seed: int, folder: Path, rows: Path) -> None:
    """Score the maps of a path, and add them to the file of rows."""
    warnings.simplefilter("ignore")
    X, start = load(name, folder), time.perf_counter()
    path = density_path(X, PATH, random_state=seed, n_jobs=1)
    maps = {f"{weight:g}": scores(X, Y) for weight, Y in zip(path.weights, path.embeddings, strict=True)}
    row = {"key": key_of(name, seed), "study": "path_end", "dataset": name, "seed": seed, "maps": maps, **provenance()}
    Rows(rows).append([{**row, "seconds": {"total": time.perf_counter() - start}}])
    print(f"{EIGHT[name]}, seed {seed}: {time.perf_counter() - start:.0f} s", flush=True)


def means(rows: list[Row], name: str) -> dict[float, dict[str, float]]:
    """Return the mean scores of a data set at every weight."""
    some = [row["maps"] for row in rows if row["dataset"] == name]
    weights = [weight for weight in PATH if all(f"{weight:g}" in maps for maps in some)]
    names = (*COLUMNS, "range")
    return {weight: {one: float(np.mean([m[f"{weight:g}"][one] for m in some])) for one in names} for weight in weights}


def end(of_sets: dict[str, dict[float, dict[str, float]]]) -> float | None:
    """Return the first weight above 70 that meets the rule, or None."""
    reached = [weight for weight in PATH if all(weight in scored for scored in of_sets.values())]
    mean = {w: np.mean([scored[w]["concentration_correlation"] for scored in of_sets.values()]) for w in reached}
    for weight, following in pairwise(reached):
        if weight > PROFILE_WEIGHT and mean[following] - mean[weight] < LEAST:
            return weight
    return None


def report(rows: list[Row], names: list[str], seeds: list[int]) -> None:
    """Print the scores and the end of the path, and write them if nothing is missing."""
    of_sets = {name: means(rows, name) for name in names if any(row["dataset"] == name for row in rows)}
    lines = [
        [EIGHT[name], f"{weight:g}", *(f"{one[score]:.4f}" for score in COLUMNS), f"{one['range']:.2f}"]
        for name, scored in of_sets.items()
        for weight, one in scored.items()
    ]
    found = end(of_sets)
    verdict = "No weight of the path meets the rule." if found is None else f"The path ends at {found:g}."
    header = ["data", "weight", *COLUMNS.values(), "range"]
    of = f"Means over seeds {', '.join(map(str, seeds))}."
    complete = len(rows) == len(EIGHT) * len(SEEDS)
    print(f"{of} {'' if complete else 'On these data only: '}{verdict}\n\n{table(header, lines)}\n", flush=True)
    if complete:
        rule = (__doc__ or "").split("\n\n")[2].replace("\n", " ")
        title, command = "The end of the path", "python benchmarks/path_end.py"
        write("path_end", title, command, rule, f"{of} **{verdict}**", table(header, lines), rows=rows)


def main() -> None:
    """Follow the missing paths and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, with one thread each")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "drsne-quality")
    parser.add_argument("--rows", type=Path, default=RESULTS / "path_end.jsonl", help="file of results")
    parser.add_argument("--datasets", nargs="+", choices=list(EIGHT), default=list(EIGHT))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    options = parser.parse_args()
    every = {key_of(name, seed): (name, seed) for name in options.datasets for seed in options.seeds}
    there = {row["key"] for row in Rows(options.rows).read()}
    with parallel_config(backend="loky", inner_max_num_threads=1):
        missing = [job for one, job in every.items() if one not in there]
        missing.sort(key=lambda job: job[0] == "digits")  # the smallest data set last
        Parallel(n_jobs=options.jobs, batch_size=1)(
            delayed(follow)(*job, options.folder, options.rows) for job in missing
        )
    report([row for row in Rows(options.rows).read() if row["key"] in every], options.datasets, options.seeds)


if __name__ == "__main__":
    main()
