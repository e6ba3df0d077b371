"""Neighbours of the data. This is the old name of a module that is now part of :mod:`drsne.neighbors`."""

from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn

__all__ = ["KnnGraph", "knn"]
