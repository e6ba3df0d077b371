"""The parameters of the estimators: what each may be, the rules between several of them, and their descriptions.

The estimators check all their parameters when they are fitted, and so do functions that have some of them, before they
read data. Importing this module loads no compiled code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pkgutil import resolve_name
from textwrap import indent
from typing import Any, NamedTuple, TypeVar

from drsne import checks

Kind = TypeVar("Kind", bound=type)
_BOTH, _DRSNE, _DENSNE, _DETECTOR = ("DRSNE", "DenSNE"), ("DRSNE",), ("DenSNE",), ("DRSNEDetector",)
_ALL = (*_BOTH, *_DETECTOR)
# Parameters that an Objective or a Schedule replaces. They must then be left at their defaults.
_COVERED = {
    "objective": ("density_exponent", "neighborhoods", "kernel"),
    "schedule": ("max_iter", "n_iter_exaggeration", "early_exaggeration", "learning_rate", "density_fraction"),
}
# Parameters that distances cannot have, and why.
_NOT_PRECOMPUTED = {
    "neighbors": "X already holds the distances",
    "pca_components": "X holds distances, so it cannot be projected",
}
_PLAIN_HINT = "Pass 0 for plain t-SNE."
ON_PATH: dict[str, Any] = {"density_weight": "auto"}  # the parameter of a fit of maps along a path of weights
PLAIN: dict[str, Any] = {"density_weight": 0.0}  # that of a fit without a density term
# Names of our parameters in other packages, and other spellings.
_OTHER_NAMES = {
    "n_neighbors": "perplexity",
    "n_iter": "max_iter",
    "dens_lambda": "density_weight",
    "lambda": "density_weight",
    "neighbourhoods": "neighborhoods",
    "density_neighbours": "density_neighbors",
    "n_epochs": "max_iter",
    "initialization": "init",
    "exaggeration": "early_exaggeration",
    "seed": "random_state",
    "early_exaggeration_iter": "n_iter_exaggeration",
}


def _engine(value: Any) -> None:
    from drsne import engines

    checks.choice("engine", value, ("auto", *engines.names()))


def _rule(place: str) -> Callable[[Any], Any]:
    """Return the check at a place, such as "module:function", which is imported when it is first needed."""
    return lambda value: resolve_name(place)(value)


def _settings(name: str) -> Callable[[Any], None]:
    """Return the rule of ``objective`` or ``schedule``: an object of drsne, or None."""

    def check(value: Any) -> None:
        kind = resolve_name(f"drsne:{name.capitalize()}")
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a drsne.{kind.__name__} or None; got {value!r}. Omit it, or pass one.")

    return check


class Parameter(NamedTuple):
    """A row of the table: a parameter, its default, the values that it may have, and the estimators that have it."""

    name: str
    default: Any
    kind: str | Callable[[Any], Any]  # the kind of the values, or a function that raises an error for others
    of: tuple[str, ...] = _BOTH
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    texts: tuple[str, ...] = ()  # texts that are allowed besides the kind
    none: bool = False  # whether None is allowed
    hint: str = ""  # how to fix the problem, if the default is not the best answer

    def check(self, value: Any) -> None:
        """Raise an error if ``value`` is not allowed."""
        hint = self.hint or f"The default is {self.default!r}."
        if value is None and self.none:
            return
        if callable(self.kind):
            self.kind(value)
        elif self.kind == "text" or (self.texts and isinstance(value, str)):
            checks.choice(self.name, value, self.texts, also="" if self.kind == "text" else self._besides_texts())
        elif self.kind == "number":
            bounds = {"at_least": self.at_least, "above": self.above, "at_most": self.at_most}
            checks.number(self.name, value, hint=hint, **bounds)
        elif self.kind == "integer":
            checks.integer(self.name, value, at_least=int(self.at_least or 0), hint=hint)

    def _besides_texts(self) -> str:
        """Return the end of the rule of a parameter that may be a text or something else."""
        article = "an" if str(self.kind)[0] in "ai" else "a"
        what = f"{article} {self.kind}{checks.bounds(self.at_least, self.above)}"
        return f", {what} or None" if self.none else f" or {what}"


# In the order of the signatures. A test compares the defaults with those of the signatures.
_AUTO = ("auto",)
_KERNELS = ("auto", "adaptive", "fixed")
TABLE = (
    Parameter("estimator", None, "anything", _DETECTOR),
    Parameter("detector", "knn", _rule("drsne.anomaly:find"), _DETECTOR),
    Parameter(
        "contamination", "auto", "number", _DETECTOR, above=0, at_most=0.5, texts=_AUTO,
        hint="Pass the fraction of rows that are outliers.",
    ),
    Parameter("n_components", 2, "integer", at_least=1),
    Parameter("perplexity", 30.0, "number", at_least=1),
    Parameter("density_weight", 1.0, "number", _DRSNE, at_least=0, texts=_AUTO, hint=_PLAIN_HINT),
    Parameter("density_weight", 0.1, "number", _DENSNE, at_least=0, hint=_PLAIN_HINT),
    Parameter("density_neighbors", 30, "integer", _DRSNE, at_least=1),
    Parameter("density_exponent", 1.0, "number", _DRSNE, above=0),
    Parameter("neighborhoods", "both", "text", _DRSNE, texts=("both", "input", "embedding")),
    Parameter("contrast", "auto", "number", _DRSNE, above=0, texts=_AUTO),
    Parameter("kernel", "auto", "text", _DRSNE, texts=_KERNELS),
    Parameter(
        "arrangement_weight", 0.0, "number", _DRSNE, at_least=0, texts=_AUTO, hint="Pass 0 for no arrangement term."
    ),
    Parameter("arrangement", "auto", "text", _DRSNE, texts=("auto", "metric", "geodesic")),
    Parameter("max_trustworthiness_drop", 0.01, "number", _DRSNE, at_least=0),
    Parameter("density_fraction", 0.5, "number", _DENSNE, at_least=0, at_most=1),
    Parameter("variance_shift", 0.1, "number", _DENSNE, at_least=0),
    Parameter("metric", "euclidean", _rule("drsne.neighbors.search:check_metric")),
    Parameter("init", "pca", "array", texts=("pca", "random")),
    Parameter("neighbors", None, _rule("drsne.neighbors.precomputed:check_kind"), none=True),
    Parameter(
        "pca_components", None, "integer", at_least=1, texts=_AUTO, none=True, hint="Pass None for no reduction."
    ),
    Parameter("engine", "auto", _engine),
    Parameter("engine_options", None, "anything"),
    Parameter("max_iter", "auto", "integer", _DRSNE, at_least=1, texts=_AUTO),
    Parameter("max_iter", 1000, "integer", _DENSNE, at_least=1),
    Parameter("n_iter_exaggeration", 250, "integer", at_least=0),
    Parameter("early_exaggeration", 12.0, "number", at_least=1),
    Parameter("learning_rate", "auto", "number", above=0, texts=_AUTO),
    Parameter("objective", None, _settings("objective"), _DRSNE, none=True),
    Parameter("schedule", None, _settings("schedule"), none=True),
    Parameter("precision", "single", "text", _DENSNE, texts=("single", "double")),
    Parameter("keep_affinities", True, lambda value: checks.flag("keep_affinities", value)),
    Parameter("callbacks", None, lambda value: callbacks(value)),
    Parameter("n_jobs", None, checks.jobs, _ALL),
    Parameter("backend", "numba", "anything"),
    Parameter("device", None, "anything"),
    Parameter("random_state", None, "anything", _ALL),
    Parameter("verbose", 0, checks.verbosity),
)  # fmt: skip


def rows(kind: str) -> dict[str, Parameter]:
    """Return the rows of the table for an estimator, by the names of the parameters."""
    return {row.name: row for row in TABLE if kind in row.of}


def refuse_unknown(kind: Any, names: Iterable[str], error: type[Exception] = TypeError) -> None:
    """Raise an error for the first name that is not a parameter, and suggest the parameter that is probably meant."""
    known = kind._get_param_names()
    others = {other: ours for other, ours in _OTHER_NAMES.items() if ours in known}
    for name in names:
        if name not in known:
            hint = checks.did_you_mean(name, [*known, *others])
            for other, ours in others.items():
                hint = hint.replace(repr(other), repr(ours))
            raise error(f"{kind.__name__} has no parameter {name!r}. {hint or 'It has ' + ', '.join(known) + '.'}")


def check(kind: str, params: Mapping[str, Any]) -> None:
    """Raise an error for the first parameter of an estimator that is invalid regardless of the data."""
    from drsne import engines

    table = rows(kind)
    for name, row in table.items():
        row.check(params[name])
    if kind not in _BOTH:
        return
    if kind == "DRSNE":
        _check_weight(params)
    for settings, covered in _COVERED.items():
        for name in covered:
            if params.get(settings) is not None and name in table and params[name] != table[name].default:
                raise ValueError(
                    f"{name} must be left at its default if {settings} is passed, which replaces it; got "
                    f"{params[name]!r}. Set it in {settings}, or omit {settings}."
                )
    if isinstance(params["metric"], str) and params["metric"] == "precomputed":
        for name, reason in _NOT_PRECOMPUTED.items():
            if params[name] is not None:
                raise ValueError(
                    f"{name} must be None with metric='precomputed', because {reason}. Omit one of the two, or pass "
                    "the data as X with another metric."
                )
    engines.check_options(params["engine"], params["engine_options"])
    engines.check_dimensions(params["engine"], int(params["n_components"]), backend_of(params))
    if adapts(params):
        engines.check_kernel(params["engine"])


def _check_weight(params: Mapping[str, Any]) -> None:
    """Raise an error if the weight does not suit the contrast or the schedule."""
    from drsne.terms.objective import PROFILE_WEIGHT

    weight, contrast, objective = params["density_weight"], params["contrast"], params["objective"]
    if isinstance(weight, str) and params["schedule"] is not None:
        raise ValueError(
            "schedule must be None with density_weight='auto', which has its own schedules for the path of weights. "
            "Pass max_iter, or a number as density_weight."
        )
    arranged, schedule = params["arrangement_weight"], params["schedule"]
    if not isinstance(arranged, str) and arranged and schedule and not any(p.arrangement for p in schedule.phases):
        raise ValueError(
            f"arrangement_weight must be 0 or 'auto' with a schedule without the arrangement term; got {arranged!r}. "
            "Pass arrangement=1.0 to one of its phases, or leave arrangement_weight out."
        )
    if isinstance(contrast, str):
        return
    if objective is not None and objective.input_exponent is not None:
        raise ValueError(
            "contrast must be 'auto' if objective has an input_exponent, which also determines the contrast; got "
            f"{contrast!r} and {objective.input_exponent!r}. Leave one of them out."
        )
    of_the_paper = objective is None and params["neighborhoods"] == "both"
    if of_the_paper and not isinstance(weight, str) and weight > PROFILE_WEIGHT:
        raise ValueError(
            f"contrast must be 'auto' with a density_weight above {PROFILE_WEIGHT:g} and neighborhoods='both', where "
            f"the density term is the paper's and the contrast is 1; got {contrast!r} and {weight!r}. Lower "
            "density_weight, or leave contrast out."
        )


def check_for(params: Mapping[str, Any], n_samples: int, dtype: type) -> None:
    """Raise an error for parameters that do not suit the number of samples, before anything is computed."""
    import numpy as np

    from drsne import engines, initialization

    d = int(params["n_components"])
    engines.check_chosen(params["engine"], params["engine_options"], n_samples, d, backend_of(params), adapts(params))
    if not isinstance(params["init"], str):
        largest = float(abs(initialization.checked_init(params["init"], n_samples, d)).max())
        if largest > float(np.finfo(dtype).max):
            raise ValueError(
                f"init must be within the range of {np.dtype(dtype).name}, the type of the data and of the map; got "
                f"{largest:g}. Scale it down, or pass the data as float64."
            )


def backend_of(params: Mapping[str, Any]) -> Any:
    """Return what the backend of a fit supports."""
    from drsne.backends import choice

    return choice.kind_of(params["backend"], params["device"])


def on_path(params: Mapping[str, Any]) -> bool:
    """Return whether a fit with these parameters makes maps along a path of weights."""
    return isinstance(params["density_weight"], str)


def adapts(params: Mapping[str, Any]) -> bool:
    """Return whether a fit with these parameters uses the adaptive kernel, at least at one weight of a path."""
    from drsne.terms.objective import Objective

    if "kernel" not in params:  # of DenSNE
        return False
    objective = Objective(kernel=params["kernel"]) if params["objective"] is None else params["objective"]
    return bool(objective.adapts(1.0 if on_path(params) else float(params["density_weight"])))


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


# Descriptions of the parameters and attributes that DRSNE and DenSNE have in common, each written once. A line such as
# ``{metric, init}`` in the docstring of a class with the decorator :func:`shared` stands for those of these names.
_DESCRIPTIONS = """\
n_components : int, default=2
    Number of dimensions of the map.
