"""Import paths from before the modules were grouped into folders keep working."""

from __future__ import annotations

from importlib import import_module

import pytest

import drsne

OLD = {
    "drsne.graph": ("knn", "KnnGraph"),
    "drsne.affinities": ("affinities", "Calibration"),
    "drsne.concentration": ("profile", "Smoothing"),
    "drsne.objective": ("Objective",),
    "drsne.optimize": ("Adam", "Momentum", "Phase", "Schedule", "minimize"),
    "drsne.path": ("DensityPath", "WEIGHTS"),
    "drsne.presets": ("paper", "densne"),
    "drsne.metrics": ("evaluate", "trustworthiness"),
    "drsne.pl": ("compare",),
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in OLD.items() for name in names])
def test_old_name(module, name):
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize("name", ["Adam", "Momentum", "Objective", "Phase", "Schedule", "Smoothing", "DensityPath"])
def test_a_name_is_the_same_object_wherever_it_is_imported_from(name):
    module = next(module for module, names in OLD.items() if name in names)
    assert getattr(import_module(module), name) is getattr(drsne, name)
