"""The objective, under the name that this module had before :mod:`drsne.objectives`."""

from drsne.objectives.drsne import Objective

__all__ = ["Objective"]
