"""The estimator's parameters, checked when it is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drsne import _checks, engines, initialization, ready
from drsne.graph import check_metric
from drsne.objective import NEIGHBORHOODS, Objective
from drsne.optimize import Schedule

# What a given dataclass covers, and so must not also be given as a plain parameter.
COVERED = {
    "objective": (Objective, ("density_exponent", "neighborhoods")),
    "schedule": (Schedule, ("max_iter", "n_iter_exaggeration", "early_exaggeration", "learning_rate")),
}


def check(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise for the first parameter that is wrong for every data set."""

    def hint(name: str) -> str:
        return f"The default is {defaults[name]!r}."

    for name, least in (("n_components", 1), ("density_neighbors", 1), ("max_iter", 1), ("n_iter_exaggeration", 0)):
        _checks.integer(name, given[name], at_least=least, hint=hint(name))
    for name, low in (("perplexity", 1), ("early_exaggeration", 1)):
        _checks.number(name, given[name], at_least=low, hint=hint(name))
    _check_weight(given)
    _checks.number("density_exponent", given["density_exponent"], above=0, hint=hint("density_exponent"))
    _checks.choice("neighborhoods", given["neighborhoods"], tuple(NEIGHBORHOODS))
    _checks.choice("engine", given["engine"], ("auto", *engines.names()))
    engines.check_options(given["engine"], given["engine_options"])
    engines.check_dimensions(given["engine"], int(given["n_components"]))
    if isinstance(given["pca_components"], str):
        _checks.choice("pca_components", given["pca_components"], ("auto",), also=", an integer or None")
    elif given["pca_components"] is not None:
        _checks.integer("pca_components", given["pca_components"], at_least=1, hint="None takes X as it is.")
    _checks.flag("keep_affinities", given["keep_affinities"])
    if isinstance(given["learning_rate"], str):
        _checks.choice("learning_rate", given["learning_rate"], ("auto",), also=" or a number above 0")
    else:
        _checks.number("learning_rate", given["learning_rate"], above=0, hint='Or pass "auto".')
    check_metric(given["metric"])
    _check_precomputed(given)
    if given["neighbors"] is not None:
        ready.check_kind(given["neighbors"])
    if isinstance(given["init"], str):
        _checks.choice("init", given["init"], ("pca", "random"), also=" or an array")
    _checks.jobs(given["n_jobs"])
    verbose = given["verbose"]
    _checks.integer("verbose", int(verbose) if type(verbose).__name__ in ("bool", "bool_") else verbose, at_least=0)
    for name in COVERED:
        _check_covered(name, given, defaults)
    callbacks(given["callbacks"])


def _check_weight(given: Mapping[str, Any]) -> None:
    _checks.number("max_trustworthiness_drop", given["max_trustworthiness_drop"], at_least=0)
    if not isinstance(given["density_weight"], str):
        _checks.number("density_weight", given["density_weight"], at_least=0, hint="Pass 0 for plain t-SNE.")
        return
    _checks.choice("density_weight", given["density_weight"], ("auto",), also=" or a number of at least 0")
    if given["schedule"] is not None:
        raise ValueError(
            "schedule must be None with density_weight='auto', whose maps are steps along a path of weights. Pass "
            "max_iter, or a density_weight."
        )


def check_for(given: Mapping[str, Any], n_samples: int) -> None:
    """Raise for what is wrong for so many samples, before anything is searched."""
    d = int(given["n_components"])
    engines.check_chosen(given["engine"], given["engine_options"], n_samples, d)
    if not isinstance(given["init"], str):
        initialization.given(given["init"], n_samples, d)


def _check_precomputed(given: Mapping[str, Any]) -> None:
    if not isinstance(given["metric"], str) or given["metric"] != "precomputed":
        return
    for name, why in (("neighbors", "X already holds the distances"), ("pca_components", "X is no data to project")):
        if given[name] is not None:
            raise ValueError(
                f"{name} must be None with metric='precomputed': {why}. Drop one of the two, or pass the data as X."
            )


def _check_covered(name: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    kind, covered = COVERED[name]
    if given[name] is None:
        return
    if not isinstance(given[name], kind):
        raise TypeError(f"{name} must be a drsne.{kind.__name__} or None; got {given[name]!r}.")
    for parameter in covered:
        if given[parameter] != defaults[parameter]:
            raise ValueError(
                f"{parameter} must be left at its default where {name} is given, which covers it; got "
                f"{given[parameter]!r}. Set it in {name}, or drop {name}."
            )


def callbacks(given: Any) -> list[Any]:
    """Callbacks as a list."""
    if given is None:
        return []
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    for callback in listed:
        if not callable(callback):
            raise TypeError(f"callbacks must be a callable or a list of callables; got {callback!r}.")
    return listed
