"""drsne.distributed on workers of Dask: the same bytes as in one process, and workers and schedulers that die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
distributed = pytest.importorskip("distributed", reason="starts a cluster")
import cloudpickle  # noqa: E402
import dask  # noqa: E402
import dask.array as da  # noqa: E402
from on_partitions import SIZES, contents, counted, fit, write  # noqa: E402

from drsne.distributed import cluster, concentration, placing, sources  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::Warning")]
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have the tests


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Return a folder with data, and the files that one process writes."""
    folder = tmp_path_factory.mktemp("one_process")
    write(folder / "data")
    return folder / "data", contents(fit(folder / "data", folder / "map").output)


@contextmanager
def started(n_workers):
    with (
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with started(2) as made:
        yield made


@pytest.fixture
def expendable():
    """Return the client of a cluster for one test, because a cluster can lose a worker that was killed for good."""
    with started(2) as made:
        yield made


@pytest.fixture(scope="module")
def alone():
    """Return the client of a scheduler that has no workers."""
    with started(0) as made:
        yield made


@contextmanager
def worker(client, folder, **environment):
    """Start a worker that is not started again when it dies, and kill it at the end."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.cluster.scheduler_address]
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
    process = subprocess.Popen(
        [*command, *options], stderr=subprocess.DEVNULL, env=os.environ | environment, cwd=folder
    )
    try:
        client.wait_for_workers(1, timeout=60)
        yield
    finally:
        process.kill()
        process.wait()
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)


def results(folder):
    """Return the bytes of all files, without what a dying worker may write after the end of a stage."""
    return {name: found for name, found in contents(folder).items() if not name.startswith(".")}


def test_the_same_bytes_as_in_one_process(expected, client, tmp_path):
    data, files = expected
    assert contents(fit(data, tmp_path / "map", client=client).output) == files
    assert contents(fit(data, tmp_path / "other", client=client.scheduler.address).output) == files


def test_an_error_of_a_task_is_raised_here(client, tmp_path):
    write(tmp_path / "data", (100, 100))
    path = tmp_path / "data" / "part.1.parquet"
    good = path.read_bytes()
    path.write_bytes(good[:200] + bytes(byte ^ 0xFF for byte in good[200:2000]) + good[2000:])
    with pytest.raises(ValueError, match=r"part\.1\.parquet.*(damaged|finite)"):
        fit(tmp_path / "data", tmp_path / "map", client=client)


def dies_once(function, mark, arguments):
    """Run a task of a stage, but kill its worker the first time."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return function(*arguments)
    return os.kill(os.getpid(), signal.SIGKILL)


def patched(monkeypatch, module, name, function, mark):
    original = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *arguments: function(original, mark, arguments))


@pytest.mark.rotating(5)
@posix
def test_killed_workers(expendable, tmp_path, monkeypatch):
    """Blocks of an array, results that are merged and files of the output are computed again."""
    lazy = da.from_array(np.random.default_rng(0).normal(size=(500, 4)), ((150, 0, 1, 199, 150), (2, 2)))
    one = fit(lazy, tmp_path / "one")
    marks = [str(tmp_path / name) for name in ("stored", "searched", "placed")]
    for mark, function in zip(marks, ((sources, "store"), (concentration, "search"), (placing, "place")), strict=True):
        patched(monkeypatch, *function, dies_once, mark)
    other = fit(lazy, tmp_path / "other", client=expendable)
    assert all(map(os.path.exists, marks))
    assert results(other.output) == contents(one.output)
    assert not list((tmp_path / "other.work" / "input").glob("part*"))


@pytest.mark.rotating(5)
@posix
def test_workers_that_are_killed_while_this_process_works(expected, expendable, tmp_path, monkeypatch):
    """The landmarks' map and the scores are computed by the process that calls fit."""
    data, files = expected

    def kill_all(calls):
        for pid in expendable.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)

    for name in ("fit", "score"):
        counted(monkeypatch, placing, name, kill_all)
    assert results(fit(data, tmp_path / "map", client=expendable).output) == files


