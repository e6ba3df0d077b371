"""The study behind the defaults: the schedule, density_weight, density_neighbors, and the smoothing of radii.

    python benchmarks/defaults.py [--jobs 2] [--seeds 0 1 2] [--parts schedule ...]
    python benchmarks/defaults.py --report

The eight sets of benchmarks/quality.py. Each map is a line of results/defaults.jsonl, written when it is scored: a
killed study continues where it stopped.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from data import EIGHT, digits, prepare
from joblib import Parallel, delayed
from report import Results, table, write

from drsne import DRSNE, Momentum, Objective, Phase, Schedule, Smoothing
from drsne.neighbors.search import knn
from drsne.optimize import defaults
from drsne_paper.methods import Workspace
from drsne_paper.scoring import scores

ROWS = Results("defaults", "part", "dataset", "setting", "seed")
CHOSEN = 2.1  # the default of the fixed kernel, which this study is about
# The schedule, one thing at a time: share and total of the iterations, ramp, optimiser, decay of the last phase.
SCHEDULES: dict[str, dict[str, Any]] = {
    "default": {},
    "no ramp": {"ramp": 0.0},
    "ramp over 60 %": {"ramp": 0.6},
    "rate 1": {"rate": 1.0},
    "rate 4": {"rate": 4.0},
    "betas (0.9, 0.999)": {"betas": [0.9, 0.999]},
    "no ramp, rate 1, betas (0.9, 0.999)": {"ramp": 0.0, "rate": 1.0, "betas": [0.9, 0.999]},
    "constant rate": {"decay": "constant"},
    "linear decay": {"decay": "linear"},
    "momentum": {"momentum": True},
    "density in the last 30 %": {"share": 0.3},
    "density in the last 70 %": {"share": 0.7},
    "500 iterations": {"total": 500},
    "2000 iterations": {"total": 2000},
}
STRONG = ("default", "no ramp", "rate 1", "rate 4", "no ramp, rate 1, betas (0.9, 0.999)", "momentum")
MILD_WEIGHTS, STRONG_WEIGHTS = [CHOSEN, 0.0, 1.0], [14.0, 9.8, 2.0]  # in the data, in the map, and the contrast
MILD, DEFAULT_STRONG = {"weights": MILD_WEIGHTS}, {"weights": STRONG_WEIGHTS}  # the default at either strength
WEIGHTS = (1.0, 1.5, 2.5, 3.0)  # in addition to the default
NEIGHBORS = (15, 20, 45, 60)
RELATIVE = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SCORES = {"trustworthiness": 10, "concentration_correlation": 29, "density_rank_correlation": 30}  # neighbours


# What we conclude, for the report.
SCHEDULE = (
    "At the mild weight hardly anything matters: no variant moves the mean trustworthiness by .001. The strong one "
    "decides. Without a ramp, at rate 4 or with momentum, maps tear when the term joins and stay so; rate 1 ends at a "
    "4 % larger loss. 500 iterations end at a 3 % larger loss than 1000, and 2000 at one that is less than 2 % smaller."
)
WEIGHT = (
    "The default is the largest of the weights tried that costs less than .01 of trustworthiness on every set (2.5 "
    "costs MNIST more; benchmarks/results/quality.md); 1.5 would not raise the concentration correlation of Digits "
    "by .2."
)
K = (
    "CC and rho_S are measured over 29 and 30 neighbours, so that k = 30 has the advantage there; fewer "
    "neighbours cost trustworthiness (chance shows in them), more smooth the profile out."
)


SMOOTHING = (
    '"duplicates" is 1000 digits and 40 of them 40 times over. Digits has none and does not mind. The default, '
    "0.001, keeps the profile of regions 100 times as crowded as the median within 10 %, where 0.01 would halve it; "
    "data with many exact duplicates gain from 0.01 (pass it in an Objective)."
)


def with_duplicates() -> np.ndarray:
    """Return 1000 images of Digits, and 40 of them repeated 40 times: many points are exact duplicates."""
    X = digits()[:1000]
    return np.vstack([X, np.repeat(X[::25], 40, axis=0)])


def jobs_of(part: str) -> dict[str, dict[str, Any]]:
    """Return the settings of a part of the study, by their titles."""
    if part == "schedule":
        mild = {f"{label}, mild": {"weights": MILD_WEIGHTS, **numbers} for label, numbers in SCHEDULES.items()}
        return mild | {f"{label}, strong": {"weights": STRONG_WEIGHTS, **SCHEDULES[label]} for label in STRONG}
    if part == "weight":
        return {"lambda = 0": {"weights": None}} | {f"lambda = {w:g}": {"weights": [w, 0.0, 1.0]} for w in WEIGHTS}
    if part == "neighbors":
        return {f"k = {k}": {"k": k} for k in NEIGHBORS}
    return {f"{r:g}": {"smoothing": r} for r in RELATIVE}


def maps(X: np.ndarray, seed: int, variants: list[dict[str, Any]]) -> tuple[list[np.ndarray], list[float]]:
    """Return maps and final losses of settings, which share everything before the density term."""
    options = {"random_state": seed, "neighbors": tuple(knn(X, 90)), "keep_affinities": False}
    starts: dict[tuple[int, float], tuple[np.ndarray, Schedule]] = {}
    out, losses = [], []
    for variant in variants:
        weights = variant.get("weights", MILD_WEIGHTS)
        if weights is None:
            model = DRSNE(density_weight=0, **options).fit(X)
        else:
            split = variant.get("total", 1000), variant.get("share", defaults.DENSITY_SHARE)
            if split not in starts:
                starts[split] = opened(X, *split, options)
            start, schedule = starts[split]
            phase = changed(schedule.phases[-1], schedule.phases[-2].optimizer, variant)
            model = DRSNE(
                density_weight=1,
                density_neighbors=variant.get("k", DRSNE().density_neighbors),
                objective=objective(tuple(weights), variant.get("smoothing", Smoothing().relative)),
                init=start,
                schedule=replace(schedule, phases=(phase,)),
                **options,
            ).fit(X)
        out.append(model.embedding_)
        losses.append(model.kl_divergence_ + (weights is not None) * model.concentration_loss_)
    return out, losses


def opened(X: np.ndarray, total: int, share: float, options: dict[str, Any]) -> tuple[np.ndarray, Schedule]:
    """Return the map before the density term, and the schedule, for a number of iterations and a share with it."""
    numbers = {"n_iter_exaggeration": 250, "early_exaggeration": 12.0, "learning_rate": "auto"}
    schedule = defaults.default_schedule(len(X), max_iter=total, density=True, share=share, **numbers)
    first = replace(schedule, phases=schedule.phases[:-1])
    return DRSNE(schedule=first, **options).fit_transform(X), schedule


def changed(phase: Phase, momentum: Momentum, variant: dict[str, Any]) -> Phase:
    """Return the last phase of a setting."""
    adam = replace(
        phase.optimizer,
        rate=variant.get("rate", defaults.ADAM_RATE),
        betas=tuple(variant.get("betas", defaults.ADAM_BETAS)),
    )
    plain = "momentum" in variant
    return replace(
        phase,
        optimizer=momentum if plain else adam,
        decay="constant" if plain else variant.get("decay", phase.decay),
        max_step=defaults.MAX_STEP if plain else phase.max_step,
        ramp=round(variant.get("ramp", defaults.DENSITY_RAMP) * phase.n_iter),
    )


def objective(weights: tuple[float, float, float], relative: float) -> Objective:
    smoothing = Smoothing(relative=relative, length=1e-12 if relative == 0 else 0.0)
    inside, outside, contrast = weights
    return Objective(
        input_weight=inside,
        embedding_weight=outside,
        input_exponent=contrast,
        input_smoothing=smoothing,
        embedding_smoothing=smoothing,
        kernel="fixed",
        target_quantile=0.0,
        small_groups=False,
    )


def run(name: str, path: Path, variants: list[tuple[str, str]], seed: int) -> None:
    """Run all settings (part, label) of a data set and seed, which share everything before the density term."""
    import warnings

    warnings.simplefilter("ignore")
    X = np.load(path)
    found, losses = maps(X, seed, [jobs_of(part)[label] for part, label in variants])
    workspace = Workspace(X)
    for (part, label), Y, loss in zip(variants, found, losses, strict=True):
        score = scores(workspace, np.asarray(Y, dtype=np.float64), tuple(SCORES.items()))
        setting = jobs_of(part)[label]
        ROWS.append({"part": part, "dataset": name, "setting": setting, "seed": seed, **score, "loss": loss})


def wide(part: str, rows: list[dict[str, Any]]) -> str:
    """Return a row for each setting and a column for each set: TW / CC / rho_S, loss."""
    names = list(dict.fromkeys(row["dataset"] for row in rows if row["part"] == part))
    keys = (*SCORES, "loss")

    def cell(name: str, home: str, setting: dict[str, Any]) -> str:
        some = [row for row in rows if (row["part"], row["dataset"], row["setting"]) == (home, name, setting)]
        if not some:
            return ""
        return "{:.4f} / {:.3f} / {:.3f}, {:.3f}".format(*(np.mean([row[key] for row in some]) for key in keys))

    lines = [("default, mild", "schedule", MILD)] if part in ("weight", "neighbors") else []
    lines += [(label, part, setting) for label, setting in jobs_of(part).items()]
    header = ["", *(EIGHT.get(name, name) for name in names)]
    return table(header, [[label, *(cell(name, home, setting) for name in names)] for label, home, setting in lines])


def short(part: str, rows: list[dict[str, Any]]) -> str:
    """Return for each setting the mean change against the default of its strength, and the worst change of TW."""

    def places(home: str, setting: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
        some = [row for row in rows if (row["part"], row["setting"]) == (home, setting)]
        return {(row["dataset"], row["seed"]): row for row in some}

    body = []
    for label, setting in jobs_of(part).items():
        default = DEFAULT_STRONG if setting.get("weights") == STRONG_WEIGHTS else MILD
        usual = places("schedule", default)
        pairs = [(row, usual[place]) for place, row in places(part, setting).items() if place in usual]
        if pairs and setting != default:
            change = {key: [row[key] - other[key] for row, other in pairs] for key in SCORES}
            numbers = [f"{np.mean(change[key]):+.4f}" for key in SCORES]
            loss = np.mean([row["loss"] / other["loss"] for row, other in pairs])
            worst = f"{min(change['trustworthiness']):+.4f}"
            body.append([label, str(len(pairs)), numbers[0], worst, *numbers[1:], f"x {loss:.3f}"])
    return table(["", "maps", "TW", "TW, worst", "CC", "rho_S", "loss"], body)


def report() -> None:
    rows = ROWS.read()
    seeds = "seeds " + ", ".join(map(str, sorted({row["seed"] for row in rows})))
    note = (
        f"Means over {seeds}; each cell is trustworthiness (10) / concentration correlation (29) / density rank "
        "correlation (30), final loss."
    )
    write(
        "defaults",
        "Defaults",
        "python benchmarks/defaults.py",
        note,
        "## Schedule\n\nThe default's last phase: 500 iterations of Adam, rate "
        f"{defaults.ADAM_RATE:g} with a cosine decay, betas {defaults.ADAM_BETAS}, the weight rising over "
        f"the first {defaults.DENSITY_RAMP:g}. "
        f'"mild" is lambda = {CHOSEN:g}, "strong" is lambda = 14 with neighborhoods="both". What changes against the '
        f"default, one thing at a time, means over all sets and seeds:\n\n{short('schedule', rows)}\n\n{SCHEDULE}\n\n"
        + wide("schedule", rows),
        f"## density_weight\n\nChange against lambda = {CHOSEN:g}:\n\n{short('weight', rows)}\n\n{WEIGHT}\n\n"
        + wide("weight", rows),
        f"## density_neighbors\n\nChange against k = 30, at lambda = {CHOSEN:g}:\n\n"
        + short("neighbors", rows)
        + f"\n\n{K}\n\n"
        + wide("neighbors", rows),
        f"## Smoothing of radii\n\nRelative to the median radius, at lambda = {CHOSEN:g}. {SMOOTHING}\n\n"
        + wide("smoothing", rows),
        rows=rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parts = ("schedule", "weight", "neighbors", "smoothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--parts", nargs="*", choices=parts, default=parts)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "drsne-quality")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        paths = prepare(list(EIGHT), options.folder)
        doubled = options.folder / "duplicates.npy"
        np.save(doubled, with_duplicates())
        there = ROWS.keys()
        sets = {"digits": paths["digits"], "duplicates": doubled}
        jobs = []
        for seed in options.seeds:
            for name, path in (paths | sets).items():
                variants = [
                    (part, label)
                    for part in options.parts
                    if name in (sets if part == "smoothing" else paths)
                    for label, setting in jobs_of(part).items()
                    if ROWS.key({"part": part, "dataset": name, "setting": setting, "seed": seed}) not in there
                ]
                if variants:
                    jobs.append((name, path, variants, seed))
        Parallel(n_jobs=options.jobs, verbose=5)(delayed(run)(*job) for job in jobs)
    report()


if __name__ == "__main__":
    main()
