"""Maps along a path of lambda, and the choice among them (docs/theory.md, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.metrics import evaluation
from drsne.metrics._inputs import sampled_rows, space_of
from drsne.neighbors.graph import KnnGraph
from drsne.objectives.drsne import DRSNEProblem, Objective
from drsne.objectives.problem import State
from drsne.optimization.loop import Callback, Evaluates, Outcome, minimize
from drsne.presets import PathSchedules

Array = NDArray[np.float64]
WEIGHTS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0, 9.0, 16.0, 35.0, 70.0)
SCORED = 5000  # points that are scored at most
SCORED_PAIRWISE = 1000  # for continuity and stress, which need all distances in every map
DENSITY = "density"  # the mean of these scores
_DENSITY_SCORES = ("concentration_correlation", "density_rank_correlation", "local_density_rank_correlation")
_SMALLER_IS_BETTER = ("stress", "fragmentation")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DensityPath:
    """Maps of the same data along a path of lambda.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        lambda of every map, ascending.
    embeddings : list of ndarray of shape (n_samples, n_components)
        The maps.
    metrics : dict of str to ndarray of shape (m,)
        Their scores, named as in :func:`drsne.metrics.evaluate`: of up to 5000 points, continuity and stress of up to
        1000.
    kl_divergence, concentration_loss : ndarray of shape (m,)
        The two terms of the loss at every map.
    baseline, baseline_continuity : float
        Trustworthiness and continuity of the map at lambda = 0, on the path or not.
    """

    weights: Array
    embeddings: list[NDArray[Any]]
    metrics: dict[str, Array]
    kl_divergence: Array
    concentration_loss: Array
    baseline: float
    baseline_continuity: float = float("nan")

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
        """Return the best map that is trustworthy enough: the paper's constrained choice.

        Parameters
        ----------
        min_trustworthiness : float, default=None
            Least trustworthiness.
        max_trustworthiness_drop : float, default=None
            Largest loss of trustworthiness against lambda = 0.
        criterion : str, default="concentration_correlation"
            The score that is best at the chosen map: a key of ``metrics``, or "density" for the mean of the
            concentration correlation and both density rank correlations. Ties go to the smallest lambda.
        max_continuity_drop : float, default=None
            Largest loss of continuity against lambda = 0.

        Returns
        -------
        int
            Index into ``weights`` and ``embeddings``.
        """
        checks.choice("criterion", criterion, (*self.metrics, DENSITY))
        if np.isnan(self.baseline):
            raise ValueError(
                "The maps of this path have no scores: it was interrupted while they were measured. Score them with "
                "drsne.metrics.evaluate, or take one of embeddings by eye (plot needs chosen=...)."
            )
        least = -np.inf
        if min_trustworthiness is not None:
            least = checks.number("min_trustworthiness", min_trustworthiness)
        if max_trustworthiness_drop is not None:
            drop = checks.number("max_trustworthiness_drop", max_trustworthiness_drop, at_least=0)
            least = max(least, self.baseline - drop)
        trust = self.metrics["trustworthiness"]
        allowed = trust >= least
        if max_continuity_drop is not None:
            drop = checks.number("max_continuity_drop", max_continuity_drop, at_least=0)
            allowed &= self.metrics["continuity"] >= self.baseline_continuity - drop
            if not allowed.any():
                both = f"a trustworthiness of at least {least:.4f} and " if np.isfinite(least) else ""
                most = self.metrics["continuity"][trust >= least].max(initial=-np.inf)
                reachable = (
                    f"the best continuity of such maps is {most:.4f}" if np.isfinite(most) else "none has the former"
                )
                raise ValueError(
                    f"No map of the path has {both}a continuity of at least {self.baseline_continuity - drop:.4f} "
                    f"(max_continuity_drop={drop:g}); {reachable}. Allow less, or add smaller weights."
                )
        if not allowed.any():
            best = int(np.argmax(trust))
            raise ValueError(
                f"No map of the path has a trustworthiness of at least {least:.4f}; the best reachable is "
                f"{trust[best]:.4f}, at density_weight={self.weights[best]:g} ({self.baseline:.4f} at 0). Allow less"
                f"{'.' if self.weights[0] == 0 else ', or add smaller weights.'}"
            )
        score = self.score(criterion) * (-1.0 if criterion in _SMALLER_IS_BETTER else 1.0)
        places = np.flatnonzero(allowed)
        return int(places[np.argmax(np.nan_to_num(score[places], nan=-np.inf))])

    def score(self, criterion: str) -> Array:
        """Return a score of every map; ``criterion`` is named as in :meth:`select`."""
        if criterion == DENSITY:
            return np.asarray(np.mean([self.metrics[name] for name in _DENSITY_SCORES], axis=0))
        return self.metrics[criterion]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each map: weight, losses and scores."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'drsne[frame]'.") from error
        columns = {"density_weight": self.weights, **self.metrics}
        losses = {"kl_divergence": self.kl_divergence, "concentration_loss": self.concentration_loss}
        return pd.DataFrame({**columns, **losses})

    def plot(
        self, labels: Any = None, *, chosen: int | None = None, criterion: str = "concentration_correlation"
    ) -> Any:
        """The trade-off between trustworthiness and ``criterion``, and up to six of the maps as a strip.

        Parameters
        ----------
        labels : array-like of shape (n_samples,), default=None
            Colours of the points.
        chosen : int, default=None
            The map to mark, such as the answer of :meth:`select`; by default that within .01 of lambda = 0.
        criterion : str, default="concentration_correlation"
            The score on the other axis, named as in :meth:`select`.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with ``figure.savefig(...)``.
        """
        from drsne import pl

        checks.choice("criterion", criterion, (*self.metrics, DENSITY))
        if chosen is not None:
            hint = "Pass the answer of select()."
            if checks.integer("chosen", chosen, at_least=0, hint=hint) >= len(self):
                raise ValueError(f"chosen must be below {len(self)}, the number of maps; got {chosen}. {hint}")
        else:
            chosen = self.select(
                max_trustworthiness_drop=max(0.01, self.baseline - self.metrics["trustworthiness"].max()),
                criterion=criterion,
            )
        return pl.trade_off(self, labels, chosen=chosen, criterion=criterion)


def automatic(path: DensityPath, drop: float) -> int:
    """Return the choice of ``density_weight="auto"`` on a path from lambda = 0.

    The map with the best mean of the density scores among those that lose at most ``drop`` of trustworthiness and of
    continuity. If only lambda = 0 qualifies, that map is chosen, with a warning. Without scores it is the map at 0.
    """
    if np.isnan(path.baseline):
        return 0
    chosen = path.select(max_trustworthiness_drop=drop, max_continuity_drop=drop, criterion=DENSITY)
    if chosen == 0 and len(path) > 1:
        trust = path.metrics["trustworthiness"]
        best = 1 + int(np.argmax(trust[1:]))
        checks.warn(
            f"density_weight='auto' chose 0, plain t-SNE: no larger weight of the path is better at showing density "
            f"within max_trustworthiness_drop={drop:g} of its trustworthiness ({path.baseline:.4f}) and continuity "
            f"({path.baseline_continuity:.4f}). The best trustworthiness of the others is {trust[best]:.4f}, at "
            f"{path.weights[best]:g}. Raise max_trustworthiness_drop, or pass a density_weight; path_ has all maps."
        )
    return chosen


class Weighted:
    """A problem of weight one, at another weight, with the scales of its kernel raised to a power."""

    def __init__(self, problem: Evaluates, weight: float, *, power: float = 1.0) -> None:
        self._problem, self._weight, self._power = problem, weight, power
        self.backend, self.start = problem.backend, problem.start

    def evaluate(self, Y: Array, *, density: float, scale: float, **options: Any) -> Any:
        """Evaluate the problem at the other weight."""
        return self._problem.evaluate(Y, density=self._weight * density, scale=self._power * scale, **options)


class Followed(NamedTuple):
    """Maps along a path, as far as it was followed."""

    outcomes: list[Outcome]  # of the weights that were reached, 0 first
    stopped_by: str | None  # as in Outcome; a step that did not end leaves no map, unless it was the first
    n_iter: int
    state: State


def follow(
    problem: DRSNEProblem,
    start: Array,
    weights: Sequence[float],
    schedules: PathSchedules,
    *,
    callbacks: Sequence[Callback] = (),
    progress: Callable[[int, dict[str, float]], None] | None = None,
) -> Followed:
    """Return the map at lambda = 0, which is plain t-SNE, and those at the positive ``weights``.

    ``problem`` has the weight one. A map whose kernel adapts further than that of the one before has a fit of its own,
    and every other map starts from the one before. Iterations are counted, and histories kept, from the start of the
    path.
    """
    outcomes: list[Outcome] = []
    Y, done, stopped_by, state = start, 0, None, problem.start()
    positive = [w for w in weights if w > 0.0]
    fitted = own_fits(problem.objective, positive)
    for weight in (0.0, *positive):
        schedule = schedules.step if outcomes else schedules.plain
        if weight in fitted and schedules.first is not None:
            Y, schedule = start, schedules.first
        last = minimize(
            Weighted(problem, weight, power=adaptation(problem.objective, weight)),
            Y,
            schedule,
            state=state,
            callbacks=[_later(callback, done) for callback in callbacks],
            progress=None if progress is None else _later(progress, done),
        )
        done, stopped_by = done + last.n_iter, last.stopped_by
        if stopped_by is not None and outcomes:
            break
        Y = last.embedding
        outcomes.append(_after(outcomes[-1], last) if outcomes else last)
        if stopped_by is not None:
            break
    return Followed(outcomes, stopped_by, done, state)


def adaptation(objective: Objective, weight: float) -> float:
    """Return how far the kernel adapts on a path. The map at lambda = 0 is plain t-SNE, whatever the kernel."""
    return objective.adaptation(weight) if weight > 0.0 else 0.0


def own_fits(objective: Objective, weights: Sequence[float]) -> list[float]:
    """Return those of the ascending positive ``weights`` at which the kernel adapts further than at the one before."""
    powers = [-1.0, *(objective.adaptation(weight) for weight in weights)]  # the first has a fit in any case
    return [weight for weight, (before, power) in zip(weights, pairwise(powers), strict=True) if power > before]


def _later(function: Callable[..., Any], done: int) -> Callable[..., Any]:
    return lambda iteration, *rest: function(done + iteration, *rest)


def _after(before: Outcome, last: Outcome) -> Outcome:
    # The first entry of a step is the last of the one before.
    history = {name: np.concatenate([before.history[name], values[1:]]) for name, values in last.history.items()}
    history["iteration"][len(before.history["iteration"]) :] += before.n_iter
    return last._replace(n_iter=before.n_iter + last.n_iter, history=history)


def scored(
    outcomes: Sequence[Outcome],
    weights: Sequence[float],
    X: Any,
    workers: Workers,
    *,
    metric: Any,
    near: KnnGraph | None,
    dtype: type = np.float64,
) -> DensityPath:
    """The path of the ``weights`` that were reached, with the scores of its maps.

    ``near`` are exact neighbours of ``X``, where they are known.
    """
    reached = (0.0, *(w for w in weights if w > 0.0))[: len(outcomes)]
    rows = sampled_rows(X.shape[0], SCORED, 0)
    try:
        maps = [outcome.embedding for outcome in outcomes]
        metrics = evaluation.of_maps(X, maps, rows, workers, n_pairwise=SCORED_PAIRWISE, metric=metric, near=near)
    except KeyboardInterrupt:  # the maps count; their scores stay unknown
        metrics = {name: np.full(len(outcomes), np.nan) for name in evaluation.NAMES}
    first = 0 if len(outcomes) == 1 or 0.0 in weights else 1  # lambda = 0 was only the way to the others
    return DensityPath(
        weights=np.array(reached[first:]),
        embeddings=[outcome.embedding.astype(dtype, copy=False) for outcome in outcomes[first:]],
        metrics={name: values[first:] for name, values in metrics.items()},
        kl_divergence=np.array([outcome.kl for outcome in outcomes[first:]]),
        concentration_loss=np.array([outcome.density for outcome in outcomes[first:]]),
        baseline=float(metrics["trustworthiness"][0]),
        baseline_continuity=float(metrics["continuity"][0]),
    )


def check_weights(weights: Any) -> tuple[float, ...]:
    """Weights of a path, ascending."""
    if weights is None:
        return WEIGHTS
    rule, usual = "weights must be a list of ascending numbers of at least 0, each once", "None takes the default ones."
    if isinstance(weights, (str, bytes, set, frozenset, dict)) or not hasattr(weights, "__iter__"):
        raise TypeError(f"{rule}; got {weights!r}. {usual}")
    given = list(weights)
    try:
        listed = [checks.number("weights", w, at_least=0) for w in given]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{rule}; got {given!r}. {usual}") from error
    if not listed:
        raise ValueError(f"{rule}; got none. {usual}")
    if any(b <= a for a, b in pairwise(listed)):
        raise ValueError(f"{rule}; got {given!r}. Pass sorted(set(weights)).")
    return tuple(listed)


def check_scorable(X: Any, metric: Any) -> None:
    """Raise, before anything is computed, where the distances that scores need cannot be had."""
    try:
        space_of(X, metric).distances(np.arange(2))
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"A path of density weights needs all distances to score its maps, and metric={metric!r} does not give "
            f"them for such data ({error}). Pass a number as density_weight, or another metric."
        ) from error
