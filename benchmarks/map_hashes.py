"""Record or check the exact bits of maps, so that a change of the code that should move no map can prove it.

    python benchmarks/map_hashes.py --write    record the hashes of this version in results/map_hashes.json
    python benchmarks/map_hashes.py            compute them again and list every difference

Maps are bitwise reproducible on one machine only, because another processor or another version of numba may round
differently. The file therefore names the machine, and a check elsewhere says that it cannot compare. Every case runs
with one and with two threads, which must agree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from report import RESULTS, host

from drsne import DRSNE, DenSNE, Objective, density_path
from drsne.presets import densne, paper

FILE = RESULTS / "map_hashes.json"
ITERATIONS = {"max_iter": 120, "n_iter_exaggeration": 50}
Case = Callable[[int], Any]  # number of threads -> an array, or several


def groups(n_samples: int, n_features: int = 8, seed: int = 0) -> np.ndarray:
    """Return Gaussian groups of different density, with a few duplicates."""
    rng = np.random.default_rng(seed)
    widths = (0.3, 1.0, 2.0)
    parts = [
        rng.normal(rng.normal(0.0, 6.0, n_features), width, (n_samples // len(widths), n_features)) for width in widths
    ]
    X = np.vstack([*parts, rng.normal(0.0, 4.0, (n_samples % len(widths), n_features))])
    X[5:9] = X[4]
    return X


SMALL, MIDDLE, LARGE = groups(300), groups(1200, seed=1), groups(9000, seed=2)


def fitted(estimator: Any, X: Any, *names: str) -> Case:
    """Return a case: the map of a copy of the estimator, and further fitted attributes."""
    from sklearn.base import clone

    def case(n_jobs: int) -> Any:
        model = clone(estimator).set_params(n_jobs=n_jobs).fit(X)
        return [model.embedding_, *(getattr(model, name) for name in names)]

    return case


def cases() -> Iterator[tuple[str, Case]]:
    """Yield the name of every case with the function that computes it."""
    yield from _engines()
    yield from _inputs()
    yield from _presets()
    for weight in (0.05, 2.0, "auto"):
        model = DRSNE(random_state=0, density_weight=weight, max_iter=100)
        yield f"weight {weight}", fitted(model, SMALL, "concentration_", "input_concentration_", "scales_")
    for kernel in ("auto", "fixed"):
        yield f"path {kernel}", _path(kernel)
    for kernel, neighborhoods in product(("adaptive", "fixed"), ("input", "both")):
        model = DRSNE(random_state=0, kernel=kernel, neighborhoods=neighborhoods, **ITERATIONS)
        yield f"large {kernel} {neighborhoods}", fitted(model, LARGE)
    yield "large plain", fitted(DRSNE(random_state=0, density_weight=0, **ITERATIONS), LARGE)
    yield "large den-SNE", fitted(DenSNE(random_state=0, **ITERATIONS), LARGE)


def _engines() -> Iterator[tuple[str, Case]]:
    modes = ("input", "embedding", "both")
    for engine, kernel, mode in product(("exact", "tree", "fft"), ("fixed", "adaptive"), modes):
        model = DRSNE(random_state=0, engine=engine, kernel=kernel, neighborhoods=mode, **ITERATIONS)
        yield f"{engine} {kernel} {mode}", fitted(model, MIDDLE, "concentration_")
    for engine, dimension, kernel in product(("exact", "tree", "fft"), (1, 3), ("fixed", "adaptive")):
        if (engine, dimension) in (("fft", 3), ("tree", 1)):
            continue
        model = DRSNE(random_state=0, engine=engine, n_components=dimension, kernel=kernel, **ITERATIONS)
        yield f"{engine} {kernel} {dimension}-d", fitted(model, SMALL)
    for engine, kernel in product(("exact", "tree", "fft"), ("fixed", "adaptive")):
        objective = Objective(kernel=kernel, precision="double", embedding_weight=0.5)
        model = DRSNE(random_state=0, engine=engine, objective=objective, **ITERATIONS)
        yield f"{engine} {kernel} double", fitted(model, SMALL)


def _inputs() -> Iterator[tuple[str, Case]]:
    import scipy.sparse as sp
    from scipy.spatial.distance import pdist, squareform

    from drsne.graph import knn

    usual = {"random_state": 0, **ITERATIONS}
    for metric in ("cosine", "manhattan", "mahalanobis"):
        yield f"metric {metric}", fitted(DRSNE(metric=metric, **usual), SMALL)
    yield "precomputed", fitted(DRSNE(metric="precomputed", **usual), squareform(pdist(SMALL)))
    yield "sparse", fitted(DRSNE(**usual), sp.csr_matrix(np.where(SMALL > 1.0, SMALL, 0.0)))
    yield "principal components", fitted(DRSNE(pca_components=4, **usual), SMALL)
    yield "given neighbours", fitted(DRSNE(neighbors=knn(SMALL, 90, n_jobs=1), **usual), SMALL)
    yield "random start", fitted(DRSNE(init="random", **usual), SMALL)
    yield "single precision", fitted(DRSNE(**usual), SMALL.astype(np.float32))
    yield "few points", fitted(DRSNE(perplexity=5, density_neighbors=5, **usual), SMALL[::20])


def _presets() -> Iterator[tuple[str, Case]]:
    for variant in ("code", "text"):
        settings = paper(len(SMALL), 0.01, 29, variant=variant)
        yield f"paper {variant}", fitted(DRSNE(random_state=0, **settings), SMALL)
    yield "den-SNE", fitted(DenSNE(random_state=0, **ITERATIONS), SMALL, "log_radii_", "input_log_radii_")
    yield "den-SNE's program", fitted(DenSNE(random_state=0, **densne(len(SMALL))), SMALL)


def _path(kernel: str) -> Case:
    def case(n_jobs: int) -> Any:
        found = density_path(SMALL, [0, 0.03, 0.1, 1, 5], kernel=kernel, random_state=0, n_jobs=n_jobs, max_iter=200)
        return [*found.embeddings, *found.metrics.values(), found.kl_divergence, found.concentration_loss]

    return case


def digest(arrays: Any) -> str:
    """Return a short hash of the exact bits of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(str(array.dtype).encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def computed() -> dict[str, str]:
    """Return the hash of every case, which must not depend on the number of threads."""
    hashes = {}
    warnings.simplefilter("ignore")
    for name, case in cases():
        one, two = digest(case(1)), digest(case(2))
        hashes[name] = one if one == two else f"{one} with one thread, {two} with two"
        print(f"{name}: {hashes[name]}", flush=True)
    return hashes


def main() -> int:
    """Write or check the file, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record the hashes of this version")
    options = parser.parse_args()
    here = host()
    if options.write:
        FILE.write_text(json.dumps({"machine": here, "hashes": computed()}, indent=1) + "\n")
        return 0
    recorded = json.loads(FILE.read_text())
    if recorded["machine"] != here:
        print(f"The hashes are those of another machine ({recorded['machine']}), and this is {here}.")
        return 2
    found = computed()
    names = [*recorded["hashes"], *(name for name in found if name not in recorded["hashes"])]
    different = [name for name in names if recorded["hashes"].get(name) != found.get(name)]
    expected = recorded.get("changed", {})
    same = len(names) - len(different)
    for name in [name for name in different if name in expected]:
        print(f"CHANGED AS EXPECTED {name}: {expected[name]}")
    different = [name for name in different if name not in expected]
    for name in different:
        print(f"DIFFERENT {name}: recorded {recorded['hashes'].get(name)}, now {found.get(name)}")
    print(f"{same} of {len(names)} maps are bitwise what they were.")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
