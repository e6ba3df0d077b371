"""The stages in order, each of which is skipped where its results exist."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from drsne import checks
from drsne.distributed import cluster, concentration, landmark_map, landmarks, placing, scores, spool, statistics
from drsne.distributed.sources import Part
from drsne.distributed.work import Work, writing
from drsne.estimators.drsne import DRSNE
from drsne.progress import ProgressBar

_SAMPLE = 5_000  # smallest number of rows of the uniform sample
_BOUND = "bound"  # file with the bound on the random numbers of landmarks


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
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of rows of all partitions."""
        return sum(part.n_rows for part in self.parts)

    @property
    def threads(self) -> int | None:
        """The number of threads of a task. Tasks on workers have one thread each."""
        return self.n_jobs if self.client is None else 1

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Write down how long a stage takes."""
        begin = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - begin, 3)

    def each(
        self,
        label: str,
        function: Callable[..., Any],
        missing: Sequence[int],
        arguments: Callable[[int], tuple[Any, ...]],
        done: Callable[[int], None] = lambda number: None,
        *,
        lazy: bool = False,
    ) -> None:
        """Call a function for the missing partitions, with a progress bar over the rows of all partitions."""
        finished = self.n_rows - sum(self.parts[number].n_rows for number in missing)
        with ProgressBar(self.n_rows, label, visible=bool(self.verbose), preparing="starting ...") as bar:

            def count(number: int, _: Any) -> None:
                nonlocal finished
                done(number)
                finished += self.parts[number].n_rows
                bar(finished, {})

            cluster.run(function, {number: arguments(number) for number in missing}, self.client, count, lazy=lazy)


def run_all(run: Run, array: Any) -> None:
    """Run all stages. ``array`` is the Dask array of the data, or None for Parquet files."""
    for stage, function in (
        (statistics.STAGE, _statistics),
        (landmarks.STAGE, _landmarks),
        (concentration.STAGE, _concentration),
        (landmark_map.STAGE, _map),
        (placing.STAGE, _place),
        (scores.STAGE, _scores),
    ):
        if stage == statistics.STAGE and array is not None:
            with run.timed(spool.STAGE):
                _spool(run, array)
        with run.timed(stage):
            function(run)
    for path in (*run.work.folder.glob(f"{spool.STAGE}/*"), *run.work.folder.rglob(".*.*")):
        path.unlink(missing_ok=True)  # blocks of a Dask array, and files that killed processes have left


def _spool(run: Run, array: Any) -> None:
    run.work.missing(spool.STAGE, 0)  # makes the folder
    if _finished(run):
        return
    blocks = spool.lazy_blocks(array)
    missing = [number for number, part in enumerate(run.parts) if not Path(part.path).exists()]
    run.each("array", spool.store, missing, lambda number: (blocks[number], run.parts[number]), lazy=True)


def _finished(run: Run) -> bool:
    """Return whether all stages that read the data are finished."""
    return not _unplaced(run) and run.work.load_json(scores.STAGE) is not None


def _statistics(run: Run) -> None:
    work, size = run.work, max(_SAMPLE, run.n_scored, run.n_landmarks // 4)
    if work.path(statistics.STAGE).exists():
        return
    share = statistics.share_for(size, run.n_rows)
    run.each(
        "statistics",
        statistics.summarize,
        work.missing(statistics.STAGE, len(run.parts)),
        partial(_arguments, run, (work, run.seed, share)),
    )
    statistics.merge(work, len(run.parts), size)


def _landmarks(run: Run) -> None:
    work, law = run.work, landmarks.Law(run.estimator.metric, run.coverage)
    while not work.path(landmarks.STAGE).exists():
        if work.load_json(_BOUND) is None:
            work.save_json(_BOUND, landmarks.bound(work, law, run.n_landmarks))
        rest = work, run.seed, law, float(work.load_json(_BOUND)), run.threads
        missing = work.missing(landmarks.STAGE, len(run.parts))
        run.each("landmarks", landmarks.draw, missing, partial(_arguments, run, rest))
        if not landmarks.merge(work, len(run.parts), run.n_landmarks):  # the bound was too small, which is unlikely
            for number in range(len(run.parts)):
                work.path(landmarks.STAGE, number).unlink(missing_ok=True)
            work.save_json(_BOUND, 2.0 * float(work.load_json(_BOUND)))


def _arguments(run: Run, rest: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return run.parts[number], number, *rest


def _concentration(run: Run) -> None:
    work, metric = run.work, run.estimator.metric
    if not work.path(concentration.QUERIES).exists():
        k = int(run.estimator.density_neighbors) + 1  # a landmark is its own nearest row
        concentration.prepare(work, metric, k, run.n_checked, run.n_jobs)
    merged = concentration.Merged(work, len(run.parts))
    run.each(
        "concentration",
        concentration.search,
        merged.missing,
        partial(_arguments, run, (work, metric, run.threads)),
        merged.add,
    )


def _map(run: Run) -> None:
    if not (run.work.folder / landmark_map.FILE).exists():
        landmark_map.fit(run.work, run.estimator, run.n_jobs, run.verbose)


def _unplaced(run: Run) -> list[int]:
    work, output = run.work, run.output
    return [number for number, part in enumerate(run.parts) if not placing.is_complete(part, number, work, output)]


def _place(run: Run) -> None:
    with writing(run.output):
        run.output.mkdir(parents=True, exist_ok=True)
    run.work.missing(placing.STAGE, 0)  # makes the folder
    unplaced = _unplaced(run)
    recorded = [number for number in unplaced if run.work.path(placing.STAGE, number, "json").exists()]
    changed = [name for name in (run.parts[number].name for number in recorded) if (run.output / name).exists()]
    if changed:
        checks.warn(
            f"Files of {run.output} are damaged or were changed ({len(changed)}, the first one is {changed[0]}). They "
            "are written again."
        )
    arguments = partial(_arguments, run, (run.work, run.output, run.threads))
    run.each("places", placing.place, unplaced, arguments)
    names = {part.name for part in run.parts}
    endings = {Path(name).suffix for name in names}
    for path in run.output.glob(".*"):  # files that workers were writing when they were killed
        if path.suffix in endings and path.name not in names:
            path.unlink(missing_ok=True)


def _scores(run: Run) -> None:
    if run.work.load_json(scores.STAGE) is None:
        with ProgressBar(1, "scores", visible=bool(run.verbose), preparing="computing ...") as bar:
            found = scores.score(run.work, run.parts, run.output, run.n_scored, run.n_checked, run.seed)
            bar(1, {})
        run.work.save_json(scores.STAGE, found)


def check_sizes(run: Run) -> None:
    """Raise an error if there are too few rows, and warn if all of them are landmarks."""
    if run.n_rows < 10:
        raise ValueError(f"source must have at least 10 rows; got {run.n_rows}. Use drsne.DRSNE for small data.")
    if run.n_landmarks >= run.n_rows:
        checks.warn(
            f"All {run.n_rows} rows are landmarks, because n_landmarks={run.n_landmarks}. Use drsne.DRSNE for data "
            "that fit into memory, or lower n_landmarks."
        )
