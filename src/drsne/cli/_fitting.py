"""What commands that fit maps share: the options of a fit, their checks, the scaling of the data, and the memory."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from drsne.cli import UsageError, checked_options, note

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MUCH = 100.0  # ratio of the spreads of two columns above which scaling is recommended


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a fit that most users need."""
    parser.add_argument("--scale", action="store_true", help="scale every column to mean 0 and standard deviation 1")
    parser.add_argument("--perplexity", type=float, default=30.0, help="effective number of neighbours (default: 30)")
    parser.add_argument(
        "--neighbors", type=int, default=30, metavar="K", help="neighbours that define density (default: 30)"
    )
    parser.add_argument(
        "--contrast",
        metavar="auto|F",
        default="auto",
        help="power to which the map raises the concentration of the data (default: auto, computed from the data)",
    )
    parser.add_argument("--metric", default="euclidean", help="metric of the data (default: euclidean)")
    parser.add_argument("--pca", type=int, metavar="N", help="reduce the data to N principal components first")
    parser.add_argument("--iterations", type=int, metavar="N", help="number of iterations (default: 700)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="number of threads (default: all cores)")
    parser.add_argument(
        "--force-memory", action="store_true", help="start the fit even if the free memory will probably not suffice"
    )


def check_fit(options: argparse.Namespace) -> None:
    """Raise an error for options of a fit that are wrong, whatever the data are."""
    from drsne import checks

    with checked_options():
        checks.number("--perplexity", options.perplexity, at_least=1, hint="The default is 30.")
        checks.integer("--neighbors", options.neighbors, at_least=1, hint="The default is 30.")
        if options.contrast != "auto":
            options.contrast = number("--contrast", options.contrast, above=0, hint="The default is auto.")
        checks.integer("--seed", options.seed, at_least=0, hint="The default is 0.")
        if options.pca is not None:
            checks.integer("--pca", options.pca, at_least=1, hint="Leave it out to use all columns.")
        if options.iterations is not None:
            checks.integer("--iterations", options.iterations, at_least=1, hint="The default is 700.")
    check_metric(options.metric)
    check_jobs(options.jobs)


def number(option: str, text: str, **rules: Any) -> float:
    """Return the number that an option has as its text, or raise an error if it breaks one of the rules."""
    from drsne import checks

    value: Any = text
    with contextlib.suppress(ValueError):
        value = float(text)
    return checks.number(option, value, **rules)


def check_metric(metric: str) -> None:
    """Raise an error for a metric that is not known."""
    if metric == "euclidean":  # without importing compiled code, which mistakes in a file do not need
        return
    from drsne.neighbors import search

    try:
        search.check_metric(metric)
    except ValueError as error:
        raise UsageError(f"--{error}") from error  # the message begins with the name of the parameter


def check_jobs(jobs: int) -> None:
    """Raise an error for a number of threads that makes no sense."""
    if jobs == 0:
        raise UsageError("--jobs must be an integer other than 0; got 0. Pass 1 for one thread, or -1 for all cores.")


def fit_parameters(options: argparse.Namespace, table: Table, **more: Any) -> dict[str, Any]:
    """Return the parameters of DRSNE for these options and this table, and ``more`` of them."""
    components = options.pca
    if components is None and table.document is not None and table.document.pca_components is not None:
        sparse = hasattr(table.X, "nnz")  # sparse solvers find one component fewer
        components = min(table.document.pca_components, *(size - sparse for size in table.X.shape))
    return {
        "perplexity": options.perplexity,
        "density_neighbors": options.neighbors,
        "contrast": options.contrast,
        "metric": options.metric,
        "pca_components": components,
        "max_iter": "auto" if options.iterations is None else options.iterations,
        "random_state": options.seed,
        "n_jobs": options.jobs,
        "verbose": 0 if options.quiet else 1,
        **more,
    }


def scaled(table: Table, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the data, scaled if the user wishes, and the mean and spread of the columns, or None."""
    import numpy as np

    X = table.X
    if not isinstance(X, np.ndarray):
        if options.scale:
            raise ValueError("--scale cannot be used with sparse data. Scale the data before you save the file.")
        return X, None
    X = X.astype(np.float64) if X.dtype.kind != "f" else X
    spread = X.std(axis=0, dtype=np.float64)
    if options.scale:
        mean, spread = X.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1.0)
        return (X - mean) / spread, {"mean": mean, "spread": spread}
    used = spread[spread > 0]
    if not options.quiet and options.metric == "euclidean" and len(used) > 1 and used.max() > _MUCH * used.min():
        names = table.columns or [f"x{place + 1}" for place in range(X.shape[1])]
        widest = names[int(np.argmax(spread))]
        note(
            f"The spread of the columns differs by a factor of {used.max() / used.min():,.0f}; {widest!r} has the "
            "largest and dominates the distances. Pass --scale if the columns have different units."
        )
    return X, None


def refuse_too_large(X: Any, params: dict[str, Any], options: argparse.Namespace) -> None:
    """Raise an error if a fit will need more memory than is free, unless the user wants to try it."""
    from drsne import DRSNE
    from drsne.estimators import memory

    found = None if options.force_memory else memory.shortage(X, DRSNE(**params).get_params(deep=False))
    if found is not None:
        needed, free = found
        raise ValueError(
            f"A map of {X.shape[0]:,} rows and {X.shape[1]:,} columns needs about {needed / 1e9:.1f} GB of memory, but "
            f"only {free / 1e9:.1f} GB are free. Reduce the columns with --pca 50, or embed a sample of the rows with "
            "--model and place the others with drsne transform. Pass --force-memory to try it anyway."
        )
