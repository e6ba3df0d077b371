"""Named settings: the paper's method as coded and as written, and den-SNE's program.

The lambda printed in the paper is that of the authors' code, which divides the KL term by n. Our lambda is that of the
objective as written in the paper, so ``density_weight = lam * n``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

from drsne import checks
from drsne.affinities import Calibration
from drsne.optimize.schedule import Adam, Momentum, Phase, Schedule
from drsne.terms.objective import Objective
from drsne.terms.profile import Smoothing

# The constants of the paper are in its appendix B and in the authors' code (docs/theory.md, section 6), and those of
# den-SNE in its program (github hhcho/densvis at d65bb31, folder densne; docs/theory.md, section 10).
PAPER_SMOOTHING = 1e-8  # value of every small constant in the authors' code
_SWITCH = 250  # number of iterations of den-SNE before the momentum rises, and of early exaggeration for start="own"


def paper(
    n_samples: int,
    lam: float,
    k: int,
    *,
    variant: str = "code",
    max_iter: int = 1000,
    perplexity_search: str = "bracketed",
) -> dict[str, Any]:
    """Return the parameters of :class:`drsne.DRSNE` that reproduce the paper's method.

    Parameters
    ----------
    n_samples : int
        Number of rows of the data.
    lam : float
        lambda as printed in the paper. The ``density_weight`` is ``lam * n_samples``.
    k : int
        Number of density neighbours, not counting the point itself: 29 in the paper's main table, and 299 in its lambda
        table.
    variant : {"code", "text"}, default="code"
        Whether to reproduce the authors' code or the method as the paper describes it.
    max_iter : int, default=1000
        Number of iterations, including 50 of warm-up. The paper uses 600 in the ablations and 1200 in the anomaly
        study.
    perplexity_search : {"bracketed", "doubling"}, default="bracketed"
        The search for precisions. "doubling" is the search of the authors' ablations, which does not converge. It can
        only be used with ``variant="code"``.

    Returns
    -------
    dict
        Keyword arguments, to be used as ``DRSNE(**paper(...))``.

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
            "perplexity_search must be 'bracketed' with variant='text'; got 'doubling', which is the search of the "
            "authors' code. Pass variant='code'."
        )
    coded = variant == "code"
    # The code minimises (KL + n lam L_conc) / n, and the loss in the paper is KL + lambda L_conc. Our gradients are
    # those of n times the loss, so Adam's eps and the clip are scaled by the same factor.
    scale = float(n) ** 2 if coded else float(n)
    adam = Adam(rate=2.0, betas=(0.9, 0.999), eps=PAPER_SMOOTHING * scale)
    warmup = min(50, total)
    # The authors' code sets an exaggeration of 4 too, but it has no effect there.
    factor, pairs = (1.0, "all") if coded else (4.0, "objective")
    phases = (
        Phase(n_iter=warmup, optimizer=adam, exaggeration=factor, pairs=pairs, clip=scale),
        Phase(n_iter=total - warmup, optimizer=adam, density=True, clip=scale, carry=True),
    )
    return {
        "n_components": 2,
        "perplexity": 30.0,
        "density_weight": weight,
        "density_neighbors": neighbors,
        "init": "random",
        "engine": "exact",
        "objective": _coded_objective(neighbors, perplexity_search) if coded else _written_objective(),
        "schedule": Schedule(phases=phases, center=False),
    }


def _written_objective() -> Objective:
    smoothing = Smoothing(relative=0.0, length=PAPER_SMOOTHING)
    return Objective(
        support="directed",
        normalizer="attached",
        input_exponent=1.0,
        input_smoothing=smoothing,
        embedding_smoothing=smoothing,
        kernel="fixed",
        target_quantile=0.0,
        small_groups=False,
        calibration=Calibration(neighbors="all"),
        precision="double",
        sampled_neighbors=None,
    )


def _coded_objective(k: int, search: str) -> Objective:
    eps = PAPER_SMOOTHING
    return replace(
        _written_objective(),
        normalizer="detached",
        # c_high = k / (sum of distances + eps); both profiles use c / (mean + eps) and log(. + eps)
        input_smoothing=Smoothing(relative=0.0, length=eps / k, mean=eps, profile=eps),
        # c_low = k / sum of sqrt(squared distance + eps)
        embedding_smoothing=Smoothing(relative=0.0, squared_distance=eps, mean=eps, profile=eps),
        affinity_smoothing=eps,
        distance_smoothing=eps,
        calibration=Calibration(neighbors="all", search=search, shift=False, smoothing=eps),
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
    """Return the parameters of :class:`drsne.DenSNE` that reproduce den-SNE's own program.

    The program uses gradient descent with momentum and gains at a constant rate, a density term that is switched on at
    once, no bound on the steps, a coarse tree and double precision. All of this is reproduced, but not the program's
    error in the distances (docs/theory.md, section 10). The defaults are those of the comparison in
    ``benchmarks/results/densne.md``. The program's own defaults are ``perplexity=50``, ``max_iter=1000`` and
    ``density_fraction=0.3``.

    Parameters
    ----------
    n_samples : int
        Number of rows of the data.
    lam : float, default=0.1
        lambda of the program.
    perplexity : float, default=30.0
        Effective number of neighbours.
    max_iter : int, default=800
        Number of iterations.
    density_fraction : float, default=0.5
        Fraction of the iterations that use the density term. The term is used from iteration
        ``(1 - density_fraction) * max_iter`` on, counting from one.
    start : {"given", "own"}, default="given"
        How the program obtains its initial map. With "given", it is given a random map and uses no early exaggeration.
        With "own", it makes its own map and uses an exaggeration of 12 for 250 iterations. (Our random numbers are not
        those of the program.)

    Returns
    -------
    dict
        Keyword arguments, to be used as ``DenSNE(**densne(...))``.

    Examples
    --------
    >>> from drsne.presets import densne
    >>> [phase.n_iter for phase in densne(1797, 0.5)["schedule"].phases]
    [250, 149, 401]
    """
    n = checks.integer("n_samples", n_samples, at_least=3)
    weight = checks.number("lam", lam, at_least=0)
    total = checks.integer("max_iter", max_iter, at_least=1)
    fraction = checks.number("density_fraction", density_fraction, at_least=0, at_most=1, hint="The default is 0.5.")
    checks.choice("start", start, ("given", "own"))
    return {
        "n_components": 2,
        "perplexity": checks.number("perplexity", perplexity, at_least=1),
        "density_weight": weight,
        "variance_shift": 0.1,
        "init": "random",
        "engine": "coarse",
        "precision": "double",
        "schedule": _densne_schedule(n, total, fraction, 12.0 if start == "own" else 1.0),
    }


def _densne_schedule(n: int, max_iter: int, fraction: float, exaggeration: float) -> Schedule:
    plain = max(0, math.ceil((1.0 - fraction) * max_iter) - 1)
    edges = sorted({0, min(_SWITCH, max_iter), plain, max_iter})
    phases = []
    for begin, end in pairwise(edges):
        early = begin < _SWITCH
        # The authors' program has a rate of 200, but applies it to a quarter of the gradient.
        descent = Momentum(rate=50.0 / n, momentum=0.5 if early else 0.8, grow_from_rest=True)
        factor = exaggeration if early else 1.0
        phase = Phase(
            n_iter=end - begin, optimizer=descent, exaggeration=factor, density=begin >= plain, carry=begin > 0
        )
        phases.append(phase)
    return Schedule(phases=tuple(phases))
