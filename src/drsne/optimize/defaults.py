"""The default schedules of a fit, of a path and of an update."""

from __future__ import annotations

from typing import Any, NamedTuple

from drsne.optimize.schedule import Adam, Momentum, Phase, Schedule
from drsne.terms.term import Term

# The default schedule, chosen in a study (benchmarks/results/defaults.md).
DENSITY_SHARE = 0.5  # fraction of the iterations, at the end of the run, that use the density term
DENSITY_RAMP = 0.3  # fraction of these iterations during which the weight of the term rises to lambda
# Settings for the adaptive kernel (benchmarks/results/kernel.md): the fraction of the iterations that use the density
# term; the last fraction of early exaggeration, during which the exaggeration is released gradually; and the number of
# iterations during which the scales of the kernel grow after the release has begun, relative to the number of
# iterations with early exaggeration.
ADAPTIVE_SHARE, RELEASED, GROWTH = 1 / 7, 0.7, 0.5
# Automatic number of iterations, and momentum after early exaggeration, with the adaptive kernel
# (benchmarks/results/iterations.md) and with the fixed kernel (benchmarks/results/defaults.md).
ITERATIONS, MOMENTUM = 700, 0.9
# The arrangement term acts from the release of the exaggeration on. It fades out over the last part of the iterations
# of t-SNE, whose length is a fraction of the iterations with early exaggeration (docs/theory.md, section 13).
FADING = 0.8
FIXED_ITERATIONS, FIXED_MOMENTUM = 1000, 0.8
ADAM_RATE, ADAM_BETAS = 2.0, (0.8, 0.999)  # the rate is in units of the map
MAX_STEP = 5.0  # largest step of a point, in units of the map
PATH_STEPS = 100  # number of iterations of a step along a path, if a fit has the automatic number
LAST_STEPS = 300  # the same for the last weights of a path, which have the density term of the paper
PATH_RATE = 1.0  # learning rate along a path, in units of the map
RECORD_EVERY, RECORD_EVERY_OF_MANY = 50, 100  # number of iterations between two records, for few and for many samples
MANY = 20_000  # smallest number of samples for which computing the losses takes as long as several iterations
LEAST_RATE = 50.0  # smallest automatic learning rate of t-SNE, as in scikit-learn
UPDATE_STEPS = 150  # iterations of each of the two phases of an update


def default_schedule(
    n_samples: int,
    *,
    max_iter: int,
    n_iter_exaggeration: int,
    early_exaggeration: float,
    learning_rate: float | str,
    density: bool,
    share: float = DENSITY_SHARE,
    adaptive: bool = False,
    momentum: float | None = None,
) -> Schedule:
    """Return a schedule of t-SNE with early exaggeration, followed by Adam with the density term.

    The density term is used in the last ``share`` of the iterations, with a rising weight and a falling rate. Early
    exaggeration takes at most half of the iterations before that, because a density term that is added to an
    exaggerated map keeps the map collapsed.

    With an ``adaptive`` kernel, the exaggeration is released gradually during the last 70 % of its iterations. If it
    ended abruptly, groups would tear apart and join again only slowly. The kernel is fixed while the map is fully
    exaggerated, and its scales begin to grow with the release, because scales that act from the start tear curves
    (docs/theory.md, section 11).

    ``learning_rate`` is in the units of scikit-learn: the length of a step per unit of the gradient of the KL
    divergence. "auto" means ``max(n_samples / exaggeration / 4, 50)`` with the exaggeration of each phase, where 50 is
    lowered to 25 for a momentum of 0.9.
    """
    if momentum is None:
        momentum = MOMENTUM if adaptive else FIXED_MOMENTUM
    last = _with_density(max_iter, share) if density else 0
    early = min(n_iter_exaggeration, most_exaggerated(max_iter, density=density, share=share))

    def descent(exaggeration: float, momentum: float) -> Momentum:
        least = LEAST_RATE * min(1.0, (1.0 - momentum) / (1.0 - FIXED_MOMENTUM))  # momentum multiplies the rate
        rate = max(n_samples / exaggeration / 4.0, least) if learning_rate == "auto" else float(learning_rate)
        return Momentum(rate=rate / n_samples, momentum=momentum)

    released = round(RELEASED * early) if adaptive else 0
    phases = (
        Phase(
            n_iter=early - released,
            optimizer=descent(early_exaggeration, 0.5),
            exaggeration=early_exaggeration,
            max_step=MAX_STEP,
            scale=0.0 if adaptive else 1.0,
        ),
        Phase(
            n_iter=max_iter - last - early + released,
            optimizer=descent(1.0, momentum),
            max_step=MAX_STEP,
            exaggeration_from=early_exaggeration if released else None,
            release=released,
            arrangement=1.0,
            fade=round(FADING * early),
            scale_ramp=round(GROWTH * early) if adaptive else 0,
        ),
        Phase(
            n_iter=last,
            optimizer=Adam(rate=ADAM_RATE, betas=ADAM_BETAS),
            decay="cosine",
            density=True,
            ramp=round(DENSITY_RAMP * last),
        ),
    )
    every = RECORD_EVERY if n_samples < MANY else RECORD_EVERY_OF_MANY
    return Schedule(phases=tuple(phase for phase in phases if phase.n_iter > 0), record_every=every)


