"""Repulsion with the Barnes-Hut tree, in O(n log n), for 1-D to 3-D maps of any extent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import Kind
from drsne.engines._check import MARGIN, Indicators, Prediction, Sample, interval

_LONGEST_PAUSE = 7  # largest number of evaluations that do not try the last cells after cells had grown too much
# How theta is adjusted to the measured errors: the smallest factor on theta, the factor down to which theta is lowered
# even if that does not help at once, the fraction of the allowed error below which theta grows again, and the factor by
# which it grows.
_LEAST_SHARE = 0.15
_LOWERED_ANYWAY = 0.5
_TOO_ACCURATE, _RAISED = 0.3, 1.15
_OFTEN = 4  # factor by which checks are more frequent if the last error was above half of the allowed error
_UNCORRECTED = 0.5  # fraction of the allowed error below which the partition sum is not corrected


@dataclass
class _Reused:
    """Cells of the last evaluation that the next ones use again."""

    structure: Any
    extent: float  # mean extent of the leaves when all cells were made
    uses: int = 0
    pause: int = 0  # number of evaluations without a trial after the last failed trial
    paused: int = 0  # number of them that are left
    age: int = 0  # number of times that only small cells were made again


@dataclass
class _Checked:
    """The results of the last check of a kernel."""

    prediction: Prediction = field(default_factory=Prediction)
    unchecked: int = 0  # number of evaluations until the next check
    share: float = 1.0  # factor on theta
    ratio: float = 1.0  # partition sum over all pairs divided by that over the tree
    cells: _Reused | None = None
    memory: dict[str, Any] = field(default_factory=dict)  # what the backend keeps for the next evaluation


@dataclass
class TreeState:
    """The state of an optimisation: the last checks of the fixed and of the adaptive kernel."""

    fixed: _Checked = field(default_factory=_Checked)
    adaptive: _Checked = field(default_factory=_Checked)


class TreeEngine:
    """The repulsion summed over a tree of cells with second moments.

    From time to time, the forces on some points are also summed over all pairs. If the error at these points is too
    large, theta is lowered for the next evaluations. The same points are used to correct the partition sum.

    ``theta`` is the largest extent of a cell that is treated as one point, in units of ``sqrt(1 + distance^2)``. With
    0, the sums are exact.
    """

    OPTIONS = ("theta",)
    tolerance = (1e-2, 5e-4)
    adaptive = True

    def __init__(self, backend: Any, *, precision: str = "single", theta: float = 0.45) -> None:
        self._backend, self._tree = backend, backend.tree
        self._precision = precision
        self._theta = float(theta)
        # Errors are proportional to the fourth power of theta: 1 % and 0.05 % at 0.45.
        self._allowed = tuple(bound * (self._theta / 0.45) ** 4 for bound in self.tolerance)

    @staticmethod
    def supports(n_components: int, kind: Kind) -> bool:
        """Return whether maps can have this number of dimensions."""
        return 1 <= n_components <= kind.tree_dimensions

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Raise an error for a theta that is not between 0 and 1."""
        if "theta" in options and checks.number("engine_options['theta']", options["theta"], at_least=0) > 1:
            raise ValueError(
                f"engine_options['theta'] must be between 0 (exact) and 1; got {options['theta']!r}. "
                "The default is 0.45."
            )

    start = staticmethod(TreeState)

    def repulsion(
        self,
        Y: NDArray[np.float64],
        smoothing: float,
        scales: NDArray[np.float64] | None = None,
        state: TreeState | None = None,
    ) -> tuple[float, NDArray[np.float64]]:
        base = 1.0 + smoothing
        Y = self._tree.centred(Y)
        Y = Y if base == 1.0 else Y / float(np.sqrt(base))
        state = TreeState() if state is None else state
        last = state.fixed if scales is None else state.adaptive
        sums = self._sums(Y, scales, last)
        if self._theta > 0.0:
            sums = self._checked(Y, scales, sums, last)
        return sums.partition / base, sums.forces if base == 1.0 else sums.forces / base**1.5

    def _sums(self, Y: NDArray[np.float64], scales: NDArray[np.float64] | None, last: _Checked) -> Any:
        return self._tree.sums(self._cells(Y, scales, last), Y.shape[1], last.share * self._theta)

    def _cells(self, Y: NDArray[np.float64], scales: NDArray[np.float64] | None, last: _Checked) -> Any:
        """Return the cells of a map. The structure of the last evaluation is used if the points have moved little.

        A trial costs as much as the summaries of new cells. While points move fast, there are fewer and fewer trials,
        and only the small cells of the structure are new.
        """
        reused, n = last.cells, len(Y)
        if reused is None or len(reused.structure.order) != n:
            return self._new_cells(Y, scales, last, 0, 0)
        pause, paused = reused.pause, max(reused.paused - 1, 0)
        if reused.paused == 0 and reused.uses < self._tree.MOST_USES:
            found = self._tree.cells(Y, scales, reused.structure, self._precision, last.memory)
            reused.uses += 1
            if found.leaf_extent() <= self._tree.GROWN * reused.extent:
                reused.pause = 0
                return found
            pause = paused = min(2 * pause + 1, _LONGEST_PAUSE)
        if reused.age < self._tree.MOST_AGE:
            structure = self._tree.divided_again(Y, scales, reused.structure)
            found = self._tree.cells(Y, scales, structure, self._precision, last.memory)
            if found.leaf_extent() <= self._tree.GROWN * reused.extent:
                last.cells = _Reused(structure, reused.extent, 0, pause, paused, reused.age + 1)
                return found
        return self._new_cells(Y, scales, last, pause, paused)

    def _new_cells(
        self, Y: NDArray[np.float64], scales: NDArray[np.float64] | None, last: _Checked, pause: int, paused: int
    ) -> Any:
        found = self._tree.cells(Y, scales, self._tree.structure(Y, scales), self._precision, last.memory)
        kept = len(Y) >= self._tree.LARGE
        last.cells = _Reused(found.structure, found.leaf_extent(), 0, pause, paused) if kept else None
        return found

    def _indicators(self, sums: Any) -> Indicators:
        return Indicators.of(sums.partition, sums.forces)

    def _sample(self, Y: NDArray[np.float64], scales: NDArray[np.float64] | None, sums: Any) -> Sample:
        return Sample.of(Y, sums.order, self._precision, self._backend, scales)

    def _checked(self, Y: NDArray[np.float64], scales: NDArray[np.float64] | None, sums: Any, state: _Checked) -> Any:
        """Return the sums, recomputed with a smaller theta if necessary, and with a corrected partition sum.

        The factors on theta and on the partition sum are kept until the next check.
        """
        allowed, indicators = MARGIN * self._allowed[0], self._indicators(sums)
        state.unchecked -= 1
        if state.unchecked >= 0 and state.prediction.at(indicators) <= allowed:
            return sums._replace(partition=sums.partition * state.ratio)
        sample = self._sample(Y, scales, sums)
        error = sample.force_error(sums.forces)
        while error > allowed and state.share > _LEAST_SHARE:
            share, before = state.share, error
            state.share = max(share * _step(error / self._allowed[0]), _LEAST_SHARE)
            sums = self._sums(Y, scales, state)
            error = sample.force_error(sums.forces)
            if error > MARGIN * before and state.share < _LOWERED_ANYWAY:  # the remaining error is due to rounding
                state.share, error = share, 0.0
                break
        state.prediction.learn(error, indicators)
        state.unchecked = interval(len(Y)) // (1 if error < 0.5 * allowed else _OFTEN)
        if state.share < 1.0 and error < _TOO_ACCURATE * self._allowed[0]:
            state.share = min(1.0, _RAISED * state.share)
        ratio = sample.partition_ratio(sums.potential)
        state.ratio = ratio if abs(ratio - 1.0) > _UNCORRECTED * self._allowed[1] else 1.0
        return sums._replace(partition=sums.partition * state.ratio)


def _step(excess: float) -> float:
    """Return the factor on theta after an error of ``excess`` times the allowed one.

    It assumes that errors grow with the third power of theta.
    """
    return float(np.clip((0.5 / excess) ** (1.0 / 3.0), 0.5, 0.9))


ENGINE = TreeEngine
