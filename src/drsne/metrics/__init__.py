"""Scores of a map ``Y`` of data ``X``.

No score builds an n x n matrix. No score uses the code of an engine or an objective, which would then grade itself.
Every score takes ``max_samples`` and ``random_state``. With ``max_samples``, the score is the mean over a random sample
of points, each of which is still compared with all others.
"""

from drsne.metrics.concentration import concentration_correlation
from drsne.metrics.density import density_rank_correlation
from drsne.metrics.evaluation import evaluate
from drsne.metrics.fragmentation import fragmentation
from drsne.metrics.separation import silhouette
from drsne.metrics.stress import stress
from drsne.metrics.trust import continuity, trustworthiness

__all__ = [
    "concentration_correlation",
    "continuity",
    "density_rank_correlation",
    "evaluate",
    "fragmentation",
    "silhouette",
    "stress",
    "trustworthiness",
]
