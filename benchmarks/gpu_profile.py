"""What the iterations of a fit by PyTorch spend their time on: the parts of gpu.py that look into a fit.

Parts of an iteration are timed by events on the device, without the profiler, and the programs of the next iterations
are listed by torch.profiler. On the CPU, the programs are the functions of PyTorch.
"""

from __future__ import annotations

import re
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch.profiler import ProfilerActivity, profile

from drsne.backends.torch import cells
from drsne.backends.torch.backend import TorchBackend
from drsne.backends.torch.tree import TorchTree
from drsne.engines.tree import TreeEngine
from drsne.optimize.loop import _Run
from drsne.terms.objective import DRSNEProblem

SPAN = 24  # number of iterations whose times are taken, and of those that are profiled
BEGIN = 10  # the first iteration that is measured
SHOWN = 10  # number of programs in a table
WIDTH = 72  # largest number of characters of the name of a program
# What is timed: the owner of a function, its name, and the part of an iteration. Parts do not include others.
TIMED = (
    (_Run, "_iterate", "rest"),
    (_Run, "_arrange", "order in memory"),
    (_Run, "_moved", "step"),
    (TorchBackend, "attraction", "attraction"),
    (TorchBackend, "energy", "losses"),
    (TorchBackend, "repulsion", "sums over all pairs"),
    (TorchBackend, "nearest_in_map", "neighbours in the map"),
    (DRSNEProblem, "_density_term", "density term"),
    (TreeEngine, "repulsion", "rest of the repulsion"),
    (TreeEngine, "_checked", "checks"),
    (TorchTree, "structure", "dividing into cells"),
    (TorchTree, "divided_again", "dividing into cells"),
    (TorchTree, "cells", "summaries of cells"),
    (TorchTree, "sums", "sums over cells"),
    (cells, "lists", "lists of cells"),
    (cells.Pieces, "of", "lists of cells"),
)
EVENTS = {
    "sums": "sums over cells",
    "cells": "summaries of cells",
    "structure": "all cells divided",
    "divided_again": "small cells divided again",
    "lists": "lists made",
    "_arrange": "iterations",
}


