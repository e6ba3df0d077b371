"""Compare the quality of maps with that of the peers: defaults against defaults, and our path against every setting.

    python benchmarks/quality.py                      run all steps below, one after the other
    python benchmarks/quality.py --prepare            write the eight data sets to the folder of --data
    python benchmarks/quality.py --fit [--methods drsne umap] [--sets MNIST] [--seeds 3 4 5] [--jobs 2]
    python benchmarks/quality.py --score [--jobs 2]   score the maps in the folder of --maps that lack a score
    python benchmarks/quality.py --report             write results/quality.md and the pictures

The rules of the comparison, fixed before its maps were made:

- All results are means over seeds 3, 4 and 5. No default of ours was chosen on these seeds.
- Default against default: every method is called without arguments other than the seed. densMAP and ScaleMAP are
  switched on with their flag, and keep the strength that their documentation gives as the default.
- Our path against every setting of every density-aware peer: a setting (data set, method, value of its density
  parameter) is *matched* if one map of ``drsne.density_path(X)`` with default settings is at least as good on
  trustworthiness, concentration correlation and the density rank correlations at 30 and at 5 neighbours, all at once.
  The scores of both are means over the three seeds, and ours are all taken at the same weight. They are compared
  without rounding. Nothing else of ours is chosen by looking at a rival.
- The default against every setting: the same rule with the one map of ``DRSNE()`` in place of the path.

A map is made once and kept in the folder of --maps; its scores are a line of results/quality.jsonl, written as soon
as they are known. A killed study continues where it stopped. To make maps on another machine, copy the folder of
--data there, run ``--fit``, and copy the folder of --maps back.

Methods that are not installed are skipped with a message. ``pip install 'drsne[peers]' scalemap==0.1.2`` adds all of
them. ``--prepare`` also needs scanpy, and the files of Fashion-MNIST, MNIST, PBMC and Shuttle in DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from data import EIGHT, file_of, prepare
from joblib import Parallel, delayed
from quality_methods import METHODS, Method, Params
from quality_rows import Key, Maps, Row, append, key, read, rewrite
from quality_scores import SCORES, Scorer
from threadpoolctl import threadpool_limits

import drsne

SEEDS = (3, 4, 5)
SCORED_TOGETHER = 12  # maps whose scores are computed by one job
T = TypeVar("T")
FOLDER = Path(tempfile.gettempdir()) / "drsne-quality"


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield the items in tuples of ``size``; the last one can be shorter."""
    remaining = iter(items)
    while batch := tuple(islice(remaining, size)):
        yield batch


class Job(NamedTuple):
    """Settings of a method that are run one after the other, on one data set with one seed."""

    data_set: str
    method: str
    settings: tuple[Params, ...]
    seed: int


def rows_of(job: Job) -> list[Row]:
    """Return the identifying fields of the maps of a job."""
    return [{"set": job.data_set, "method": job.method, "params": params, "seed": job.seed} for params in job.settings]


def planned(options: argparse.Namespace) -> list[Job]:
    """Return all jobs of the selected methods, sets and seeds."""
    return [
        Job(name, method, settings, seed)
        for seed, method, name in product(options.seeds, options.methods, options.sets)
        for settings in batched(selected(METHODS[method], options.defaults), METHODS[method].per_job)
    ]


def selected(method: Method, defaults: bool) -> tuple[Params, ...]:
    """Return the grid of a method, or only its default setting."""
    if not defaults:
        return method.grid
    return () if method.default is None else (method.default,)


def fit(job: Job, data: Path, maps: Maps) -> str:
    """Make and save the maps of a job on one thread, and return a line that says how it went."""
    import numba

    warnings.simplefilter("ignore")
    numba.set_num_threads(1)
    method = METHODS[job.method]
    label = f"{job.data_set}, {method.title}, seed {job.seed}"
    seconds = 0.0
    try:
        X = np.load(file_of(data, job.data_set))
        with threadpool_limits(1):
            for params, embedding, taken in method.maps(X, job.settings, job.seed):
                row = rows_of(job._replace(settings=(params,)))[0]
                row |= {"seconds": round(taken, 2), "version": installed(method.distribution)}
                maps.save(row, embedding)
                seconds += taken
    except Exception as error:  # one method that fails must not end the study
        return f"{label}: {type(error).__name__}: {error}"
    return f"{label}: {seconds:.1f} s"


