"""Ctrl-C in a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

# A program that runs in the background of a shell ignores interrupts unless it asks for them.
HEAR = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
CODE = """
import sys, warnings
import numpy as np
from drsne import DRSNE

def report_progress(iteration, embedding, losses):
    if iteration == 5:
        print("running", flush=True)

model = DRSNE(max_iter=10**6, n_jobs={n_jobs}, callbacks=report_progress, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(np.random.default_rng(0).normal(size=(600, 4)))
assert np.isfinite(model.embedding_).all() and 5 <= model.n_iter_ < 10**6
print([str(w.message) for w in caught])
"""


@pytest.mark.rotating(2)
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_map(n_jobs):
    command = [sys.executable, "-c", HEAR + CODE.format(n_jobs=n_jobs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "running"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "embedding_ is the last map" in out


STORM = """
import faulthandler
import warnings
import numpy as np
from drsne import DRSNE

faulthandler.dump_traceback_later(100)  # says where it hangs, if it does
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(3000, 5))
fit = lambda: DRSNE(perplexity=8, density_neighbors=8, n_jobs=3, engine="fft", max_iter=10**6, random_state=0).fit(X)
print("running", flush=True)
for _ in range(8):
    try:
        fit()
    except KeyboardInterrupt:
        pass
print("done", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupts_at_any_moment_never_hang():
    """Several in a row, while threads take and finish blocks."""
    command = [sys.executable, "-c", HEAR + STORM]
    with (
        tempfile.TemporaryFile("w+") as error_output,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=error_output, text=True) as process,
    ):
        assert process.stdout.readline().strip() == "running"
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.4)
            for _ in range(3):
                process.send_signal(signal.SIGINT)
                time.sleep(0.002)
        hung = process.poll() is None
        process.kill()
        error_output.seek(0)
        assert not hung, error_output.read()


def test_a_fit_starts_no_threads_of_other_packages(monkeypatch):
    """Such threads would go on after an interrupt and write to memory that is released."""
    from threading import Thread

    from drsne import DRSNE
    from drsne.backends.numba.threads import _Helper

    started = []
    start = Thread.start

    def noted(thread):
        started.append(type(thread))
        start(thread)

    monkeypatch.setattr(Thread, "start", noted)
    X = np.random.default_rng(0).normal(size=(600, 4))
    DRSNE(max_iter=20, n_jobs=2, random_state=0).fit(X)
    assert set(started) == {_Helper}


def test_workers_pass_on_what_a_block_raises_and_go_on():
    from drsne.backends.numba.threads import Workers

    def fails(block, lo, hi):
        if block == 3:
            raise ValueError("block 3")

    seen = []
    with Workers(3) as workers:
        for _ in range(200):
            with pytest.raises(ValueError, match="block 3"):
                workers.run(fails, 8, grain=1)
        for _ in range(200):
            workers.run(lambda block, lo, hi: seen.append(block), 8, grain=1)
    assert sorted(seen) == sorted(list(range(8)) * 200)


def test_an_interrupt_waits_for_the_compiler():
    """Raised inside it could leave a lock of the compiler taken, and every other thread would wait for ever."""
    from numba.core import event

    from drsne.backends.numba.kernels._compile import kernel
    from drsne.backends.numba.threads import Workers

    class Interrupts(event.Listener):
        def on_start(self, event):
            signal.raise_signal(signal.SIGINT)

        def on_end(self, event):
            pass

    twice = kernel(lambda x: 2 * x)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Workers(1), event.install_listener("numba:llvm_lock", Interrupts()), pytest.raises(KeyboardInterrupt):
            twice(4)
        assert len(twice.signatures) == 1  # compiled all the same
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert twice(4) == 8
    finally:
        signal.signal(signal.SIGINT, before)


def test_compilations_of_others_keep_their_interrupts():
    """Outside our fits the handler of the program is left alone, even while numba compiles."""
    from numba import njit
    from numba.core import event

    import drsne.backends.numba.kernels._compile  # noqa: F401

    seen = []

    class Watches(event.Listener):
        def on_start(self, event):
            seen.append(signal.getsignal(signal.SIGINT))

        def on_end(self, event):
            pass

    before = signal.getsignal(signal.SIGINT)
    with event.install_listener("numba:llvm_lock", Watches()):
        njit(lambda x: 3 * x)(4)
    assert seen
    assert set(seen) == {before}
