"""Relative concentration. This is the old name of a module that is now part of :mod:`drsne.objectives`."""

from drsne.objectives.concentration import Profile, Smoothing, profile

__all__ = ["Profile", "Smoothing", "profile"]
