"""The runs of the anomaly study: data with marked anomalies, and methods over the settings of the paper's grids."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from drsne_paper import datasets as sets
from drsne_paper import published
from drsne_paper.datasets import recipes
from drsne_paper.methods import Method, Run, Workspace, _peers
from drsne_paper.methods._drsne import FIXED_WEIGHTS, STEPS, along_a_path, fixed_kernel, of_the_paper
from drsne_paper.methods._peers import peer
from drsne_paper.methods.densne import maps as densne_maps
from drsne_paper.tables import Title

SEEDS = (0, 1, 2)
DATASETS = {
    "thyroid": Title("Thyroid"),
    "cifar10": Title("CIFAR-10", "features of EfficientNet-Lite0; the paper's are ResNet-50's"),
    "shuttle": Title("Shuttle"),
    "pbmc3k": Title("PBMC"),
    "fashion_mnist": Title("Fashion-MNIST"),
    "spiral": Title("Spiral", "not in the paper's tables"),
}
# The lambdas as printed in the paper. They are multiplied by n in our objective.
LAMBDAS = (0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0)
NEIGHBORS = (40, 80, 300)
AUTO_DROP = 0.01  # largest loss of trustworthiness; the default of DRSNE
# Additional weights of our path, because the last printed weights differ by a factor of ten.
BETWEEN = (2e-2, 5e-2, 2e-1, 5e-1)
MAX_ITER = {"fashion_mnist": 600, "spiral": 600}  # iterations of the authors' runs; 1200 on the other data sets
# The settings for the Spiral, which is not in the paper's tables: common settings, and the paper's best lambda.
SPIRAL_SETTINGS = {
    "drsne_code": ((0.0, 80), (1.0, 40), (1.0, 80)),
    "densne": ((30, 0.1), (30, 1.0)),
    "densmap": ((0.5, 0.3), (2.0, 0.3)),
    "pacmap": ((15, 2.0), (40, 2.0)),
    "umap": ((15, 0.1), (40, 0.1)),
    "tsne": ((30, 200), (100, 200)),
}
QUICK_SAMPLES, QUICK_LAMBDAS = 500, (0.0, 1e-3, 1e-2)


def labelled_data(name: str) -> Any:
    """Return a data set with y = 1 for anomalies, standardised as all data sets are in the authors' pipeline."""
    loaders: dict[str, Callable[[], Any]] = {
        "cifar10": recipes.cifar10_anomalies,
        "shuttle": recipes.shuttle_sample,
        "pbmc3k": recipes.pbmc_anomalies,
        "fashion_mnist": recipes.fashion_anomalies,
        "spiral": partial(sets.load, "spiral", n_samples=5000),
    }
    data = loaders[name]() if name in loaders else sets.load(name)
    return replace(data, X=recipes.standardise(data.X))


def quick_data(name: str) -> Any:
    """Return a Spiral with few points."""
    data = sets.load("spiral", n_samples=QUICK_SAMPLES)
    return replace(data, X=recipes.standardise(data.X))


def paths(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """Yield maps of our DR-SNE at pairs of a printed lambda and a k. There is one path for every k."""
    n, failed = len(workspace.X), None
    for k in dict.fromkeys(k for _, k in values):
        wanted = [lam for lam, other in values if other == k]
        weights = {n * lam: lam for lam in sorted({*wanted, *(lam for lam in BETWEEN if lam < max(wanted))})}
        try:
            maps = along_a_path(fixed="input", density_neighbors=min(int(k), n - 1))
            walked = list(maps(workspace, list(weights), seed))
        except Exception as error:  # the paths with other values of k are still computed
            failed = error
            continue
        for run in walked:
            lam = weights[run.value]
            if lam in wanted:
                yield run._replace(value=(lam, k))
        if len(walked) < len(weights):
            failed = ArithmeticError(f"The path with k = {k} ended after lambda = {weights[walked[-1].value]:g}.")
    if failed is not None:
        raise failed


def automatic(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """Yield the map of a path with the largest concentration correlation near t-SNE's trustworthiness, by mode."""
    from drsne import density_path

    workspace.require(perplexity=30.0, density_neighbors=30)
    for mode in values:
        graph, searching = workspace.neighbors(90)
        start = time.perf_counter()
        settings: dict[str, Any] = {"neighbors": tuple(graph), "random_state": seed, "n_jobs": 1}
        path = density_path(workspace.X, FIXED_WEIGHTS, objective=fixed_kernel(mode), **settings)
        chosen = path.select(max_trustworthiness_drop=AUTO_DROP)
        seconds = {"neighbors": searching, "optimization": time.perf_counter() - start}
        yield Run(mode, path.embeddings[chosen], seconds, {"density_weight": float(path.weights[chosen])})


def _code(max_iter: int) -> Method:
    def maps(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
        for lam, k in values:
            for run in of_the_paper("code", k=int(k), max_iter=max_iter)(workspace, [lam], seed):
                yield run._replace(value=(lam, k))

    return Method(
        title="DR-SNE (the paper's code)",
        parameter=("lam", "k"),
        maps=maps,
        settings={"variant": "code", "max_iter": max_iter},
    )


def _densne(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
    for perplexity, weight in values:
        for run in densne_maps(workspace, [weight], seed, perplexity=perplexity):
            yield run._replace(value=(perplexity, weight))


def variants(dataset: str) -> dict[str, Method]:
    """Return the methods with the parameters that the anomaly grids vary."""
    of_ours = {"between": list(BETWEEN), **STEPS}
    of_densne = {"max_iter": 800, "density_fraction": 0.5}
    return {
        "drsne": Method(
            title="DR-SNE (ours, fixed kernel)", parameter=("lam", "k"), maps=paths, together=True, settings=of_ours
        ),
        "drsne_auto": Method(
            title="DR-SNE (ours, fixed kernel), no labels",
            parameter="neighborhoods",
            maps=automatic,
            settings={"max_trustworthiness_drop": AUTO_DROP, "weights": list(FIXED_WEIGHTS), **STEPS},
        ),
        "drsne_code": _code(MAX_ITER.get(dataset, 1200)),
        "densne": Method(title="DenSNE", parameter=("perplexity", "lam"), maps=_densne, settings=of_densne),
        "densmap": peer(
            "DensMAP",
            _peers.densmap,
            parameter=("dens_lambda", "dens_frac"),
            settings={"n_neighbors": 30, "min_dist": 0.1, "init": "random"},
            needs=("umap",),
        ),
        "pacmap": peer(
            "PaCMAP",
            _peers.pacmap,
            parameter=("n_neighbors", "FP_ratio"),
            settings={"MN_ratio": 0.5},
            needs=("pacmap",),
        ),
        "umap": peer("UMAP", _peers.umap, parameter=("n_neighbors", "min_dist"), needs=("umap",)),
        "tsne": peer("t-SNE", _peers.tsne, parameter=("perplexity", "learning_rate"), settings={"init": "random"}),
    }


METHODS = ("high_d", "drsne_auto", "drsne", "drsne_code", "densne", "densmap", "pacmap", "umap", "tsne")


def grids(dataset: str) -> dict[str, tuple[Any, ...]]:
    """Return the whole grid for our method and, for other methods, the settings used for the paper's tables."""
    out: dict[str, tuple[Any, ...]] = {
        "drsne": tuple((lam, k) for k in NEIGHBORS for lam in LAMBDAS),
        "drsne_auto": ("input", "both"),
    }
    for method, common in SPIRAL_SETTINGS.items():
        out[method] = tuple(published.anomaly_settings(dataset, method)) or common
    return out
