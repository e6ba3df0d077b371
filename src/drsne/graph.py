"""Neighbours of the data, under the name that this module had before :mod:`drsne.neighbors`."""

from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn

__all__ = ["KnnGraph", "knn"]
