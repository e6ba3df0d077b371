"""Studies on workers of Dask: the same rows as in local processes."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="starts a cluster")
import cloudpickle  # noqa: E402

from drsne import cli  # noqa: E402
from drsne_paper import Rows, Study, run  # noqa: E402
from drsne_paper.methods import Method, each  # noqa: E402
from drsne_paper.scoring import MAIN  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::Warning")]
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have the tests


def local(n_workers):
    return distributed.Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)


def small(name):
    X = np.random.default_rng(len(name)).normal(size=(80, 5)) * np.repeat([0.1, 3.0], 40)[:, None]
    return SimpleNamespace(X=X, y=np.repeat([0, 1], 40), source=f"made for {name}")


def sometimes(X, value, seed):
    if value == 2:
        raise RuntimeError("no luck")
    return X[:, :2] * value


FAILING = Method(title="", parameter="weight", grid=(1, 2), maps=each(sometimes))
STUDY = Study(
    name="test",
    datasets=("one", "other"),
    methods=("pca", "tsne", "failing"),
    seeds=(0, 1),
    scores=MAIN,
    data=small,
    grids={"tsne": (5,)},
    variants={"failing": FAILING},
)


def without_times(rows):
    kept = [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
    return sorted(kept, key=lambda row: row["key"])


def test_the_rows_are_the_same(tmp_path):
    here = run(STUDY, Rows(tmp_path / "here" / "rows.jsonl"), verbose=0, maps=tmp_path / "here" / "maps")
    with local(2) as client:
        rows = Rows(tmp_path / "there" / "rows.jsonl")
        there = run(STUDY, rows, verbose=0, maps=tmp_path / "there" / "maps", client=client)
        before = rows.path.read_bytes()
        assert run(STUDY, rows, verbose=0, client=client) == there
        assert rows.path.read_bytes() == before
    assert without_times(there) == without_times(here)
    assert sum(row["error"] is not None for row in there) == 4
    for path in (tmp_path / "here" / "maps").iterdir():
        np.testing.assert_array_equal(np.load(path), np.load(tmp_path / "there" / "maps" / path.name))


@pytest.mark.parametrize("by", ["workers", "address"])
def test_the_command(tmp_path, capsys, by):
    words = ["reproduce", "main", "--quick", "--datasets", "helix", "--methods", "pca", "--seeds", "0"]
    assert cli.main([*words, "--jobs", "1", "--folder", str(tmp_path / "here")]) == 0
    if by == "workers":
        assert cli.main([*words, "--dask-workers", "2", "--folder", str(tmp_path / "there")]) == 0
    else:
        with local(1) as client:
            address = client.scheduler.address
            assert cli.main([*words, "--scheduler", address, "--folder", str(tmp_path / "there")]) == 0
    here, there = (without_times(Rows(tmp_path / name / "rows.jsonl").read()) for name in ("here", "there"))
    assert here
    assert here == there


def test_both_options_are_refused(capsys):
    words = ["reproduce", "main", "--quick", "--scheduler", "tcp://127.0.0.1:9", "--dask-workers", "2"]
    assert cli.main(words) == 2
    assert "cannot be used together" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://127.0.0.1:9"])
def test_addresses_without_a_scheduler(tmp_path, capsys, address):
    import dask

    words = ["reproduce", "main", "--quick", "--datasets", "helix", "--methods", "pca", "--folder", str(tmp_path)]
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        assert cli.main([*words, "--scheduler", address]) == 1
    err = capsys.readouterr().err
    assert "No scheduler answers" in err
    assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_killed_worker(tmp_path):
    mark = str(tmp_path / "killed")

    def dies_once(X, value, seed):
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return X[:, :2] * value
        return os.kill(os.getpid(), signal.SIGKILL)

    method = Method(title="", parameter="weight", grid=(1, 2), maps=each(dies_once))
    study = dataclasses.replace(STUDY, methods=("pca", "dying"), grids={}, variants={"dying": method})
    with local(2) as client:
        rows = run(study, Rows(tmp_path / "rows.jsonl"), verbose=0, client=client)
    assert os.path.exists(mark)
    assert not any(row["error"] for row in rows)
    assert len({row["key"] for row in rows}) == len(rows) == len((tmp_path / "rows.jsonl").read_text().splitlines())
