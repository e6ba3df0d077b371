"""The contrast: its rule, the dimension of the data, and the parameter of the estimators."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from covering import in_one_test
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from drsne import DRSNE, Objective, density_path, presets
from drsne.neighbors.search import knn
from drsne.terms.contrast import automatic, local_dimension, of_scales
from drsne.terms.profile import Smoothing

EXACT = Smoothing(relative=0.0)
QUICK = {"perplexity": 8.0, "density_neighbors": 10, "max_iter": 60, "random_state": 0}


def sphere(n, d, seed):
    X = np.random.default_rng(seed).normal(size=(n, d + 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def groups(n=240, d=20, spread=0.15, seed=0):
    """Groups of Gaussians in many dimensions, whose radii differ little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(6, size=n)
    return 4 * rng.normal(size=(6, d))[y] + rng.normal(size=(n, d)) * np.exp(spread * rng.normal(size=6))[y, None]


@in_one_test(
    ("spread", "dimension", "expected"),
    [
        (2.0, 20.0, 1.0),
        (0.8, 20.0, 1.0),
        (0.5, 20.0, 1.6),
        (0.4, 20.0, 2.0),
        (0.25, 20.0, 2.0),
        (0.25, 2.0, 2.0),
        (0.23, 20.0, 2.0 * (0.25 / 0.23) ** 3),
        (0.14, 20.0, 5.0),
        (0.14, 6.0, 3.0),
        (0.14, 3.0, 2.0),  # the dimension only limits what exceeds 2
        (0.01, 9.0, 4.5),
        (0.01, np.nan, 2.0),
    ],
)
def test_the_rule(spread, dimension, expected):
    """The log radii of the map have a standard deviation of .8 or .7, with limits of 1, 2 and D / 2."""
    radii = np.exp(np.tile([-spread, spread], 500))
    for unit in (1.0, 1e-3, 12345.678):
        assert automatic(unit * radii, dimension, EXACT) == pytest.approx(expected, rel=0.01)


def test_the_rule_has_no_jumps():
    for dimension in (1.0, 4.0, 12.0, 40.0):
        spreads = np.geomspace(0.003, 3.0, 400)
        found = [automatic(np.exp([-s, s] * 50), dimension, EXACT) for s in spreads]
        assert (np.diff(found) <= 0).all()  # the less the radii differ, the higher the contrast
        assert max(high / low for high, low in pairwise(found)) < 1.07
    assert automatic(np.ones(10), 30.0, Smoothing()) == 15.0
    assert automatic(np.ones(10), np.nan, Smoothing()) == 2.0


def test_the_kernel_provides_half_of_what_exceeds_two():
    assert [of_scales(contrast) for contrast in (0.5, 1.0, 2.0, 3.0, 8.0)] == [0.5, 1.0, 2.0, 2.5, 5.0]
    model = DRSNE(contrast=5.0, **QUICK).fit(groups())
    radii = knn(groups(), 10)[1].mean(axis=1)
    low, high = np.quantile(radii, (0.02, 0.98))
    inside = (radii > low) & (radii < high)  # the scales are winsorised
    slope = np.polyfit(np.log(radii[inside]), np.log(model.scales_[inside]), 1)[0]
    assert slope == pytest.approx(3.5, rel=0.02)
    assert model.contrast_ == 5.0


@pytest.mark.parametrize(("d", "k", "n"), [(1, 10, 400), (5, 30, 3000)])
def test_the_dimension_is_found_within_its_error(d, k, n):
    """On spheres, which have no edges, the estimates scatter as their error says. They are a little too small."""
    found = [local_dimension(knn(sphere(n, d, seed), k).distances) for seed in range(8)]
    values, errors = np.array(found).T
    assert values.mean() == pytest.approx(d, rel=0.1)
    assert 0.3 < values.std(ddof=1) / errors.mean() < 2.5


def test_the_dimension_of_awkward_neighbourhoods():
    X = np.random.default_rng(0).uniform(size=(600, 3))
    D = knn(X, 20).distances
    plain = local_dimension(D)
    assert local_dimension(1e-4 * D) == pytest.approx(plain)
    doubled = np.vstack([X, X])
    assert local_dimension(knn(doubled, 20).distances).value == pytest.approx(plain.value, rel=0.15)
    assert np.isnan(local_dimension(np.zeros((50, 5)))).all()
    assert np.isnan(local_dimension(np.ones((50, 5)))).all()
    assert np.isnan(local_dimension(D[:, :1])).all()
    far = np.hstack([D[:, :10], 100 + D[:, 10:]])  # what lies behind a gap does not count
    assert local_dimension(far, np.full(600, 10)).value == pytest.approx(local_dimension(D[:, :10]).value)
    many = np.tile(D, (30, 1))  # a regular sample of the rows
    assert local_dimension(many).value == pytest.approx(plain.value, rel=0.02)


