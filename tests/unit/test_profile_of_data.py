"""What is taken from the radii of the data: winsorised targets, scales of the kernel, small groups."""

from __future__ import annotations

import numpy as np
import pytest
from covering import in_one_test

from drsne import DRSNE, Objective, Smoothing
from drsne.neighbors.search import knn
from drsne.terms.profile import (
    DEFAULT_SMOOTHING,
    LARGEST_LOG_SCALE,
    LEAST_GROUP,
    group_neighbors,
    log_scales,
    profile,
    repeated,
    winsorized,
)

QUICK = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 30, "random_state": 0}


def some_profile(n=1000, seed=0):
    return profile(np.exp(np.random.default_rng(seed).normal(size=n)), 1.0, DEFAULT_SMOOTHING).log


@in_one_test("quantile", [0.01, 0.1, 0.4])
def test_a_winsorized_profile_is_normalised_again(quantile):
    log = some_profile()
    clipped = winsorized(log, quantile)
    assert np.exp(clipped).mean() == pytest.approx(1.0, rel=1e-12)
    low, high = np.quantile(log, (quantile, 1.0 - quantile))
    inside = (log > low) & (log < high)
    np.testing.assert_allclose(np.diff(clipped[inside]), np.diff(log[inside]), atol=1e-12)
    np.testing.assert_array_equal(np.argsort(clipped[inside]), np.argsort(log[inside]))
    assert (clipped[log <= low] == clipped.min()).all()
    assert (clipped[log >= high] == clipped.max()).all()
    assert winsorized(log, 0.0) is log


def test_the_concentration_of_the_data_is_not_clipped(blobs):
    X = np.vstack([blobs, np.full((1, 6), 200.0)])  # one very sparse point
    objective = Objective(target_quantile=0.1)
    clipped = DRSNE(objective=objective, density_weight=1.0, **QUICK).fit(X)
    whole = DRSNE(objective=Objective(target_quantile=0.0), density_weight=1.0, **QUICK).fit(X)
    np.testing.assert_array_equal(clipped.input_concentration_, whole.input_concentration_)
    assert clipped.input_concentration_.argmin() == 120
    assert (clipped.input_concentration_[:120] > clipped.input_concentration_[120]).all()
    assert not np.array_equal(clipped.embedding_, whole.embedding_)


@in_one_test("power", [1.0, 1.7])
def test_log_scales_are_centred_log_radii_without_the_extremes(power):
    """Half a per cent of the points are beyond the bounds at either end (eq. 49)."""
    radii = np.exp(np.random.default_rng(0).normal(size=2000))
    scale = log_scales(radii, power, Smoothing(relative=0.0))
    free = power * (np.log(radii) - np.log(radii).mean())
    low, high = np.quantile(free, (0.005, 0.995))
    np.testing.assert_allclose(scale, np.clip(free, low, high), atol=1e-12)
    np.testing.assert_allclose(log_scales(1e9 * radii, power, Smoothing(relative=0.0)), scale, atol=1e-9)


def test_scales_are_finite_and_bounded():
    rng = np.random.default_rng(0)
    for share in (0.3, 0.7, 1.0):  # also where more than half of the points have radius 0
        radii = rng.uniform(1.0, 2.0, 200)
        radii[: int(200 * share)] = 0.0
        scale = log_scales(radii, 1.0, DEFAULT_SMOOTHING)
        assert np.isfinite(scale).all()
        assert scale.min() > -10.0
    radii = 10.0 ** rng.uniform(-100, 100, 500)
    assert np.abs(log_scales(radii, 2.0, DEFAULT_SMOOTHING)).max() <= LARGEST_LOG_SCALE


@in_one_test("extreme", [1e300, 1e-300])
def test_radii_of_every_size_have_finite_profiles_and_scales(extreme):
    radii = np.random.default_rng(0).uniform(1.0, 2.0, 200)
    radii[0] *= extreme
    radii[1] /= extreme
    with np.errstate(all="raise", under="ignore"):
        log = profile(radii, 1.0, Smoothing(relative=0.0)).log
        scale = log_scales(radii, 1.0, Smoothing(relative=0.0))
    np.testing.assert_allclose(log[2:] - log[2], np.log(radii[2]) - np.log(radii[2:]), atol=1e-9)
    order = np.argsort(radii)
    assert (np.diff(log[order]) <= 0.0).all()
    assert (np.diff(scale[order]) >= 0.0).all()


def test_ordinary_profiles_are_as_they_were():
    radii = np.exp(np.random.default_rng(0).normal(size=300))
    c = radii.min() / radii
    expected = -np.log(radii / radii.min()) - np.log(c.mean())
    np.testing.assert_array_equal(profile(radii, 1.0, Smoothing(relative=0.0)).log, expected)


