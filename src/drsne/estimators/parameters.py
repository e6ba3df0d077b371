"""Checks of the parameters of the estimators, run when an estimator is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drsne import checks, engines, initialization
from drsne.backends import choice
from drsne.neighbors.given import check_kind
from drsne.neighbors.search import check_metric
from drsne.optimize.schedule import Schedule
from drsne.terms.kernel import KERNELS
from drsne.terms.objective import NEIGHBORHOODS, PROFILE_WEIGHT, Objective

# Parameters that an Objective or a Schedule replaces. They must then be left at their defaults.
_BY_OBJECTIVE = ("density_exponent", "neighborhoods", "kernel")
_BY_SCHEDULE = ("max_iter", "n_iter_exaggeration", "early_exaggeration", "learning_rate")


def check(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise an error for the first parameter of DRSNE that is invalid regardless of the data."""
    checks.integer(
        "density_neighbors", params["density_neighbors"], at_least=1, hint=_hint("density_neighbors", defaults)
    )
    _check_weight(params)
    checks.number("density_exponent", params["density_exponent"], above=0, hint=_hint("density_exponent", defaults))
    checks.choice("neighborhoods", params["neighborhoods"], tuple(NEIGHBORHOODS))
    checks.choice("kernel", params["kernel"], KERNELS)
    _check_contrast(params)
    _check_shared(params, defaults)
    _check_covered("objective", Objective, _BY_OBJECTIVE, params, defaults)
    _check_covered("schedule", Schedule, _BY_SCHEDULE, params, defaults)
    if adapts(params):
        engines.check_kernel(params["engine"])


def _check_contrast(params: Mapping[str, Any]) -> None:
    contrast, objective = params["contrast"], params["objective"]
    if isinstance(contrast, str):
        checks.choice("contrast", contrast, ("auto",), also=" or a number above 0")
        return
    checks.number("contrast", contrast, above=0, hint="The default is 'auto'.")
    if isinstance(objective, Objective) and objective.input_exponent is not None:
        raise ValueError(
            "contrast must be 'auto' if objective has an input_exponent, which also determines the contrast; got "
            f"{contrast!r} and {objective.input_exponent!r}. Leave one of them out."
        )
    weight = params["density_weight"]
    of_the_paper = objective is None and params["neighborhoods"] == "both"
    if of_the_paper and not isinstance(weight, str) and weight > PROFILE_WEIGHT:
        raise ValueError(
            f"contrast must be 'auto' with a density_weight above {PROFILE_WEIGHT:g} and neighborhoods='both', where "
            f"the density term is the paper's and the contrast is 1; got {contrast!r} and {weight!r}. Lower "
            "density_weight, or leave contrast out."
        )


def adapts(params: Mapping[str, Any]) -> bool:
    """Return whether a fit with these parameters uses the adaptive kernel, at least at one weight of a path.

    DenSNE never uses the adaptive kernel, because it does not have one.
    """
    if "kernel" not in params:
        return False
    objective = Objective(kernel=params["kernel"]) if params["objective"] is None else params["objective"]
    weight = params["density_weight"]
    return bool(objective.adapts(1.0 if isinstance(weight, str) else float(weight)))