metric : str or callable, default="euclidean"
    Metric of the distances between samples: any metric that scikit-learn's nearest neighbours accept, or
    "precomputed" if ``X`` is a distance matrix or a sparse graph of distances to neighbours.
init : {"pca", "random"} or array of shape (n_samples, n_components), default="pca"
    Positions of the points before the first iteration. "pca" stands for the principal components of the data. With
    ``metric="precomputed"``, it stands for the classical scaling of a distance matrix or for a diffusion map of a
    graph. An array is used unchanged, so a fit can be continued from an earlier map.
neighbors : (indices, distances), sparse matrix or None, default=None
    Precomputed neighbours of every sample, which replace the search for neighbours. Either two arrays of shape
    (n_samples, m), or a sparse graph of distances, such as the result of :func:`sklearn.neighbors.kneighbors_graph`
    with ``mode="distance"``. In the arrays, the neighbours of a sample can be in any order and may include the
    sample itself; missing neighbours have index -1. If ``neighbors`` is given, ``metric`` is ignored.
pca_components : int, "auto" or None, default=None
    Number of principal components that replace ``X`` in the search for neighbours and in the initial map. "auto"
    means 50 if ``X`` has more than 50 features, and no reduction otherwise. If None, ``X`` is not reduced.
engine : {"auto", "exact", "fft", "tree"}, default="auto"
    How the repulsion is summed: over all pairs ("exact"), on a mesh ("fft", 1-D and 2-D maps) or over a tree
    ("tree", up to 3-D). "auto" chooses the fastest of these for the number of samples and dimensions.
