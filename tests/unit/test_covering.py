"""The choice of cases for tests with several parameters."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from covering import cover, in_one_test


def test_all_pairs_of_values_occur_that_can():
    lists = [range(7), "abcd", (False, True), range(5)]

    def allowed(number, letter, *_):
        return letter != "d" or number == 3

    cases = cover(lists, 2, allowed)
    possible = [case for case in product(*lists) if allowed(*case)]
    for i, j in combinations(range(4), 2):
        assert {(case[i], case[j]) for case in cases} == {(case[i], case[j]) for case in possible}
    assert all(allowed(*case) for case in cases)
    assert 35 <= len(cases) < 50 < len(possible)


def test_the_case_that_fails_is_named():
    seen = []

    @in_one_test(("number", "word"), [(1, "one"), (2, "two"), (3, "three")])
    def check(fixture, number, word):
        seen.append((fixture, word))
        assert number < 2

    with pytest.raises(AssertionError) as error:
        check(fixture="x")
    assert error.value.__notes__ == ["in the case (2, 'two')"]
    assert seen == [("x", "one"), ("x", "two")]
