"""Compare DenSNE with den-SNE's own program: its settings, those with accurate forces, and our default.

    python benchmarks/densne.py [--sets digits clusters helix] [--jobs 1]
    python benchmarks/densne.py --report     write only the tables

The program's figures are in densne_check.json, with their source. Each fit is a line of results/densne.jsonl, written
when it is scored: a killed study continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import clusters, digits, helix
from joblib import Parallel, delayed
from report import Results, table, write

from drsne import DenSNE, metrics
from drsne.presets import densne

CHECK = json.loads((Path(__file__).parent / "densne_check.json").read_text())
ROWS = Results("densne", "dataset", "settings", "lambda", "seed")
SETTINGS = ("preset", "accurate", "default")  # the preset, the same with the engine "auto", our default
SETS = {"digits": (digits, 3), "clusters": (lambda: clusters(5000), 2), "helix": (lambda: helix(5000), 2)}  # seeds
LAMBDAS = (0.0, 0.1, 0.5, 1.0)
# Scores by their names in densne_check.json: heading, and the largest difference from the program that we allow.
SCORES = {
    "trustworthiness_10": ("TW", 0.02),
    "rho_S_30": ("rho_S", 0.02),
    "rho_objective": ("rho", 0.03),
    "CC_29": ("CC", 0.03),  # Digits only: it is decided by where maps tear
    "KL_final": ("KL", None),
}


def fit(X: np.ndarray, name: str, lam: float, seed: int) -> DenSNE:
    settings = {"density_weight": lam} if name == "default" else densne(len(X), lam)
    if name == "accurate":
        settings["engine"] = "auto"
    return DenSNE(**settings, random_state=seed, keep_affinities=False).fit(X)


def run(dataset: str, name: str, lam: float, seed: int) -> None:
    X = SETS[dataset][0]()
    start = time.perf_counter()
    model = fit(X, name, lam, seed)
    seconds = time.perf_counter() - start
    Y = model.embedding_
    row = {
        "dataset": dataset,
        "settings": name,
        "lambda": lam,
        "seed": seed,
        "trustworthiness_10": metrics.trustworthiness(X, Y, 10),
        "rho_S_30": metrics.density_rank_correlation(X, Y, 30),
        "rho_objective": model.correlation_,
        "CC_29": metrics.concentration_correlation(X, Y, 29),
        "KL_final": model.kl_divergence_,
        "seconds": {"total": round(seconds, 5)},
    }
    row = {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}
    print(ROWS.append(row), flush=True)


def program(dataset: str, lam: float, init: str = "given") -> dict[str, Any] | None:
    """Return the program's numbers, from the runs without its error in distances if there are any."""
    found = {
        row["build"]: row
        for row in CHECK["summary"]
        if (row["dataset"], row["init"], row["lambda"]) == (dataset, init, lam)
    }
    return found.get("distance_fixed", found.get("official"))


def ours(rows: list[dict[str, Any]], dataset: str, name: str, lam: float, score: str) -> float:
    some = [row for row in rows if (row["dataset"], row["settings"], row["lambda"]) == (dataset, name, lam)]
    values = [row["seconds"]["total"] if score == "seconds" else row[score] for row in some]
    return float(np.mean(values)) if values else float("nan")


def figure(entry: dict[str, float | None] | None) -> str:
    """Return the mean and, for several runs, the standard deviation."""
    if entry is None:
        return "-"
    return f"{entry['mean']:.3f}" + (f" ± {entry['std']:.3f}" if entry["std"] is not None else "")


def cell(score: str, theirs: dict[str, Any], value: float, dataset: str) -> str:
    """Return our mean, its difference from the program's, and a mark if the difference is too large."""
    if theirs[score] is None:
        return f"{value:.3f}"
    gap, allowed = value - theirs[score]["mean"], SCORES[score][1]
    if allowed is None or (score == "CC_29" and dataset != "digits"):
        return f"{value:.3f} ({gap:+.3f})"
    return f"{value:.3f} ({gap:+.3f}{'' if abs(gap) <= allowed else ', **out**'})"


def validation(rows: list[dict[str, Any]]) -> list[list[str]]:
    out = []
    for dataset in SETS:
        for lam in LAMBDAS:
            theirs = program(dataset, lam)
            build = "mended" if theirs["build"] == "distance_fixed" else "as published"
            means = [figure(theirs[s]) for s in SCORES]
            out.append([dataset, f"{lam:g}", f"program, {build}", *means, f"{theirs['wall_s']['mean']:.0f}"])
            for name, label in (("preset", "our preset"), ("accurate", "our preset, accurate")):
                values = [cell(s, theirs, ours(rows, dataset, name, lam, s), dataset) for s in SCORES]
                out.append(["", "", label, *values, f"{ours(rows, dataset, name, lam, 'seconds'):.0f}"])
    return out


