"""Schedules and optimisers, under the name that this module had before :mod:`drsne.optimization`."""

from drsne.optimization.loop import minimize
from drsne.optimization.optimizers import Adam, Momentum
from drsne.optimization.schedule import Phase, Schedule

__all__ = ["Adam", "Momentum", "Phase", "Schedule", "minimize"]
