"""Oracle selections: the best setting of a grid, chosen *with* the labels that score it.

They say what a method could reach if somebody told it where the anomalies are. In practice nobody does, so that no
user can have these settings: a figure from here is an upper bound, not what to expect. ``oracle_best`` tunes for each
detector anew; ``oracle_single`` (the paper's "oracle-IF" or "fair") tunes once, for one detector, and is the more
modest of the two, but it still uses the labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from drsne import checks
from drsne.anomaly._detector import near

Results = Mapping[Any, Sequence[Mapping[str, float]]]
_Table = dict[Hashable, dict[str, list[float]]]  # setting -> detector -> AUPRC of each seed


class Choice(NamedTuple):
    """A setting, and what a detector scores with it."""

    setting: Any
    mean: float  # AUPRC over seeds
    std: float  # sample standard deviation (ddof 1) over seeds; nan for one seed


def oracle_best(results: Results) -> dict[str, Choice]:
    """For each detector the setting with the largest mean AUPRC. It is chosen with labels: not to be had in practice.

    Parameters
    ----------
    results : mapping of setting to sequence of mapping of str to float
        For each setting of a grid, such as ``(lambda, k)``, and each seed the AUPRC of every detector. All settings
        have equally many seeds and the same detectors.

    Returns
    -------
    dict of str to Choice
        ``setting``, ``mean`` and ``std`` (ddof 1, nan for one seed) for each detector. Of settings with equal means
        it is the one with the smaller first parameter, then the smaller second.

    Examples
    --------
    >>> from drsne.anomaly import oracle_best
    >>> results = {(0.0, 40): [{"knn": 0.5, "lof": 0.25}], (1.0, 40): [{"knn": 0.75, "lof": 0.125}]}
    >>> {name: (choice.setting, choice.mean) for name, choice in oracle_best(results).items()}
    {'knn': ((1.0, 40), 0.75), 'lof': ((0.0, 40), 0.25)}
    """
    table = _table(results)
    return {name: _choice(table, _best(table, name), name) for name in _detectors(table)}


def oracle_single(results: Results, detector: str = "isolation_forest") -> dict[str, Choice]:
    """One setting for all detectors, the best for one of them. It is chosen with labels: not to be had in practice.

    Parameters
    ----------
    results : mapping of setting to sequence of mapping of str to float
        As for :func:`oracle_best`.
    detector : str, default="isolation_forest"
        The detector whose mean AUPRC decides: the paper's choice, "oracle-IF", which it also calls fair.

    Returns
    -------
    dict of str to Choice
        As from :func:`oracle_best`, with the same ``setting`` for every detector.

    Examples
    --------
    >>> from drsne.anomaly import oracle_single
    >>> results = {(0.0, 40): [{"knn": 0.5, "lof": 0.25}], (1.0, 40): [{"knn": 0.75, "lof": 0.125}]}
    >>> {name: (choice.setting, choice.mean) for name, choice in oracle_single(results, "lof").items()}
    {'knn': ((0.0, 40), 0.5), 'lof': ((0.0, 40), 0.25)}
    """
    table = _table(results)
    names = _detectors(table)
    setting = _best(table, checks.choice("detector", detector, names, hint=near(detector, names)))
    return {name: _choice(table, setting, name) for name in names}


def _table(results: Results) -> _Table:
    """``results`` as floats by setting and detector, else an error."""
    if not isinstance(results, Mapping):
        raise TypeError(f"results must be a mapping from settings to runs; got {results!r}. Pass {{setting: runs}}.")
    for setting, runs in results.items():
        if not isinstance(runs, Sequence) or not all(isinstance(run, Mapping) for run in runs):
            raise TypeError(
                f"results must hold a list for each setting, with a mapping from detectors to AUPRC for each seed; got "
                f"{runs!r} for {setting!r}. Put a single run into a list."
            )
    if not results:
        raise ValueError("results must hold at least one setting; got none.")
    first, seeds = next(iter(results.items()))
    if not seeds:
        raise ValueError(f"results must hold at least one seed for each setting; got none for {first!r}. Leave it out.")
    names = list(seeds[0])
    if not names:
        raise ValueError(f"results must hold an AUPRC for at least one detector; got none for {first!r}.")
    return {setting: _columns(setting, runs, first, len(seeds), names) for setting, runs in results.items()}


def _columns(setting: Any, runs: Sequence[Any], first: Any, n_seeds: int, names: list[str]) -> dict[str, list[float]]:
    if len(runs) != n_seeds:
        raise ValueError(
            f"results must hold equally many seeds for all settings, or the largest mean favours those with few; got "
            f"{n_seeds} for {first!r} and {len(runs)} for {setting!r}. Leave out the settings that are not complete."
        )
    for run in runs:
        if set(run) != set(names):
            raise ValueError(
                f"results must hold the same detectors for all settings and seeds; got {', '.join(names)} for "
                f"{first!r} and {', '.join(run) or 'none'} for {setting!r}. Leave out what is not everywhere."
            )
    hint = 'Of evaluate_anomaly take the "auprc"; leave out settings without a score.'
    return {
        name: [checks.number(f"results[{setting!r}], {name}", run[name], hint=hint) for run in runs] for name in names
    }


def _detectors(table: _Table) -> list[str]:
    return list(next(iter(table.values())))


def _best(table: _Table, name: str) -> Hashable:
    means = {setting: fmean(columns[name]) for setting, columns in table.items()}
    largest = max(means.values())
    tied: list[Any] = [setting for setting, mean in means.items() if mean == largest]
    try:
        smallest: Hashable = min(tied)
    except TypeError as error:
        raise TypeError(
            f"settings of equal mean must have an order, since the smallest is taken; got {tied}. Use numbers, or "
            "tuples of them."
        ) from error
    return smallest


def _choice(table: _Table, setting: Hashable, name: str) -> Choice:
    values = table[setting][name]
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Choice(setting, fmean(values), std)