def iterations(max_iter: int | str, *, adaptive: bool) -> int:
    """Return the number of iterations of a fit for a value of ``max_iter``, which may be "auto"."""
    if isinstance(max_iter, str):
        return ITERATIONS if adaptive else FIXED_ITERATIONS
    return int(max_iter)


class PathSchedules(NamedTuple):
    """The schedules of a path of density weights."""

    plain: Schedule  # the fit at lambda = 0
    first: Schedule | None  # a fit with the adaptive kernel; None if all maps continue from lambda = 0
    step: Schedule  # the step from each weight to the next
    last: Schedule  # the same for the last weights, which have the density term of the paper

    def n_iter(self, n_fits: int, n_steps: int, n_last: int = 0) -> int:
        """Return the number of iterations of a path with so many separate fits, steps and last steps."""
        fits = 0 if self.first is None else n_fits * self.first.n_iter
        return self.plain.n_iter + fits + n_steps * self.step.n_iter + n_last * self.last.n_iter


def path_schedules(n_samples: int, *, max_iter: int | str, adaptive: bool, **settings: Any) -> PathSchedules:
    """Return the schedules of a path. ``settings`` are those of :func:`default_schedule`.

    With the fixed kernel, all maps continue from the map at lambda = 0. With the adaptive kernel, that map is only the
    baseline of the scores. A weight at which the kernel adapts further than at the previous weight is fitted
    separately: groups find their arrangement early in a fit, and the arrangement depends on their size.
    """
    plain_iter = iterations(max_iter, adaptive=False)
    plain = default_schedule(n_samples, max_iter=plain_iter, density=False, **settings)
    first, n_iter = None, iterations(max_iter, adaptive=adaptive)
    if adaptive:
        first = default_schedule(
            n_samples, max_iter=n_iter, density=True, share=ADAPTIVE_SHARE, adaptive=True, **settings
        )

    def step(steps: int) -> Schedule:
        of_step = max(1, round(steps * n_iter / iterations("auto", adaptive=adaptive)))
        phase = Phase(n_iter=of_step, optimizer=Adam(rate=PATH_RATE, betas=ADAM_BETAS), decay="cosine", density=True)
        return Schedule(phases=(phase,), record_every=plain.record_every)

    return PathSchedules(plain, first, step(PATH_STEPS), step(LAST_STEPS))


def update_schedule(n_samples: int, *, density: bool, momentum: float) -> Schedule:
    """Return the schedule of an update, which begins with a map and has no early exaggeration.

    The map is not centred, because the pull towards the old places keeps it where it is.
    """
    every = RECORD_EVERY if n_samples < MANY else RECORD_EVERY_OF_MANY
    rate = max(n_samples / 4.0, LEAST_RATE * (1.0 - momentum) / (1.0 - FIXED_MOMENTUM)) / n_samples
    first = Phase(
        n_iter=UPDATE_STEPS,
        optimizer=Momentum(rate=rate, momentum=momentum),
        max_step=MAX_STEP,
        arrangement=1.0,
        fade=UPDATE_STEPS,
    )
    adam = Adam(rate=PATH_RATE, betas=ADAM_BETAS)
    last = Phase(n_iter=UPDATE_STEPS, optimizer=adam, decay="cosine", density=True)
    return Schedule(phases=(first, last) if density else (first,), record_every=every, center=False)


def most_exaggerated(max_iter: int, *, density: bool, share: float = DENSITY_SHARE) -> int:
    """Return the largest number of iterations with early exaggeration in :func:`default_schedule`."""
    return (max_iter - (_with_density(max_iter, share) if density else 0)) // 2


def _with_density(max_iter: int, share: float) -> int:
    """Return the number of iterations with the density term: at least one, unless there is only one iteration."""
    return max(round(share * max_iter), min(1, max_iter - 1))


def of_problem(problem: Any) -> Schedule:
    """Return the default schedule of a fit for a prepared problem."""
    adaptive = problem.loss.log_scales is not None
    return default_schedule(
        problem.n_samples,
        max_iter=iterations("auto", adaptive=adaptive),
        n_iter_exaggeration=250,
        early_exaggeration=12.0,
        learning_rate="auto",
        # Terms with a factor of their own do not act with the density term.
        density=any(term.weight for term in problem.loss.terms if type(term).factor is Term.factor),
        share=ADAPTIVE_SHARE if adaptive else DENSITY_SHARE,
        adaptive=adaptive,
    )
