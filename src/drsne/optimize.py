"""Schedules and optimisers. This is the old name of a module that is now part of :mod:`drsne.optimization`."""

from drsne.optimization.loop import minimize
from drsne.optimization.optimizers import Adam, Momentum
from drsne.optimization.schedule import Phase, Schedule

__all__ = ["Adam", "Momentum", "Phase", "Schedule", "minimize"]