@pytest.mark.filterwarnings("ignore:perplexity=8 is out of reach:UserWarning")
def test_distances_that_are_almost_equal_are_not_drawn_as_density():
    """Differences that are rounding errors must not become visible."""
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(120, 120)))[0]  # all distances are the root of 2
    for X in (R, R.astype(np.float32), R.astype(np.float32) / np.float32(3), np.eye(120)):
        model = DRSNE(**QUICK).fit(X)
        assert model.contrast_ <= 20.0
        assert model.scales_.std() < 1e-3


@pytest.mark.filterwarnings("ignore:perplexity=8 is out of reach:UserWarning")
def test_weights_of_rows_do_not_change_the_dimension():
    X = sphere(600, 8, 0)
    plain = DRSNE(**QUICK).fit(X)
    for weights in (np.full(600, 2.0), np.full(600, 40.0)):
        model = DRSNE(**QUICK).fit(X, sample_weight=weights)
        assert model.intrinsic_dimension_ == pytest.approx(plain.intrinsic_dimension_, rel=0.02)
        assert model.contrast_ == pytest.approx(plain.contrast_, rel=0.15)  # radii are over fewer rows
    uneven = DRSNE(**QUICK).fit(X, sample_weight=np.exp(np.random.default_rng(0).normal(size=600)))
    assert uneven.intrinsic_dimension_ == pytest.approx(plain.intrinsic_dimension_, rel=0.15)
    assert uneven.intrinsic_dimension_error_ > plain.intrinsic_dimension_error_


def test_the_dimension_does_not_depend_on_a_pattern_in_the_order_of_rows():
    """Of many rows, a sample is used, which must not be a regular one."""
    parts = [knn(sphere(9000, d, d), 10).distances for d in (2, 8)]
    turns = np.empty((18_000, 10))
    turns[::2], turns[1::2] = parts
    stacked = local_dimension(np.vstack(parts)).value
    assert local_dimension(turns).value == pytest.approx(stacked, rel=0.05)


def test_the_dimension_of_tensors():
    torch = pytest.importorskip("torch")
    D = knn(np.random.default_rng(0).uniform(size=(300, 4)), 12).distances
    kept = np.full(300, 9)
    assert local_dimension(torch.as_tensor(D), torch.as_tensor(kept)) == local_dimension(D, kept)


def test_the_contrast_is_the_same_for_every_kind_of_input():
    X = groups()
    usual = DRSNE(**QUICK).fit(X)
    assert 2.0 < usual.contrast_ <= max(2.0, usual.intrinsic_dimension_ / 2)
    assert usual.intrinsic_dimension_error_ > 0
    others = {
        "threads": DRSNE(n_jobs=2, **QUICK).fit(X),
        "units": DRSNE(**QUICK).fit(1e6 * X),
        "sparse": DRSNE(**QUICK).fit(sp.csr_matrix(X)),
        "distances": DRSNE(metric="precomputed", **QUICK).fit(cdist(X, X)),
        "graph": DRSNE(neighbors=tuple(knn(X, 40)), **QUICK).fit(X),
        "metric": DRSNE(metric=lambda a, b: float(np.linalg.norm(a - b)), **QUICK).fit(X),
        "weights": DRSNE(**QUICK).fit(X, sample_weight=np.where(np.arange(len(X)) == 0, 1.0 + 1e-9, 1.0)),
        "three dimensions": DRSNE(n_components=3, **QUICK).fit(X),
    }
    for name, model in others.items():
        assert model.contrast_ == pytest.approx(usual.contrast_, rel=0.011), name
    np.testing.assert_array_equal(others["threads"].embedding_, usual.embedding_)


@pytest.mark.filterwarnings("ignore:perplexity=8 is out of reach:UserWarning")
def test_data_that_are_hard_for_the_rule():
    rng = np.random.default_rng(0)
    few = DRSNE(perplexity=1.0, density_neighbors=2, max_iter=20, random_state=0).fit(rng.normal(size=(4, 3)))
    assert few.contrast_ >= 1.0
    one = DRSNE(perplexity=2.0, density_neighbors=1, max_iter=20, random_state=0).fit(rng.normal(size=(30, 9)))
    assert 1.0 <= one.contrast_ <= 2.0  # one neighbour says nothing about the dimension
    assert np.isnan(one.intrinsic_dimension_)
    equal = DRSNE(**QUICK).fit(np.ones((60, 3)))
    assert equal.contrast_ == 2.0
    copies = DRSNE(**QUICK).fit(np.repeat(groups(60), 4, axis=0))
    assert np.isfinite(copies.embedding_).all()


