"""Paths of density weights. This is the old name of a module that is now part of :mod:`drsne.estimators`."""

from drsne.estimators.path import WEIGHTS, DensityPath

__all__ = ["WEIGHTS", "DensityPath"]