class _Watch:
    """The measurements of one fit, which replace functions of the package by functions that also measure."""

    def __init__(self, device: str) -> None:
        self._on_gpu, self._device = device.startswith("cuda"), device
        self.events: dict[str, Counter[str]] = defaultdict(Counter)
        self.windows: list[dict[str, Any]] = []
        self.extra: dict[str, float] = defaultdict(float)  # seconds that the profiler took in each phase
        self._stage = ""
        self._plan: dict[int, str] | None = None
        self._begin, self._measured = 0.0, 0.0
        self._profiler: Any = None
        self._structure: Any = None  # a weak reference to the last structure of cells
        # Part, beginning, end and number of the part around it, for the iterations that are timed.
        self._marks: list[list[Any]] | None = None
        self._inside: list[int] = []

    def patches(self, stack: ExitStack) -> None:
        """Replace the functions until the stack is left."""
        for owner, name, part in TIMED:
            found = vars(owner)[name]
            kept = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
            timed = self._iterate(kept, part) if name == "_iterate" else self._timed(kept, name, part)
            replaced = type(found)(timed) if isinstance(found, (staticmethod, classmethod)) else timed
            stack.enter_context(mock.patch.object(owner, name, replaced))

    def _timed(self, function: Callable[..., Any], name: str, part: str) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            if name in EVENTS:
                self.events[self._stage][EVENTS[name]] += 1
            if self._marks is None:
                found = function(*args, **options)
            else:
                number = len(self._marks)
                self._marks.append([part, self._now(), None, self._inside[-1] if self._inside else None])
                self._inside.append(number)
                found = function(*args, **options)
                self._inside.pop()
                self._marks[number][2] = self._now()
            if name == "sums":
                self._structure = weakref.ref(args[0].structure)
            return found

        return run

    def _iterate(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        timed = self._timed(function, "_iterate", part)

        def run(loop: Any, phase: Any, t: int, memory: Any) -> Any:
            if self._plan is None:
                self._plan = self._planned(loop.schedule.phases)
            self._reach(loop.iteration)
            self._stage = self._stage_at(loop.schedule.phases, loop.iteration)
            return timed(loop, phase, t, memory)

        return run

    def _planned(self, phases: Any) -> dict[int, str]:
        """Return the first iterations of the spans, with the name of the phase."""
        plain, density = _lengths(phases)
        spans = {BEGIN: "t-SNE", (plain - 2 * SPAN) // 2: "t-SNE", plain - 2 * SPAN: "t-SNE"}
        return {**spans, plain + (density - 2 * SPAN) // 2: "with density"}

    @staticmethod
    def _stage_at(phases: Any, iteration: int) -> str:
        plain, _ = _lengths(phases)
        if iteration >= plain:
            return "with density"
        return f"t-SNE, {('first', 'second', 'last')[3 * iteration // plain]} third"

    def _reach(self, iteration: int) -> None:
        """Begin or end what is planned before this iteration."""
        assert self._plan is not None
        if iteration in self._plan:
            self._wait()
            self._marks, self._begin = [], time.perf_counter()
        if iteration - SPAN in self._plan and self._marks is not None:
            self._wait()
            self._measured = time.perf_counter() - self._begin
            window = {"phase": self._plan[iteration - SPAN], "iteration": iteration - SPAN}
            window |= {"ms": 1e3 * self._measured / SPAN, "parts": self._parts(), "profiled": iteration}
            self.windows.append(window)
            self._marks = None
            self._profiler = profile(activities=activities(self._on_gpu))
            self._profiler.start()
        if iteration - 2 * SPAN in self._plan and self._profiler is not None:
            self._wait()
            self._profiler.stop()
            self.windows[-1] |= _programs(self._profiler, self._on_gpu) | {"cells": self._cells()}
            self._profiler = None
            # The two spans took this much longer than twice the first one.
            self.extra[self.windows[-1]["phase"]] += time.perf_counter() - self._begin - 2 * self._measured

    def _wait(self) -> None:
        if self._on_gpu:
            torch.cuda.synchronize(self._device)

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _parts(self) -> dict[str, float]:
        """Return the milliseconds per iteration of every part, without those of the parts inside it."""
        found: dict[str, float] = defaultdict(float)
        assert self._marks is not None
        for part, begin, end, around in self._marks:
            ms = begin.elapsed_time(end) if self._on_gpu else 1e3 * (end - begin)
            found[part] += ms / SPAN
            if around is not None:
                found[self._marks[around][0]] -= ms / SPAN
        return {part: round(ms, 4) for part, ms in found.items()}

    def _cells(self) -> dict[str, float]:
        """Return numbers of the cells and lists of the last sums."""
        at = None if self._structure is None else self._structure()
        if at is None or at.kept is None:
            return {}
        leaves = int((at.runs.own > 0).sum())
        return {
            "leaves": at.n_leaves,
            "wide leaves": len(at.runs.wide),
            "leaves and parts that are summed": leaves,
            "near leaves of each": float(at.kept.near.start[-1]) / leaves,
            "far nodes of each": float(at.kept.far.start[-1]) / leaves,
            "pieces": len(at.kept.pieces.leaf),
        }


def profiled(run: Callable[[], Any], seconds: dict[str, float], device: str) -> dict[str, Any]:
    """Return what was measured during a fit. ``seconds`` are those of its parts, which are known when it has ended."""
    on_gpu = device.startswith("cuda")
    with profile(activities=activities(on_gpu)):  # the first profiler starts slowly and may miss programs
        torch.ones(1, device=device).sum()
    watch = _Watch(device)
    with ExitStack() as stack:
        watch.patches(stack)
        model, total = run()
    parts = {name: round(value - watch.extra.get(name, 0.0), 2) for name, value in seconds.items()}
    events = {}
    for stage, counts in watch.events.items():
        iterations = counts["iterations"]
        if iterations and counts[EVENTS["sums"]]:  # small maps need no cells
            events[stage] = {name: 100 * counts[name] / iterations for name in EVENTS.values() if name != "iterations"}
    return {
        "total_s": round(total - sum(watch.extra.values()), 2),
        "parts": parts,
        "pairs": int(model.affinities_.nnz),
        "windows": watch.windows,
        "events": events,
    }


def activities(on_gpu: bool) -> list[ProfilerActivity]:
    """Return what the profiler records."""
    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]


def _lengths(phases: Any) -> tuple[int, int]:
    """Return the numbers of iterations without and with the density term."""
    density = sum(phase.n_iter for phase in phases if phase.density)
    return sum(phase.n_iter for phase in phases) - density, density


def _programs(found: Any, on_gpu: bool) -> dict[str, Any]:
    """Return the longest programs, and the time of all of them, per iteration."""
    calls: Counter[str] = Counter()
    ms: Counter[str] = Counter()
    if on_gpu:
        for event in found.events():
            if event.device_type == torch.autograd.DeviceType.CUDA and not getattr(event, "is_user_annotation", False):
                calls[event.name] += 1
                ms[event.name] += event.time_range.elapsed_us() / 1e3
    else:
        for each in found.key_averages():
            calls[each.key] += each.count
            ms[each.key] += each.self_cpu_time_total / 1e3
    longest = [
        {"name": _short(name), "calls": calls[name] / SPAN, "ms": value / SPAN} for name, value in ms.most_common(SHOWN)
    ]
    busy = sum(ms.values()) / SPAN if on_gpu else None
    return {"programs": longest, "busy_ms": busy, "kinds": len(ms), "calls": sum(calls.values()) / SPAN}


def _short(name: str) -> str:
    """Return the name of a program without namespaces and the types of its arguments."""
    name = re.sub(r"\b(void|unsigned|at::native::|at::cuda::|detail::|std::|\(anonymous namespace\)::) ?", "", name)
    name = re.sub(r"\([^()]*\)$", "", name).replace("|", "/").strip()
    return name if len(name) <= WIDTH else name[: WIDTH - 1] + "…"
