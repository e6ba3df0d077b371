"""A progress bar that shows the losses and an estimate of the remaining time. It uses tqdm."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Mapping
from typing import Any, TextIO

_COMPLETED = "{desc} |{bar}| {n_fmt}/{total_fmt}{postfix}  {elapsed}"
_FORMAT = _COMPLETED + ", {remaining} left"
_LINE_WIDTH = 100  # width, in characters, of a line that is written to a file
_INTERVAL = 0.1  # seconds between two updates of a bar; also the fraction of the iterations between two lines


class ProgressBar:
    """Show the number of completed iterations, the losses and the remaining time.

    In a terminal or a notebook, this is one bar that is updated. On any other stream, one line is written for each
    tenth of the iterations. The text ``preparing`` is shown until the first call, because the time before it is mostly
    spent on compilation. This time is not used to estimate the remaining time. Use the bar in a ``with`` block, and
    call it with the number of completed iterations and the losses. It writes to ``stream``, or to standard error or the
    output of a notebook cell.
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
        self._visible = visible and self._stream is not None  # programs without a console have no standard error
        self._live = self._visible and (self._stream.isatty() or (stream is None and _in_notebook()))
        self._bar: Any = None  # the tqdm bar, if the display is live
        self._start: float | None = None  # time of the first call
        self._first, self._shown = 0, 0.0  # iteration of the first call; fraction at which the last line was written

    def __call__(self, iteration: int, losses: Mapping[str, float]) -> None:
        """Show the number of completed iterations and the losses."""
        if not self._visible:
            return
        iteration = min(iteration, self._total)
        values = {name: str(value) if isinstance(value, int) else f"{value:.4f}" for name, value in losses.items()}
        postfix = ", ".join(f"{name}={value}" for name, value in values.items())
        begins = self._start is None
        if begins:  # the time before the first call is not used to estimate the remaining time
            self._first, self._start = iteration, time.time()
        if self._bar is None:
            if iteration == self._total or iteration / self._total - self._shown >= _INTERVAL:
                self._shown = iteration / self._total
                self._write(self._line(iteration, postfix))
            return
        self._bar.set_postfix_str(postfix, refresh=False)
        if begins:
            self._bar.set_description_str(self._label, refresh=False)
            self._bar.n = self._bar.initial = self._bar.last_print_n = iteration
            self._bar.start_t = self._bar.last_print_t = self._start  # tqdm also uses time.time
            self._bar.refresh()
        self._bar.update(iteration - self._bar.n)

    def __enter__(self) -> ProgressBar:
        if self._live:
            self._bar = _bar_class()(
                total=self._total,
                desc=f"{self._label}: {self._preparing}",
                file=self._stream,
                bar_format=_FORMAT,
                mininterval=_INTERVAL,
                miniters=0,
                smoothing=0,  # use the mean speed so far, so that the estimate does not jump
                dynamic_ncols=True,
            )
        elif self._visible:
            self._write(f"{self._label}: {self._preparing}")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            if kind is None and self._bar.n < self._total and hasattr(self._bar, "container"):
                self._bar.display(bar_style="info", check_delay=False)  # not red: stopping early is not an error

    def _line(self, iteration: int, postfix: str) -> str:
        from tqdm.std import tqdm

        line: str = tqdm.format_meter(
            iteration,
            self._total,
            time.time() - (self._start or 0.0),
            ncols=_LINE_WIDTH,
            prefix=self._label,
            ascii=True,
            initial=self._first,
            postfix=postfix,
            bar_format=_FORMAT if iteration < self._total else _COMPLETED,
        )
        return line

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _in_notebook() -> bool:
    """Return whether the output of this process is shown in a Jupyter notebook."""
    if "ipykernel.zmqshell" not in sys.modules:
        return False
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return get_ipython() is not None


def _bar_class() -> Any:
    """Return the class of the bar: a widget in a notebook that supports widgets, and a text bar elsewhere."""
    with warnings.catch_warnings():
        from tqdm import TqdmWarning

        warnings.simplefilter("ignore", TqdmWarning)  # without ipywidgets, a notebook shows a text bar
        from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # do not start a monitor thread, because a fit may be forked
        _lock = threading.RLock()  # do not use a lock between processes

    return Bar
