"""Relative concentration, under the name that this module had before :mod:`drsne.objectives`."""

from drsne.objectives.concentration import Profile, Smoothing, profile

__all__ = ["Profile", "Smoothing", "profile"]
