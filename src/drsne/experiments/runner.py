"""Runs a study: in processes of one thread each, with a row for every run, resumable at any time."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from drsne import checks
from drsne.experiments import methods, scoring
from drsne.experiments.methods import Ready
from drsne.experiments.rows import Row, Rows, key, make_folder, provenance
from drsne.experiments.study import Job, Study
from drsne.progress import ProgressBar


def run(
    study: Study | Sequence[Study],
    rows: Rows,
    *,
    jobs: int = 1,
    maps: Path | None = None,
    verbose: int = 1,
    retry: bool = False,
) -> list[Row]:
    """Make the runs of a study that have no row yet, and return all rows of the study.

    Parameters
    ----------
    study : Study or sequence of Study
        What to run; several are one piece of work, with their rows in one file.
    rows : Rows
        Where results are kept. Rows are added as runs finish, so a study that is killed goes on where it stopped.
    jobs : int, default=1
        Processes, each with one thread.
    maps : Path, default=None
        A folder for the maps, as ``<key>.npy``; None keeps none.
    verbose : int, default=1
        1 shows a progress bar with the time left on standard error.
    retry : bool, default=False
        Whether runs whose row is an error are made again.

    Returns
    -------
    list of dict
        The rows of this study, those that were there before among them.
    """
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed, parallel_config

    parts = as_parts(study)
    found = rows.read()
    there = {row["key"] for row in found if not (retry and row.get("error"))}
    todo, planned = [], set(there)
    for part in parts:
        todo += [(part, job) for job in part.jobs(planned)]
        planned |= part.all_keys()
    for part, name in {(id(part), job.method): (part, job.method) for part, job in todo}.values():
        methods.check(name, part.method(name))
    todo = _with_data(todo, anything=bool(of_study(parts, found)))
    if maps is not None:
        make_folder(maps)
    total = sum(len(job.values) for _, job in todo)
    if todo:
        label = todo[0][0].name
        with (
            ProgressBar(total, label, visible=bool(verbose)) as bar,
            parallel_config(backend="loky", inner_max_num_threads=1),
        ):
            done = 0
            parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            failed = 0
            try:
                for made in parallel(delayed(_make)(part, job, maps) for part, job in todo):
                    fresh = [row for row in made if row["key"] not in there]
                    rows.append(fresh)
                    done += len(made)
                    failed += sum(row["error"] is not None for row in fresh)
                    bar(done, {"failed": failed} if failed else {})
            except BrokenProcessPool as error:
                raise ChildProcessError(
                    "A process of the study was killed, most often for lack of memory. Finished rows are kept; start "
                    "again with fewer --jobs."
                ) from error
    return of_study(parts, rows.read())


def as_parts(study: Study | Sequence[Study]) -> tuple[Study, ...]:
    """One study as a sequence of one."""
    return (study,) if isinstance(study, Study) else tuple(study)


def _with_data(todo: list[tuple[Study, Job]], *, anything: bool) -> list[tuple[Study, Job]]:
    """The jobs whose data can be had; files are fetched here, once, before processes ask for them.

    What cannot be had is told and left out, and has no rows: the next start tries again. It is an error where there is
    not ``anything`` else to show.
    """
    failed: dict[str, Exception] = {}
    wanted = {job.dataset: (part, job.seed) for part, job in reversed(todo)}
    for dataset, (part, seed) in reversed(wanted.items()):
        try:
            part.load(dataset, seed)
        except (OSError, ImportError, ValueError) as error:
            failed[dataset] = error
    if failed and len(failed) == len(wanted) and not anything:
        raise next(iter(failed.values()))
    for dataset, reason in failed.items():
        checks.warn(f"{dataset} is left out: {reason}")
    return [(part, job) for part, job in todo if job.dataset not in failed]


def of_study(study: Study | Sequence[Study], rows: list[Row]) -> list[Row]:
    """The rows that belong to a study, the last of each run."""
    wanted = {key for part in as_parts(study) for key in part.all_keys()}
    found = list({row["key"]: row for row in rows if row["key"] in wanted}.values())
    for row in found:
        if lacking := _lacking(row):
            raise ValueError(
                f"The row with the key {row['key']!r} has no {', '.join(lacking)}. Remove its line from rows.jsonl; "
                "its run is then made again."
            )
    return found


def _lacking(row: Row) -> list[str]:
    fields = [name for name in _FIELDS if name not in row]
    if fields or row["error"]:
        return fields
    wanted = [name for asked, _ in row.get("scores", ()) for name in scoring.names(asked)]
    return [name for name in wanted if not _is_number(row["metrics"].get(name))]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


_FIELDS = ("dataset", "method", "params", "seed", "value", "error", "metrics", "seconds")


@lru_cache(maxsize=1)
def _ready(load: Callable[..., Any], *which: Any) -> tuple[Ready, Any, str]:
    """The data of a process: jobs come sorted by data set."""
    data = load(*which)
    return Ready(np.ascontiguousarray(data.X, dtype=np.float64)), data.y, data.source


@lru_cache(maxsize=1)
def _yardstick(load: Callable[..., Any], name: str) -> tuple[Ready, Any, str]:
    """What maps are scored against where it is not what is embedded: kept apart from that."""
    return _ready.__wrapped__(load, name)


def _make(study: Study, job: Job, maps: Path | None) -> list[Row]:
    """The rows of a job; a failure is a row with its error, but for maps that cannot be written."""
    rest, rows = list(job.values), []
    files: dict[Path, Any] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="Lowered (perplexity|density_neighbors)")  # a row is what it says
        try:
            which = (job.dataset, job.seed) if study.resampled else (job.dataset,)
            ready, labels, source = _ready(study.data, *which)
            scored, marks = _yardstick(study.data, study.against)[:2] if study.against else (ready, labels)
            for run in study.method(job.method).maps(ready, job.values, job.seed):
                value = rest.pop(rest.index(run.value))  # as it was asked for: 1 and 1.0 have different keys
                row = _row(study, job, value)
                try:
                    row["metrics"] = scoring.scores(scored, run.embedding, study.scores, marks)
                except Exception as error:
                    row["error"] = _told(error)
                row |= {"source": source, "seconds": {name: round(s, 3) for name, s in run.seconds.items()}}
                if run.found:
                    row["found"] = dict(run.found)
                if ("anomaly", None) in study.scores:
                    row["anomalies"] = int(np.sum(labels))
                if maps is not None and run.embedding.shape[1] == 2:
                    files[maps / f"{row['key']}.npy"] = run.embedding.astype(np.float32)
                rows.append(row)
        except Exception as error:
            rows += [_row(study, job, value) | {"error": _told(error)} for value in rest]
    for file, Y in files.items():
        _save(file, Y)
    return rows


def _save(file: Path, Y: Any) -> None:
    try:
        np.save(file, Y)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise OSError(
            error.errno,
            f"Could not write {file}: {error.strerror or error}. Finished rows are kept; make room and start again.",
        ) from error


def _row(study: Study, job: Job, value: Any) -> Row:
    identity = study.identity(job.dataset, job.method, value, job.seed)
    row = {"key": key(identity), "study": study.name, **identity, "value": value, "error": None}
    return row | {"metrics": {}, "seconds": {}, **provenance()}


def _told(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