engine_options : dict, default=None
    Options of the engine: ``accuracy`` ("normal" or "high") for "fft", and ``theta`` for "tree".
early_exaggeration : float, default=12.0
    Factor on the attractive forces during early exaggeration.
learning_rate : float or "auto", default="auto"
    Learning rate of the iterations without the density term, in the units of scikit-learn. "auto" stands for
    ``max(n_samples / exaggeration / 4, 50)``.
keep_affinities : bool, default=True
    Whether to keep ``affinities_``, which is by far the largest attribute.
n_jobs : int, default=None
    Number of threads, as in joblib: None means 1, and -1 means all cores. The map does not depend on the number of
    threads.
backend : {"numba", "torch"}, default="numba"
    What computes the fit. "numba" uses the cores of the processor. "torch" uses PyTorch (``pip install
    'drsne[torch]'``), on a GPU if there is one. Maps of the two are equally good but not the same.
device : {None, "cpu", "cuda", "cuda:1", ...}, default=None
    Device of PyTorch. A CUDA device implies ``backend="torch"``. None stands for the first GPU with
    ``backend="torch"``, or for the processor if there is none. The same seed gives the same map on the same device.
    New rows are placed on the same device, or by numba on a machine without it.
random_state : int, RandomState, Generator or None, default=None
    Seed of the random numbers in the initial map. The same seed gives the same map.
