"""The study behind the default: kernel, schedule of its scale, neighbourhoods, weight and winsorised target.

    python benchmarks/kernel.py [--jobs 2] [--settings ...] [--datasets ...] [--seeds ...]
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

Each map is a line of results/kernel.jsonl, in the format of the studies of the paper (``drsne_paper.rows``),
written when it is scored: a killed study continues where it stopped.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import EIGHT as TITLES
from data import paper_data
from families import MADE, pieces
from report import RESULTS

from drsne_paper import Rows, Study, datasets, run
from drsne_paper.methods import Method, Run, Workspace

Array = np.ndarray
ROWS = RESULTS / "kernel.jsonl"


class Place(NamedTuple):
    """A data set, and the seed with which it is generated if it is one of a family."""

    dataset: str
    data_seed: int | None = None


EIGHT = tuple(Place(name) for name in TITLES)
CLUSTERS, HELIX = Place("controlled_clusters"), Place("helix")
FAMILIES = tuple(Place(family, seed) for family in ("three", "six") for seed in range(10))
SMALL = tuple(Place(family, seed) for family in ("three-and-14", "three-and-14-apart") for seed in range(3))
FURTHER = tuple(Place(name, 0) for name in ("twenty", "rings", "swiss"))
CHOOSING, REPORTED = (0, 1, 2), (3, 4, 5)
MORE = tuple(range(10, 19))  # further fit seeds of Clusters
SCORES = {
    "trustworthiness": 10,
    "continuity": 10,
    "concentration_correlation": 29,
    "density_rank_correlation": 30,
    "local_density_rank_correlation": 5,
}

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
    "700 iterations, momentum 0.9": {**BASE, "iterations": [75, 525, 100], "momentum": 0.9},
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


def kernel_data(name: str, *, seed: int | None = None) -> Any:
    """Return a data set; ``y`` is the group of every point if it has groups that are counted."""
    if name in MADE:
        X, groups = MADE[name](seed or 0)
        return datasets.Data(X=X, y=groups, name=name, description="", source="benchmarks/families.py")
    data = paper_data(name)
    if name == HELIX.dataset:
        return replace(data, y=np.zeros(len(data.X), dtype=int))
    return data if name == CLUSTERS.dataset else replace(data, y=None)


def tears(X: Array, Y: Array) -> int:
    """Count the places where the map of the Helix jumps, of 250 bins of equal counts along its height.

    A jump is a step between the centres of successive bins of more than six times the median step of the ten bins on
    either side.
    """
    centres = np.array([Y[bin].mean(axis=0) for bin in np.array_split(np.argsort(X[:, 2]), 250)])
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    usual = [np.median(steps[max(0, i - 10) : i + 11]) for i in range(len(steps))]
    return int((steps > 6 * np.array(usual)).sum())


def shape(dataset: str, X: Array, Y: Array, groups: Array | None) -> dict[str, Any]:
    """Return the range of a map, the contrast that it shows, the pieces of its groups and the tears of the Helix."""
    from sklearn.neighbors import NearestNeighbors

    def log_distance(A: Array) -> Array:
        return np.log(NearestNeighbors(n_neighbors=31).fit(A).kneighbors(A)[0][:, -1])

    low, high = np.quantile(Y, 0.01, axis=0), np.quantile(Y, 0.99, axis=0)
    data = log_distance(X)
    data = np.clip(data, *np.quantile(data, (0.01, 0.99)))
    out: dict[str, Any] = {
        "range": float((np.ptp(Y, axis=0) / (high - low)).max()),
        "contrast": float(log_distance(Y).std() / data.std()),
    }
    if groups is not None:
        out["pieces"] = pieces(Y, groups)
        if groups.max() == 3 and (groups == 3).sum() == 14:
            fifth = NearestNeighbors(n_neighbors=6).fit(Y).kneighbors(Y)[0][:, -1]
            out["fifth"] = [float(np.median(fifth[groups == group])) for group in range(4)]
    if dataset == HELIX.dataset:
        out["tears"] = tears(X, Y)
    return out


def model(setting: dict[str, Any], n: int, seed: int, neighbors: Any) -> Any:
    """Return the estimator of a setting."""
    from drsne import DRSNE, Objective
    from drsne.presets import default_schedule
    from drsne.terms.objective import NEIGHBORHOODS

    weight, adaptive = setting["weight"], setting["kernel"] == "adaptive"
    reading = NEIGHBORHOODS[setting.get("neighborhoods", "input")]
    objective = Objective(
        kernel=setting["kernel"],
        input_weight=reading.input,
        embedding_weight=reading.embedding,
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
        descent = replace(plain.optimizer, momentum=setting.get("momentum", plain.optimizer.momentum))
        plain = replace(plain, exaggeration_from=12.0, release=setting["release"], optimizer=descent)
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


def maps(workspace: Workspace, values: Sequence[Mapping[str, Any]], seed: int) -> Iterator[Run]:
    """Yield the map of each setting."""
    import time

    graph, searching = workspace.neighbors(90)
    for setting in values:
        start = time.perf_counter()
        fitted = model(dict(setting), len(workspace.X), seed, tuple(graph)).fit(workspace.X)
        seconds = {"neighbors": searching, "optimization": time.perf_counter() - start}
        yield Run(setting, np.asarray(fitted.embedding_, dtype=np.float64), seconds, {"kl": fitted.kl_divergence_})


METHOD = Method(title="DR-SNE", parameter="setting", maps=maps)


def part(place: Place, settings: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> Study:
    """Return the runs of some settings on one data set."""
    return Study(
        name="kernel",
        datasets=(place.dataset,),
        data_params={} if place.data_seed is None else {"seed": place.data_seed},
        methods=("drsne",),
        seeds=tuple(seeds),
        scores=tuple(SCORES.items()),
        data=kernel_data,
        grids={"drsne": tuple(settings)},
        variants={"drsne": METHOD},
        extra=shape,
    )


def seeds_of(place: Place, seeds: Sequence[int]) -> tuple[int, ...]:
    """Return the fit seeds of a data set; the families differ by the seed of the data."""
    if place.data_seed is not None:
        return (0,)
    return (*seeds, *MORE) if place == CLUSTERS and tuple(seeds) == CHOOSING else tuple(seeds)


def read(path: Path = ROWS) -> list[dict[str, Any]]:
    """Return the results: setting, place and seed, with all scores and other numbers."""
    out = []
    for row in Rows(path).read():
        place = Place(row["dataset"], row.get("data", {}).get("seed"))
        out.append({"place": place, "setting": row["value"], "seed": row["seed"], **row["metrics"], **row["details"]})
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, nargs="*", default=list(CHOOSING))
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--datasets", nargs="*", help="only these data sets and families")
    parser.add_argument("--maps", type=Path)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        every = (*EIGHT, *FAMILIES, *SMALL, *FURTHER)
        places = [place for place in every if place.dataset in (options.datasets or [place.dataset])]
        settings = [SETTINGS[label] for label in options.settings]
        parts = [part(place, settings, seeds_of(place, options.seeds)) for place in places]
        run(parts, Rows(ROWS), jobs=options.jobs, maps=options.maps)
    from kernel_report import report

    report()


if __name__ == "__main__":
    main()
