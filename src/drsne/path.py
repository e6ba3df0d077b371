"""Paths of density weights, under the name that this module had before :mod:`drsne.estimators`."""

from drsne.estimators.path import WEIGHTS, DensityPath

__all__ = ["WEIGHTS", "DensityPath"]
