"""The stages in order, each of which is skipped where its results exist."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drsne import checks
from drsne.distributed import cluster, concentration, landmarks, placing, sources
from drsne.distributed.sources import Part
from drsne.distributed.work import (
    CONCENTRATION,
    INPUT,
    LANDMARKS,
    MAP,
    OUTPUT,
    QUERIES,
    SCORES,
    STATISTICS,
    Work,
    writing,
)
from drsne.estimators.drsne import DRSNE
from drsne.progress import ProgressBar

_SAMPLE = 5_000  # smallest number of rows of the uniform sample


@dataclass(frozen=True, kw_only=True)
class Run:
    """What all stages share."""

    parts: Sequence[Part]
    work: Work
    output: Path
    estimator: DRSNE
    n_landmarks: int
    coverage: float
    n_checked: int
    n_scored: int
    seed: int
    n_jobs: int | None
    verbose: int
    client: Any = None
    array: Any = None  # the Dask array of the data, or None for Parquet files
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of rows of all partitions."""
        return sum(part.n_rows for part in self.parts)

    @property
    def threads(self) -> int | None:
        """The number of threads of a task. Tasks on workers have one thread each."""
        return self.n_jobs if self.client is None else 1

    def each(
        self,
        label: str,
        function: Callable[..., Any],
        missing: Sequence[int],
        *arguments: Any,
        done: Callable[[int], None] = lambda number: None,
        blocks: Sequence[Any] = (),
    ) -> None:
        """Call a function for the missing partitions, with a progress bar over the rows of all partitions.

        The function gets a partition, its number and the ``arguments``, and at last its delayed block if there are
        ``blocks``. ``done`` is called with the number when a call has finished.
        """
        finished = self.n_rows - sum(self.parts[number].n_rows for number in missing)
        with ProgressBar(self.n_rows, label, visible=bool(self.verbose), preparing="starting ...") as bar:

            def count(number: int, _: Any) -> None:
                nonlocal finished
                done(number)
                finished += self.parts[number].n_rows
                bar(finished, {})

            calls = {n: (self.parts[n], n, *arguments, *blocks[n : n + 1]) for n in missing}
            cluster.run(function, calls, self.client, count, lazy=bool(blocks))


def run_all(run: Run) -> None:
    """Run all stages, and write down how long they take."""
    stages = {
        INPUT: _store,
        STATISTICS: _statistics,
        LANDMARKS: _landmarks,
        CONCENTRATION: _concentration,
        MAP: _map,
        OUTPUT: _place,
        SCORES: _scores,
    }
    if run.array is None:
        del stages[INPUT]
    for stage, function in stages.items():
        begin = time.perf_counter()
        function(run)
        run.seconds[stage] = round(time.perf_counter() - begin, 3)
    for path in (*run.work.folder.glob(f"{INPUT}/*"), *run.work.folder.rglob(".*.*")):
        path.unlink(missing_ok=True)  # blocks of a Dask array, and files that killed processes have left


def _store(run: Run) -> None:
    run.work.missing(INPUT, 0)  # makes the folder
    if not _unplaced(run) and run.work.path(SCORES, ending="json").exists():  # nothing reads the data again
        return
    blocks = list(run.array.rechunk({1: -1}).to_delayed()[:, 0])
    missing = [number for number, part in enumerate(run.parts) if not Path(part.path).exists()]
    run.each("array", sources.store, missing, blocks=blocks)


def _statistics(run: Run) -> None:
    work, size = run.work, max(_SAMPLE, run.n_scored, run.n_landmarks // 4)
    if not work.path(STATISTICS).exists():
        missing = work.missing(STATISTICS, len(run.parts))
        run.each("statistics", landmarks.summarize, missing, work, run.seed, size, run.n_rows)
        landmarks.merge_statistics(work, len(run.parts), size)


def _landmarks(run: Run) -> None:
    work, law = run.work, landmarks.Law(run.estimator.metric, run.coverage)
    path = work.path("bound", ending="json")
    while not work.path(LANDMARKS).exists():
        if (bound := work.load_json(path)) is None:
            bound = landmarks.bound(work, law, run.n_landmarks)
            work.save_json(path, bound)
        missing = work.missing(LANDMARKS, len(run.parts))
        run.each("landmarks", landmarks.draw, missing, work, run.seed, law, float(bound), run.threads)
        if not landmarks.merge(work, len(run.parts), run.n_landmarks):  # the bound was too small, which is unlikely
            for number in range(len(run.parts)):
                work.path(LANDMARKS, number).unlink(missing_ok=True)
            work.save_json(path, 2.0 * float(bound))


def _concentration(run: Run) -> None:
    work, metric = run.work, run.estimator.metric
    if not work.path(QUERIES).exists():
        k = int(run.estimator.density_neighbors) + 1  # a landmark is its own nearest row
        concentration.prepare(work, metric, k, run.n_checked, run.n_jobs)
    merged = concentration.Merged(work, len(run.parts))
    run.each("concentration", concentration.search, merged.missing, work, metric, run.threads, done=merged.add)


def _map(run: Run) -> None:
    if not (run.work.folder / placing.MODEL).exists():
        placing.fit(run.work, run.estimator, run.n_jobs, run.verbose)


def _unplaced(run: Run) -> list[int]:
    work, output = run.work, run.output
    return [number for number, part in enumerate(run.parts) if not placing.is_complete(part, number, work, output)]


def _place(run: Run) -> None:
    with writing(run.output):
        run.output.mkdir(parents=True, exist_ok=True)
    run.work.missing(OUTPUT, 0)  # makes the folder
    unplaced = _unplaced(run)
    recorded = [run.parts[number].name for number in unplaced if run.work.path(OUTPUT, number, "json").exists()]
    if changed := [name for name in recorded if (run.output / name).exists()]:
        checks.warn(
            f"Files of {run.output} are damaged or were changed ({len(changed)}, the first one is {changed[0]}). They "
            "are written again."
        )
    run.each("places", placing.place, unplaced, run.work, run.output, run.threads)
    names = {part.name for part in run.parts}
    endings = {Path(name).suffix for name in names}
    for path in run.output.glob(".*"):  # files that workers were writing when they were killed
        if path.suffix in endings and path.name not in names:
            path.unlink(missing_ok=True)


def _scores(run: Run) -> None:
    path = run.work.path(SCORES, ending="json")
    if run.work.load_json(path) is None:
        with ProgressBar(1, "scores", visible=bool(run.verbose), preparing="computing ...") as bar:
            found = placing.score(run.work, run.parts, run.output, run.n_scored, run.n_checked, run.seed)
            bar(1, {})
        run.work.save_json(path, found)