verbose : int, default=0
    If 1, a progress bar is shown on standard error. If 2, every step is also logged with the time that it took,
    through :mod:`logging` under the name "drsne".
embedding_ : ndarray of shape (n_samples, n_components)
    The map.
affinities_ : csr_matrix of shape (n_samples, n_samples)
    Symmetric affinities ``p_ij``, which sum to one. They are stored only if ``keep_affinities`` is True.
precisions_ : ndarray of shape (n_samples,)
    Precision ``beta_i`` of every sample, where ``p_j|i`` is proportional to ``exp(-beta_i d_ij^2)``.
    It is infinite for a sample whose neighbours are nearer than about 1e-154.
n_iter_ : int
    Number of iterations that were run.
stopped_by_ : {"callback", "interrupt", "overflow"} or None
    What ended the fit early, or None if it was completed.
engine_ : str
    Name of the engine that was used.
knn_recall_ : float or None
    With ``backend="torch"``, the fraction of the nearest neighbours that an approximate search found, measured on
    1000 rows. None if the search was exact or was not done by PyTorch.
pca_ : sklearn.decomposition.PCA or None
    The fitted PCA, or None if the data were not reduced.
n_features_in_ : int
    Number of features seen during ``fit``.
feature_names_in_ : ndarray of str
    Names of the features seen during ``fit``, if ``X`` has feature names.
"""
_ENTRIES = {entry.split(" : ")[0]: entry.rstrip() for entry in re.split(r"\n(?=\S)", _DESCRIPTIONS)}
_LINE = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)


def shared(kind: Kind) -> Kind:
    """Replace the lines of names in the docstring of a class by their descriptions, and return the class."""
    if kind.__doc__ is not None:  # Python can leave docstrings out
        kind.__doc__ = _LINE.sub(
            lambda line: "\n".join(indent(_ENTRIES[name], line[1]) for name in line[2].split(", ")), kind.__doc__
        )
    return kind
