"""The objective. This is the old name of a module that is now part of :mod:`drsne.objectives`."""

from drsne.objectives.drsne import Objective

__all__ = ["Objective"]
