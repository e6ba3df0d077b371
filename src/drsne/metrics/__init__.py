"""Scores of a map ``Y`` of data ``X``. No score builds an n x n matrix, and none uses an engine: nothing grades itself.

Every score takes ``max_samples`` and ``random_state``: for large data it is then the mean over a random sample of
points, each still compared with all others.
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
