"""The paper's anomaly detection: detectors on maps, oracle choices, and a choice without labels of our own."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from drsne import datasets as sets
from drsne.anomaly import Choice, detectors, oracle_best, oracle_single
from drsne.datasets import recipes
from drsne.experiments import figures, published, tables
from drsne.experiments.document import DIFFERENCE, Block, Bullets, Figure, Heading, Table, Text
from drsne.experiments.methods import Array, Method, Ready, Run, each
from drsne.experiments.methods._drsne import STEPS, along_a_path, of_the_paper
from drsne.experiments.methods.densne import maps as densne_maps
from drsne.experiments.rows import Row
from drsne.experiments.studies import PaperStudy
from drsne.experiments.study import Study, check_names

SEEDS = (0, 1, 2)
DATASETS = {
    "thyroid": "Thyroid",
    "cifar10": "CIFAR-10 (features of EfficientNet-Lite0; the paper's are ResNet-50's)",
    "shuttle": "Shuttle",
    "pbmc3k": "PBMC",
    "fashion_mnist": "Fashion-MNIST",
    "spiral": "Spiral (not in the paper's tables)",
}
TITLES = {"knn": "kNN", "lof": "LOF", "isolation_forest": "IF", "centroid": "Cent"}
LAMBDAS = (0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0)  # as printed: times n in our objective
NEIGHBORS = (40, 80, 300)
FIXED_NEIGHBORS = 80
# Weights that a path of ours passes between the printed ones, whose last steps are tenfold.
BETWEEN = (2e-2, 5e-2, 2e-1, 5e-1)
MAX_ITER = {"fashion_mnist": 600}  # of the authors' runs; 1200 on the others
# Of the Spiral, which has no table: usual settings, and the paper's best lambda.
USUAL = {
    "drsne_code": ((0.0, 80), (1.0, 40), (1.0, 80)),
    "densne": ((30, 0.1), (30, 1.0)),
    "densmap": ((0.5, 0.3), (2.0, 0.3)),
    "pacmap": ((15, 2.0), (40, 2.0)),
    "umap": ((15, 0.1), (40, 0.1)),
    "tsne": ((30, 200), (100, 200)),
}
SIZES = {
    "drsne": 33,
    "drsne_code": 33,
    "densne": 49,
    "densmap": 30,
    "pacmap": 30,
    "umap": 30,
    "tsne": 30,
}  # the paper's
QUICK_SAMPLES, QUICK_LAMBDAS = 500, (0.0, 1e-3, 1e-2)


def labelled_data(name: str) -> Any:
    """A set with y = 1 for anomalies, standardised, as the authors' pipeline does with every set."""
    made: dict[str, Callable[[], Any]] = {
        "cifar10": recipes.cifar10_anomalies,
        "shuttle": recipes.shuttle_sample,
        "pbmc3k": recipes.pbmc_anomalies,
        "fashion_mnist": recipes.fashion_anomalies,
        "spiral": partial(sets.load, "spiral", n_samples=5000),
    }
    data = made[name]() if name in made else sets.load(name)
    return replace(data, X=recipes.standardise(data.X))


def quick_data(name: str) -> Any:
    """A short Spiral."""
    data = sets.load("spiral", n_samples=QUICK_SAMPLES)
    return replace(data, X=recipes.standardise(data.X))


