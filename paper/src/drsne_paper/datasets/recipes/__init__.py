"""The paper's preprocessing of its data: functions for single steps, and ``paper(name)`` for a row of its main table.

The text of the paper does not describe most of these steps. They are taken from the authors' code, unless a docstring
says otherwise.
"""

from drsne_paper.datasets.recipes.anomalies import cifar10_anomalies, fashion_anomalies, pbmc_anomalies, shuttle_sample
from drsne_paper.datasets.recipes.main_comparison import paper
from drsne_paper.datasets.recipes.single_cell import pbmc
from drsne_paper.datasets.recipes.steps import pca, smallest_clusters, standardise, stratified_rows

__all__ = [
    "cifar10_anomalies",
    "fashion_anomalies",
    "paper",
    "pbmc",
    "pbmc_anomalies",
    "pca",
    "shuttle_sample",
    "smallest_clusters",
    "standardise",
    "stratified_rows",
]
