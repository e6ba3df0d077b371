"""Cases of tests with several parameters: single values or pairs of them all occur, but not every combination."""

from __future__ import annotations

import inspect
from functools import wraps
from itertools import combinations, product

import pytest


def cover(lists, strength, where):
    """Return few combinations of values that include all combinations of any ``strength`` of the lists.

    Each next case has the most combinations that are still missing, and among those the values that are rarest so far.
    Combinations for which ``where`` is false do not occur.
    """
    groups = list(combinations(range(len(lists)), min(strength, len(lists))))
    uses = [[0] * len(values) for values in lists]
    candidates = [
        (case, {(group, *(case[i] for i in group)) for group in groups})
        for case in product(*(range(len(values)) for values in lists))
        if where(*(values[i] for values, i in zip(lists, case, strict=True)))
    ]

    def gain(candidate):
        case, parts = candidate
        return len(parts & missing), -sum(counts[i] for counts, i in zip(uses, case, strict=True))

    missing, cases = set().union(*(parts for _, parts in candidates)), []
    while missing:
        case, parts = max(candidates, key=gain)
        missing -= parts
        for counts, i in zip(uses, case, strict=True):
            counts[i] += 1
        cases.append([values[i] for values, i in zip(lists, case, strict=True)])
    return cases


def each_pair(lists, *, strength=2, where=lambda *_: True, indirect=False):
    """Return a decorator that runs a test on few cases with every pair of values of two parameters.

    ``lists`` has the values of each parameter; a key with several names, such as ``"k, n"``, has tuples as values.
    """
    names = [name.split(", ") for name in lists]
    rows = [
        [each for name, value in zip(names, case, strict=True) for each in (value if len(name) > 1 else [value])]
        for case in cover([list(values) for values in lists.values()], strength, where)
    ]
    return pytest.mark.parametrize([each for name in names for each in name], rows, indirect=indirect)


def each_value(lists, **options):
    """Return a decorator that runs a test on few cases with every value of each parameter; see ``each_pair``."""
    return each_pair(lists, strength=1, **options)


def for_each(by, values, lists, *, where=lambda *_: True, indirect=()):
    """Return a decorator that runs a test once for each of some values, with all its cases of ``each_pair`` in a loop.

    ``by`` has the names of the parameters in such a value, and ``lists`` the values of the others, which the loop sets.
    """
    values = list(values)
    cases = {value: [] for value in values}
    for value, *others in cover([values, *map(list, lists.values())], 2, where):
        cases[value].append(others[0] if len(others) == 1 else others)

    def decorate(test):
        signature = inspect.signature(test)

        @wraps(test)
        def run(cases, **fixtures):
            in_one_test(list(lists), cases)(test)(**fixtures)

        kept = [parameter for name, parameter in signature.parameters.items() if name not in lists]
        kept.append(inspect.Parameter("cases", inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=kept)
        rows = [pytest.param(*value, cases[value], id="-".join(value)) for value in values]
        return pytest.mark.parametrize((*by.split(", "), "cases"), rows, indirect=list(indirect))(run)

    return decorate


def in_one_test(names, cases):
    """Return a decorator that runs all cases in one test. It is for many cases that take no time, such as refusals."""
    names = [names] if isinstance(names, str) else list(names)

    def decorate(test):
        signature = inspect.signature(test)

        @wraps(test)
        def run(**fixtures):
            for case in cases:
                try:
                    test(**fixtures, **dict(zip(names, [case] if len(names) == 1 else case, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the case {case!r}")
                    raise

        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=kept)
        return run

    return decorate
