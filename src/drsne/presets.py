"""Named settings: the default schedule, the paper's method as coded and as written, and den-SNE's program.

The paper prints the lambda of the authors' code, which divides the KL term by n; ours is the lambda of the
written objective: ``density_weight = lam * n``.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

from drsne import checks
from drsne.affinities import Calibration
from drsne.objectives.concentration import Smoothing
from drsne.objectives.drsne import Objective
from drsne.optimization.optimizers import Adam, Momentum
from drsne.optimization.schedule import Phase, Schedule

# The default schedule, tried by benchmarks/defaults.py.
DENSITY_SHARE = 0.5  # of the iterations, the last ones, with the density term
DENSITY_RAMP = 0.3  # of those, over which its weight rises to lambda
# With the adaptive kernel (benchmarks/kernel.py): the share of the density term; the share of the iterations of early
# exaggeration, the last ones, in which it is released gradually; and the iterations from there on in which the scale
# of the kernel grows, as a share of the same.
ADAPTIVE_SHARE, RELEASED, GROWTH = 0.1, 0.7, 0.5
ADAM_RATE, ADAM_BETAS = 2.0, (0.8, 0.999)  # map units; memory of the mean and of the mean square
MAX_STEP = 5.0  # map units
PATH_STEP = 0.1  # of the iterations of a fit: each step along a path of lambda that starts from the map before
PATH_RATE = 1.0  # map units
RECORD_EVERY, RECORD_EVERY_OF_MANY = 10, 50  # iterations between losses
MANY = 20_000  # samples from which on the losses cost as much as several iterations
LEAST_RATE = 50.0  # of the t-SNE phases, as in scikit-learn

# The paper's constants (its appendix B and the authors' code; see docs/theory.md, section 6).
PAPER_SMOOTHING = 1e-8  # every small constant of the authors' code
PAPER_WARMUP = 50  # iterations
PAPER_RATE = 2.0  # Adam, constant
PAPER_CLIP = 1.0  # norm of the gradient
PAPER_EXAGGERATION = 4.0  # what the code sets, and cancels

# den-SNE's program (github hhcho/densvis at d65bb31, folder densne; see docs/theory.md, section 10).
DENSNE_RATE = 50.0  # its 200 on a quarter of the gradient
DENSNE_SWITCH = 250  # iterations before momentum rises, and with exaggeration from its own start
DENSNE_MOMENTA = (0.5, 0.8)
DENSNE_EXAGGERATION = 12.0


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
) -> Schedule:
    """t-SNE with early exaggeration, then Adam with a falling rate and a rising density term.

    Early exaggeration takes at most half of the t-SNE iterations: a density term that joins an exaggerated map
    keeps it collapsed. Without the density term all iterations are t-SNE's; with it, all but the last ``share``.
    With an ``adaptive`` kernel the exaggeration is released gradually in the last 70 % of its iterations: let go at
    once, groups tear and heal only slowly. The kernel is fixed while the map is fully exaggerated, and its scales grow
    when the release begins: scales that act from the start tear curves (docs/theory.md, section 11).
    ``learning_rate`` is scikit-learn's: a step per unit of the gradient of the KL divergence; "auto" is
    ``max(n_samples / exaggeration / 4, 50)`` for the exaggeration of each phase.
    """
    last = _with_density(max_iter, share) if density else 0
    early = min(n_iter_exaggeration, most_exaggerated(max_iter, density=density, share=share))

    def descent(exaggeration: float, momentum: float) -> Momentum:
        rate = max(n_samples / exaggeration / 4.0, LEAST_RATE) if learning_rate == "auto" else float(learning_rate)
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
            optimizer=descent(1.0, 0.8),
            max_step=MAX_STEP,
            exaggeration_from=early_exaggeration if released else None,
            release=released,
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


class PathSchedules(NamedTuple):
    """The schedules of a path of lambda."""

    plain: Schedule  # the fit at lambda = 0
    first: Schedule | None  # a fit with the adaptive kernel, at the first weight; None goes on from lambda = 0
    step: Schedule  # from each weight to the next

    def n_iter(self, n_positive: int, n_fits: int = 1) -> int:
        """Return the iterations of a path with so many positive weights, ``n_fits`` of them with their own fit."""
        fits = min(n_fits, n_positive) if self.first is not None else 0
        begun = self.plain.n_iter + (fits * self.first.n_iter if self.first is not None else 0)
        return begun + (n_positive - fits) * self.step.n_iter


def path_schedules(n_samples: int, *, max_iter: int, adaptive: bool, **settings: Any) -> PathSchedules:
    """Return the schedules of a path; ``settings`` are those of :func:`default_schedule`.

    With the fixed kernel all maps go on from that of lambda = 0. With the adaptive one that map is only the baseline of
    the scores: a weight at which the kernel adapts further than before has a fit of its own, because groups are
    arranged by their size early in a fit.
    """
    plain = default_schedule(n_samples, max_iter=max_iter, density=False, **settings)
    first = None
    if adaptive:
        first = default_schedule(
            n_samples, max_iter=max_iter, density=True, share=ADAPTIVE_SHARE, adaptive=True, **settings
        )
    n_iter = max(1, round(PATH_STEP * max_iter))
    phase = Phase(n_iter=n_iter, optimizer=Adam(rate=PATH_RATE, betas=ADAM_BETAS), decay="cosine", density=True)
    return PathSchedules(plain, first, Schedule(phases=(phase,), record_every=plain.record_every))


def most_exaggerated(max_iter: int, *, density: bool, share: float = DENSITY_SHARE) -> int:
    """The most iterations of early exaggeration that :func:`default_schedule` makes."""
    return (max_iter - (_with_density(max_iter, share) if density else 0)) // 2


def _with_density(max_iter: int, share: float) -> int:
    """Return the iterations with the density term: at least one, unless there is only one."""
    return max(round(share * max_iter), min(1, max_iter - 1))


def paper(
    n_samples: int,
    lam: float,
    k: int,
    *,
    variant: str = "code",
    max_iter: int = 1000,
    perplexity_search: str = "bracketed",
) -> dict[str, Any]:
    """Keyword arguments of :class:`drsne.DRSNE` for the paper's method.

    Parameters
    ----------
    n_samples : int
        Rows of the data to be embedded.
    lam : float
        lambda as printed in the paper; ``density_weight`` is ``lam * n_samples``.
    k : int
        Density neighbours without the point itself: 29 in the paper's main table, 299 in its lambda table.
    variant : {"code", "text"}, default="code"
        The authors' code to the letter, or the paper as written.
    max_iter : int, default=1000
        All iterations, 50 of warm-up among them (600 in the ablations, 1200 in the anomaly study).
    perplexity_search : {"bracketed", "doubling"}, default="bracketed"
        "doubling" is the unconverged search of the authors' ablations; only with ``variant="code"``.

    Returns
    -------
    dict
        For ``DRSNE(**paper(...))``.

    Examples
    --------
    >>> from drsne.presets import paper
    >>> paper(1797, 0.005, 29)["density_weight"]
    8.985
    """
    n = checks.integer("n_samples", n_samples, at_least=3)
    weight = checks.number("lam", lam, at_least=0) * n
    neighbors = checks.integer("k", k, at_least=1)
    total = checks.integer("max_iter", max_iter, at_least=1)
    checks.choice("variant", variant, ("code", "text"))
    checks.choice("perplexity_search", perplexity_search, ("bracketed", "doubling"))
    if variant == "text" and perplexity_search == "doubling":
        raise ValueError(
            "perplexity_search='doubling' is a quirk of the authors' code; pass it with variant='code' only."
        )
    coded = variant == "code"
    return {
        "n_components": 2,
        "perplexity": 30.0,
        "density_weight": weight,
        "density_neighbors": neighbors,
        "init": "random",
        "engine": "exact",
        "objective": _coded_objective(neighbors, perplexity_search) if coded else _written_objective(),
        "schedule": _coded_schedule(n, total) if coded else _written_schedule(n, total),
    }


def _coded_objective(k: int, search: str) -> Objective:
    eps = PAPER_SMOOTHING
    return Objective(
        support="directed",
        normalizer="detached",
        # c_high = k / (sum of distances + eps); both profiles / (mean + eps), log(. + eps)
        input_smoothing=Smoothing(relative=0.0, length=eps / k, mean=eps, profile=eps),
        # c_low = k / sum of sqrt(squared distance + eps)
        embedding_smoothing=Smoothing(relative=0.0, squared_distance=eps, mean=eps, profile=eps),
        affinity_smoothing=eps,
        distance_smoothing=eps,
        kernel="fixed",
        target_quantile=0.0,
        small_groups=False,
        calibration=Calibration(neighbors="all", search=search, shift=False, smoothing=eps),
        precision="double",
        sampled_neighbors=None,
    )


def _written_objective() -> Objective:
    eps = Smoothing(relative=0.0, length=PAPER_SMOOTHING)
    return Objective(
        support="directed",
        normalizer="attached",
        input_smoothing=eps,
        embedding_smoothing=eps,
        kernel="fixed",
        target_quantile=0.0,
        small_groups=False,
        calibration=Calibration(neighbors="all"),
        precision="double",
        sampled_neighbors=None,
    )


def _coded_schedule(n: int, max_iter: int) -> Schedule:
    # The code minimises (KL + n lam L_conc) / n; we minimise n (KL + n lam L_conc): gradients are n^2 times
    # as large, and so must Adam's eps and the clip be for the same path.
    return _adam_schedule(max_iter, scale=float(n) ** 2, exaggeration=1.0, pairs="all")


def _written_schedule(n: int, max_iter: int) -> Schedule:
    # As written the loss is KL + lambda L_conc, of which our gradients are n times as large.
    return _adam_schedule(max_iter, scale=float(n), exaggeration=PAPER_EXAGGERATION, pairs="objective")


def _adam_schedule(max_iter: int, *, scale: float, exaggeration: float, pairs: str) -> Schedule:
    adam = Adam(rate=PAPER_RATE, betas=(0.9, 0.999), eps=PAPER_SMOOTHING * scale)
    warmup = min(PAPER_WARMUP, max_iter)
    clip = PAPER_CLIP * scale
    return Schedule(
        phases=(
            Phase(n_iter=warmup, optimizer=adam, exaggeration=exaggeration, pairs=pairs, clip=clip),
            Phase(n_iter=max_iter - warmup, optimizer=adam, density=True, clip=clip, carry=True),
        ),
        center=False,
    )


def densne(
    n_samples: int,
    lam: float = 0.1,
    *,
    perplexity: float = 30.0,
    max_iter: int = 800,
    density_fraction: float = 0.5,
    start: str = "given",
) -> dict[str, Any]:
    """Keyword arguments of :class:`drsne.DenSNE` for the settings of den-SNE's own program.

    Gradient descent with momentum and gains at a constant rate, the density term switched on at once, no bound on
    steps, its coarse tree, double precision. Only the program's slip with distances (docs/theory.md, section 10) is not
    repeated. The defaults are those of the comparison in ``benchmarks/results/densne.md``; the program's own are
    ``perplexity=50``, ``max_iter=1000`` and ``density_fraction=0.3``.

    Parameters
    ----------
    n_samples : int
        Rows of the data to be embedded.
    lam : float, default=0.1
        Its lambda.
    perplexity : float, default=30.0
        Effective number of neighbours.
    max_iter : int, default=800
        Iterations.
    density_fraction : float, default=0.5
        The density term takes part from iteration ``(1 - density_fraction) * max_iter`` on, counted from one.
    start : {"given", "own"}, default="given"
        A random start that is handed to the program, which then leaves early exaggeration out, or its own, with
        exaggeration 12 for 250 iterations (of other random numbers than the program's).

    Returns
    -------
    dict
        For ``DenSNE(**densne(...))``.

    Examples
    --------
    >>> from drsne.presets import densne
    >>> [phase.n_iter for phase in densne(1797, 0.5)["schedule"].phases]
    [250, 149, 401]
    """
    n = checks.integer("n_samples", n_samples, at_least=3)
    weight = checks.number("lam", lam, at_least=0)
    total = checks.integer("max_iter", max_iter, at_least=1)
    fraction = checks.number("density_fraction", density_fraction, at_least=0)
    if fraction > 1:
        raise ValueError(f"density_fraction must be at most 1; got {density_fraction!r}.")
    checks.choice("start", start, ("given", "own"))
    return {
        "n_components": 2,
        "perplexity": checks.number("perplexity", perplexity, at_least=1),
        "density_weight": weight,
        "variance_shift": 0.1,
        "init": "random",
        "engine": "coarse",
        "precision": "double",
        "schedule": _densne_schedule(n, total, fraction, DENSNE_EXAGGERATION if start == "own" else 1.0),
    }


def _densne_schedule(n: int, max_iter: int, fraction: float, exaggeration: float) -> Schedule:
    plain = max(0, math.ceil((1.0 - fraction) * max_iter) - 1)
    edges = sorted({0, min(DENSNE_SWITCH, max_iter), plain, max_iter})
    phases = []
    for begin, end in pairwise(edges):
        early = begin < DENSNE_SWITCH
        descent = Momentum(rate=DENSNE_RATE / n, momentum=DENSNE_MOMENTA[not early], grow_from_rest=True)
        phases.append(
            Phase(
                n_iter=end - begin,
                optimizer=descent,
                exaggeration=exaggeration if early else 1.0,
                density=begin >= plain,
                carry=begin > 0,
            )
        )
    return Schedule(phases=tuple(phases))
