"""Compare the exact bits of maps between two commits, to prove that a change of the code moves no map.

    python benchmarks/map_hashes.py REVISION              compare the working tree with a commit
    python benchmarks/map_hashes.py REVISION --record     append the outcome to results/map_hashes.jsonl
    python benchmarks/map_hashes.py REVISION --only path  compare only the cases with this word in their names

Maps are bitwise reproducible on one machine only, because another processor or another version of numba may round
differently. Both versions therefore run here, in processes of their own, with the cases of this file, which use only
public names. Hashes of sources that have run already are kept in ``.hashes/``. Every case runs with one and with two
threads, which must agree. Reasons of intended changes are in ``results/map_hashes.reasons.json``: for each case that
moved, why it did.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
KEPT = ROOT / ".hashes"
ITERATIONS = {"max_iter": 120, "n_iter_exaggeration": 50}
USUAL = {"random_state": 0, **ITERATIONS}
Case = Callable[[int], Any]  # number of threads -> arrays


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
EVEN = np.random.default_rng(3).normal(size=(400, 30))  # radii that differ little, so that the contrast is large
NEW = groups(60, seed=4)
COUNTS = np.random.default_rng(5).integers(1, 6, len(SMALL)).astype(np.float64)


def cases() -> Iterator[tuple[str, Case]]:
    """Yield the name of every case with the function that computes it."""
    yield from _engines()
    yield from _weights()
    yield from _inputs()
    yield from _torch()
    yield from _presets()
    yield from _after_a_fit()
    yield from _large()
    yield "distributed", _distributed


def _fitted(make: Callable[[], Any], X: Any, *names: str, **fit: Any) -> Case:
    """Return a case: the map of an estimator, and further fitted attributes."""

    def case(n_jobs: int) -> Any:
        model = make().set_params(n_jobs=n_jobs).fit(X, **fit)
        return [model.embedding_, *(getattr(model, name) for name in names)]

    return case


def _drsne(**parameters: Any) -> Callable[[], Any]:
    from drsne import DRSNE

    return lambda: DRSNE(**{**USUAL, **parameters})


def _engines() -> Iterator[tuple[str, Case]]:
    from drsne import DenSNE, Objective

    modes = ("input", "embedding", "both")
    for engine, kernel, mode in product(("exact", "tree", "fft"), ("fixed", "adaptive"), modes):
        make = _drsne(engine=engine, kernel=kernel, neighborhoods=mode)
        yield f"{engine} {kernel} {mode}", _fitted(make, MIDDLE, "concentration_")
    for engine, dimension, kernel in product(("exact", "tree", "fft"), (1, 3), ("fixed", "adaptive")):
        if (engine, dimension) not in (("fft", 3), ("tree", 1)):
            make = _drsne(engine=engine, n_components=dimension, kernel=kernel)
            yield f"{engine} {kernel} {dimension}-d", _fitted(make, SMALL)
    for engine, kernel in product(("exact", "tree", "fft"), ("fixed", "adaptive")):
        objective = Objective(kernel=kernel, precision="double", embedding_weight=0.5)
        yield f"{engine} {kernel} double", _fitted(_drsne(engine=engine, objective=objective), SMALL)
    yield "fft accuracy high", _fitted(_drsne(engine="fft", engine_options={"accuracy": "high"}), SMALL)
    yield "tree theta", _fitted(_drsne(engine="tree", engine_options={"theta": 0.8}), SMALL)
    for engine in ("exact", "tree", "fft"):
        yield f"den-SNE {engine}", _fitted(lambda engine=engine: DenSNE(engine=engine, **USUAL), SMALL, "log_radii_")
    yield "den-SNE double", _fitted(lambda: DenSNE(precision="double", **USUAL), SMALL, "log_radii_")
    for name, settings in (
        ("directed", {"support": "directed"}),
        ("detached", {"normalizer": "detached"}),
        ("smoothed", {"affinity_smoothing": 1e-6, "distance_smoothing": 0.1}),
        ("whole groups", {"small_groups": False, "target_quantile": 0.0}),
        ("sampled", {"sampled_neighbors": 7}),
        ("exponents", {"input_exponent": 2.5, "embedding_exponent": 1.5, "scale_exponent": 0.5}),
    ):
        yield f"objective {name}", _fitted(_drsne(objective=Objective(**settings)), SMALL, "concentration_")


def _weights() -> Iterator[tuple[str, Case]]:
    names = ("concentration_", "input_concentration_", "scales_")
    for weight in (0, 0.05, 2.0, 100.0, "auto"):
        yield f"weight {weight}", _fitted(_drsne(density_weight=weight, max_iter=100), SMALL, *names)
    for contrast in (1.0, 3.0, "auto"):
        yield f"contrast {contrast} even", _fitted(_drsne(contrast=contrast), EVEN, *names)
    yield "exponent", _fitted(_drsne(density_exponent=0.5), SMALL, *names)
    for kernel, engine in (("auto", "auto"), ("fixed", "auto"), ("auto", "exact")):
        make = _drsne(kernel=kernel, engine=engine)
        yield f"masses {kernel} {engine}", _fitted(make, SMALL, *names, sample_weight=COUNTS)
    yield "masses real", _fitted(_drsne(), MIDDLE, *names, sample_weight=np.linspace(0.3, 2.0, len(MIDDLE)))
    for kernel in ("auto", "fixed"):
        yield f"path {kernel}", _path(kernel)


def _path(kernel: str) -> Case:
    from drsne import density_path

    def case(n_jobs: int) -> Any:
        found = density_path(SMALL, [0, 0.03, 0.1, 1, 5], kernel=kernel, random_state=0, n_jobs=n_jobs, max_iter=200)
        return [*found.embeddings, *found.metrics.values(), found.kl_divergence, found.concentration_loss]

    return case


def _inputs() -> Iterator[tuple[str, Case]]:
    import scipy.sparse as sp
    from scipy.spatial.distance import pdist, squareform
    from sklearn.neighbors import kneighbors_graph

    distances = squareform(pdist(SMALL))
    graph = kneighbors_graph(SMALL, 90, mode="distance")
    for metric in ("cosine", "manhattan", "mahalanobis"):
        yield f"metric {metric}", _fitted(_drsne(metric=metric), SMALL)
    yield "precomputed", _fitted(_drsne(metric="precomputed"), distances)
    yield "precomputed graph", _fitted(_drsne(metric="precomputed"), graph)
    yield "sparse", _fitted(_drsne(), sp.csr_matrix(np.where(SMALL > 1.0, SMALL, 0.0)))
    yield "principal components", _fitted(_drsne(pca_components=4), SMALL)
    yield "given neighbours", _fitted(_drsne(neighbors=graph), SMALL)
    yield "random start", _fitted(_drsne(init="random"), SMALL)
    yield "given start", _fitted(_drsne(init=SMALL[:, :2] * 1e-3), SMALL)
    yield "single precision", _fitted(_drsne(), SMALL.astype(np.float32))
    yield "few points", _fitted(_drsne(perplexity=5, density_neighbors=5), SMALL[::20])


def _torch() -> Iterator[tuple[str, Case]]:
    from drsne import DenSNE

    try:
        import torch  # noqa: F401
    except ImportError:
        return
    for kernel, mode in product(("fixed", "adaptive"), ("input", "both")):
        yield f"torch {kernel} {mode}", _fitted(_drsne(kernel=kernel, neighborhoods=mode, backend="torch"), SMALL)
    yield "torch tree", _fitted(_drsne(engine="tree", backend="torch"), MIDDLE)
    yield "torch plain", _fitted(_drsne(density_weight=0, backend="torch"), MIDDLE)
    yield "torch masses", _fitted(_drsne(backend="torch"), SMALL, sample_weight=COUNTS)
    yield "torch even", _fitted(_drsne(backend="torch"), EVEN, "concentration_")
    yield "torch den-SNE", _fitted(lambda: DenSNE(backend="torch", **USUAL), SMALL, "log_radii_")
    yield "torch transform", _transformed(_drsne(backend="torch"))


def _presets() -> Iterator[tuple[str, Case]]:
    from drsne import DRSNE, DenSNE, presets

    for variant in ("code", "text"):
        settings = presets.paper(len(SMALL), 0.01, 29, variant=variant)
        yield f"paper {variant}", _fitted(lambda settings=settings: DRSNE(random_state=0, **settings), SMALL)
    if hasattr(presets, "densne"):  # as in commits before it moved
        program = presets.densne(len(SMALL))
    else:
        from drsne_paper.presets import densne

        program = densne(len(SMALL))
    yield "den-SNE's program", _fitted(lambda: DenSNE(random_state=0, **program), SMALL)


def _after_a_fit() -> Iterator[tuple[str, Case]]:
    from drsne import DenSNE, DRSNEDetector, load, metrics

    for name, make in (
        ("", _drsne()),
        ("plain ", _drsne(density_weight=0)),
        ("cosine ", _drsne(metric="cosine")),
        ("components ", _drsne(pca_components=4)),
        ("even ", _drsne(contrast=3.0)),
        ("den-SNE ", lambda: DenSNE(**USUAL)),
    ):
        yield f"{name}transform", _transformed(make)

    def weighted(n_jobs: int) -> Any:
        model = _drsne(n_jobs=n_jobs)().fit(SMALL, sample_weight=COUNTS)
        return [model.transform(NEW), model.novelty(NEW)]

    def precomputed(n_jobs: int) -> Any:
        from scipy.spatial.distance import cdist

        model = _drsne(metric="precomputed", n_jobs=n_jobs)().fit(cdist(SMALL, SMALL))
        return [model.transform(cdist(NEW, SMALL)), model.novelty(cdist(NEW, SMALL))]

    def updated(n_jobs: int) -> Any:
        rows = np.r_[np.arange(20, len(SMALL)), -np.ones(len(NEW), np.intp)]
        model = _drsne(n_jobs=n_jobs)().fit(SMALL).update(np.vstack([SMALL[20:], NEW]), rows)
        return [model.embedding_, model.transform(NEW + 0.1)]

    def restored(n_jobs: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            _drsne(n_jobs=n_jobs)().fit(SMALL).save(Path(folder) / "map.drsne")
            model = load(Path(folder) / "map.drsne")
        return [model.embedding_, model.scales_, model.transform(NEW), model.novelty(NEW)]

    def detected(n_jobs: int) -> Any:
        model = DRSNEDetector(_drsne(n_jobs=n_jobs)(), n_jobs=n_jobs, random_state=0).fit(SMALL)
        return [model.training_scores_, model.score_samples(NEW)]

    def scored(n_jobs: int) -> Any:
        model = _drsne(n_jobs=n_jobs)().fit(SMALL)
        scores = metrics.evaluate(SMALL, model.embedding_)
        return [np.array([scores[name] for name in sorted(scores)]), metrics.reliability(model)]

    yield "masses transform", weighted
    yield "precomputed transform", precomputed
    yield "update", updated
    yield "save and load", restored
    yield "detector", detected
    yield "scores", scored


def _transformed(make: Callable[[], Any]) -> Case:
    def case(n_jobs: int) -> Any:
        model = make().set_params(n_jobs=n_jobs).fit(SMALL)
        which = "new_concentration" if hasattr(model, "new_concentration") else "new_log_radii"
        return [model.transform(NEW), model.novelty(NEW), getattr(model, which)(NEW)]

    return case


def _large() -> Iterator[tuple[str, Case]]:
    from drsne import DenSNE

    for kernel, mode in product(("adaptive", "fixed"), ("input", "both")):
        yield f"large {kernel} {mode}", _fitted(_drsne(kernel=kernel, neighborhoods=mode), LARGE)
    yield "large plain", _fitted(_drsne(density_weight=0), LARGE)
    yield "large den-SNE", _fitted(lambda: DenSNE(**USUAL), LARGE)


def _distributed(n_jobs: int) -> Any:
    import pandas as pd

    from drsne import DRSNE, distributed

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").mkdir()
        columns = [f"x{j}" for j in range(MIDDLE.shape[1])]
        for part in range(3):
            frame = pd.DataFrame(MIDDLE[part * 400 : part * 400 + 400], columns=columns)
            frame.to_parquet(folder / "data" / f"part{part}.parquet")
        settings = {"n_landmarks": 300, "n_checked": 200, "n_scored": 300, "n_jobs": n_jobs, "verbose": 0}
        distributed.fit(folder / "data", folder / "out", model=DRSNE(**USUAL), **settings)
        parts = [pd.read_parquet(path) for path in sorted((folder / "out").glob("*.parquet"))]
    return [pd.concat(parts).to_numpy()]


def digest(arrays: Any) -> str:
    """Return a short hash of the exact bits of arrays."""
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(str(array.dtype).encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def compute(only: str) -> None:
    """Print the name and the hash of every case as lines of JSON. The hash must not depend on the threads."""
    warnings.simplefilter("ignore")
    for name, case in cases():
        if only not in name:
            continue
        begun = time.perf_counter()
        try:
            one, two = digest(case(1)), digest(case(2))
            value = one if one == two else f"{one} with one thread, {two} with two"
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
        print(json.dumps([name, value, round(time.perf_counter() - begun, 2)]), flush=True)


def hashes_of(label: str, sources: Path, only: str) -> dict[str, str]:
    """Return the hashes of the cases with the package in a folder, from those that are kept or from a new process."""
    own = hashlib.sha256(Path(__file__).read_bytes())
    of_paper = sources.parent / "paper" / "src"
    for path in sorted([*sources.rglob("*.py"), *(of_paper / "drsne_paper").glob("*.py")]):
        own.update(path.relative_to(sources.parent).as_posix().encode() + b"\0" + path.read_bytes())
    kept = KEPT / f"{own.hexdigest()[:16]}{only and '-' + only}.json"
    for whole in (kept, KEPT / f"{own.hexdigest()[:16]}.json"):
        if whole.exists():
            return {name: value for name, value in json.loads(whole.read_text()).items() if only in name}
    environment = {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{of_paper}"}
    command = [sys.executable, __file__, "--compute", "--only", only]
    found: dict[str, str] = {}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, value, seconds = json.loads(line)
            found[name] = value
            print(f"{label}: {name}: {value} ({seconds} s)", flush=True)
    if process.returncode:
        raise SystemExit(f"The cases of {label} ended with exit status {process.returncode}.")
    KEPT.mkdir(exist_ok=True)
    kept.write_text(json.dumps(found, indent=1))
    return found


def git(*words: str) -> str:
    """Return what a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def checked_out(revision: str) -> Path:
    """Return a folder with the sources of a commit. It is kept, because compiled kernels belong to a folder."""
    folder = KEPT / git("rev-parse", "--short", revision)
    if not folder.exists():
        archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        folder.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder / "src"