def installed(distribution: str) -> str:
    """Return a distribution with its version, which is unknown if it is only unpacked on the search path."""
    if distribution == "drsne":
        return f"drsne {drsne.__version__}"
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution


def run_fits(options: argparse.Namespace) -> None:
    """Make the maps that are in neither the folder nor the rows."""
    maps = Maps(options.maps)
    done = set(read()) | {key(row) for row in maps.rows()}
    jobs = []
    for job in planned(options):
        missing = tuple(row["params"] for row in rows_of(job) if key(row) not in done)
        if missing:
            jobs.append(job._replace(settings=missing))
    absent = {job.data_set for job in jobs if not file_of(options.data, job.data_set).exists()}
    if absent:
        print(f"Skipped, not in {options.data}: {', '.join(sorted(absent))}. Run --prepare first.")
    jobs = [job for job in jobs if job.data_set not in absent]
    parallel = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for count, line in enumerate(parallel(delayed(fit)(job, options.data, maps) for job in jobs), 1):
        print(f"[{count}/{len(jobs)}] {line}", flush=True)


def forget(options: argparse.Namespace) -> None:
    """Delete the rows and maps of the selected methods, sets and seeds."""
    maps, rows = Maps(options.maps), read()
    for row in [*rows.values(), *maps.rows()]:
        if row["method"] in options.methods and row["set"] in options.sets and row["seed"] in options.seeds:
            maps.remove(row)
            rows.pop(key(row), None)
    rewrite(rows.values())


def score(data: Path, maps: Maps, rows: list[Row]) -> list[Row]:
    """Add the scores to several rows of one data set."""
    with threadpool_limits(1):
        found = Scorer(np.load(file_of(data, rows[0]["set"])))([maps.load(row) for row in rows])
    return [{**row, "scores": scores} for row, scores in zip(rows, found, strict=True)]


def unscored(maps: Maps, rows: dict[Key, Row]) -> list[Row]:
    """Return the rows of maps that lack a score. Scores of an earlier map with the same key are dropped."""
    out = []
    for fresh in maps.rows():
        known = rows.get(key(fresh), {})
        scores = known.get("scores", {}) if known.get("digest") == fresh["digest"] else {}
        if fresh["method"] in METHODS and set(SCORES) - set(scores):
            out.append(fresh)
    return out


def run_scores(options: argparse.Namespace) -> None:
    """Score the maps that lack a score, and write each row at once."""
    maps = Maps(options.maps)
    waiting = unscored(maps, read())
    jobs = [
        (options.data, maps, list(rows))
        for name in options.sets
        for rows in batched((row for row in waiting if row["set"] == name), SCORED_TOGETHER)
    ]
    parallel = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for rows in parallel(delayed(score)(*job) for job in jobs):
        for row in rows:
            append(row)
        print(f"scored {len(rows)} maps of {rows[0]['set']}", flush=True)
    rewrite(read().values())


def main() -> None:
    """Run the steps that were asked for, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = ("prepare", "fit", "score", "report")
    parser.add_argument("--prepare", action="store_true", help="write the data sets")
    parser.add_argument("--fit", action="store_true", help="make the maps that are missing")
    parser.add_argument("--score", action="store_true", help="compute the scores that are missing")
    parser.add_argument("--report", action="store_true", help="write the tables and pictures")
    parser.add_argument("--defaults", action="store_true", help="fit only the settings of the table of defaults")
    parser.add_argument("--again", action="store_true", help="first delete the selected rows and maps")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--sets", nargs="+", choices=list(EIGHT), default=list(EIGHT))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    parser.add_argument("--data", type=Path, default=FOLDER / "data", help="folder of the data sets")
    parser.add_argument("--maps", type=Path, default=FOLDER / "maps", help="folder of the maps")
    options = parser.parse_args()
    chosen = [step for step in steps if getattr(options, step)] or steps
    if options.again:
        forget(options)
    if "prepare" in chosen:
        prepare(options.sets, options.data)
    if "fit" in chosen:
        run_fits(options)
    if "score" in chosen:
        run_scores(options)
    if "report" in chosen:
        from quality_report import report

        report(Maps(options.maps), options.data)


if __name__ == "__main__":
    main()