def check_densne(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise an error for the first parameter of DenSNE that is invalid regardless of the data."""
    checks.number("density_weight", params["density_weight"], at_least=0, hint="Pass 0 for plain t-SNE.")
    hint = _hint("density_fraction", defaults)
    if checks.number("density_fraction", params["density_fraction"], at_least=0, hint=hint) > 1:
        raise ValueError(f"density_fraction must be at most 1; got {params['density_fraction']!r}. {hint}")
    checks.number("variance_shift", params["variance_shift"], at_least=0, hint=_hint("variance_shift", defaults))
    checks.choice("precision", params["precision"], ("single", "double"))
    _check_shared(params, defaults)
    _check_covered("schedule", Schedule, (*_BY_SCHEDULE, "density_fraction"), params, defaults)


def _hint(name: str, defaults: Mapping[str, Any]) -> str:
    return f"The default is {defaults[name]!r}."


def _check_shared(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise an error for the first wrong parameter among those that both estimators have."""
    for name, least in (("n_components", 1), ("max_iter", 1), ("n_iter_exaggeration", 0)):
        if isinstance(params[name], str) and isinstance(defaults[name], str):
            checks.choice(name, params[name], (defaults[name],), also=f" or an integer of at least {least}")
        else:
            checks.integer(name, params[name], at_least=least, hint=_hint(name, defaults))
    for name, low in (("perplexity", 1), ("early_exaggeration", 1)):
        checks.number(name, params[name], at_least=low, hint=_hint(name, defaults))
    checks.choice("engine", params["engine"], ("auto", *engines.names()))
    engines.check_options(params["engine"], params["engine_options"])
    engines.check_dimensions(params["engine"], int(params["n_components"]), backend_of(params))
    if isinstance(params["pca_components"], str):
        checks.choice("pca_components", params["pca_components"], ("auto",), also=", an integer or None")
    elif params["pca_components"] is not None:
        checks.integer("pca_components", params["pca_components"], at_least=1, hint="Pass None for no reduction.")
    checks.flag("keep_affinities", params["keep_affinities"])
    if isinstance(params["learning_rate"], str):
        checks.choice("learning_rate", params["learning_rate"], ("auto",), also=" or a number above 0")
    else:
        checks.number("learning_rate", params["learning_rate"], above=0, hint="The default is 'auto'.")
    check_metric(params["metric"])
    _check_precomputed(params)
    if params["neighbors"] is not None:
        check_kind(params["neighbors"])
    if isinstance(params["init"], str):
        checks.choice("init", params["init"], ("pca", "random"), also=" or an array")
    checks.jobs(params["n_jobs"])
    checks.verbosity(params["verbose"])
    callbacks(params["callbacks"])


def _check_weight(params: Mapping[str, Any]) -> None:
    checks.number("max_trustworthiness_drop", params["max_trustworthiness_drop"], at_least=0)
    if not isinstance(params["density_weight"], str):
        checks.number("density_weight", params["density_weight"], at_least=0, hint="Pass 0 for plain t-SNE.")
        return
    checks.choice("density_weight", params["density_weight"], ("auto",), also=" or a number of at least 0")
    if params["schedule"] is not None:
        raise ValueError(
            "schedule must be None with density_weight='auto', which has its own schedules for the path of weights. "
            "Pass max_iter, or a number as density_weight."
        )


def backend_of(params: Mapping[str, Any]) -> str:
    """Return the name of the backend of a fit. A CUDA device implies PyTorch."""
    return choice.named(params["backend"], params["device"])[0]


def check_for(params: Mapping[str, Any], n_samples: int, dtype: type) -> None:
    """Raise an error for parameters that do not suit the number of samples, before anything is computed."""
    d = int(params["n_components"])
    engines.check_chosen(params["engine"], params["engine_options"], n_samples, d, adapts(params), backend_of(params))
    if not isinstance(params["init"], str):
        largest = float(abs(initialization.checked_init(params["init"], n_samples, d)).max())
        if largest > float(np.finfo(dtype).max):
            raise ValueError(
                f"init must be within the range of {np.dtype(dtype).name}, the type of the data and of the map; got "
                f"{largest:g}. Scale it down, or pass the data as float64."
            )


def _check_precomputed(params: Mapping[str, Any]) -> None:
    if not isinstance(params["metric"], str) or params["metric"] != "precomputed":
        return
    reasons = {
        "neighbors": "X already holds the distances",
        "pca_components": "X holds distances, so it cannot be projected",
    }
    for name, reason in reasons.items():
        if params[name] is not None:
            raise ValueError(
                f"{name} must be None with metric='precomputed', because {reason}. Omit one of the two, or pass the "
                "data as X with another metric."
            )


def _check_covered(
    name: str, kind: type, covered: Sequence[str], params: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    if params[name] is None:
        return
    if not isinstance(params[name], kind):
        raise TypeError(f"{name} must be a drsne.{kind.__name__} or None; got {params[name]!r}. Omit it, or pass one.")
    for parameter in covered:
        if params[parameter] != defaults[parameter]:
            raise ValueError(
                f"{parameter} must be left at its default if {name} is passed, which replaces it; got "
                f"{params[parameter]!r}. Set it in {name}, or omit {name}."
            )


def callbacks(value: Any) -> list[Any]:
    """Return the callbacks as a list, or raise an error if one is not callable."""
    if value is None:
        return []
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    for callback in listed:
        if not callable(callback):
            raise TypeError(
                f"callbacks must be a callable or a list of callables; got {callback!r}. Pass functions that take "
                "(iteration, embedding, losses)."
            )
    return listed
