"""Named settings: the paper's method, as coded and as written.

The lambda printed in the paper is that of the authors' code, which divides the KL term by n. Our lambda is that of the
objective as written in the paper, so ``density_weight = lam * n``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drsne import checks
from drsne.affinities import Calibration
from drsne.optimize.schedule import Adam, Phase, Schedule
from drsne.terms.objective import Objective
from drsne.terms.profile import Smoothing

# The constants of the paper are in its appendix B and in the authors' code (docs/theory.md, section 6).
PAPER_SMOOTHING = 1e-8  # value of every small constant in the authors' code


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