def defaults(rows: list[dict[str, Any]]) -> list[list[str]]:
    out = []
    for dataset in SETS:
        for lam in LAMBDAS:
            for init in ("given", "program"):
                theirs = program(dataset, lam, init)
                if theirs:
                    start = "given start" if init == "given" else "own start"
                    means = [figure(theirs[s]) for s in SCORES]
                    seconds = f"{theirs['wall_s']['mean']:.0f}"
                    out.append([dataset, f"{lam:g}", f"program, {start}", *means, seconds])
            values = [f"{ours(rows, dataset, 'default', lam, s):.3f}" for s in SCORES]
            seconds = f"{ours(rows, dataset, 'default', lam, 'seconds'):.0f}"
            out.append([dataset, f"{lam:g}", "DenSNE()", *values, seconds])
    return out


def at_equal_trust(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return our default with the largest rho_S among maps at least as trustworthy as the program's."""
    out = []
    for dataset in SETS:
        for lam in LAMBDAS[1:]:
            theirs = program(dataset, lam)
            trust, density = theirs["trustworthiness_10"]["mean"], theirs["rho_S_30"]["mean"]
            means = [
                [ours(rows, dataset, "default", w, s) for s in ("rho_S_30", "trustworthiness_10")] for w in LAMBDAS
            ]
            able = [(*pair, w) for pair, w in zip(means, LAMBDAS, strict=True) if pair[1] >= trust]
            best = (
                [f"{value:g}" if at == 2 else f"{value:.4f}" for at, value in enumerate(max(able))] if able else "---"
            )
            out.append([dataset, f"{lam:g}", f"{trust:.4f}", f"{density:.4f}", best[2], best[1], best[0]])
    return out


def report() -> None:
    rows = ROWS.read()
    header = ["data", "lambda", "", *(name for name, _ in SCORES.values()), "seconds"]
    allowed = ", ".join(f"{name} {limit:g}" for name, limit in SCORES.values() if limit)
    shares = ", ".join(
        f"{name} {100 * entry['fraction_of_points']:.0f} % (Pearson {entry['pearson']:.3f})"
        for name, entry in CHECK["distances_altered"].items()
    )
    write(
        "densne",
        "DenSNE compared with den-SNE's program",
        "python benchmarks/densne.py",
        f"Source of the program's figures: {CHECK['source']} (`benchmarks/densne_check.json`). Perplexity 30, 800 "
        "iterations, the density term in the last half, a given random start (1e-4 RandomState(seed).randn) and hence "
        "no early exaggeration; seeds 0 to 2 on Digits, 0 and 1 on the others. TW: trustworthiness over 10 neighbours; "
        "rho_S: rank correlation of the distance to the 30th neighbour; rho: the correlation of the objective; CC: "
        "concentration correlation over 29 neighbours. Seconds: one thread of a machine that others used too, for "
        "both; indicative only.",
        "Rows *as published* carry the program's slip, which writes some squared distances into the next point's row. "
        f"It alters the log radius of many points: {shares}, the correlation being that with the true ones. At lambda "
        "= 0 it plays no part. Rows *mended* are of the same program without it. We do not repeat it, so the rows of "
        "clusters and helix at lambda .1 and 1 compare two slightly different targets (on the helix, where both were "
        "run, correcting it moves rho by +.012 and rho_S by +.014 at lambda = .5).",
        f"## The program's settings\n\nIn brackets the difference from the program; allowed: {allowed} (CC on Digits "
        "only: elsewhere it is decided by where a map without exaggeration tears). Larger ones are marked **out**.\n\n"
        '*Our preset* is what `DenSNE(**presets.densne(...))` gives. Its engine, "coarse", sums the repulsion as the '
        "program does at theta = .5, where cells count whose side is as long as their distance. On a Gaussian cloud of "
        "1797 points and standard deviation 20 that takes 5 % from the partition sum and 13 % from the outward force, "
        'and maps come out with a larger KL divergence. *Accurate* is the same descent with the engine "auto".',
        table(header, validation(rows)),
        "## Our default\n\nPrincipal components as the start, early exaggeration, Adam with a falling rate in the "
        "density phase, 1000 iterations. The program's *own start* has exaggeration too (one run: its seed is fixed).",
        table(header, defaults(rows)),
        "At equal lambda our default is at least as trustworthy everywhere and has the smaller KL divergence. Its "
        "rho_S is larger on the helix, and with the density term smaller on the two others, where the program's weak "
        "repulsion adds to it (compare *accurate* above). No schedule that was tried (on Digits at lambda .1, .5 and "
        "1 and on Clusters of 2,500 points at .5 and 1: longer density phases, momentum, other rates and ramps) moved "
        "it by more than .013. Of our four maps, the one with the largest rho_S that is as trustworthy as the "
        "program's (given start):",
        table(["data", "program's lambda", "its TW", "its rho_S", "our lambda", "TW", "rho_S"], at_equal_trust(rows)),
        rows=rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--settings", nargs="*", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        done = {(row["dataset"], row["settings"], row["lambda"], row["seed"]) for row in ROWS.read()}
        jobs = [
            (dataset, name, lam, seed)
            for dataset in options.sets
            for name in options.settings
            for lam in LAMBDAS
            for seed in range(SETS[dataset][1])
            if (dataset, name, lam, seed) not in done
        ]
        Parallel(n_jobs=options.jobs)(delayed(run)(*job) for job in jobs)
    report()


if __name__ == "__main__":
    main()
