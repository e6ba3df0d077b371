"""A progress bar with the losses and an estimate of the time left, drawn by tqdm."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Mapping
from typing import Any, TextIO

_FORMAT = "{desc} |{bar}| {n_fmt}/{total_fmt}{postfix}  {elapsed}, {remaining} left"
_LINE_WIDTH = 100  # characters of a line that is written to a file
_INTERVAL = 0.1  # seconds between two updates of a bar; also the share of the way between two lines


class ProgressBar:
    """Show the iterations done, the losses and the time left.

    In a terminal and in a notebook this is one bar that updates itself. On any other stream it is one line for each
    tenth of the way. The time before the first call is mostly spent on compilation; it is shown as such and does not
    enter the estimate of the time left. Use the bar in a ``with`` block, and call it with the number of iterations
    done and the losses.

    Parameters
    ----------
    total : int
        The number of iterations.
    label : str, default="DR-SNE"
        The text in front of the bar.
    visible : bool, default=True
        Whether to show anything.
    stream : file-like, default=None
        The stream to write to. None writes to standard error, or to the output of a notebook cell.
    preparing : str, default="compiling ..."
        What to show until the first call.

    Examples
    --------
    >>> import io
    >>> from drsne.progress import ProgressBar
    >>> stream = io.StringIO()
    >>> with ProgressBar(50, "fit", stream=stream) as bar:
    ...     for iteration in range(1, 51):
    ...         bar(iteration, {"kl": 1.0 / iteration})
    >>> first, *others = stream.getvalue().splitlines()
    >>> first
    'fit: compiling ...'
    >>> "50/50, kl=0.0200" in others[-1]
    True
    """

    def __init__(
        self,
        total: int,
        label: str = "DR-SNE",
        *,
        visible: bool = True,
        stream: TextIO | None = None,
        preparing: str = "compiling ...",
    ) -> None:
        self._total, self._label, self._preparing = max(total, 1), label, preparing
        self._stream = sys.stderr if stream is None else stream
        self._visible = visible and self._stream is not None  # a windowed program has no standard error
        self._live = self._visible and (self._stream.isatty() or (stream is None and _in_notebook()))
        self._bar: Any = None  # of tqdm, if the display is live
        self._first, self._start = 0, 0.0  # the iteration and the time of the first call
        self._started = False
        self._shown = 0.0  # the share of the way at which the last line was written

    def __call__(self, iteration: int, losses: Mapping[str, float]) -> None:
        """Show that ``iteration`` iterations are done, with these ``losses``."""
        if not self._visible:
            return
        iteration = min(iteration, self._total)
        postfix = ", ".join(f"{name}={_number(value)}" for name, value in losses.items())
        if self._bar is not None:
            self._bar.set_postfix_str(postfix, refresh=False)
        if not self._started:
            self._begin(iteration)
        if self._bar is not None:
            self._bar.update(iteration - self._bar.n)
        elif iteration == self._total or iteration / self._total - self._shown >= _INTERVAL:
            self._shown = iteration / self._total
            self._write(self._line(iteration, postfix))

    def __enter__(self) -> ProgressBar:
        if self._live:
            self._bar = _bar_class()(
                total=self._total,
                desc=f"{self._label}: {self._preparing}",
                file=self._stream,
                bar_format=_FORMAT,
                mininterval=_INTERVAL,
                miniters=0,
                smoothing=0,  # the mean speed so far: the estimate does not jump
                dynamic_ncols=True,
            )
        elif self._visible:
            self._write(f"{self._label}: {self._preparing}")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            if kind is None and self._bar.n < self._total and hasattr(self._bar, "container"):
                self._bar.display(bar_style="info", check_delay=False)  # stopping early is not a failure: not in red

    def _begin(self, iteration: int) -> None:
        """Start the clock: nothing before this moment enters the estimate."""
        self._started, self._first, self._start = True, iteration, time.time()
        if self._bar is not None:
            self._bar.set_description_str(self._label, refresh=False)
            self._bar.n = self._bar.initial = self._bar.last_print_n = iteration
            self._bar.start_t = self._bar.last_print_t = self._start  # tqdm measures with time.time as well
            self._bar.refresh()

    def _line(self, iteration: int, postfix: str) -> str:
        from tqdm.std import tqdm

        line: str = tqdm.format_meter(
            iteration,
            self._total,
            time.time() - self._start,
            ncols=_LINE_WIDTH,
            prefix=self._label,
            ascii=True,
            initial=self._first,
            postfix=postfix,
            bar_format=_FORMAT,
        )
        return line

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _in_notebook() -> bool:
    """Return whether a Jupyter kernel shows what this process writes."""
    if "ipykernel.zmqshell" not in sys.modules:
        return False
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return get_ipython() is not None


def _bar_class() -> Any:
    """Return the kind of bar that fits the place: a widget in a notebook that has widgets, text elsewhere."""
    with warnings.catch_warnings():
        from tqdm import TqdmWarning

        warnings.simplefilter("ignore", TqdmWarning)  # a bar of text serves a notebook without ipywidgets
        from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread that watches the bar: a fit may be forked
        _lock = threading.RLock()  # no lock between processes

    return Bar