def paths(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """Maps of our DR-SNE at pairs of a printed lambda and k: a path for every k."""
    n = len(ready.X)
    for k in dict.fromkeys(k for _, k in values):
        wanted = [lam for lam, other in values if other == k]
        weights = {n * lam: lam for lam in sorted({*wanted, *(lam for lam in BETWEEN if lam < max(wanted))})}
        walked = along_a_path(density_neighbors=min(int(k), n - 1))(ready, list(weights), seed)
        for lam, run in zip(weights.values(), walked, strict=True):
            if lam in wanted:
                yield run._replace(value=(lam, k))


def automatic(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """The map of ``density_weight="auto"``: chosen without labels."""
    from drsne import DRSNE

    for mode in values:
        graph, searching = ready.neighbors(90)
        model = DRSNE(density_weight="auto", neighborhoods=mode, neighbors=tuple(graph), random_state=seed, n_jobs=1)
        start = time.perf_counter()
        Y = model.fit_transform(ready.X)
        seconds = {"neighbors": searching, "optimization": time.perf_counter() - start}
        yield Run(mode, Y, seconds, {"density_weight": float(model.density_weight_)})


def _code(max_iter: int) -> Method:
    def maps(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
        for lam, k in values:
            for run in of_the_paper("code", k=int(k), max_iter=max_iter)(ready, [lam], seed):
                yield run._replace(value=(lam, k))

    return Method(
        title="DR-SNE (the paper's code)",
        parameter=("lam", "k"),
        maps=maps,
        settings={"variant": "code", "max_iter": max_iter},
    )


def _densne(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
    for perplexity, weight in values:
        for run in densne_maps(ready, [weight], seed, perplexity=perplexity):
            yield run._replace(value=(perplexity, weight))


def _tsne(X: Array, value: Any, seed: int) -> Any:
    from sklearn.manifold import TSNE

    perplexity, rate = value
    return TSNE(perplexity=perplexity, learning_rate=rate, init="random", random_state=seed).fit_transform(X)


def _umap(X: Array, value: Any, seed: int) -> Any:
    from umap import UMAP

    return UMAP(n_neighbors=int(value[0]), min_dist=value[1], random_state=seed, n_jobs=1).fit_transform(X)


def _densmap(X: Array, value: Any, seed: int) -> Any:
    from umap import UMAP

    weight, share = value
    return UMAP(
        densmap=True, n_neighbors=30, min_dist=0.1, init="random", dens_lambda=weight, dens_frac=share,
        random_state=seed, n_jobs=1,
    ).fit_transform(X)  # fmt: skip


def _pacmap(X: Array, value: Any, seed: int) -> Any:
    from pacmap import PaCMAP

    return PaCMAP(n_neighbors=int(value[0]), MN_ratio=0.5, FP_ratio=value[1], random_state=seed).fit_transform(X)


def variants(dataset: str) -> dict[str, Method]:
    """The methods with the parameters that the anomaly grids vary."""
    of_densne = {"max_iter": 800, "density_fraction": 0.5}
    of_densmap = {"n_neighbors": 30, "min_dist": 0.1, "init": "random"}
    return {
        "drsne": Method(title="DR-SNE (ours)", parameter=("lam", "k"), maps=paths, together=True, settings=STEPS),
        "drsne_auto": Method(title="DR-SNE (ours), no labels", parameter="neighborhoods", maps=automatic),
        "drsne_code": _code(MAX_ITER.get(dataset, 1200)),
        "densne": Method(title="DenSNE", parameter=("perplexity", "lam"), maps=_densne, settings=of_densne),
        "densmap": Method(
            title="DensMAP",
            parameter=("dens_lambda", "dens_frac"),
            maps=each(_densmap),
            settings=of_densmap,
            needs=("umap",),
        ),
        "pacmap": Method(
            title="PaCMAP",
            parameter=("n_neighbors", "FP_ratio"),
            maps=each(_pacmap),
            settings={"MN_ratio": 0.5},
            needs=("pacmap",),
        ),
        "umap": Method(title="UMAP", parameter=("n_neighbors", "min_dist"), maps=each(_umap), needs=("umap",)),
        "tsne": Method(
            title="t-SNE", parameter=("perplexity", "learning_rate"), maps=each(_tsne), settings={"init": "random"}
        ),
    }


METHODS = ("high_d", "drsne_auto", "drsne", "drsne_code", "densne", "densmap", "pacmap", "umap", "tsne")


def grids(dataset: str) -> dict[str, tuple[Any, ...]]:
    """The whole grid of ours; of the others the settings that the paper's tables rest on."""
    out: dict[str, tuple[Any, ...]] = {
        "drsne": tuple((lam, k) for k in NEIGHBORS for lam in LAMBDAS),
        "drsne_auto": ("input", "both"),
    }
    for method, usual in USUAL.items():
        out[method] = tuple(published.anomaly_settings(dataset, method)) or usual
    return out


class Anomaly(PaperStudy):
    """What ``drsne reproduce anomaly`` runs and writes."""

    name = "anomaly"
    description = "anomaly detection on maps of six data sets: oracle choices, and one without labels"
    keeps_maps = False

    def parts(
        self,
        *,
        quick: bool = False,
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> tuple[Study, ...]:
        """A study for each data set, since grids differ."""
        known = ("spiral",) if quick else tuple(DATASETS)
        some = ("high_d", "drsne_auto", "drsne", "tsne") if quick else METHODS
        chosen = check_names("methods", methods, some)
        out = []
        for dataset in check_names("datasets", datasets, known):
            grid = grids(dataset)
            if quick:
                grid |= {"drsne": tuple((lam, 40) for lam in QUICK_LAMBDAS), "tsne": ((30, 200),)}
            out.append(
                Study(
                    name="anomaly, quick" if quick else "anomaly",
                    datasets=(dataset,),
                    methods=chosen,
                    seeds=tuple(seeds) if seeds else SEEDS[:2] if quick else SEEDS,
                    scores=(("anomaly", None),),
                    data=quick_data if quick else labelled_data,
                    grids=grid,
                    variants=variants(dataset),
                )
            )
        return tuple(out)

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """The sweep over lambda."""
        curves = {part.datasets[0]: _sweep(part, rows) for part in parts if "drsne" in part.methods}
        if any(curves.values()):
            figure = figures.sweeps({DATASETS[name].split(" (")[0]: found for name, found in curves.items() if found})
            figure.savefig(folder / "figure_lambda.png", dpi=110, pil_kwargs={"optimize": True})

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """The choice without labels beside the oracles, then a table for every data set."""
        out: list[Block] = [Heading("Anomaly detection", 1), Text(_INTRODUCTION)]
        out += _without_labels(parts, rows)
        out += [Heading("With labels: oracle choices"), Text(_ORACLES)]
        for part in parts:
            out += _of_dataset(part, rows)
        out.append(Figure("figure_lambda.png", _SWEEP))
        if failed := [row for row in rows if row["error"]]:
            label = "{dataset}, {method}, {value}, seed {seed}: {error}"
            out += [Heading("Runs that failed"), Bullets([label.format(**row) for row in failed])]
        return out


STUDY = Anomaly()

_INTRODUCTION = (
    "Made by `drsne reproduce anomaly`. Every set is standardised; maps know nothing of the labels; four detectors "
    "score the points of a map: the sum of distances to 50 neighbours (kNN), the local outlier factor (LOF, 20), an "
    "isolation forest (IF, 500 trees), the distance to the centroid (Cent). Numbers are areas under the "
    "precision-recall curve (AUPRC), mean ± standard deviation (ddof 1) over seeds; HIGH-D is the data without a "
    "map."
)
_ORACLES = (
    '"Best": for each detector the setting with the largest mean AUPRC. "Oracle-IF": one setting, the best for IF, '
    "with all detectors. Both need the labels that they are scored by, so nobody can have them in practice. The "
    "grid of our DR-SNE is the paper's whole one (11 lambda x 3 k, lambda as printed: times n in our objective). "
    "The others were run at the settings that the paper's tables rest on; \"settings\" says how many of the paper's. "
    "Where the paper's table differs from the authors' own result files, the number is that of the files."
)
_SWEEP = "AUPRC of our DR-SNE over lambda as printed: k = 80 (lines) and the best k for every lambda (dashed)"


def _labelled(row: Row) -> dict[str, float]:
    return {name: row["metrics"][f"auprc_{name}"] for name in detectors()}


def results(part: Study, rows: list[Row], method: str) -> dict[Any, list[dict[str, float]]]:
    """AUPRC of every setting that has all seeds that any has."""
    found: dict[Any, list[dict[str, float]]] = defaultdict(list)
    for row in rows:
        if (row["dataset"], row["method"], row["error"]) == (part.datasets[0], method, None):
            value = row["value"]
            found[tuple(value) if isinstance(value, list) else value].append(_labelled(row))
    most = max((len(runs) for runs in found.values()), default=0)
    return {setting: runs for setting, runs in found.items() if len(runs) == most}


def _without_labels(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """Means over detectors: our choice without labels beside the oracles and the data themselves."""
    header = [
        "data", "anomalies", "no labels (ours)", "lambda chosen", "no labels, both", "HIGH-D", "paper's HIGH-D",
        "paper's best DR-SNE", "best of ours", "oracle-IF of ours",
    ]  # fmt: skip
    body = []
    for part in parts:
        dataset = part.datasets[0]
        free, high = results(part, rows, "drsne_auto"), results(part, rows, "high_d")
        if not free or "input" not in free:
            continue
        weights = [
            f"{row['found']['density_weight']:g}"
            for row in rows
            if (row["dataset"], row["method"], row["value"]) == (dataset, "drsne_auto", "input") and not row["error"]
        ]
        ours = results(part, rows, "drsne")
        count = published.everything()["anomaly_counts"].get(dataset)
        body.append(
            [
                DATASETS[dataset],
                "" if count is None else f"{count[0] / count[1]:.3f}",
                tables.number(*_overall(free["input"])),
                ", ".join(weights),
                tables.number(*_overall(free["both"])) if "both" in free else "-",
                tables.number(_overall(high[None])[0]) if high else "-",
                tables.number(_paper_mean(dataset, "high_d")),
                tables.number(_paper_mean(dataset, "drsne")),
                tables.number(_choice_mean(oracle_best(ours))) if ours else "-",
                tables.number(_choice_mean(oracle_single(ours))) if ours else "-",
            ]
        )
    if not body:
        return []
    text = (
        'The mean AUPRC over the four detectors. "No labels": `DRSNE(density_weight="auto")`, which takes the '
        "largest concentration correlation among maps that lose at most .01 of trustworthiness against lambda = 0; "
        'labels play no part, and k is the default. "Both": the same with `neighborhoods="both"`. "Anomalies" is '
        "the share that chance would score, as the paper's data have it."
    )
    return [Heading("Without labels"), Text(text), Table(header, body)]


def _overall(runs: list[dict[str, float]]) -> tuple[float, float]:
    means = [float(np.mean(list(run.values()))) for run in runs]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else math.nan


def _paper_mean(dataset: str, method: str) -> float:
    return float(np.mean([published.anomaly(dataset, method, "best", name)[0] for name in detectors()]))


def _choice_mean(choices: dict[str, Choice]) -> float:
    return float(np.mean([choice.mean for choice in choices.values()]))


def _of_dataset(part: Study, rows: list[Row]) -> list[Block]:
    dataset = part.datasets[0]
    out: list[Block] = []
    for section, label in (("best", "best"), ("oracle_if", "oracle-IF")):
        header = ["method", "settings"] + (["setting"] if section == "oracle_if" else [])
        for name in TITLES:
            header += [TITLES[name], "paper", DIFFERENCE]
        body = []
        for method in part.methods:
            found = results(part, rows, method)
            if not found or method == "drsne_auto":
                continue
            choice = oracle_best(found) if section == "best" else oracle_single(found)
            size = SIZES.get(method)
            line = [part.method(method).title, f"{len(found)} of {size}" if size else "1"]
            if section == "oracle_if":
                line.append(_setting(part, method, choice["isolation_forest"].setting))
            for name in TITLES:
                paper = published.anomaly(dataset, method, section, name)
                ours = choice[name]
                line += [
                    tables.number(ours.mean, ours.std if method != "high_d" else math.nan),
                    tables.number(*paper),
                    tables.signed(ours.mean - paper[0]),
                ]
            body.append(line)
        if body:
            out += [Heading(f"{DATASETS[dataset]}: {label}", 3), Table(header, body)]
    return out


def _setting(part: Study, method: str, setting: Any) -> str:
    parameter = part.method(method).parameter if method != "high_d" else None
    if not isinstance(parameter, tuple):
        return ""
    return ", ".join(f"{name} {value:g}" for name, value in zip(parameter, setting, strict=True))


def _sweep(part: Study, rows: list[Row]) -> dict[str, figures.Sweep]:
    """By detector: AUPRC over lambda with k fixed, and with the best k."""
    found = results(part, rows, "drsne")
    if not found:
        return {}
    lambdas = sorted({lam for lam, _ in found})
    fixed = FIXED_NEIGHBORS if any(k == FIXED_NEIGHBORS for _, k in found) else next(iter(found))[1]
    out = {}
    for name in detectors():
        at = {setting: [run[name] for run in runs] for setting, runs in found.items()}
        chosen = [at[lam, fixed] for lam in lambdas]
        best = [max(np.mean(values) for (other, _), values in at.items() if other == lam) for lam in lambdas]
        out[TITLES[name]] = figures.Sweep(
            np.array(lambdas),
            np.array([np.mean(values) for values in chosen]),
            np.array([np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in chosen]),
            np.array(best),
        )
    return out
