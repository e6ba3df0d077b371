"""Runs a study in processes of one thread each. Every run gives a row, and a study can be resumed at any time."""

from __future__ import annotations

import math
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from drsne_paper import checks, methods
from drsne_paper.methods import Run, Workspace
from drsne_paper.rows import Row, Rows, key, make_folder, other_versions, provenance
from drsne_paper.study import Job, Study

Part = tuple[Study, Job]
_FIELDS = ("dataset", "method", "params", "seed", "value", "error", "metrics", "seconds")  # fields that every row has
_WATCH_SECONDS = 1.0  # time between checks whether the parent process is still alive


def has_failed(row: Row) -> bool:
    """Return whether the run of a row raised an error."""
    return bool(row.get("error"))


def run(
    study: Study | Sequence[Study],
    rows: Rows,
    *,
    jobs: int = 1,
    client: Any = None,
    maps: Path | None = None,
    verbose: int = 1,
    retry: bool = False,
    failed: Callable[[Row], bool] = has_failed,
) -> list[Row]:
    """Make the runs of a study that have no row yet, and return all rows of the study.

    Parameters
    ----------
    study : Study or sequence of Study
        The study to run. Several studies are run as one, with their rows in one file.
    rows : Rows
        The file of results. Rows are added as runs finish, so a study that was killed continues where it stopped.
    jobs : int, default=1
        Number of processes, each with one thread.
    client : distributed.Client, default=None
        A client of Dask. If it is given, the runs are tasks on its workers, and ``jobs`` is ignored. The workers must
        have the same version of this package, and see the data and the folder of the maps at the same paths.
    maps : Path, default=None
        A folder in which maps are kept as ``<key>.npy``; if None, maps are not kept.
    verbose : int, default=1
        1 shows a progress bar with the remaining time on standard error.
    retry : bool, default=False
        Whether runs that failed are repeated.
    failed : callable, default=has_failed
        A function that returns whether the run of a given row failed.

    Returns
    -------
    list of dict
        All rows of this study, including those that existed before.
    """
    parts = as_parts(study)
    with rows.exclusive():
        existing = rows.read()
        _report_versions(rows_of_study(parts, existing))
        done = {row["key"] for row in existing if not (retry and failed(row))}
        todo, planned = [], set(done)
        for part in parts:
            todo += [(part, job) for job in part.jobs(planned)]
            planned |= part.all_keys()
        for part, name in {(id(part), job.method): (part, job.method) for part, job in todo}.values():
            methods.check(name, part.method(name))
        todo = _with_data(todo, anything=bool(rows_of_study(parts, existing)))
        if maps is not None:
            make_folder(maps)
        if todo:
            _run_jobs(todo, rows, done, jobs=jobs, client=client, maps=maps, verbose=verbose)
    return rows_of_study(parts, rows.read())


def _run_jobs(
    todo: Sequence[Part],
    rows: Rows,
    done: set[str],
    *,
    jobs: int,
    client: Any,
    maps: Path | None,
    verbose: int,
) -> None:
    """Run the jobs, and add their rows as they finish."""
    total = sum(len(job.values) for _, job in todo)
    n_failed = 0
    made_by = _in_processes(todo, jobs, maps) if client is None else _on_the_cluster(todo, client, maps)
    with tqdm(total=total, desc=todo[0][0].name, disable=not verbose) as bar:
        for made in made_by:
            fresh = [row for row in made if row["key"] not in done]
            rows.append(fresh)
            n_failed += sum(row["error"] is not None for row in fresh)
            if n_failed:
                bar.set_postfix(failed=n_failed, refresh=False)
            bar.update(len(made))


def _on_the_cluster(todo: Sequence[Part], client: Any, maps: Path | None) -> Iterator[list[Row]]:
    """Yield the rows of the jobs from the workers of Dask, which repeats the jobs of workers that die."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker, as_completed
    from distributed.comm import CommClosedError

    tasks = [client.submit(_make, *each, maps and maps.absolute(), None, pure=False) for each in todo]
    try:
        for _, made in as_completed(tasks, with_results=True):
            yield made
    except (KilledWorker, CommClosedError, CancelledError) as error:
        raise ChildProcessError(
            f"The cluster lost its scheduler or several workers ({type(error).__name__}), often because memory ran "
            "out. Finished rows are kept; start again when the cluster runs."
        ) from error
    finally:
        client.cancel([task for task in tasks if not task.done()])


def _in_processes(todo: Sequence[Part], jobs: int, maps: Path | None) -> Iterator[list[Row]]:
    """Yield the rows of the jobs from processes of one thread each."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        calls = (delayed(_make)(part, job, maps, os.getpid()) for part, job in todo)
        try:
            yield from parallel(calls)
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "A process of the study was killed, most often because memory ran out. Finished rows are kept; start "
                "again with fewer --jobs."
            ) from error


def _report_versions(rows: Sequence[Row]) -> None:
    """Warn about rows that another version of this package computed."""
    import drsne

    counts = other_versions(rows)
    if counts:
        versions = ", ".join(f"{count} by drsne {version}" for version, count in sorted(counts.items()))
        checks.warn(
            f"Some of the {len(rows)} rows were computed by a version other than {drsne.__version__}: {versions}. They "
            "are used unchanged. To compute them again, remove them from the file."
        )


def as_parts(study: Study | Sequence[Study]) -> tuple[Study, ...]:
    """Return a tuple of studies, whether one or several are given."""
    return (study,) if isinstance(study, Study) else tuple(study)


