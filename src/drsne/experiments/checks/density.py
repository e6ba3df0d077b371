"""Concentration and density: slopes and correlations of their logarithms, and ranks that no exponent changes.

Where the density is even within a neighbourhood, the mean distance is d / (d + 1) of the largest one, and so
``log p = d log c + constant``. Chance, neighbourhoods that reach into the tails, and those over which the density
changes, depart from it.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import lgamma, log, pi
from typing import Any

import numpy as np

from drsne.experiments.checks import DOUBLE_ROUNDING, Check, Finding, Size
from drsne.experiments.checks.problems import NONE, Array, K, digits, mapped_digits
from drsne.experiments.dimension import dimension
from drsne.metrics import density_rank_correlation
from drsne.neighbors.search import knn
from drsne.objectives.concentration import profile

GROUP, RANKS = "concentration and density", "ranks of density"
DIMENSIONS = (1, 2, 5, 10)
FEW = (1, 2)  # dimensions in which so many points resolve a Gaussian
SAME = 0.15  # relative: how near a slope should come to the dimension; ours
FEWER = 4  # times, to see a departure grow
SEED = 0
DRAWN = 400  # points kept for the figure
NEAR = 64 * DOUBLE_ROUNDING  # of rank correlations that should be equal


def _log_volume(d: float) -> float:
    return d / 2 * log(pi) - lgamma(d / 2 + 1)


def _knn_log_density(distances: Array, d: float) -> Array:
    """``log k / (n V_d r_k^d)``."""
    n, k = distances.shape
    return np.asarray(log(k / n) - _log_volume(d) - d * np.log(distances[:, -1]))


def _relation(log_c: Array, log_density: Array, d: float) -> dict[str, float]:
    """Correlations and slopes: of density on concentration, and the inverse of that of concentration on density.

    Chance in the concentration lowers the first; the other one does not see it.
    """
    from scipy.stats import pearsonr, spearmanr

    slope = float(np.polyfit(log_c, log_density, 1)[0])
    back = float(np.polyfit(log_density, log_c, 1)[0])
    return {
        "spearman": float(spearmanr(log_c, log_density).statistic),
        "pearson": float(pearsonr(log_c, log_density).statistic),
        "slope": slope,
        "slope_over_d": slope / d,
        "inverse_over_d": 1.0 / back / d,
    }


@lru_cache(maxsize=8)
def _gaussian(d: int, n: int) -> dict[str, Any]:
    """A standard Gaussian in d dimensions: log c, log density as estimated and as it is."""
    X = np.random.RandomState(SEED).randn(n, d)
    distances = knn(X, K).distances
    return {
        "log_c": profile(distances.mean(axis=1), 1.0, NONE).log,
        "knn": _knn_log_density(distances, d),
        "true": -0.5 * (X * X).sum(axis=1) - d / 2 * log(2 * pi),
    }


def _some(columns: dict[str, Array]) -> dict[str, list[float]]:
    """Points for the figure."""
    n = len(columns["log_c"])
    rows = np.sort(np.random.RandomState(SEED).permutation(n)[:DRAWN])
    return {name: [round(float(value), 3) for value in values[rows]] for name, values in columns.items()}


def _estimated(d: int, size: Size) -> Finding:
    at = _gaussian(d, size.generated)
    found = _relation(at["log_c"], at["knn"], d)
    return Finding(number=abs(found["slope_over_d"] - 1.0), bound=SAME, numbers={"d": d, **found, "points": _some(at)})


def _true(d: int, size: Size) -> Finding:
    """The excess of the slope itself in few dimensions; else how much of it four times as many points leave."""
    at, before = _gaussian(d, size.generated), _gaussian(d, size.generated // FEWER)
    found = _relation(at["log_c"], at["true"], d)
    fewer = _relation(before["log_c"], before["true"], d)
    excess, larger = (abs(some["inverse_over_d"] - 1.0) for some in (found, fewer))
    numbers = {"d": d, **found, "with_fewer": fewer["inverse_over_d"]}
    if d in FEW:
        return Finding(number=excess, bound=SAME, numbers=numbers)
    return Finding(number=excess / larger, bound=1.0, also=found["inverse_over_d"] > 1.0, numbers=numbers)


def _digits(size: Size) -> Finding:
    distances = knn(digits(size.digits), K).distances
    d = dimension(distances)
    log_c, estimated = profile(distances.mean(axis=1), 1.0, NONE).log, _knn_log_density(distances, d)
    found = _relation(log_c, estimated, d)
    points = _some({"log_c": log_c, "knn": estimated})
    return Finding(number=abs(found["slope_over_d"] - 1.0), bound=SAME, numbers={"d": d, **found, "points": points})


def _ranks(size: Size) -> Finding:
    """Rank correlation of kNN densities in data and map, for exponents of all kinds, beside the metric's."""
    from scipy.stats import spearmanr

    mapped = mapped_digits(size.digits)
    high, low = knn(mapped.X, K).distances, knn(mapped.Y, K).distances
    exponents = {"1, 1": (1.0, 1.0), "D, d": (float(mapped.X.shape[1]), 2.0), "intrinsic, d": (dimension(high), 2.0)}
    found = {
        name: float(spearmanr(np.exp(_knn_log_density(high, a)), np.exp(_knn_log_density(low, b))).statistic)
        for name, (a, b) in exponents.items()
    }
    found["distances"] = float(spearmanr(high[:, -1], low[:, -1]).statistic)
    found["metric"] = density_rank_correlation(mapped.X, mapped.Y, K)
    return Finding(number=max(found.values()) - min(found.values()), bound=NEAR, numbers=found)


_GAUSSIAN: dict[str, Any] = {"k": K, "seed": SEED, "bound": SAME}
CHECKS = (
    *(
        Check(
            group=GROUP,
            name=f"kNN density, Gaussian in {d}-d",
            claim="the slope of log kNN density on log c is d: they differ by the exponent and by chance",
            where="A.1, A.3; below (25)",
            settings=_GAUSSIAN,
            measure=partial(_estimated, d),
        )
        for d in DIMENSIONS
    ),
    Check(
        group=GROUP,
        name="kNN density, Digits",
        claim="the same for the local dimension (Levina and Bickel)",
        where="A.1, A.3; below (25)",
        settings={"k": K, "bound": SAME},
        measure=_digits,
    ),
    *(
        Check(
            group=GROUP,
            name=f"true density, Gaussian in {d}-d",
            claim="the slope of log density against log c is d (chance in c taken out)"
            if d in FEW
            else f"the slope exceeds d; by less than with 1/{FEWER} of the points (excess over excess)",
            where="A.1: not calibrated; below (25)",
            settings=_GAUSSIAN | ({} if d in FEW else {"fewer": FEWER}),
            measure=partial(_true, d),
        )
        for d in DIMENSIONS
    ),
    Check(
        group=RANKS,
        name="exponents D and d, Digits",
        claim="rho_S is the same for every exponent, the metric's ranks of distances among them",
        where="4.1 (rho_S), A.3",
        settings={"k": K},
        measure=_ranks,
    ),
)
