"""Scores of a map ``Y`` of data ``X``.

The scores never build an n x n matrix. They do not use the code of the engines or objectives, so that this code does
not evaluate itself. Every score has the parameters ``max_samples`` and ``random_state``. With ``max_samples``, the
score is the mean over a random sample of points. Each point of the sample is still compared with all points.
"""

from drsne.metrics.arrangement import distance_correlation, triplets
from drsne.metrics.density import concentration_correlation, density_rank_correlation, group_density_correlation
from drsne.metrics.evaluation import evaluate
from drsne.metrics.fragmentation import fragmentation
from drsne.metrics.reliability import reliability
from drsne.metrics.separation import silhouette
from drsne.metrics.stress import stress
from drsne.metrics.trust import continuity, trustworthiness

__all__ = [
    "concentration_correlation",
    "continuity",
    "density_rank_correlation",
    "distance_correlation",
    "evaluate",
    "fragmentation",
    "group_density_correlation",
    "reliability",
    "silhouette",
    "stress",
    "triplets",
    "trustworthiness",
]