PROGRAM = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, scheduler_port=0) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def start_cluster():
    """Start a scheduler with two workers in a process group of its own, and return how to kill it, and its address."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
    )

    def kill(*_):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()

    return kill, process.stdout.readline().decode().strip()


def short_timeouts():
    return dask.config.set({"distributed.comm.timeouts.connect": "3s"})


def slowly(function, mark, arguments):
    open(mark, "a").close()
    time.sleep(0.5)
    return function(*arguments)


@pytest.mark.rotating(5)
@posix
@pytest.mark.parametrize("moment", ["while this process works", "during a task"])
def test_a_killed_scheduler(expected, tmp_path, monkeypatch, moment):
    data, files = expected
    kill, address = start_cluster()
    if moment == "during a task":
        mark = tmp_path / "started"
        patched(monkeypatch, placing, "place", slowly, str(mark))

        def watch():
            deadline = time.monotonic() + 60
            while not mark.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.7)
            kill()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
    else:
        counted(monkeypatch, placing, "fit", kill)
    with short_timeouts(), pytest.raises(ConnectionError, match=r"connection to the scheduler was lost.*start again"):
        fit(data, tmp_path / "map", client=address)
    if moment == "during a task":
        thread.join()
        assert len(set(contents(tmp_path / "map"))) < len(SIZES)
    monkeypatch.undo()
    assert contents(fit(data, tmp_path / "map").output) == files


def test_clients_that_cannot_be_used(expected, alone, tmp_path):
    data, _ = expected
    closed = distributed.Client(alone.cluster)
    closed.close()
    with pytest.raises(ConnectionError, match=r"status is 'closed'.*client=None"):
        fit(data, tmp_path / "map", client=closed)

    async def use():
        async with distributed.Client(alone.cluster.scheduler_address, asynchronous=True) as made:
            with pytest.raises(TypeError, match="asynchronous=True"):
                fit(data, tmp_path / "map", client=made)

    asyncio.run(use())
    with short_timeouts(), pytest.raises(ConnectionError, match=r"No scheduler answers.*client=None"):
        fit(data, tmp_path / "map", client="tcp://127.0.0.1:9")


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "drsne":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.rotating(5)
@pytest.mark.parametrize(
    ("path", "text", "version"),
    [("sitecustomize.py", WITHOUT, "none"), ("drsne/__init__.py", "__version__ = '0.0.1'", r"0\.0\.1")],
)
def test_workers_that_cannot_import_this_version(expected, alone, tmp_path, path, text, version):
    (tmp_path / "drsne").mkdir()
    (tmp_path / path).write_text(text)
    message = f"workers of the cluster must have drsne .* has {version}"
    with worker(alone, tmp_path, PYTHONPATH=str(tmp_path)), pytest.raises(ImportError, match=message):
        fit(expected[0], tmp_path / "map", client=alone)


@pytest.mark.rotating(5)
@posix
@pytest.mark.filterwarnings("default")
def test_workers_that_die_again_and_again_or_do_not_come_back(expected, alone, tmp_path, monkeypatch):
    data, files = expected
    monkeypatch.setattr(cluster, "PATIENCE", 4.0)
    scheduler = alone.cluster.scheduler
    for deaths, error, message in (
        (0, ChildProcessError, "Workers died repeatedly"),
        (scheduler.allowed_failures, ConnectionError, r"All workers .* were lost.*start again"),
    ):
        monkeypatch.setattr(scheduler, "allowed_failures", deaths)
        mark = str(tmp_path / f"killed {deaths}")
        with monkeypatch.context() as patch:
            patched(patch, placing, "place", dies_once, mark)
            with worker(alone, tmp_path), pytest.raises(error, match=message):
                fit(data, tmp_path / "map", client=alone)
    joined = []
    joins = threading.Timer(3.0, lambda: joined.append(worker(alone, tmp_path)) or joined[0].__enter__())
    joins.start()
    with pytest.warns(UserWarning, match="has no workers"):
        found = fit(data, tmp_path / "map", client=alone)
    joins.join()
    joined[0].__exit__(None, None, None)
    assert contents(found.output) == files