def test_squared_distances_that_overflow_are_refused_without_numpys_warning():
    X = 1e200 * np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="Distances must be finite"):
        knn(X, 5, metric="sqeuclidean")
    near = knn(X / 1e100, 5, metric="sqeuclidean")
    np.testing.assert_array_equal(near.distances, knn(X / 1e100, 5).distances ** 2)


@in_one_test("dimensions", [2, 3, 5, 10, 20])
def test_gaussian_data_have_no_gaps(dimensions):
    X = np.random.default_rng(0).normal(size=(2000, dimensions))
    kept = group_neighbors(knn(X, 30).distances)
    assert (kept < 30).mean() < 0.005


def test_a_small_group_ends_at_its_gap():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(500, 4)), 0.3 * rng.normal(size=(14, 4)) + 60.0])
    kept = group_neighbors(knn(X, 30).distances)
    assert (kept[500:] == 13).all()
    assert (kept[:500] == 30).mean() > 0.99


@in_one_test("m", [5, 6, 12, 29])
def test_a_gap_is_clear_below_a_probability_of_a_thousandth(m):
    """On a line, the ratio of two successive distances exceeds t with the probability ``t^-m`` (section 11)."""
    limit = 1000.0 ** (1.0 / m)
    for ratio, kept in ((1.02 * limit, m), (0.98 * limit, 30)):
        distances = np.where(np.arange(30) < m, 1.0, ratio)[None]
        assert group_neighbors(distances).tolist() == [kept]


def test_the_least_likely_of_two_gaps_counts():
    """A ratio of 4 after six neighbours has the probability 4^-6, and a ratio of 1.8 after 15 only 1.8^-15."""
    distances = np.repeat([1.0, 4.0, 7.2], [6, 9, 15])[None]
    assert group_neighbors(distances).tolist() == [15]


def test_what_is_no_group():
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((10, 3)), rng.normal(size=(500, 3))])  # ten copies: nine neighbours at distance 0
    assert (group_neighbors(knn(X, 30).distances)[:10] == 30).all()
    copies = np.repeat(rng.normal(size=(60, 3)), 10, axis=0)
    assert (group_neighbors(knn(copies, 30).distances) > 9).all()
    assert (group_neighbors(np.zeros((5, 30))) == 30).all()
    few = np.array([[1.0, 1.1, 1.2, 1.3, 1e6][:LEAST_GROUP]])
    assert group_neighbors(few).tolist() == [LEAST_GROUP]


def test_gaps_do_not_depend_on_units():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 4)), rng.normal(size=(14, 4)) + 90.0])
    distances = knn(X, 30).distances
    for factor in (2.0**-200, 2.0**200):
        np.testing.assert_array_equal(group_neighbors(factor * distances), group_neighbors(distances))


def test_means_of_repeated_rows_are_means_of_what_is_kept():
    table = np.sort(np.random.default_rng(0).uniform(size=(50, 30)), axis=1)
    kept = np.random.default_rng(1).choice([5, 6, 10, 15, 30], 50).astype(np.int32)  # divisors of 30
    expected = [row[:m].mean() for row, m in zip(table, kept, strict=True)]
    np.testing.assert_allclose(repeated(table, kept).mean(axis=1), expected, rtol=1e-12)
    out = repeated(table, np.full(50, 13, np.int32))
    for row, entries in zip(table, out, strict=True):
        values, counts = np.unique(entries, return_counts=True)
        np.testing.assert_array_equal(values, row[:13])
        assert set(counts) == {2, 3}
    assert repeated(table, None) is table
    assert repeated(table, np.full(50, 30, np.int32)) is table  # rows that keep all are not copied
    # What is left over is spread evenly: the nearest do not count more.
    assert abs(out.mean() / table[:, :13].mean() - 1.0) < 0.01


def test_small_groups_have_a_concentration_of_their_own():
    """A sparse group of 14: with k = 30 its radius would reach to the other groups."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(150, 5)), 2.0 * rng.normal(size=(14, 5)) + 100.0])
    options = {"density_weight": 1.0, "density_neighbors": 30, "perplexity": 10.0, "max_iter": 20, "random_state": 0}
    own, reaching = (
        DRSNE(objective=Objective(small_groups=flag), **options).fit(X).input_concentration_ for flag in (True, False)
    )
    assert np.median(own[150:]) - np.median(own[:150]) > -1.5
    assert np.median(reaching[150:]) - np.median(reaching[:150]) < -3.0


def test_directed_pairs_are_those_of_all_neighbours_whatever_the_groups():
    """Radii over small groups change the density term, and not the pairs of the neighbour term."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 4)), 0.3 * rng.normal(size=(9, 4)) + 90.0])
    few = {"max_iter": 5, "perplexity": 10, "density_neighbors": 12, "random_state": 0, "density_weight": 0}
    with_groups, without = (
        DRSNE(objective=Objective(support="directed", small_groups=flag), **few).fit(X) for flag in (True, False)
    )
    assert with_groups.kl_divergence_ == without.kl_divergence_
    np.testing.assert_array_equal(with_groups.embedding_, without.embedding_)
