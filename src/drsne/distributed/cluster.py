"""Connections to a Dask cluster, and tasks that run on its workers or in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pydoc import locate
from typing import Any

from drsne import checks
from drsne.distributed.work import reason

EXTRA = "dask"
PATIENCE = 120.0  # number of seconds after which a cluster that has lost all its workers is given up
_LOST = ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError", "ClosedClientError")


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """Yield a Dask client, or None for this process. Only one that is made here, from an address, is closed."""
    if client is None:
        yield None
        return
    distributed = checks.package("distributed", "A cluster needs", EXTRA)
    if isinstance(client, distributed.Client):
        _check_client(client)
        _check_workers(client)
        yield client
        return
    if not isinstance(client, str):
        raise TypeError(
            f"client must be None, a distributed.Client or the address of a scheduler; got {type(client).__name__}. "
            "Pass None to run in this process."
        )
    try:
        made = distributed.Client(client)
    except (OSError, ValueError, AssertionError) as error:  # Dask's own checks can fail while another client closes
        raise ConnectionError(
            f"No scheduler answers at {client!r} ({reason(error)}). Start one with dask scheduler, or run without a "
            "cluster (client=None, or no --scheduler)."
        ) from error
    with made:
        _check_workers(made)
        yield made


def _check_client(client: Any) -> None:
    """Raise an error if a client cannot be used."""
    if client.asynchronous:
        raise TypeError(
            "client must be a distributed.Client that waits for results; got one with asynchronous=True. Pass its "
            "address, or make another one without that option."
        )
    if client.status not in ("running", "connecting"):
        raise ConnectionError(
            f"client must be connected to a scheduler; got one whose status is {client.status!r}. Make a new one with "
            "distributed.Client, or pass client=None to run in this process."
        )


def _check_workers(client: Any) -> None:
    """Raise an error if a worker has no drsne or another version, because it would only die when it gets a task."""
    import drsne

    # The function must be one that workers without drsne can receive. Workers that do not answer are left to Dask.
    found = client.run(locate, "drsne.__version__", on_error="return") if client.status == "running" else {}
    for worker, version in found.items():
        if version is None or (isinstance(version, str) and version != drsne.__version__):
            raise ImportError(
                f"The workers of the cluster must have drsne {drsne.__version__}; {worker} has "
                f"{'none' if version is None else version}. Install it there: pip install "
                f"'drsne[{EXTRA}]=={drsne.__version__}'."
            )


def run(
    function: Callable[..., Any],
    calls: Mapping[int, tuple[Any, ...]],
    client: Any,
    done: Callable[[int, Any], None],
    *,
    lazy: bool = False,
) -> None:
    """Call ``function(*arguments)`` for every entry of ``calls``, and pass key and result to ``done`` as they finish.

    With a client, each call is a task. Dask repeats the tasks of a worker that has died. The first error ends the run,
    after which the tasks that have not started are cancelled. If ``lazy`` is True, arguments can be delayed objects of
    Dask, which are computed first.
    """
    if not calls:
        return
    if client is None:
        for number, arguments in calls.items():
            ready = [each.compute(scheduler="sync") if lazy and hasattr(each, "dask") else each for each in arguments]
            done(number, function(*ready))
        return
    distributed = checks.package("distributed", "A cluster needs", EXTRA)
    alone, stop, futures = threading.Event(), threading.Event(), {}
    try:
        begin: float | None = time.monotonic()  # first workers are waited for without a limit
        if client.status == "running" and not client.scheduler_info()["workers"]:
            begin, address = None, client.scheduler.address
            checks.warn(
                f"The scheduler at {address} has no workers, so nothing happens until some join. Start them with dask "
                f"worker {address}, or interrupt the call and pass client=None."
            )
        if lazy:  # these are submitted together, because each has the graph of all its blocks
            task = checks.package("dask", "A Dask array needs", EXTRA).delayed(function, pure=False)
            submitted = client.compute([task(*arguments) for arguments in calls.values()])
        else:
            submitted = [client.submit(function, *arguments, pure=False) for arguments in calls.values()]
        futures = dict(zip(submitted, calls, strict=True))
        watch = (client, list(futures), begin, alone, stop)
        threading.Thread(target=_watch, args=watch, daemon=True).start()
        for future, result in distributed.as_completed(futures, with_results=True):
            if future.status != "finished":  # futures are cancelled silently if the scheduler is gone
                raise distributed.CancelledError(future.status)
            done(futures[future], result)
    except Exception as error:
        if alone.is_set():
            raise ConnectionError(
                f"All workers of the cluster were lost, and none has joined for {PATIENCE:g} seconds. What is finished "
                "is kept. Start workers, and start again."
            ) from error
        if (known := _cluster_error(error)) is not None:
            raise known from error
        raise
    finally:
        stop.set()
        _cancel(client, futures)


def _watch(client: Any, futures: list[Any], last: float | None, alone: threading.Event, stop: threading.Event) -> None:
    """Cancel the tasks, and set ``alone``, if all workers were lost and none joins: Dask would wait forever.

    ``last`` is the time at which there were workers, or None. ``stop`` ends the watch.
    """
    while not stop.wait(PATIENCE / 20.0):
        try:
            if client.scheduler_info()["workers"]:
                last = time.monotonic()
            elif last is not None and time.monotonic() - last > PATIENCE:
                alone.set()
                client.cancel(futures)
                return
        except Exception:  # the scheduler is gone, which the tasks report
            return


def _cancel(client: Any, futures: Iterable[Any]) -> None:
    """Cancel the unfinished tasks. A client whose scheduler is gone cannot cancel anything."""
    try:
        if unfinished := [future for future in futures if not future.done()]:
            client.cancel(unfinished)
    except Exception as error:
        if not isinstance(error, OSError) and _cluster_error(error) is None:
            raise


def _cluster_error(error: Exception) -> Exception | None:
    """Return an error about the cluster in one sentence, or None for an error of the task itself."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        return ChildProcessError(
            "Workers died repeatedly while they ran the same task, most often because memory ran out. What is finished "
            "is kept. Give the workers more memory or fewer threads, and start again."
        )
    if kind in _LOST:
        return ConnectionError(
            "The connection to the scheduler was lost. What is finished is kept. Start the scheduler and its workers, "
            "and start again."
        )
    return None
