"""Maps along a path of density weights (lambda), and the choice among them (docs/theory.md, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.metrics import evaluation
from drsne.metrics._inputs import sampled_rows, space_of
from drsne.neighbors.graph import KnnGraph
from drsne.optimize.defaults import PathSchedules
from drsne.optimize.loop import Callback, Outcome, minimize
from drsne.terms.objective import FULL_ADAPTATION, PROFILE_WEIGHT, Objective
from drsne.terms.problem import Problem, State

Array = NDArray[np.float64]
# Each weight is 1.7 to 2.2 times the previous one. The last weight is the first one whose double raises the mean
# concentration correlation by less than .0001 (benchmarks/results/path_end.md).
WEIGHTS = (
    *(0.0, 0.03, 0.05, 0.1, 0.17, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0, 9.0, 16.0, 35.0, 70.0),
    *(140.0, 280.0, 560.0, 1120.0),  # with the density term of the paper
)
AUTO_WEIGHTS = tuple(weight for weight in WEIGHTS if weight <= PROFILE_WEIGHT)  # those of density_weight="auto"
SCORED = 5000  # largest number of points that are scored
SCORED_PAIRWISE = 1000  # largest number of points for continuity and stress, which need all distances in every map
DENSITY = "density"  # name of the mean of the following scores
_DENSITY_SCORES = ("concentration_correlation", "density_rank_correlation", "local_density_rank_correlation")
_SMALLER_IS_BETTER = ("stress", "fragmentation")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DensityPath:
    """Maps of the same data along a path of density weights.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        Density weights (lambda) of the maps, in ascending order.
    embeddings : list of ndarray of shape (n_samples, n_components)
        The maps.
    metrics : dict of str to ndarray of shape (m,)
        Scores of the maps, named as in :func:`drsne.metrics.evaluate`. They are measured on at most 5000 points;
        continuity and stress are measured on at most 1000 points.
    kl_divergence, concentration_loss : ndarray of shape (m,)
        The two terms of the loss of every map. Above a weight of 70, the default density term is the paper's (see
        :class:`drsne.DRSNE`), and ``concentration_loss`` is that of this term. It should therefore not be compared with
        the losses of maps at smaller weights.
    baseline, baseline_continuity : float
        Trustworthiness and continuity of the map at lambda = 0, even if that map is not on the path.
    stopped_by : {"callback", "interrupt", "overflow"} or None
        What ended the path early, or None if it was completed. If the scoring of the maps is interrupted, the maps have
        no scores.
    input_concentration : ndarray of shape (n_samples,) or None
        Log relative concentration of the data, as in :class:`drsne.DRSNE`, if it is known.
    contrasts : ndarray of shape (m,) or None
        Contrast of every map: the factor on ``input_concentration`` that gives the concentration that the map should
        have, if it is known.
    """

    weights: Array
    embeddings: list[NDArray[Any]]
    metrics: dict[str, Array]
    kl_divergence: Array
    concentration_loss: Array
    baseline: float
    baseline_continuity: float = float("nan")
    stopped_by: str | None = None
    input_concentration: Array | None = None
    contrasts: Array | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        weights = ", ".join(f"{weight:g}" for weight in self.weights)
        n, d = self.embeddings[0].shape
        return f"DensityPath({len(self)} maps of {n} samples in {d} dimensions; density weights {weights})"

    def select(
        self,
        min_trustworthiness: float | None = None,
        max_trustworthiness_drop: float | None = None,
        criterion: str = "concentration_correlation",
        max_continuity_drop: float | None = None,
    ) -> int:
        """Return the index of the best map that meets the constraints (the paper's constrained choice).

        Parameters
        ----------
        min_trustworthiness : float, default=None
            The smallest trustworthiness that is allowed.
        max_trustworthiness_drop : float, default=None
            The largest loss of trustworthiness that is allowed, relative to the map at lambda = 0.
        criterion : str, default="concentration_correlation"
            The score by which the best map is chosen: a key of ``metrics``, or "density" for the mean of the
            concentration correlation and both density rank correlations. Ties go to the smallest weight.
        max_continuity_drop : float, default=None
            The largest loss of continuity that is allowed, relative to the map at lambda = 0.

        Returns
        -------
        int
            Index into ``weights`` and ``embeddings``.
        """
        checks.choice("criterion", criterion, (*self.metrics, DENSITY))
        if np.isnan(self.baseline):
            raise ValueError(
                "The maps of this path have no scores, because the scoring was interrupted. Score the maps with "
                "drsne.metrics.evaluate, or choose one of the embeddings yourself (plot then needs chosen=...)."
            )
        least, needs = -np.inf, []
        if min_trustworthiness is not None:
            least = checks.number("min_trustworthiness", min_trustworthiness)
        if max_trustworthiness_drop is not None:
            drop = checks.number("max_trustworthiness_drop", max_trustworthiness_drop, at_least=0)
            least = max(least, self.baseline - drop)
        if np.isfinite(least):
            needs.append(f"a trustworthiness of at least {least:.4f}")
        trust = self.metrics["trustworthiness"]
        allowed, best = trust >= least, int(np.argmax(trust))
        reached = (
            f"the largest trustworthiness is {trust[best]:.4f}, at density_weight={self.weights[best]:g} "
            f"({self.baseline:.4f} at 0)"
        )
        if max_continuity_drop is not None:
            drop = checks.number("max_continuity_drop", max_continuity_drop, at_least=0)
            needs.append(
                f"a continuity of at least {self.baseline_continuity - drop:.4f} (max_continuity_drop={drop:g})"
            )
            continuity = self.metrics["continuity"]
            if allowed.any():
                reached = (
                    f"the largest continuity of maps with enough trustworthiness is {continuity[allowed].max():.4f}"
                )
            allowed &= continuity >= self.baseline_continuity - drop
        if not allowed.any():
            raise ValueError(
                f"No map of the path has {' and '.join(needs)}; {reached}. Relax the constraints"
                f"{'.' if self.weights[0] == 0 else ', or add smaller weights.'}"
            )
        score = self.score(criterion) * (-1.0 if criterion in _SMALLER_IS_BETTER else 1.0)
        places = np.flatnonzero(allowed)
        return int(places[np.argmax(np.nan_to_num(score[places], nan=-np.inf))])

    def best(self, drop: float = 0.01) -> int | None:
        """Return the index of the map that ``density_weight="auto"`` would choose among these.

        Parameters
        ----------
        drop : float, default=0.01
            The largest loss of trustworthiness and of continuity that is allowed, relative to the map at lambda = 0.

        Returns
        -------
        int or None
            Index into ``weights`` and ``embeddings``, or None if no map meets the constraints or a score is missing.
        """
        try:
            return self.select(max_trustworthiness_drop=drop, max_continuity_drop=drop, criterion=DENSITY)
        except (KeyError, ValueError):
            return None

    def score(self, criterion: str) -> Array:
        """Return one score of every map. ``criterion`` is named as in :meth:`select`."""
        if criterion == DENSITY:
            return np.asarray(np.mean([self.metrics[name] for name in _DENSITY_SCORES], axis=0))
        return self.metrics[criterion]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each map: its weight, contrast, losses and scores."""
        pd = checks.package("pandas", "to_frame needs", "frame")
        contrasts = {} if self.contrasts is None else {"contrast": self.contrasts}
        columns = {"density_weight": self.weights, **contrasts, **self.metrics}
        losses = {"kl_divergence": self.kl_divergence, "concentration_loss": self.concentration_loss}
        return pd.DataFrame({**columns, **losses})

    def plot(
        self, labels: Any = None, *, chosen: int | None = None, criterion: str = "concentration_correlation"
    ) -> Any:
        """Plot the trade-off between trustworthiness and ``criterion``, and up to six of the maps.

        Parameters
        ----------
        labels : array-like of shape (n_samples,), default=None
            Labels by which the points are coloured.
        chosen : int, default=None
            Index of the map to mark, such as the result of :meth:`select`. If None, it is the map with the best
            ``criterion`` among those with a trustworthiness at most 0.01 below that of the map at lambda = 0, or the
            map with the largest trustworthiness if there is none.
        criterion : str, default="concentration_correlation"
            The score that is plotted against trustworthiness, named as in :meth:`select`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. Save it with ``figure.savefig(...)``.
        """
        from drsne import pl

        checks.choice("criterion", criterion, (*self.metrics, DENSITY))
        if chosen is not None:
            hint = "Pass the result of select()."
            if checks.integer("chosen", chosen, at_least=0, hint=hint) >= len(self):
                raise ValueError(f"chosen must be below {len(self)}, the number of maps; got {chosen}. {hint}")
        return pl.trade_off(self, labels, chosen=chosen, criterion=criterion)


def automatic(path: DensityPath, drop: float) -> int:
    """Return the index of the map that ``density_weight="auto"`` chooses on a path from lambda = 0.

    It is the map with the largest mean of the density scores among those that lose at most ``drop`` of trustworthiness
    and of continuity. If that is the map at lambda = 0, a warning is issued. If the maps have no scores, the map at
    lambda = 0 is chosen.
    """
    if np.isnan(path.baseline):
        return 0
    chosen = path.select(max_trustworthiness_drop=drop, max_continuity_drop=drop, criterion=DENSITY)
    if chosen == 0 and len(path) > 1:
        trust = path.metrics["trustworthiness"]
        best = 1 + int(np.argmax(trust[1:]))
        checks.warn(
            f"density_weight='auto' chose 0, plain t-SNE: no larger weight of the path shows density better while "
            f"staying within max_trustworthiness_drop={drop:g} of the trustworthiness ({path.baseline:.4f}) and "
            f"continuity ({path.baseline_continuity:.4f}) of plain t-SNE. Among the other weights, "
            f"{path.weights[best]:g} has the largest trustworthiness ({trust[best]:.4f}). Raise "
            "max_trustworthiness_drop, or pass a number as density_weight. All maps are in path_."
        )
    return chosen


class Followed(NamedTuple):
    """The maps along a path, up to the weight at which the path was stopped."""

    outcomes: list[Outcome]  # one outcome for each weight that was reached, beginning with 0
    stopped_by: str | None  # reason as in Outcome; a map that was stopped early is left out, unless it is the first
    n_iter: int
    state: State  # of the problem at the last weight


def follow(
    problems: Mapping[float, Problem],
    objective: Objective,
    start: Array,
    schedules: PathSchedules,
    *,
    callbacks: Sequence[Callback] = (),
    progress: Callable[[int, dict[str, float]], None] | None = None,
) -> Followed:
    """Fit and return the map at lambda = 0, which is plain t-SNE, and the maps at the positive weights.

    ``problems`` has the problem of every weight of the path, in ascending order from 0. Each has a density weight of
    one, and they differ only in their density terms. The kernel of all of them is that of ``objective``. A map is
    fitted separately if its kernel adapts further than that of the previous map. Every other map starts from the
    previous map. Iterations are counted, and histories recorded, from the start of the path.
    """
    outcomes: list[Outcome] = []
    Y, done, stopped_by = start, 0, None
    problem = problems[0.0]
    state = problem.start()
    fitted = own_fits(objective, [weight for weight in problems if weight > 0.0])
    for weight, current in problems.items():
        if current is not problem:
            problem, state = current, current.start()
        schedule = schedules.step if current is problems[0.0] else schedules.last
        if not outcomes:
            schedule = schedules.plain
        if weight in fitted and schedules.first is not None:
            Y, schedule = start, schedules.first
        power = objective.adaptation(weight) if weight > 0.0 else 0.0  # the map at lambda = 0 has the fixed kernel
        last = minimize(
            problem.weighted(weight, power=power, arrangement=_arranged(objective, weight)),
            Y,
            schedule,
            state=state,
            callbacks=[_shifted(callback, done) for callback in callbacks],
            progress=None if progress is None else _shifted(progress, done),
        )
        done, stopped_by = done + last.n_iter, last.stopped_by
        if stopped_by is not None and outcomes:
            break
        Y = last.embedding
        outcomes.append(_appended(outcomes[-1], last) if outcomes else last)
        if stopped_by is not None:
            break
    return Followed(outcomes, stopped_by, done, state)


def _arranged(objective: Objective, weight: float) -> float:
    """Return the factor on the arrangement term at a density weight. The map at 0 is plain t-SNE."""
    automatic = any(getattr(term, "automatic", False) for term in objective.terms)
    return min(1.0, weight / FULL_ADAPTATION) if automatic else float(weight > 0.0)


def own_fits(objective: Objective, weights: Sequence[float]) -> list[float]:
    """Return the ascending positive ``weights`` at which the kernel adapts further than at the previous weight."""
    powers = [-1.0, *(objective.adaptation(weight) for weight in weights)]  # the first weight always has its own fit
    return [weight for weight, (before, power) in zip(weights, pairwise(powers), strict=True) if power > before]


def _shifted(function: Callable[..., Any], done: int) -> Callable[..., Any]:
    """Return a callback that counts iterations from the start of the path, after ``done`` earlier ones."""
    return lambda iteration, *rest: function(done + iteration, *rest)


def _appended(before: Outcome, last: Outcome) -> Outcome:
    """Return the outcome of the last step, including the iterations and the history of the earlier steps."""
    # The first entry of a step is the map that it starts from.
    history = {name: np.concatenate([before.history[name], values[1:]]) for name, values in last.history.items()}
    history["iteration"][len(before.history["iteration"]) :] += before.n_iter
    return last._replace(n_iter=before.n_iter + last.n_iter, history=history)


def scored(
    followed: Followed,
    weights: Sequence[float],
    X: Any,
    workers: Workers,
    *,
    metric: Any,
    near: KnnGraph | None,
    dtype: type = np.float64,
) -> DensityPath:
    """Return the path of the ``weights`` that were reached, with the scores of its maps.

    ``near`` holds exact neighbours of ``X`` if they are known.
    """
    outcomes, stopped_by = followed.outcomes, followed.stopped_by
    reached = (0.0, *(w for w in weights if w > 0.0))[: len(outcomes)]
    rows = sampled_rows(X.shape[0], SCORED, 0)
    try:
        maps = [outcome.embedding for outcome in outcomes]
        metrics = evaluation.of_maps(X, maps, rows, workers, n_pairwise=SCORED_PAIRWISE, metric=metric, near=near)
    except KeyboardInterrupt:  # the maps are kept; their scores stay unknown
        metrics = {name: np.full(len(outcomes), np.nan) for name in evaluation.NAMES}
        stopped_by = "interrupt"
    first = 0 if len(outcomes) == 1 or 0.0 in weights else 1  # otherwise lambda = 0 is only the baseline
    return DensityPath(
        weights=np.array(reached[first:]),
        embeddings=[outcome.embedding.astype(dtype, copy=False) for outcome in outcomes[first:]],
        metrics={name: np.array(values[first:], dtype=np.float64) for name, values in metrics.items()},
        kl_divergence=np.array([outcome.losses["kl"] for outcome in outcomes[first:]]),
        concentration_loss=np.array([outcome.losses["concentration"] for outcome in outcomes[first:]]),
        baseline=float(metrics["trustworthiness"][0]),
        baseline_continuity=float(metrics["continuity"][0]),
        stopped_by=stopped_by,
    )


def check_scorable(X: Any, metric: Any, *, precomputed: bool) -> None:
    """Raise an error, before anything is computed, if the scores cannot be computed with this metric."""
    if precomputed and sp.issparse(X):
        raise ValueError(
            "A path of density weights needs all distances to score its maps; got a sparse graph with "
            "metric='precomputed'. Pass the data or a full distance matrix as X, or a number as density_weight."
        )
    try:
        space_of(X, metric).distances(np.arange(2))
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"A path of density weights needs all distances to score its maps, but metric={metric!r} does not give "
            f"them for such data ({error}). Pass a number as density_weight, or another metric."
        ) from error


def report_early_end(followed: Followed, maps: DensityPath, kept: str) -> None:
    """Warn if a path of weights ended early. ``kept`` says which maps are kept."""
    if followed.stopped_by == "interrupt":
        checks.warn(f"Interrupted after {followed.n_iter} iterations of a path of weights; {kept}.")
    elif followed.stopped_by == "overflow":
        checks.warn(
            f"The gradient was no longer finite after {followed.n_iter} iterations of a path of weights; {kept}. Lower "
            "the larger weights."
        )
    elif np.isnan(maps.baseline):
        checks.warn(f"Interrupted while the maps of a path were being scored, so they have no scores; {kept}.")