def test_contrasts_that_do_not_suit_other_parameters():
    for others in ({"objective": Objective(input_exponent=2.0)}, {"density_weight": 71.0}):
        with pytest.raises(ValueError, match=f"contrast must be 'auto' .*{next(iter(others))}"):
            DRSNE(contrast=2.0, **others).fit(groups())
    with pytest.raises(TypeError, match="input_exponent must be"):
        Objective(input_exponent="auto")


def test_a_number_is_what_the_objective_would_have():
    X = groups()
    given = DRSNE(contrast=3.0, **QUICK).fit(X)
    detailed = DRSNE(objective=Objective(embedding_weight=0.7, input_exponent=3.0), **QUICK).fit(X)
    assert given.contrast_ == detailed.contrast_ == 3.0
    np.testing.assert_array_equal(given.embedding_, detailed.embedding_)
    both = DRSNE(contrast=3.0, objective=Objective(embedding_weight=0.7), **QUICK).fit(X)
    np.testing.assert_array_equal(given.embedding_, both.embedding_)
    plain = DRSNE(contrast=1.0, **QUICK).fit(X)  # the concentration of the data is the same at every contrast
    np.testing.assert_allclose(given.input_concentration_, plain.input_concentration_, atol=1e-6)
    halved = DRSNE(contrast=3.0, density_exponent=0.5, density_weight=4.0, **QUICK).fit(X)
    assert halved.contrast_ == 3.0
    auto = DRSNE(objective=Objective(embedding_weight=0.7), **QUICK).fit(X)
    np.testing.assert_array_equal(auto.embedding_, DRSNE(**QUICK).fit(X).embedding_)


def test_a_higher_contrast_shows_more_density():
    X, radii = groups(400), knn(groups(400), 20)[1].mean(axis=1)
    options = {"perplexity": 15.0, "density_neighbors": 20, "random_state": 0}
    shown = []
    for contrast in (1.0, 3.0, "auto"):
        Y = DRSNE(contrast=contrast, **options).fit_transform(X)
        shown.append(spearmanr(knn(Y, 20)[1].mean(axis=1), radii)[0])
    assert shown[0] < shown[1] - 0.02
    assert shown[2] > 0.9


def test_the_method_of_the_paper_has_no_contrast():
    X = groups()
    for model in (
        DRSNE(neighborhoods="input", kernel="fixed", **QUICK),
        DRSNE(objective=Objective(kernel="fixed"), **QUICK),
        DRSNE(density_weight=100.0, **QUICK),
        DRSNE(**presets.paper(len(X), 0.01, 10, max_iter=60), random_state=0),
    ):
        assert model.fit(X).contrast_ == 1.0
    assert DRSNE(neighborhoods="input", kernel="fixed", contrast=2.5, **QUICK).fit(X).contrast_ == 2.5
    assert DRSNE(neighborhoods="input", **QUICK).fit(X).contrast_ > 2.0  # the adaptive kernel


def test_the_default_of_the_detector_has_a_contrast_of_at_most_two():
    from drsne import DRSNEDetector

    X = groups()
    limited = DRSNEDetector(random_state=0).fit(X).estimator_
    assert limited.contrast_ == 2.0
    np.testing.assert_array_equal(limited.embedding_, DRSNE(contrast=2.0, random_state=0).fit_transform(X))
    wide = np.vstack([X[:120], 100 * X[120:]])  # a contrast below the limit does not change
    usual = DRSNE(random_state=0).fit(wide)
    assert usual.contrast_ < 2.0
    np.testing.assert_array_equal(DRSNEDetector(random_state=0).fit(wide).embedding_, usual.embedding_)


def test_novelty_does_not_depend_on_the_contrast():
    X = groups()
    low, high = (DRSNE(contrast=contrast, **QUICK).fit(X[:200]) for contrast in (1.0, 6.0))
    np.testing.assert_array_equal(low.novelty(X[200:]), high.novelty(X[200:]))


def test_a_path_has_the_contrast_of_its_maps():
    X = groups()
    given = density_path(X, [0.0, 1.0, 100.0], contrast=3.0, **QUICK)
    assert given.contrasts.tolist() == [3.0, 3.0, 1.0]
    np.testing.assert_array_equal(given.embeddings[1], DRSNE(contrast=3.0, **QUICK).fit(X).embedding_)


def test_saved_models_and_updates_keep_the_contrast(tmp_path):
    import drsne

    X = groups()
    model = DRSNE(contrast=4.0, **QUICK).fit(X)
    model.save(tmp_path / "model.drsne")
    loaded = drsne.load(tmp_path / "model.drsne")
    assert (loaded.contrast, loaded.contrast_) == (4.0, 4.0)
    assert loaded.intrinsic_dimension_ == model.intrinsic_dimension_
    np.testing.assert_array_equal(loaded.transform(X[:5] + 0.01), model.transform(X[:5] + 0.01))
