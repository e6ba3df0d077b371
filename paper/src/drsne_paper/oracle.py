"""Oracle selections: the best setting of a grid, selected *with* the labels that are also used to score it.

These selections show what a method could reach if the anomalies were known. In practice the anomalies are not known, so
these scores are upper bounds. A user cannot expect to reach them. ``oracle_best`` selects a setting for each detector.
``oracle_single`` selects one setting with one detector and uses it for all detectors; the paper calls this method
"oracle-IF" and also "fair". Its bound is lower, but it still uses the labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from drsne_paper import checks

Results = Mapping[Any, Sequence[Mapping[str, float]]]
_Table = dict[Hashable, dict[str, list[float]]]  # for each setting and detector, the AUPRC of each seed


class Choice(NamedTuple):
    """The selected setting, and the score of a detector with this setting."""

    setting: Any
    mean: float  # mean AUPRC over seeds
    std: float  # sample standard deviation (ddof=1) of the AUPRC over seeds; nan for one seed


def oracle_best(results: Results) -> dict[str, Choice]:
    """Return the setting with the largest mean AUPRC for each detector.

    The setting is selected with the labels, so its score is an upper bound.

    Parameters
    ----------
    results : mapping of setting to sequence of mapping of str to float
        The AUPRC of every detector, for each setting of a grid and each seed. A setting can be a tuple such as
        ``(lambda, k)``. All settings must have the same number of seeds and the same detectors.

    Returns
    -------
    dict of str to Choice
        ``setting``, ``mean`` and ``std`` (ddof=1, nan for one seed) for each detector. Ties go to the setting with the
        smallest first parameter, and then to the one with the smallest second parameter.

    Examples
    --------
    >>> from drsne_paper.oracle import oracle_best
    >>> results = {(0.0, 40): [{"knn": 0.5, "lof": 0.25}], (1.0, 40): [{"knn": 0.75, "lof": 0.125}]}
    >>> {name: (choice.setting, choice.mean) for name, choice in oracle_best(results).items()}
    {'knn': ((1.0, 40), 0.75), 'lof': ((0.0, 40), 0.25)}
    """
    table = _table(results)
    return {name: _choice(table, _best(table, name), name) for name in _detectors(table)}


def oracle_single(results: Results, detector: str = "isolation_forest") -> dict[str, Choice]:
    """Return the setting with the largest mean AUPRC for one detector, with the scores of all detectors.

    The setting is selected with the labels, so its score is an upper bound.

    Parameters
    ----------
    results : mapping of setting to sequence of mapping of str to float
        The AUPRC of every detector for each setting and seed, as for :func:`oracle_best`.
    detector : str, default="isolation_forest"
        The detector that selects the setting. The default is the method that the paper calls "oracle-IF", and also
        "fair".

    Returns
    -------
    dict of str to Choice
        ``setting``, ``mean`` and ``std`` for each detector, with the same ``setting`` for all of them.

    Examples
    --------
    >>> from drsne_paper.oracle import oracle_single
    >>> results = {(0.0, 40): [{"knn": 0.5, "lof": 0.25}], (1.0, 40): [{"knn": 0.75, "lof": 0.125}]}
    >>> {name: (choice.setting, choice.mean) for name, choice in oracle_single(results, "lof").items()}
    {'knn': ((0.0, 40), 0.5), 'lof': ((0.0, 40), 0.25)}
    """
    table = _table(results)
    names = _detectors(table)
    setting = _best(table, checks.choice("detector", detector, names))
    return {name: _choice(table, setting, name) for name in names}


def _table(results: Results) -> _Table:
    """Return ``results`` by setting and detector, or raise an error if a setting has other runs than the first one."""
    if not results or not all(results.values()):
        raise ValueError("results must have at least one setting, and at least one seed for each setting.")
    first, runs = next(iter(results.items()))
    names = list(runs[0])
    for setting, others in results.items():
        if len(others) != len(runs):
            raise ValueError(
                "results must have the same number of seeds for all settings, because those with few seeds would have "
                f"an advantage; got {len(runs)} for {first!r} and {len(others)} for {setting!r}."
            )
        if any(set(run) != set(names) for run in others):
            raise ValueError(f"results must have the same detectors everywhere; {setting!r} differs from {first!r}.")
    return {setting: {name: [float(run[name]) for run in runs] for name in names} for setting, runs in results.items()}


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
            f"settings with equal means must be sortable, because ties go to the smallest setting; got {tied}. Use "
            "numbers or tuples of numbers."
        ) from error
    return smallest


def _choice(table: _Table, setting: Hashable, name: str) -> Choice:
    values = table[setting][name]
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Choice(setting, fmean(values), std)
