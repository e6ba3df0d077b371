"""The settings of den-SNE's program, with its tree as ``engine="coarse"``. Importing this module adds the engine.

The settings of the paper's method are in :mod:`drsne.presets`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from drsne import Momentum, Phase, Schedule
from drsne_paper import checks
from drsne_paper._private import engines, number

engines.ENGINES["coarse"] = "drsne_paper.coarse"

# The constants of den-SNE are in its program (github hhcho/densvis at d65bb31, folder densne; docs/theory.md, section
# 10).
_SWITCH = 250  # number of iterations before the momentum rises, and of early exaggeration for start="own"


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
    >>> from drsne_paper.presets import densne
    >>> [phase.n_iter for phase in densne(1797, 0.5)["schedule"].phases]
    [250, 149, 401]
    """
    n = checks.integer("n_samples", n_samples, at_least=3)
    weight = number("lam", lam, at_least=0)
    total = checks.integer("max_iter", max_iter, at_least=1)
    fraction = number("density_fraction", density_fraction, at_least=0, at_most=1, hint="The default is 0.5.")
    checks.choice("start", start, ("given", "own"))
    return {
        "n_components": 2,
        "perplexity": number("perplexity", perplexity, at_least=1),
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
