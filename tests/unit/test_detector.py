"""DRSNEDetector and the reliability of places."""

from __future__ import annotations

import numpy as np
import pytest
from covering import in_one_test
from sklearn.metrics import roc_auc_score

from drsne import DRSNE, DenSNE, DRSNEDetector, anomaly, metrics

SHORT = {"perplexity": 10, "density_neighbors": 10, "max_iter": 100, "random_state": 0}
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 1, (140, 4)), RNG.uniform(-15, 15, (10, 4))])
OUTLIER = np.arange(150) >= 140


@in_one_test("name", anomaly.detectors())
def test_every_detector_finds_outliers_among_old_and_new_rows(name):
    detector = DRSNEDetector(DRSNE(**SHORT), detector=name, contamination=10 / 150).fit(X)
    scores = detector.score_samples(X)
    assert np.array_equal(scores, detector.training_scores_)
    assert roc_auc_score(OUTLIER, -scores) > 0.9
    assert (detector.predict(X) == -1).sum() == 10
    assert np.array_equal(detector.fit_predict(X), detector.predict(X))
    rng = np.random.default_rng(1)
    new = np.concatenate([rng.normal(0, 1, (30, 4)), rng.uniform(20, 30, (10, 4))])
    of_new = detector.decision_function(new)
    assert of_new[:30].mean() > of_new[30:].mean()
    np.testing.assert_allclose(of_new + detector.offset_, detector.score_samples(new))
    one_by_one = [detector.score_samples(new[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(one_by_one, detector.score_samples(new)[:5])


def test_the_default_map_and_other_maps():
    default = DRSNEDetector(random_state=0).fit(X)
    assert isinstance(default.estimator_, DRSNE)
    assert default.estimator_.random_state == 0
    assert roc_auc_score(OUTLIER, -default.training_scores_) > 0.9
    other = DRSNEDetector(DenSNE(perplexity=10, max_iter=100), random_state=1).fit(X)
    assert isinstance(other.estimator_, DenSNE)
    assert other.score_samples(X[:3] + 0.1).shape == (3,)


@in_one_test(
    ("settings", "message"),
    [({"contamination": 0.0}, "above 0"), ({"contamination": 0.6}, "at most 0.5"), ({"contamination": "x"}, "auto"),
     ({"detector": "none"}, "detector")],
)  # fmt: skip
def test_wrong_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        DRSNEDetector(DRSNE(**SHORT), **settings).fit(X)


def test_rows_between_groups_and_in_a_wrong_group_are_less_reliable():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (80, 5)), rng.normal(8, 1, (80, 5)), np.full((1, 5), 4.0)])
    model = DRSNE(perplexity=15, density_neighbors=15, random_state=0).fit(rows)
    found = metrics.reliability(model)
    assert found.shape == (161,)
    assert ((found > 0) & (found <= 1)).all()
    assert np.median(found[:160]) > 0.3
    assert found[160] < np.median(found[:160])
    some = metrics.reliability(model, max_samples=20, random_state=0)
    listed = ~np.isnan(some)
    assert listed.sum() == 20
    np.testing.assert_array_equal(some[listed], found[listed])
    model._reference.places[3] = model.embedding_[3] = model.embedding_[100]  # moved into the other group
    found = metrics.reliability(model)[:160]
    assert found[3] == found.min() < 0.3


def test_wrong_models():
    from sklearn.decomposition import PCA

    with pytest.raises(ValueError, match="not fitted"):
        metrics.reliability(DRSNE())
    with pytest.raises(TypeError, match="estimator must be a DRSNE"):
        DRSNEDetector(PCA()).fit(X)
    model = DRSNE(metric="precomputed", **SHORT).fit(np.abs(X[:, :1] - X[:, 0]))
    with pytest.raises(ValueError, match="keeps its training data"):
        metrics.reliability(model)
