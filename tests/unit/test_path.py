"""Paths of lambda: the maps, their scores, the choice among them, and density_weight="auto"."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from covering import in_one_test
from sklearn.manifold import trustworthiness
from sklearn.metrics import pairwise_distances

import drsne
from drsne import DRSNE, DensityPath, Objective, density_path, metrics
from drsne.estimators.path import AUTO_WEIGHTS, own_fits

QUICK = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 400, "random_state": 0}
SHORT = {**QUICK, "max_iter": 60}  # for what does not depend on the maps


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(4.0 * g, 0.25 * 4.0**g, (40, 6)) for g in range(3)])


@pytest.fixture(scope="module")
def path(X):
    return density_path(X, [0, 1, 5, 40], **QUICK)


@pytest.fixture(scope="module")
def auto(X):
    return DRSNE(density_weight="auto", max_trustworthiness_drop=0.05, **QUICK).fit(X)


def made(trust, cc, weights=None, baseline=None):
    m = len(trust)
    return DensityPath(
        weights=np.arange(m, dtype=float) if weights is None else np.array(weights),
        embeddings=[np.zeros((5, 2))] * m,
        metrics={"trustworthiness": np.array(trust), "concentration_correlation": np.array(cc), "stress": np.array(cc)},
        kl_divergence=np.zeros(m),
        concentration_loss=np.zeros(m),
        baseline=trust[0] if baseline is None else baseline,
    )


def test_maps_and_scores(X, path):
    assert path.weights.tolist() == [0, 1, 5, 40]
    assert len(path) == len(path.embeddings) == 4
    assert set(path.metrics) == set(metrics.evaluate(X, path.embeddings[0]))
    for at, Y in enumerate(path.embeddings):
        assert Y.shape == (120, 2)
        expected = metrics.evaluate(X, Y)
        for name, values in path.metrics.items():
            assert values[at] == pytest.approx(expected[name], abs=1e-12), name
    assert path.baseline == path.metrics["trustworthiness"][0]
    assert np.all(np.diff(path.metrics["concentration_correlation"]) > 0)
    assert np.all(np.diff(path.concentration_loss) < 0)
    assert np.all(np.diff(path.kl_divergence) > 0)


def test_each_map_starts_from_the_last(X, path):
    """Neighbouring maps are near each other without any alignment; with the adaptive kernel, from the first fit on."""
    fixed = density_path(X, [0, 1, 5, 40], kernel="fixed", **QUICK).embeddings
    adaptive = path.embeddings[1:]
    for before, after in [*pairwise(fixed), *pairwise(adaptive)]:
        moved = np.median(np.linalg.norm(after - before, axis=1))
        assert moved < 0.2 * np.ptp(before, axis=0).max()
    assert own_fits(Objective(), [0.05, 0.1, 1.0, 40.0]) == [0.05, 0.1]  # the kernel adapts no further above 0.1


def test_a_path_starts_from_the_fit_at_zero_even_if_that_is_not_on_it(X, path):
    plain = DRSNE(density_weight=0, **QUICK).fit(X)
    np.testing.assert_array_equal(path.embeddings[0], plain.embedding_)
    assert path.kl_divergence[0] == plain.kl_divergence_
    assert path.baseline == pytest.approx(drsne.metrics.trustworthiness(X, plain.embedding_), abs=1e-12)
    some = density_path(X, [5.0], **QUICK)
    assert some.weights.tolist() == [5.0]
    assert some.baseline == path.baseline


def test_a_step_is_as_good_as_a_fit(digits):
    """Above 70, the maps come nearer to the profile of the data. Those up to 70 do not depend on the maps above."""
    X, options = digits[:500], {"perplexity": 15.0, "density_neighbors": 15, "max_iter": 400, "random_state": 0}
    weights = [0, 4, 9, 35, 70, 140, 280]
    path = density_path(X, weights, **options)
    cc = [metrics.concentration_correlation(X, Y, 15) for Y in path.embeddings]  # over the neighbours of the term
    assert cc[4] < cc[5] < cc[6]
    losses = path.kl_divergence + path.weights * path.concentration_loss
    for place in (2, 5):
        model = DRSNE(density_weight=weights[place], **options).fit(X)
        assert losses[place] < 1.06 * (model.kl_divergence_ + weights[place] * model.concentration_loss_)
    assert cc[5] == pytest.approx(metrics.concentration_correlation(X, model.embedding_, 15), abs=0.015)
    upto = density_path(X, weights[:5], **options)
    for one, two in zip(upto.embeddings, path.embeddings, strict=False):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(upto.concentration_loss, path.concentration_loss[:5])


def test_the_first_weight_above_70_is_a_fit_of_its_own(X):
    path = density_path(X, [0, 100, 150], **QUICK)
    model = DRSNE(density_weight=100, **QUICK).fit(X)
    np.testing.assert_array_equal(path.embeddings[1], model.embedding_)
    assert path.concentration_loss[1] == model.concentration_loss_
    assert path.contrasts.tolist() == [DRSNE(**SHORT).fit(X).contrast_, 1.0, 1.0]
    assert model.contrast_ == 1.0


def test_the_kernel_stays_the_same_above_70():
    X = np.random.default_rng(0).normal(size=(150, 10))  # radii that differ little, so that the contrast is above 1
    few, many = (DRSNE(density_weight=weight, **QUICK).fit(X) for weight in (70.0, 71.0))
    assert few.contrast_ > many.contrast_ == 1.0
    np.testing.assert_array_equal(few.scales_, many.scales_)


def test_progress_counts_the_iterations_of_a_path(X, monkeypatch):
    announced = []
    progress = DRSNE._progress
    monkeypatch.setattr(DRSNE, "_progress", lambda self, n: announced.append(n) or progress(self, n))
    for weights in ([140], [0.05, 100, 150], [0, 1, 70, 70.5]):
        seen = []
        density_path(X, weights, callbacks=[lambda t, Y, losses, seen=seen: seen.append(t)], **SHORT)
        assert max(seen) == announced[-1]


def test_settings_of_the_user_are_used_at_every_weight(X):
    for options in ({"neighborhoods": "input"}, {"objective": drsne.Objective(embedding_weight=0.7)}):
        model = DRSNE(density_weight="auto", **options)
        assert model._objective(70.0) == model._objective(71.0) == model._objective(1.0)
    path = density_path(X, [0, 70, 140], **QUICK, **options)
    assert path.concentration_loss[2] < path.concentration_loss[1]


@pytest.mark.parametrize("chosen", [0.0, 5.0])
def test_fitted_attributes_are_those_of_the_chosen_weight(digits, chosen, monkeypatch):
    from drsne.backends.numba.threads import Workers
    from drsne.estimators import path
    from drsne.preparation import Settings, prepared

    X, options = digits[:400], {"perplexity": 15.0, "density_neighbors": 15, "max_iter": 200, "random_state": 0}
    monkeypatch.setattr(path, "AUTO_WEIGHTS", (0.0, 5.0, 70.0))
    monkeypatch.setattr(path, "automatic", lambda maps, drop: list(maps.weights).index(chosen))
    auto = DRSNE(density_weight="auto", **options).fit(X)
    fitted = DRSNE(density_weight=chosen, **options).fit(X)
    assert auto.density_weight_ == fitted.density_weight_ == chosen
    assert auto.contrast_ == fitted.contrast_
    assert auto.contrast_ > 1.0
    np.testing.assert_array_equal(auto.scales_, fitted.scales_)
    np.testing.assert_array_equal(auto.input_concentration_, fitted.input_concentration_)
    with Workers(1) as workers:
        objective = fitted._objective(chosen)
        problem = prepared(Settings.of(fitted.get_params()), X, [objective], chosen, workers)[objective]
        evaluation = problem.evaluate(auto.embedding_, losses=True)
        assert evaluation.losses["concentration"] == pytest.approx(auto.concentration_loss_, rel=1e-6)
        assert evaluation.losses["kl"] == pytest.approx(auto.kl_divergence_, rel=1e-6)
        np.testing.assert_allclose(auto.concentration_, problem.of_points(auto.embedding_)["concentration"], atol=1e-6)


def test_the_concentration_of_the_data_and_the_contrasts_are_those_of_a_fit(X, path):
    model = DRSNE(**SHORT).fit(X)
    np.testing.assert_array_equal(path.input_concentration, model.input_concentration_)
    assert path.contrasts.tolist() == [model.contrast_] * 4
    assert path.stopped_by is None
    without_zero = density_path(X, [1], **SHORT)
    np.testing.assert_array_equal(without_zero.input_concentration, model.input_concentration_)
    assert without_zero.contrasts.tolist() == [model.contrast_]


def test_same_seed_same_path_at_any_number_of_threads(X, path):
    again = density_path(X, [0, 1, 5, 40], n_jobs=3, **QUICK)
    for one, two in zip(path.embeddings, again.embeddings, strict=True):
        np.testing.assert_array_equal(one, two)
    for name, values in path.metrics.items():
        np.testing.assert_array_equal(again.metrics[name], values, err_msg=name)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_scores_of_many_blocks_are_the_same_at_any_number_of_threads(digits, metric):
    """More rows than a block has, so that each score is shared among threads."""
    from drsne.backends.numba.threads import Workers
    from drsne.metrics import evaluation
    from drsne.metrics._inputs import _MAX_BLOCK

    X, maps, found = digits[:700], [digits[:700, 10:12], digits[:700, 20:22]], []
    assert len(X) > 2 * _MAX_BLOCK
    for n_jobs in (1, 3):
        with Workers(n_jobs) as workers:
            found.append(evaluation.of_maps(X, maps, np.arange(700), workers, n_pairwise=600, metric=metric))
    for name, values in found[0].items():
        np.testing.assert_array_equal(found[1][name], values, err_msg=name)
    distances = pairwise_distances(X, metric=metric)
    for m, Y in enumerate(maps):
        expected = trustworthiness(distances, Y, n_neighbors=10, metric="precomputed")
        assert found[0]["trustworthiness"][m] == pytest.approx(expected, abs=1e-12)


def test_a_metric_of_the_users_is_called_from_one_thread(X):
    import threading

    seen = set()

    def metric(a, b):
        seen.add(threading.current_thread().name)
        return float(np.abs(a - b).sum())

    density_path(X, [0, 1], metric=metric, n_jobs=3, **QUICK | {"max_iter": 50})
    assert len(seen) == 1


def test_select_is_the_constrained_choice():
    path = made([0.98, 0.99, 0.975, 0.95], [0.1, 0.5, 0.8, 0.9])
    assert path.select() == 3
    assert path.select(min_trustworthiness=0.97) == 2
    assert path.select(max_trustworthiness_drop=0.01) == 2
    assert path.select(max_trustworthiness_drop=0.001) == 1
    assert path.select(min_trustworthiness=0.985, max_trustworthiness_drop=0.5) == 1
    assert path.select(criterion="trustworthiness") == 1
    assert path.select(criterion="stress") == 0  # smaller is better
    assert made([0.9, 0.9], [np.nan, 0.2]).select() == 1
    assert made([0.9, 0.9], [np.nan, np.nan]).select() == 0
    assert made([0.9, 0.9], [0.3, 0.3]).select() == 0
    assert made([0.9, 0.8], [0.3, np.nan], baseline=0.8).select(max_trustworthiness_drop=0.0) == 0


def test_select_says_what_can_be_reached():
    path = made([0.95, 0.9], [0.1, 0.5], weights=[2.0, 3.0], baseline=0.98)
    with pytest.raises(ValueError, match=r"trustworthiness.*0\.9700.*0\.9500.*density_weight=2"):
        path.select(max_trustworthiness_drop=0.01)
    with pytest.raises(ValueError, match=r"criterion must be one of .*; got 'beauty'"):
        path.select(criterion="beauty")
    with pytest.raises(TypeError, match="min_trustworthiness must be a finite number"):
        path.select(min_trustworthiness="high")


def test_frame_and_plot(X, path):
    frame = path.to_frame()
    assert frame["density_weight"].tolist() == [0, 1, 5, 40]
    assert frame["contrast"].tolist() == path.contrasts.tolist()
    assert set(path.metrics) < set(frame.columns)
    figure = path.plot(np.repeat([0, 1, 2], 40), criterion="density")
    titles = [axis.get_title() for sub in figure.subfigs for axis in sub.axes]
    said = [f", contrast {contrast:.3g}" if w else "" for w, contrast in zip(path.weights, path.contrasts, strict=True)]
    assert [f"lambda = {w:g}{more}" for w, more in zip(path.weights, said, strict=True)] == titles[1:]
    solid = density_path(X, [0, 3], **SHORT | {"n_components": 3})
    assert len(solid.plot(chosen=1).axes) == 1
    text = repr(solid)
    assert "2 maps of 120 samples in 3 dimensions" in text
    assert "0, 3" in text
    assert len(text.splitlines()) == 1


@in_one_test(
    ("weights", "kind", "message"),
    [
        ([3, 1], ValueError, r"weights must .*ascending.*got \[3, 1\]"),
        ([], ValueError, "weights must .*got none.*None"),
        ([0, np.nan], ValueError, r"weights must .*got \[0, nan\]"),
        ((w for w in (2, 1)), ValueError, r"weights must .*got \[2, 1\].*sorted"),
        ({1, 2}, TypeError, r"weights must .*got \{1, 2\}"),
        ("12", TypeError, "weights must .*got '12'"),
        (["a"], TypeError, r"weights must .*got \['a'\]"),
    ],
)
def test_weights_are_checked(X, weights, kind, message):
    with pytest.raises(kind, match=message):
        density_path(X, weights, **QUICK)


def test_what_a_path_cannot_take(X):
    with pytest.raises(TypeError, match=r"density_weight=3 .*density_path.*Pass weights"):
        density_path(X, density_weight=3)
    schedule = drsne.presets.paper(120, 0.01, 10)["schedule"]
    with pytest.raises(TypeError, match=r"schedule=.*density_path.*Pass max_iter"):
        density_path(X, schedule=schedule)
    with pytest.raises(TypeError, match=r"max_trustworthiness_drop=0\.1 .*density_path.*select"):
        density_path(X, max_trustworthiness_drop=0.1)
    with pytest.raises(ValueError, match=r"schedule must be None.*density_weight='auto'"):
        DRSNE(density_weight="auto", schedule=schedule).fit(X)
    seen = []

    def none(a, b):
        raise ValueError("no distance")

    with pytest.raises(ValueError, match=r"does not give them .* Pass a number as density_weight"):
        density_path(X, metric=none, callbacks=lambda *_: seen.append(1), **QUICK)
    assert seen == []  # before anything was computed
    with pytest.warns(UserWarning, match="Lowered n_iter_exaggeration from 90 to 43"):
        density_path(X, [0, 1], **QUICK | {"n_iter_exaggeration": 90, "max_iter": 100})
    graph = drsne.neighbors.search.knn(X, 30)
    with pytest.raises(ValueError, match="sparse graph with metric='precomputed'"):
        density_path(sparse_graph(graph, 120), metric="precomputed", **QUICK)


def sparse_graph(graph, n):
    from scipy.sparse import csr_matrix

    k = graph.indices.shape[1]
    return csr_matrix((graph.distances.ravel(), graph.indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
def test_scores_are_in_the_metric_of_the_fit(X, metric):
    D = pairwise_distances(X, metric="manhattan" if metric == "precomputed" else metric)
    path = density_path(D if metric == "precomputed" else X, [0, 2], metric=metric, **SHORT)
    for Y, value in zip(path.embeddings, path.metrics["trustworthiness"], strict=True):
        assert value == pytest.approx(trustworthiness(D, Y, n_neighbors=10, metric="precomputed"), abs=1e-9)


def test_callbacks_count_on_and_can_stop(X):
    seen = []

    def watch(iteration, embedding, losses):
        seen.append(iteration)
        return iteration == 450

    path = density_path(X, [0, 1, 2, 3, 4, 5], callbacks=watch, kernel="fixed", **QUICK)
    assert seen == sorted(set(seen))
    assert seen[-1] == 450
    assert path.stopped_by == "callback"
    assert 1 < len(path) < 6
    assert path.weights.tolist() == list(range(len(path)))


def test_interrupted_paths_keep_their_maps(X):
    def stop(iteration, embedding, losses):
        if iteration == 450:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match=r"Interrupted after 4[45].? iterations of a path.*; the path ends at \d"):
        path = density_path(X, [0, 1, 2, 3, 4, 5], callbacks=stop, kernel="fixed", **QUICK)
    assert path.stopped_by == "interrupt"
    assert 1 < len(path) < 6
    assert len(path.contrasts) == len(path)
    whole = density_path(X, [0, 1, 2, 3, 4, 5], kernel="fixed", **QUICK)
    assert whole.stopped_by is None
    for one, two in zip(path.embeddings, whole.embeddings, strict=False):
        np.testing.assert_array_equal(one, two)  # a step that did not end leaves no map
    assert all(np.isfinite(Y).all() for Y in path.embeddings)


def test_auto(X, auto):
    path = auto.path_
    assert path.weights.tolist() == list(AUTO_WEIGHTS)
    chosen = path.select(max_trustworthiness_drop=0.05, max_continuity_drop=0.05, criterion="density")
    assert auto.density_weight_ == path.weights[chosen] > 0
    np.testing.assert_array_equal(auto.embedding_, path.embeddings[chosen])
    assert metrics.trustworthiness(X, auto.embedding_) >= path.baseline - 0.05
    assert auto.kl_divergence_ == path.kl_divergence[chosen]
    assert auto.concentration_loss_ == path.concentration_loss[chosen]
    assert auto.history_["iteration"][-1] == auto.n_iter_
    assert np.all(np.diff(auto.history_["iteration"]) > 0)
    log = np.corrcoef(auto.input_concentration_, auto.concentration_)[0, 1]
    assert log == pytest.approx(path.metrics["concentration_correlation"][chosen], abs=0.1)


def test_auto_keeps_continuity_too(auto):
    path = auto.path_
    chosen = path.select(max_trustworthiness_drop=0.05, max_continuity_drop=0.0, criterion="density")
    assert path.metrics["continuity"][chosen] >= path.baseline_continuity
    torn = replace(path, metrics={**path.metrics, "continuity": np.zeros(len(path))})
    with pytest.raises(ValueError, match="continuity"):
        torn.select(max_continuity_drop=0.01)


def test_auto_returns_plain_tsne_with_a_warning_if_nothing_else_qualifies(X, monkeypatch):
    from drsne.estimators import path

    monkeypatch.setattr(path, "AUTO_WEIGHTS", (0.0, 69.0, 70.0))
    model = DRSNE(density_weight="auto", max_trustworthiness_drop=0.0, **QUICK)
    with pytest.warns(UserWarning, match="chose 0, plain t-SNE"):
        model.fit(X.astype(np.float32))
    assert len(model.path_) == 3
    assert model.density_weight_ == 0.0
    assert np.all(model.scales_ == 1.0)
    assert model.embedding_.dtype == model.path_.embeddings[0].dtype == np.float32
    plain = DRSNE(density_weight=0, **QUICK).fit(X.astype(np.float32))
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    model.set_params(density_weight=3, max_iter=60).fit(X)
    assert (model.density_weight_, model.path_) == (3.0, None)


def test_the_baseline_is_that_of_lambda_zero(X, monkeypatch):
    """Also where other maps are more trustworthy."""
    from drsne.metrics import evaluation

    usual = evaluation.of_maps

    def rising(*arguments, **options):
        found = usual(*arguments, **options)
        return found | {"trustworthiness": 0.5 + 0.1 * np.arange(len(found["trustworthiness"]))}

    monkeypatch.setattr(evaluation, "of_maps", rising)
    path = density_path(X, [0, 1, 2], **SHORT)
    assert path.baseline == 0.5
    assert density_path(X, [1, 2], **SHORT).baseline == 0.5
    assert path.select(max_trustworthiness_drop=0.0, criterion="trustworthiness") == 2


def test_scores_are_of_a_sample_of_many(X, monkeypatch):
    from drsne.estimators import path as module

    monkeypatch.setattr(module, "SCORED", 40)
    monkeypatch.setattr(module, "SCORED_PAIRWISE", 30)
    few = density_path(X, [0, 2], **SHORT)
    rows = metrics._inputs.sampled_rows(len(X), 40, 0)
    expected = metrics.trustworthiness(X, few.embeddings[1], 10, max_samples=40, random_state=0)
    assert len(rows) == 40
    assert few.metrics["trustworthiness"][1] == pytest.approx(expected, abs=1e-12)


def test_a_path_that_overflows_keeps_what_is_finite(X):
    with pytest.warns(UserWarning, match="no longer finite after .* the path ends at 1. Lower the larger weights"):
        path = density_path(X, [0, 1, 1e300], **QUICK)
    assert path.stopped_by == "overflow"
    assert path.weights.tolist() == [0, 1]
    assert all(np.isfinite(Y).all() for Y in path.embeddings)


def test_interrupted_automatic_fits_keep_a_map(X, monkeypatch):
    def stop(iteration, embedding, losses):
        if iteration == 250:
            raise KeyboardInterrupt

    model = DRSNE(density_weight="auto", max_trustworthiness_drop=0.0, callbacks=stop, **QUICK)
    with pytest.warns(UserWarning, match=r"Interrupted after 2.* embedding_ is the map at density_weight=0"):
        model.fit(X)  # no weight meets the constraint; on a path that was cut short that is no error
    assert 0 < len(model.path_) < len(AUTO_WEIGHTS)
    assert model.stopped_by_ == model.path_.stopped_by == "interrupt"
    assert np.isfinite(model.embedding_).all()

    from drsne.metrics import evaluation

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "of_maps", interrupted)
    model = DRSNE(density_weight="auto", **QUICK)
    with pytest.warns(
        UserWarning, match="while the maps of a path were being scored.*embedding_ is the map at density_weight=0"
    ):
        model.fit(X)
    assert len(model.path_) == len(AUTO_WEIGHTS)
    assert model.stopped_by_ == model.path_.stopped_by == "interrupt"
    assert model.density_weight_ == 0.0  # which meets the constraint for sure
    assert np.isnan(model.path_.metrics["stress"]).all()
    for use in (model.path_.select, model.path_.plot):
        with pytest.raises(ValueError, match="no scores"):
            use()
    model.path_.plot(chosen=3)


def test_few_points():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DRSNE(density_weight="auto", max_trustworthiness_drop=1.0, max_iter=40).fit(rng.normal(size=(4, 3)))
    chosen = model.path_.weights.tolist().index(model.density_weight_)
    np.testing.assert_array_equal(model.embedding_, model.path_.embeddings[chosen])
    assert np.ptp(model.embedding_) > 0.0


@in_one_test(
    ("options", "message"),
    [
        ({"chosen": -1}, "chosen must be an integer of at least 0; got -1.*select"),
        ({"chosen": 12}, "chosen must be below 4, the number of maps; got 12"),
        ({"labels": [0, 1]}, r"labels must have one entry for each of the 120 points; got shape \(2,\)"),
        ({"criterion": "beauty"}, "criterion must be one of"),
    ],
)
def test_what_a_plot_cannot_take(path, options, message):
    with pytest.raises(ValueError, match=message):
        path.plot(**options)
