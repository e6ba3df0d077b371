"""The pipeline for data larger than memory: times, memory per worker, equal bytes, and scores against a direct fit.

    python benchmarks/larger_than_memory.py table   --rows 4000000 --folder big [--workers 2]
    python benchmarks/larger_than_memory.py cluster --rows 4000000 --folder big [--workers 2] [--memory 1GB]
    python benchmarks/larger_than_memory.py cluster --rows 4000000 --folder big --workers 16 --device cuda --threads 16
    python benchmarks/larger_than_memory.py one     --rows 4000000 --folder big [--threads 2]
    python benchmarks/larger_than_memory.py compare --rows 4000000 --folder big
    python benchmarks/larger_than_memory.py direct  --rows 300000  --folder middle
    python benchmarks/larger_than_memory.py report

``table`` generates the data block by block, in one process for each worker: 40 groups of 3 to 8 dimensions in 50
columns, whose scales span two decades. ``cluster`` runs the pipeline on workers of one thread with a memory limit, and
``one`` in one process. With ``--device``, a GPU fits the landmarks; all rows are placed on the processor. ``compare``
checks that both wrote the same bytes and every row once. ``direct`` fits all rows at once, and scores both maps on the
same rows. Every call adds a row to results/distributed.jsonl, from which ``report`` writes distributed.md. The runs
resume, so times are complete only if the run was not interrupted; the field ``fresh`` says so. If a run takes longer
than your session lasts, start it with ``setsid nohup`` and look at its log. (The program is not called distributed.py,
because that is the name of a package of Dask, which it would hide.)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from runner import FIVE, Results, table, write
from threadpoolctl import threadpool_limits

import drsne
from drsne import DRSNE, distributed, metrics
from drsne.distributed.sources import parquet_files

ROWS = Results("distributed", "what", "rows", "landmarks", "workers", "coverage", "device")
GROUPS, COLUMNS, DECADES = 40, 50, 2.0
MAPS = ("direct", "placed")
STAGES = ("input", "statistics", "landmarks", "concentration", "landmark_map", "output", "scores")


def block(number: int, n: int) -> np.ndarray:
    """Return a block of rows. Group g has the scale 10^(g / GROUPS * DECADES - 1), and groups have different sizes."""
    shared, rng = np.random.default_rng(0), np.random.default_rng([1, number])
    centres = shared.normal(size=(GROUPS, COLUMNS)) * 8.0
    scales = shared.permutation(10.0 ** np.linspace(-DECADES / 2, DECADES / 2, GROUPS))
    sizes = shared.dirichlet(np.full(GROUPS, 2.0))
    axes = [shared.normal(size=(3 + g % 6, COLUMNS)) / np.sqrt(COLUMNS) for g in range(GROUPS)]
    group = rng.choice(GROUPS, n, p=sizes)
    X = 0.02 * rng.normal(size=(n, COLUMNS))
    for g in range(GROUPS):
        rows = np.flatnonzero(group == g)
        X[rows] += rng.normal(size=(len(rows), len(axes[g]))) @ axes[g]
        X[rows] = centres[g] + scales[g] * X[rows]
    return X.astype(np.float32)


def write_block(path: Path, number: int, n: int) -> None:
    """Write a block of rows to a file, unless it exists."""
    if path.exists():
        return
    with threadpool_limits(1):  # other processes make other blocks at the same time
        names, X = [f"x{column}" for column in range(COLUMNS)], block(number, n)
    table = pa.table(dict(zip(names, X.T, strict=True)))
    pq.write_table(table, path.with_suffix(".new"), row_group_size=32_768)
    path.with_suffix(".new").rename(path)


def make_table(options: argparse.Namespace) -> None:
    """Write the data, one file for each partition."""
    folder = options.folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    starts = range(0, options.rows, options.partition)
    sizes = [min(options.partition, options.rows - start) for start in starts]
    paths = [folder / f"part.{number}.parquet" for number in range(len(sizes))]
    with ProcessPoolExecutor(options.workers) as processes:
        list(processes.map(write_block, paths, range(len(sizes)), sizes))
    print(f"{options.rows} rows in {len(paths)} files of {folder} ({time.perf_counter() - begin:.0f} s)", flush=True)


class Memory:
    """The memory of processes, looked at several times a second."""

    def __init__(self, pids: list[int]) -> None:
        import psutil

        self._processes = [psutil.Process(pid) for pid in pids]
        self._seen: list[tuple[float, list[int]]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        import psutil

        while not self._end.wait(0.1):
            try:
                self._seen.append((time.perf_counter(), [p.memory_info().rss for p in self._processes]))
            except psutil.NoSuchProcess:  # a worker was killed and replaced
                self._seen.append((time.perf_counter(), [0] * len(self._processes)))

    def peaks(self, begin: float, seconds: dict[str, float]) -> dict[str, list[int]]:
        """Return the largest memory of every process in every stage, in megabytes."""
        found = {}
        for stage in (name for name in STAGES if name in seconds):
            end = begin + seconds[stage]
            inside = [sizes for at, sizes in self._seen if begin <= at <= end]
            if inside:
                found[stage] = [round(max(each) / 1e6) for each in zip(*inside, strict=True)]
            begin = end
        return found


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    model = DRSNE(random_state=0, device=options.device, backend="torch" if options.device else "numba")
    return {"model": model, "n_landmarks": options.landmarks, "coverage": options.coverage, "verbose": 1}


def fitted(options: argparse.Namespace, name: str, **more: Any) -> tuple[Any, bool, float]:
    """Run the pipeline, and return its result, whether it started from the beginning, and its start time."""
    fresh = not (options.folder / f"{name}.work").exists()
    begin = time.perf_counter()
    found = distributed.fit(options.folder / "data", options.folder / name, **arguments(options), **more)
    # The checks before the first stage take the rest of the total.
    return found, fresh, begin + found.seconds["total"] - sum(v for k, v in found.seconds.items() if k != "total")


def row(options: argparse.Namespace, what: str, **more: Any) -> dict[str, Any]:
    made = ROWS.append(
        {
            "what": what,
            "rows": options.rows,
            "columns": COLUMNS,
            "landmarks": options.landmarks,
            "coverage": options.coverage,
            "workers": options.workers if what == "cluster" else 0,
            "device": device_name(options.device) if what in ("cluster", "one") else None,
            "drsne": drsne.__version__,
            **more,
        }
    )
    print(json.dumps(made, indent=1))
    return made


def device_name(device: str | None) -> str | None:
    """Return the name of the device that fits the landmarks, or None for the processor."""
    if device is None or not device.startswith("cuda"):
        return device
    import torch

    name: str = torch.cuda.get_device_name(device)
    return name


def on_cluster(options: argparse.Namespace) -> None:
    from distributed import Client, LocalCluster

    limits = {"n_workers": options.workers, "threads_per_worker": 1, "memory_limit": options.memory}
    with LocalCluster(**limits, dashboard_address=None) as cluster, Client(cluster) as client:
        pids = sorted(client.run(lambda: __import__("os").getpid()).values())
        with Memory(pids) as memory:
            found, fresh, begin = fitted(options, "cluster", client=client, n_jobs=options.threads)
        same = pids == sorted(client.run(lambda: __import__("os").getpid()).values())
    row(
        options,
        "cluster",
        memory_limit=options.memory,
        fresh=fresh,
        no_worker_was_killed=same,
        seconds=found.seconds,
        megabytes_per_worker=memory.peaks(begin, found.seconds),
        found=found.scores,
    )


def in_one_process(options: argparse.Namespace) -> None:
    found, fresh, _ = fitted(options, "one", n_jobs=options.threads)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    more = {"threads": options.threads, "fresh": fresh, "seconds": found.seconds, "megabytes": peak}
    row(options, "one", **more, found=found.scores)


def compare(options: argparse.Namespace) -> None:
    files = sorted((options.folder / "data").glob("*.parquet"))
    different, wrong = [], []
    for path in files:
        one, other = (options.folder / name / path.name for name in ("one", "cluster"))
        digests = {hashlib.sha256(each.read_bytes()).hexdigest() for each in (one, other)}
        if len(digests) > 1:
            different.append(path.name)
        if pq.read_metadata(other).num_rows != pq.read_metadata(path).num_rows:
            wrong.append(path.name)
    row(options, "compare", files=len(files), different_files=different, files_with_other_numbers_of_rows=wrong)


def direct(options: argparse.Namespace) -> None:
    files = parquet_files(options.folder / "data")
    X = np.concatenate([np.column_stack([c.to_numpy() for c in pq.read_table(path).columns]) for path in files])
    name = "cluster" if (options.folder / "cluster.work" / "scores.json").exists() else "one"
    tables = [pq.read_table(options.folder / name / path.name, columns=["drsne1", "drsne2"]) for path in files]
    placed = np.concatenate([np.column_stack([c.to_numpy() for c in table.columns]) for table in tables])
    begin = time.perf_counter()
    Y = DRSNE(random_state=0, n_jobs=options.threads).fit_transform(X)
    seconds = time.perf_counter() - begin
    sample = {"max_samples": options.sample, "random_state": 0}
    scores = {which: metrics.evaluate(X, each, **sample) for which, each in (("direct", Y), ("placed", placed))}
    shown = {which: {score: round(each[score], 4) for score in FIVE} for which, each in scores.items()}
    differences = {score: round(shown["placed"][score] - shown["direct"][score], 4) for score in FIVE}
    row(
        options,
        "direct",
        seconds={"direct": round(seconds, 1)},
        sample=options.sample,
        **shown,
        differences=differences,
    )


def write_report() -> None:
    """Write the tables."""
    ROWS.drop_replaced()
    rows = sorted(ROWS.read(), key=lambda row: (row["rows"], row["landmarks"]))
    runs, same, scores, notes = [], [], [], []
    for each in rows:
        size = [f"{each['rows']:,}", f"{each['landmarks']:,}"]
        if each["what"] in ("cluster", "one"):
            megabytes = each.get("megabytes_per_worker", {"": [each.get("megabytes", 0)]})
            how = f"{each['workers']} workers" if each["workers"] else f"1 process, {each['threads']} threads"
            how += f", map of the landmarks on {each['device']}" if each.get("device") else ""
            seconds = [f"{each['seconds'].get(stage, 0.0):.0f}" for stage in (*STAGES[1:], "total")]
            error = each["found"]["concentration"]
            bias = f"{error['bias']:.3f} ({error['standard_error_of_bias']:.3f})"
            memory = each.get("memory_limit", "-"), max(map(max, megabytes.values()))
            if "note" in each:
                notes.append(f"- {size[0]} rows, {how}: {each['note']}")
            runs.append([*size, how, *seconds, *memory, bias, f"{error['root_mean_square_error']:.3f}"])
        elif each["what"] == "compare":
            same.append([*size, each["files"], len(each["different_files"])])
        elif each["what"] == "direct":
            scores += [[*size, which, *(f"{each[which][score]:.4f}" for score in FIVE)] for which in MAPS]
            scores.append([*size, "difference", *(f"{each['differences'][score]:+.4f}" for score in FIVE)])
    write(
        "distributed",
        "Data larger than memory",
        "python benchmarks/larger_than_memory.py",
        "The data are 40 groups of rows with 50 columns. The standard deviations of the groups differ by a factor of "
        "up to 100.",
        "## Runs\n\nThe table shows the seconds of every stage, the memory limit of a worker, and the largest memory "
        "of a worker (or of the process) in megabytes. The last columns are the mean error of the log concentrations "
        "of rows that are not landmarks, with its standard error in brackets, and the root mean square error.",
        table(["rows", "landmarks", "how", *STAGES[1:], "total", "limit", "MB", "mean error", "rms error"], runs),
        "\n".join(notes),
        "## Do the workers write the same bytes as one process?",
        table(["rows", "landmarks", "files", "files that differ"], same),
        "## Scores of landmarks and placed rows, against a fit of all rows",
        table(["rows", "landmarks", "map", *(name.replace("_", " ") for name in FIVE)], scores),
        rows=rows,
    )


WHAT = {"table": make_table, "cluster": on_cluster, "one": in_one_process, "compare": compare, "direct": direct}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[*WHAT, "report"])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--folder", type=Path, default=Path("big"), help="the folder for the table and the maps")
    parser.add_argument("--partition", type=int, default=100_000, help="number of rows of a file")
    parser.add_argument("--landmarks", type=int, default=20_000)
    parser.add_argument("--coverage", type=float, default=2.0)
    parser.add_argument(
        "--workers", type=int, default=2, help="number of workers, and of processes that make the table"
    )
    parser.add_argument("--memory", default="1GB", help="memory limit of a worker")
    parser.add_argument("--threads", type=int, default=2, help="threads of this process")
    parser.add_argument("--device", help="device of PyTorch that fits the landmarks, for example cuda")
    parser.add_argument("--sample", type=int, default=5_000, help="number of rows that are scored against a direct fit")
    options = parser.parse_args()
    if options.what == "report":
        write_report()
    else:
        WHAT[options.what](options)


if __name__ == "__main__":
    main()
