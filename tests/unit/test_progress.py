"""The progress bar on a terminal, in a notebook and on a plain stream."""

from __future__ import annotations

import io
import re
import sys
import time
import types

from drsne.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(stream, total=100, **options):
    with ProgressBar(total, "fit", stream=stream, **options) as bar:
        for iteration in range(1, total + 1):
            bar(iteration, {"kl": 2.0 / iteration})
    return stream.getvalue()


def test_a_plain_stream_gets_a_line_each_tenth_of_the_way():
    lines = run(io.StringIO()).splitlines()
    assert lines[0] == "fit: compiling ..."
    assert 10 <= len(lines) - 1 <= 11
    assert "100/100, kl=0.0200" in lines[-1]
    assert lines[-2].endswith("left")
    assert "left" not in lines[-1]
    assert all(line.startswith("fit |") for line in lines[1:])


def test_a_terminal_gets_one_line_that_updates_itself():
    text = run(Terminal())
    assert text.count("\n") == 1
    assert text.count("\r") > 1
    assert "compiling" in text
    last = text.rsplit("\r", 1)[-1]
    assert "100/100, kl=0.0200" in last
    assert "compiling" not in last


def test_compilation_does_not_enter_the_estimate():
    """A hundred iterations of 0.01 s after a second of compilation: the first estimates are below 2 s."""
    stream = io.StringIO()
    with ProgressBar(100, stream=stream) as bar:
        time.sleep(1.0)
        for iteration in range(1, 31):
            bar(iteration, {})
            time.sleep(0.01)
    estimates = re.findall(r"(\d+):(\d+) left", stream.getvalue())
    assert estimates
    assert all(60 * int(minutes) + int(seconds) < 2 for minutes, seconds in estimates)


def test_a_notebook_gets_one_bar(monkeypatch):
    """Standard error of a kernel is not a terminal, but shows a line that updates itself."""
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", types.ModuleType("zmqshell"))
    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: object()
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with ProgressBar(100, "fit") as bar:
        for iteration in range(1, 101):
            bar(iteration, {})
    assert sys.stderr.getvalue().count("\n") == 1
    assert "\r" in sys.stderr.getvalue()
    # A stream that is passed is not the notebook's.
    assert run(io.StringIO()).count("\n") > 5


def test_nothing_is_shown_if_it_is_not_visible():
    assert run(io.StringIO(), visible=False) == run(Terminal(), visible=False) == ""


def test_a_run_that_ends_early_or_never_begins():
    for stream in (io.StringIO(), Terminal()):
        with ProgressBar(100, "fit", stream=stream) as bar:
            bar(30, {"kl": 1.0, "failed": 1})
        assert "30/100" in stream.getvalue()
        assert re.search(r"failed=1(\s|$)", stream.getvalue())  # whole numbers have no decimals
    for stream in (io.StringIO(), Terminal()):
        with ProgressBar(0, "fit", stream=stream, preparing="waiting ..."):
            pass
        assert "fit: waiting ..." in stream.getvalue()
