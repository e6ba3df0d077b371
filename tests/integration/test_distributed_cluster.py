"""drsne.distributed on workers of Dask: the same bytes as in one process, and workers and schedulers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
distributed = pytest.importorskip("distributed", reason="starts a cluster")
import cloudpickle  # noqa: E402
from on_partitions import QUICK, SIZES, contents, write  # noqa: E402

import drsne  # noqa: E402
from drsne.distributed import cluster, concentration, placing, spool, stages  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::Warning")]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have the tests


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Return a folder with data, and the files that one process writes."""
    folder = tmp_path_factory.mktemp("one_process")
    write(folder / "data")
    return folder / "data", contents(drsne.distributed.fit(folder / "data", folder / "map", **QUICK).output)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture
def expendable():
    """Return the client of a cluster for one test, because a cluster can lose a worker that was killed for good."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started,
        distributed.Client(started) as made,
    ):
        yield made


def results(folder):
    """Return the bytes of all files, without what a dying worker may write after the end of a stage."""
    return {name: found for name, found in contents(folder).items() if not name.startswith(".")}


def test_the_same_bytes_as_in_one_process(expected, client, tmp_path):
    data, files = expected
    found = drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=client)
    assert contents(found.output) == files
    by_address = drsne.distributed.fit(data, tmp_path / "other", **QUICK, client=client.scheduler.address)
    assert contents(by_address.output) == files


def test_dask_arrays_on_workers(client, tmp_path):
    import dask.array as da

    X = np.random.default_rng(0).normal(size=(400, 4))
    lazy = da.from_array(X, (150, 4))
    one = drsne.distributed.fit(lazy, tmp_path / "one", **QUICK)
    other = drsne.distributed.fit(lazy, tmp_path / "other", **QUICK, client=client)
    assert contents(one.output) == contents(other.output)


def dies_once(function, mark, arguments):
    """Run a task of a stage, but kill its worker the first time."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return function(*arguments)
    return os.kill(os.getpid(), signal.SIGKILL)


STAGES = {"concentration": (concentration, "search"), "output": (placing, "place")}  # results in memory and in files


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_worker(expected, expendable, tmp_path, monkeypatch, stage):
    data, files = expected
    module, name = STAGES[stage]
    original, mark = getattr(module, name), str(tmp_path / "killed")
    monkeypatch.setattr(module, name, lambda *arguments: dies_once(original, mark, arguments))
    found = drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=expendable)
    assert os.path.exists(mark)
    assert results(found.output) == files


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_workers_that_are_killed_while_this_process_works(expected, expendable, tmp_path, monkeypatch):
    """The landmarks' map and the scores are computed by the process that calls fit."""
    data, files = expected

    def after_a_kill(function):
        def killing(*arguments):
            for pid in expendable.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
            return function(*arguments)

        return killing

    monkeypatch.setattr(stages.landmark_map, "fit", after_a_kill(stages.landmark_map.fit))
    monkeypatch.setattr(stages.scores, "score", after_a_kill(stages.scores.score))
    found = drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=expendable)
    assert results(found.output) == files


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_scheduler_that_is_killed_while_this_process_works(expected, tmp_path, monkeypatch):
    data, files = expected
    process, address = start_cluster()
    original = stages.landmark_map.fit

    def killing(*arguments):
        kill(process)
        return original(*arguments)

    monkeypatch.setattr(stages.landmark_map, "fit", killing)
    with short_timeouts(), pytest.raises(ConnectionError, match=r"connection to the scheduler was lost.*start again"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=address)
    monkeypatch.undo()
    assert contents(drsne.distributed.fit(data, tmp_path / "map", **QUICK).output) == files


def test_clients_that_cannot_be_used(expected, tmp_path):
    import asyncio

    data, _ = expected
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as started:
        closed = distributed.Client(started)
        closed.close()
        with pytest.raises(ConnectionError, match=r"status is 'closed'.*client=None"):
            drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=closed)

        async def use():
            async with distributed.Client(started.scheduler_address, asynchronous=True) as made:
                with pytest.raises(TypeError, match="asynchronous=True"):
                    drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=made)

        asyncio.run(use())


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_worker_that_is_killed_while_blocks_of_an_array_are_written(expendable, tmp_path, monkeypatch):
    import dask.array as da

    X = np.random.default_rng(0).normal(size=(500, 4))
    lazy = da.from_array(X, ((150, 0, 1, 199, 150), (2, 2)))
    one = drsne.distributed.fit(lazy, tmp_path / "one", **QUICK)
    original, mark = spool.store, str(tmp_path / "killed")
    monkeypatch.setattr(spool, "store", lambda *arguments: dies_once(original, mark, arguments))
    other = drsne.distributed.fit(lazy, tmp_path / "other", **QUICK, client=expendable)
    assert os.path.exists(mark)
    assert contents(one.output) == results(other.output)
    assert not list((tmp_path / "other.work" / "input").glob("part*"))


def always_dies(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_task_that_kills_all_workers(expected, client, tmp_path, monkeypatch):
    data, files = expected
    monkeypatch.setattr(placing, "place", lambda *arguments: always_dies(*arguments))
    monkeypatch.setattr(cluster, "PATIENCE", 20.0)
    # The processes that restart workers give up if a worker dies while it starts, so other tests use another cluster.
    process, address = start_cluster()
    try:
        with pytest.raises((ChildProcessError, ConnectionError), match=r"Workers died repeatedly|All workers .* lost"):
            drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=address)
    finally:
        kill(process)
    monkeypatch.undo()
    assert contents(drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=client).output) == files


