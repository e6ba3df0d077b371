"""A progress bar on standard error."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 24


class ProgressBar:
    """Shows iterations done, losses, speed and the time left; one line, redrawn at most ten times a second.

    Where standard error is not a terminal it writes a line each tenth of the way instead. Used in a ``with``
    block, which ends the line.
    """

    def __init__(
        self, total: int, label: str = "DR-SNE", *, visible: bool = True, stream: TextIO | None = None
    ) -> None:
        self._total, self._label = max(total, 1), label
        self._stream = sys.stderr if stream is None else stream
        self._start = time.perf_counter()
        self._drawn = -1.0
        self._visible = visible and self._stream is not None  # a windowed program has no standard error
        self._live = self._visible and self._stream.isatty()

    def __call__(self, iteration: int, losses: dict[str, float]) -> None:
        """Show ``iteration`` and ``losses``."""
        if not self._visible:
            return
        now = time.perf_counter() - self._start
        share = iteration / self._total
        last = iteration >= self._total
        if self._live:
            if now - self._drawn < 0.1 and not last:
                return
            self._drawn = now
        else:
            if share - self._drawn < 0.1 and not last:
                return
            self._drawn = share
        left = now / share * (1.0 - share) if share > 0 else 0.0
        bar = "#" * int(_WIDTH * share)
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in losses.items())
        line = f"{self._label} |{bar:<{_WIDTH}}| {iteration}/{self._total}  {numbers}  {now:.1f} s, {left:.1f} s left"
        self._stream.write(f"\r\033[K{line}" if self._live else f"{line}\n")
        self._stream.flush()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._visible and self._live and self._drawn >= 0:
            self._stream.write("\n")
            self._stream.flush()