def main() -> int:
    """Compare, and return the exit status: 1 if a map moved without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", help="the commit to compare with")
    parser.add_argument("--only", default="", help="a word that the names of the cases contain")
    parser.add_argument("--record", action="store_true", help="append the outcome to the results")
    parser.add_argument("--compute", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compute:
        compute(options.only)
        return 0
    if not options.revision:
        parser.error("give the commit to compare with, for example HEAD~1")
    old = hashes_of("old", checked_out(options.revision), options.only)
    new = hashes_of("new", ROOT / "src", options.only)
    reasons = json.loads((RESULTS / "map_hashes.reasons.json").read_text())
    moved = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    for name in moved:
        print(f"MOVED {name}: {old.get(name)} -> {new.get(name)}. {reasons.get(name, 'No reason is given.')}")
    failed = [name for name, value in new.items() if "Error" in value or "threads" in value]
    for name in failed:
        print(f"FAILED {name}: {new[name]}")
    print(f"{len(old) - len(set(moved) & set(old))} of {len(old)} cases have the same bits.")
    if options.record:
        from runner import Results  # imports drsne, which has to be that of a folder above

        row = {
            "old": git("rev-parse", "--short", options.revision),
            "commit": git("describe", "--always", "--dirty"),
            "equal": len(old) - len(set(moved) & set(old)),
            "cases": len(old),
            "moved": {name: reasons.get(name, "") for name in moved},
        }
        Results("map_hashes", "old", "commit").append(row)
    return int(bool(failed) or any(name not in reasons for name in moved))


if __name__ == "__main__":
    sys.exit(main())
