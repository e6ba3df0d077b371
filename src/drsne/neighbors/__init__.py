"""Nearest neighbours of the data: ``search`` chooses how they are found, and the other modules find them."""

from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn

__all__ = ["KnnGraph", "knn"]
