"""Paths of lambda and the automatic choice: its constraint, its cost, how far maps move, what they look like.

    python benchmarks/paths.py [--threads 2] [--seeds 7 8 9]

The eight sets of benchmarks/quality.py, on held-out seeds. Each run is a line of results/paths.jsonl.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from data import EIGHT, digits, paper_data, prepare
from report import RESULTS, Results, table, write
from scipy.spatial import procrustes

from drsne import DRSNE, metrics
from drsne.estimators.path import WEIGHTS
from drsne.optimize.defaults import PATH_RATE, PATH_STEP

# Part of each row, so that rows of another path are not mistaken for those of the current one.
PATH = {"weights": list(WEIGHTS), "step": PATH_STEP, "rate": PATH_RATE, "from": "a fit at the first weight"}
DROP = DRSNE().max_trustworthiness_drop
ROWS = Results("paths", "dataset", "seed", "path")


def moved(maps: list[np.ndarray]) -> list[float]:
    """Return the median displacement between successive aligned maps, as a share of the first one's span."""
    out = []
    for before, after in pairwise(maps):
        one, two, _ = procrustes(before, after)
        out.append(float(np.median(np.linalg.norm(one - two, axis=1)) / np.ptp(one, axis=0).max()))
    return out


def largest_gap(Y: np.ndarray, u: np.ndarray, *, by_count: bool = False) -> float:
    """Return the largest gap between the centroids of 200 bins along the Helix, in units of the median gap.

    Bins of equal width, or of equally many points: the latter grow wider where points are sparse, in the data as well.
    """
    bins = np.minimum((200 * u).astype(int), 199)
    if by_count:
        bins = np.argsort(np.argsort(u)) * 200 // len(u)
    steps = np.linalg.norm(np.diff([Y[bins == one].mean(axis=0) for one in np.unique(bins)], axis=0), axis=1)
    return float(steps.max() / np.median(steps))


def place_along(X: np.ndarray) -> np.ndarray:
    """Return the place of every point along the Helix, from 0 to 1, by its height."""
    height = X[:, 2]
    return (height - height.min()) / np.ptp(height)


def radii(Y: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the median distance from the centre of each of the Clusters in the map."""
    parts = [Y[labels == c] for c in np.unique(labels)]
    return [float(np.median(np.linalg.norm(part - np.median(part, axis=0), axis=1))) for part in parts]


def run(name: str, X: np.ndarray, seed: int, threads: int) -> dict:
    options = {"random_state": seed, "n_jobs": threads}
    seconds, models = {}, {}
    for label, weight in (("single", DRSNE().density_weight), ("auto", "auto"), ("plain", 0)):
        start = time.perf_counter()
        models[label] = DRSNE(density_weight=weight, **options).fit(X)
        seconds[label] = time.perf_counter() - start
    path, auto = models["auto"].path_, models["auto"]
    trust = {label: metrics.trustworthiness(X, model.embedding_) for label, model in models.items()}
    row = {
        "dataset": name,
        "seed": seed,
        "weight": auto.density_weight_,
        "seconds": seconds,
        "trustworthiness": trust,
        "baseline": path.baseline,
        "concentration_correlation": {
            label: metrics.concentration_correlation(X, model.embedding_, 29) for label, model in models.items()
        },
        "moved": moved(path.embeddings[1:]),  # the map at 0 is a baseline: no other map starts from it
        "path": PATH,
    }
    labels = paper_data(name).y
    if name == "helix":
        u, maps = place_along(X), {"data": X, **{label: model.embedding_ for label, model in models.items()}}
        row["gap"] = {label: largest_gap(Y, u) for label, Y in maps.items()}
        row["gap_by_count"] = {label: largest_gap(Y, u, by_count=True) for label, Y in maps.items()}
    if name == "controlled_clusters":
        row["radii"] = {label: radii(model.embedding_, labels) for label, model in models.items()}
    if seed == 7:
        figure = path.plot(labels, chosen=list(path.weights).index(auto.density_weight_))
        figure.savefig(RESULTS / f"path_{name}.png", dpi=70)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="*", default=[7, 8, 9])
    parser.add_argument("--datasets", nargs="*", choices=list(EIGHT), default=list(EIGHT))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "drsne-quality")
    options = parser.parse_args()
    rows = [row for row in ROWS.read() if row["path"] == PATH]
    there = {(row["dataset"], row["seed"]) for row in rows}
    DRSNE(density_weight="auto", max_trustworthiness_drop=1.0, max_iter=50).fit(digits())  # compiles the kernels
    for name, path in prepare(options.datasets, options.folder).items():
        X = np.load(path)
        for seed in options.seeds:
            if (name, seed) not in there:
                print(f"{name}, seed {seed} ...", flush=True)
                rows.append(ROWS.append(run(name, X, seed, options.threads)))
    report(rows)


def report(rows: list[dict]) -> None:
    lines = []
    for name in EIGHT:
        some = [row for row in rows if row["dataset"] == name]
        if not some:
            continue
        drop = [row["trustworthiness"]["plain"] - row["trustworthiness"]["auto"] for row in some]
        own = [row["baseline"] - row["trustworthiness"]["auto"] for row in some]
        cc = [
            np.mean([row["concentration_correlation"][label] for row in some]) for label in ("plain", "single", "auto")
        ]
        ratio = [row["seconds"]["auto"] / row["seconds"]["single"] for row in some]
        lines.append(
            [
                EIGHT[name],
                ", ".join(f"{row['weight']:g}" for row in some),
                f"{max(drop):+.4f}",
                f"{max(own):+.4f}",
                " / ".join(f"{value:.3f}" for value in cc),
                f"{max(ratio):.2f}",
                f"{100 * max(max(row['moved']) for row in some):.1f} %",
            ]
        )
    header = ["data", "lambda chosen", "largest TW drop", "against the path's own map at 0"]
    header += ["CC at 0 / default / auto", "largest time ratio", "largest median move"]
    shapes = []
    for row in rows:
        if "gap" in row:
            gaps, counted = (
                ", ".join(f"{label} {value:.2f}" for label, value in row[key].items())
                for key in ("gap", "gap_by_count")
            )
            shapes.append(
                f"- Helix, seed {row['seed']}: largest gap over median gap between the centroids of 200 bins of u, of "
                f"equal width: {gaps}; of equally many points: {counted}"
            )
        if "radii" in row:
            sizes = "; ".join(
                f"{label} {', '.join(f'{r:.2f}' for r in value)}" for label, value in row["radii"].items()
            )
            shapes.append(f"- Clusters, seed {row['seed']}: median map radii for sigma = .2, .5, 1: {sizes}")
    write(
        "paths",
        "Paths of lambda",
        "python benchmarks/paths.py",
        f'`density_weight="auto"` with the constraint of {DROP:g} in trustworthiness (TW) and continuity, on held-out '
        "seeds: the drop is against a fit at lambda = 0; the time is that of a whole automatic fit, scores included, "
        "divided by that of a fit with the default weight; a move is the median displacement between neighbouring "
        "maps of the path after Procrustes alignment, over the span of the map.",
        table(header, lines),
        "\n".join(shapes),
        "\n\n".join(f"![{p.stem}]({p.name})" for p in sorted(RESULTS.glob("path_*.png"))),
        rows=rows,
    )


if __name__ == "__main__":
    main()