def _with_data(todo: list[Part], *, anything: bool) -> list[Part]:
    """Return the jobs whose data are available. Files are downloaded here, before several processes need them.

    Data that are not available are skipped with a warning and get no rows, so that the next start tries again. If
    no data are available and there is not ``anything`` else to show, the first error is raised.
    """
    failures: dict[str, Exception] = {}
    wanted = {job.dataset: (part, job.seed) for part, job in reversed(todo)}
    for dataset, (part, seed) in reversed(wanted.items()):
        try:
            part.load(dataset, seed)
        except (OSError, ImportError, ValueError) as error:
            failures[dataset] = error
    if failures and len(failures) == len(wanted) and not anything:
        raise next(iter(failures.values()))
    for dataset, reason in failures.items():
        checks.warn(f"Skipped the data set {dataset}: {reason}")
    return [(part, job) for part, job in todo if job.dataset not in failures]


def rows_of_study(study: Study | Sequence[Study], rows: Sequence[Row]) -> list[Row]:
    """Return the last row of each run of a study, and raise an error if one of these rows is incomplete."""
    wanted = {key for part in as_parts(study) for key in part.all_keys()}
    out = list({row["key"]: row for row in rows if row["key"] in wanted}.values())
    for row in out:
        if missing := _missing(row):
            raise ValueError(
                f"The row with the key {row['key']!r} has no {', '.join(missing)}. Remove its line from the file of "
                "rows; its run will then be repeated."
            )
    return out


def _missing(row: Row) -> list[str]:
    """Return the fields and scores that a row lacks."""
    from drsne_paper.scoring import score_names

    fields = [name for name in _FIELDS if name not in row]
    if fields or row["error"]:
        return fields
    wanted = [name for requested, _ in row.get("scores", ()) for name in score_names(requested)]
    return [name for name in wanted if not _is_number(row["metrics"].get(name))]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


class _Loaded:
    """The data of a process, with the results that its runs share."""

    def __init__(self, data: Any) -> None:
        self.workspace = Workspace(np.ascontiguousarray(data.X, dtype=np.float64))
        self.labels, self.source = data.y, data.source


@lru_cache(maxsize=1)
def _embedded(load: Callable[..., Any], params: tuple[tuple[str, Any], ...], *which: Any) -> _Loaded:
    """Return the data that are embedded; jobs are sorted by data set."""
    return _Loaded(load(*which, **dict(params)))


@lru_cache(maxsize=1)
def _reference(load: Callable[..., Any], params: tuple[tuple[str, Any], ...], name: str) -> _Loaded:
    """Return the data that maps are scored against, if they differ from the embedded data; they are kept separately."""
    return _Loaded(load(name, **dict(params)))


def _make(study: Study, job: Job, maps: Path | None, parent: int | None) -> list[Row]:
    """Return the rows of a job. ``parent`` is the process that runs the study, or None on a worker of Dask.

    A failed run gives a row with its error. An exception is raised if a map cannot be written.
    """
    from threadpoolctl import threadpool_limits

    if parent is not None:
        _end_with(parent)
    remaining, rows = list(job.values), []
    files: dict[Path, Any] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            which = (job.dataset, job.seed) if study.resampled else (job.dataset,)
            data = _embedded(study.data, tuple(study.data_params.items()), *which)
            scored = data
            if study.against is not None:
                scored = _reference(study.data, tuple(study.against.items()), job.dataset)
            for one in study.method(job.method).maps(data.workspace, job.values, job.seed):
                # Take the value from the grid, because 1 and 1.0 have different keys.
                value = remaining.pop(remaining.index(one.value))
                row = _row(study, job, value) | _results(study, job.dataset, one, data, scored)
                if maps is not None and one.embedding is not None and one.embedding.shape[1] == 2:
                    files[maps / f"{row['key']}.npy"] = one.embedding.astype(np.float32)
                rows.append(row)
        except Exception as error:
            rows += [_row(study, job, value) | {"error": _described(error)} for value in remaining]
    for file, Y in files.items():
        _save(file, Y)
    return rows


def _results(study: Study, dataset: str, one: Run, data: _Loaded, scored: _Loaded) -> Row:
    """Return the fields of a row that hold the results of a run."""
    from drsne_paper import scoring

    row: Row = {"source": data.source, "seconds": {name: round(s, 3) for name, s in one.seconds.items()}}
    details = dict(one.details)
    if one.embedding is not None:
        try:
            row["metrics"] = scoring.scores(scored.workspace, one.embedding, study.scores, scored.labels)
            if study.extra is not None:
                details |= study.extra(dataset, data.workspace.X, one.embedding, data.labels)
        except Exception as error:
            row["error"] = _described(error)
    if details:
        row["details"] = details
    if (scoring.ANOMALY, None) in study.scores:
        row["anomalies"] = int(np.sum(data.labels))
    return row


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """End this process when its parent has died, so that killing a study leaves no workers behind."""
    if os.getpid() == parent:
        return
    started_by = os.getppid()

    def watch() -> None:
        while os.getppid() == started_by:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="drsne-watch", daemon=True).start()


def _save(file: Path, Y: Any) -> None:
    try:
        np.save(file, Y)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise OSError(
            error.errno,
            f"Could not write {file}: {error.strerror or error}. Finished rows are kept; free some space and start "
            "again.",
        ) from error


def _row(study: Study, job: Job, value: Any) -> Row:
    identity = study.identity(job.dataset, job.method, value, job.seed)
    row = {"key": key(identity), "study": study.name, **identity, "value": value, "error": None}
    return row | {"metrics": {}, "seconds": {}, **provenance()}


def _described(error: Exception) -> str:
    """Return the type of an error, its message and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
