"""Slopes and correlations of log concentration and log density, and ranks that do not depend on exponents.

If the density is constant within a neighbourhood, the mean distance is d / (d + 1) of the largest one, and so
``log p = d log c + constant``. Chance, neighbourhoods that reach into the tails, and neighbourhoods over which the
density changes cause departures from this line.
"""

from __future__ import annotations

from functools import partial
from math import lgamma, log, pi
from typing import Any

import numpy as np

from drsne.metrics import density_rank_correlation
from drsne_paper._private import knn, local_dimension, profile
from drsne_paper.methods import Workspace
from drsne_paper.theory import DENSITY, DOUBLE_ROUNDING, RANKS, Check, Finding
from drsne_paper.theory.problems import GAUSSIAN, NONE, SEED, Array, K, mapped

DIMENSIONS = (1, 2, 5, 10)
FEW = (1, 2)  # numbers of dimensions in which the points suffice to resolve a Gaussian
SAME = 0.15  # largest relative difference between a slope and the dimension (our choice)
FEWER = 4  # the factor by which the number of points is reduced when a departure is measured a second time
DRAWN = 400  # number of points that are kept for the figure
NEAR = 64 * DOUBLE_ROUNDING  # largest difference between rank correlations that should be equal
KNN_DENSITY, TRUE_DENSITY, DENSITY_RANKS = "knn_density", "true_density", "density_ranks"


def _log_volume(d: float) -> float:
    return d / 2 * log(pi) - lgamma(d / 2 + 1)


def _knn_log_density(distances: Array, d: float) -> Array:
    """Return ``log k / (n V_d r_k^d)``."""
    n, k = distances.shape
    return np.asarray(log(k / n) - _log_volume(d) - d * np.log(distances[:, -1]))


def _relation(log_c: Array, log_density: Array, d: float) -> dict[str, float]:
    """Return the correlations, the slope of density on concentration, and the reciprocal of the opposite slope.

    The opposite slope is that of concentration on density. Random errors of the concentration lower the first slope
    and leave the reciprocal unchanged.
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


def _gaussian(X: Array) -> dict[str, Any]:
    """Return log c of a standard Gaussian, and its log density, both estimated and exact."""
    d = X.shape[1]
    distances = knn(X, K).distances
    return {
        "log_c": profile(distances.mean(axis=1), 1.0, NONE).log,
        "knn": _knn_log_density(distances, d),
        "true": -0.5 * (X * X).sum(axis=1) - d / 2 * log(2 * pi),
    }


def _some_points(columns: dict[str, Array]) -> dict[str, list[float]]:
    """Return the values of a sample of points, for the figure."""
    n = len(columns["log_c"])
    rows = np.sort(np.random.RandomState(SEED).permutation(n)[:DRAWN])
    return {name: [round(float(value), 3) for value in values[rows]] for name, values in columns.items()}


def _estimated(workspace: Workspace) -> Finding:
    d = workspace.X.shape[1]
    at = workspace.cached("gaussian", lambda: _gaussian(workspace.X))
    relation = _relation(at["log_c"], at["knn"], d)
    numbers = {"d": d, **relation, "points": _some_points(at)}
    return Finding(number=abs(relation["slope_over_d"] - 1.0), bound=SAME, numbers=numbers)


def _true(workspace: Workspace) -> Finding:
    """Return the excess of the slope or, in many dimensions, its ratio to the excess with a quarter of the points."""
    X = workspace.X
    d = X.shape[1]
    at = workspace.cached("gaussian", lambda: _gaussian(X))
    before = _gaussian(X[: len(X) // FEWER])
    relation = _relation(at["log_c"], at["true"], d)
    fewer = _relation(before["log_c"], before["true"], d)
    excess, larger = (abs(some["inverse_over_d"] - 1.0) for some in (relation, fewer))
    numbers = {"d": d, **relation, "with_fewer": fewer["inverse_over_d"]}
    if d in FEW:
        return Finding(number=excess, bound=SAME, numbers=numbers)
    return Finding(number=excess / larger, bound=1.0, also=relation["inverse_over_d"] > 1.0, numbers=numbers)


def _local(workspace: Workspace) -> Finding:
    """Return the excess of the slope for data whose dimension is estimated."""
    distances = workspace.neighbors(K)[0].distances
    d = local_dimension(distances).value
    log_c, estimated = profile(distances.mean(axis=1), 1.0, NONE).log, _knn_log_density(distances, d)
    relation = _relation(log_c, estimated, d)
    numbers = {"d": d, **relation, "points": _some_points({"log_c": log_c, "knn": estimated})}
    return Finding(number=abs(relation["slope_over_d"] - 1.0), bound=SAME, numbers=numbers)


def _ranks(workspace: Workspace) -> Finding:
    """Return how much the rank correlation between kNN densities in data and map depends on the exponents."""
    from scipy.stats import spearmanr

    points = mapped(workspace)
    high, low = knn(points.X, K).distances, knn(points.Y, K).distances
    exponents = {
        "one": (1.0, 1.0),
        "ambient": (float(points.X.shape[1]), 2.0),
        "intrinsic": (local_dimension(high).value, 2.0),
    }
    numbers = {
        name: float(spearmanr(np.exp(_knn_log_density(high, a)), np.exp(_knn_log_density(low, b))).statistic)
        for name, (a, b) in exponents.items()
    }
    numbers["distances"] = float(spearmanr(high[:, -1], low[:, -1]).statistic)
    numbers["metric"] = density_rank_correlation(points.X, points.Y, K)
    return Finding(number=max(numbers.values()) - min(numbers.values()), bound=NEAR, numbers=numbers)


_gaussian_check = partial(Check, subject=DENSITY, dataset=GAUSSIAN, size="generated")
CHECKS = (
    *(
        _gaussian_check(
            name=KNN_DENSITY,
            data={"d": d},
            settings={"k": K, "bound": SAME},
            measure=_estimated,
            title=f"kNN density, Gaussian in {d}-d",
            claim="the slope of log kNN density on log c is d: they differ by the exponent and by chance",
            where="A.1, A.3; below (25)",
        )
        for d in DIMENSIONS
    ),
    Check(
        name=KNN_DENSITY,
        subject=DENSITY,
        settings={"k": K, "bound": SAME},
        measure=_local,
        title="kNN density, Digits",
        claim="the same for the local dimension (Levina and Bickel)",
        where="A.1, A.3; below (25)",
    ),
    *(
        _gaussian_check(
            name=TRUE_DENSITY,
            data={"d": d},
            settings={"k": K, "bound": SAME} | ({} if d in FEW else {"fewer": FEWER}),
            measure=_true,
            title=f"true density, Gaussian in {d}-d",
            claim="the slope of log density against log c is d, once chance in c is removed"
            if d in FEW
            else f"the slope exceeds d, by less than with 1/{FEWER} of the points (number: excess over excess)",
            where="A.1: not calibrated; below (25)",
        )
        for d in DIMENSIONS
    ),
    Check(
        name=DENSITY_RANKS,
        subject=RANKS,
        settings={"k": K},
        measure=_ranks,
        title="exponents D and d, Digits",
        claim="rho_S is the same for every exponent, and equals the rank correlation of distances of the metric",
        where="4.1 (rho_S), A.3",
    ),
)