def test_an_error_of_a_task_is_raised_here(expected, client, tmp_path):
    write(tmp_path / "data")
    path = tmp_path / "data" / "part.3.parquet"
    good = path.read_bytes()
    path.write_bytes(good[:200] + bytes(b ^ 0xFF for b in good[200:2000]) + good[2000:])
    with pytest.raises(ValueError, match=r"part\.3\.parquet.*(damaged|finite)"):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK, client=client)


PROGRAM = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, scheduler_port=0) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def start_cluster():
    """Start a scheduler with two workers in a process group of its own, and return it with the address."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    return process, process.stdout.readline().strip()


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()


def slowly(function, mark, arguments):
    open(mark, "a").close()
    time.sleep(0.5)
    return function(*arguments)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_killed_scheduler(expected, tmp_path, monkeypatch):
    import threading

    data, files = expected
    original, mark = placing.place, str(tmp_path / "started")
    monkeypatch.setattr(placing, "place", lambda *arguments: slowly(original, mark, arguments))
    process, address = start_cluster()

    def watch():
        deadline = time.monotonic() + 60
        while not os.path.exists(mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.7)
        kill(process)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    lost = r"connection to the scheduler was lost.*start again"
    with short_timeouts(), pytest.raises(ConnectionError, match=lost):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=address)
    thread.join()
    kept = set(contents(tmp_path / "map"))
    assert len(kept) < len(SIZES)
    process, address = start_cluster()
    try:
        assert contents(drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=address).output) == files
    finally:
        kill(process)


def short_timeouts():
    import dask

    return dask.config.set({"distributed.comm.timeouts.connect": "3s"})


@pytest.mark.filterwarnings("default")
def test_a_scheduler_without_workers(expected, tmp_path):
    import threading

    data, files = expected
    with (
        distributed.LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as made,
    ):
        joins = threading.Timer(3.0, cluster.scale, (1,))
        joins.start()
        with pytest.warns(UserWarning, match="has no workers"):
            found = drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=made)
        joins.join()
    assert contents(found.output) == files


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "drsne":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize("kind", ["none", "another version"])
def test_workers_that_cannot_import_this_version(expected, tmp_path, monkeypatch, kind):
    data, _ = expected
    if kind == "none":
        (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    else:
        (tmp_path / "drsne").mkdir()
        (tmp_path / "drsne" / "__init__.py").write_text("__version__ = '0.0.1'")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as started,
        distributed.Client(started) as made,
    ):
        command = [sys.executable, "-m", "distributed.cli.dask_worker", started.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        worker = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path)
        try:
            made.wait_for_workers(1, timeout=60)
            has = "none" if kind == "none" else r"0\.0\.1"
            with pytest.raises(ImportError, match=rf"workers of the cluster must have drsne .* has {has}"):
                drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=made)
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_workers_that_do_not_come_back(expected, tmp_path, monkeypatch):
    data, files = expected
    monkeypatch.setattr(cluster, "PATIENCE", 4.0)
    monkeypatch.setattr(placing, "place", lambda *arguments: always_dies(*arguments))
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as started,
        distributed.Client(started) as made,
    ):
        command = [sys.executable, "-m", "distributed.cli.dask_worker", started.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
        worker = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        try:
            made.wait_for_workers(1, timeout=60)
            with pytest.raises(ConnectionError, match=r"All workers .* were lost.*start again"):
                drsne.distributed.fit(data, tmp_path / "map", **QUICK, client=made)
        finally:
            worker.kill()
            worker.wait()
    monkeypatch.undo()
    assert contents(drsne.distributed.fit(data, tmp_path / "map", **QUICK).output) == files


def test_no_scheduler(expected, tmp_path):
    data, _ = expected
    with short_timeouts(), pytest.raises(ConnectionError, match=r"No scheduler answers.*client=None"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK, client="tcp://127.0.0.1:9")


def test_lazy_rows_receive_the_model_once(client, tmp_path):
    import dask.array as da

    X = np.random.default_rng(0).normal(size=(60, 4))
    model = Counted(perplexity=8, density_neighbors=8, max_iter=50, random_state=0).fit(X)
    model.folder_ = str(tmp_path)
    places = model.transform(da.from_array(np.tile(X, (10, 1)), (20, 4))).compute()
    np.testing.assert_array_equal(places, np.tile(model.embedding_, (10, 1)))
    received = {int(path.name): len(path.read_text().splitlines()) for path in tmp_path.iterdir()}
    received.pop(os.getpid(), None)  # the scheduler, which is in this process
    assert received
    # There are 30 blocks. A worker has the model twice if another worker has taken over the task that holds it.
    assert max(received.values()) <= 2


class Counted(drsne.DRSNE):
    """A model that counts how often a process receives it."""

    def __init__(self, n_components=2, *, perplexity=30.0, density_neighbors=30, max_iter="auto", random_state=None):
        super().__init__(
            n_components,
            perplexity=perplexity,
            density_neighbors=density_neighbors,
            max_iter=max_iter,
            random_state=random_state,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        with open(os.path.join(self.folder_, str(os.getpid())), "a") as file:
            file.write("received\n")
