"""Plots: what a notebook shows, and what is refused."""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from covering import in_one_test

from drsne import DRSNE, metrics, pl

pytest.importorskip("matplotlib", reason="plots need matplotlib")

Y = np.random.default_rng(0).normal(size=(60, 2))


def test_a_notebook_shows_the_figure():
    """IPython asks an object for ``_repr_png_``."""
    figure = pl.compare({"a": Y, "b": -Y}, Y[:, 0] > 0, {"a": Y[:, 0], "b": Y[:, 1]})
    content = figure._repr_png_()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    from matplotlib.image import imread

    picture = imread(io.BytesIO(content))
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.01  # not a white page
    assert pickle.loads(pickle.dumps(figure))._repr_png_()[:4] == b"\x89PNG"


class Model:
    """What plots need of a fitted DRSNE."""

    embedding_ = Y
    input_concentration_ = np.linspace(-1, 1, 60)
    concentration_ = 1.5 * input_concentration_
    contrast_ = 1.5


def colors(axis):
    return axis.collections[0].get_facecolors()


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_single_panels_return_axes_that_a_notebook_shows():
    for axis in (
        pl.embedding(Y),
        pl.embedding(Model(), "concentration", figsize=(3, 3), cmap="magma"),
        pl.reliability(Model(), np.linspace(0, 1, 60)),
        pl.fragmentation(np.c_[Y, Y], Y),
        pl.embedding(Y, ["$x", "a$"] * 30),  # not mathematics
    ):
        assert type(axis).__name__ == "Axes"
        assert axis._repr_png_()[:4] == b"\x89PNG"


def test_given_axes_are_used_and_not_shown_twice():
    figure = pl.new_figure((4, 4))
    axis = figure.subplots()
    assert pl.embedding(Y, ax=axis) is axis
    assert not hasattr(axis, "_repr_png_")
    with pytest.raises(ValueError, match="figsize must be None"):
        pl.embedding(Y, ax=axis, figsize=(3, 3))


@in_one_test("n_classes", [2, 8, 9, 30])
def test_classes_have_colours_of_their_own(n_classes):
    axis = pl.embedding(Y, np.arange(60) % n_classes)
    assert len(np.unique(colors(axis), axis=0)) == len(legend(axis)) == n_classes


def test_many_classes_share_a_colour_and_the_legend_says_so():
    labels = [f"type {number}" for number in np.arange(60) % 55]
    texts = legend(pl.embedding(Y, labels))
    assert len(texts) <= 30
    assert texts[-1] == "other (26)"
    assert texts[:3] == ["type 0", "type 1", "type 2"]  # in the order of the numbers


def test_long_names_stay_different_and_leave_room_for_the_map():
    labels = [f"a long name that ends with {number:02d}" for number in np.arange(60) % 30]
    axis = pl.embedding(Y, labels)
    assert len(set(legend(axis))) == 30
    assert max(map(len, legend(axis))) <= 24
    assert legend(axis)[0].startswith("a long")
    axis.figure.draw_without_rendering()
    assert axis.get_window_extent().width >= 0.75 * axis.get_window_extent().height


@in_one_test("labels", [Y[:, 0], [f"a long name of class {number}" for number in np.arange(60) % 30]])
def test_all_maps_of_a_row_fill_their_axes(labels):
    figure = pl.compare({"a": Y, "b": Y, "c": Y}, labels=labels)
    figure.draw_without_rendering()
    first, *others = [[axis.get_xlim(), axis.get_ylim()] for axis in figure.axes[:3]]
    assert np.allclose(others, first, rtol=0.01)
    assert (np.ptp(first, axis=1) / np.ptp(Y, axis=0)).min() < 1.2


def test_limits_that_were_set_by_hand_are_not_replaced():
    axis = pl.embedding(Y, Y[:, 0])
    axis.set(xlim=(0, 1), ylim=(0, 1))
    axis.figure.draw_without_rendering()
    assert max(np.ptp(axis.get_xlim()), np.ptp(axis.get_ylim())) < 0.5 * np.ptp(Y, axis=0).max()


@in_one_test(
    ("kind", "entries", "names"),
    [
        ("string", ["b", "a", None], ["a", "b"]),
        ("Int64", [10, 9, None], ["9", "10"]),
        ("object", ["type 10", "type 9", float("nan")], ["type 9", "type 10"]),
        ("category", ["x", "y", None], ["x", "y"]),
        ("datetime64[ns]", ["2024-02-01", "2024-01-01", None], ["2024-01-01", "2024-02-01"]),
        ("boolean", [True, False, None], ["False", "True"]),
    ],
)
def test_missing_entries_of_pandas_columns_are_grey(kind, entries, names):
    pd = pytest.importorskip("pandas", reason="draws pandas columns")
    axis = pl.embedding(Y, pd.Series(entries * 20, dtype=kind))
    assert legend(axis) == names
    assert len(np.unique(colors(axis), axis=0)) == 3


@in_one_test("kind", ["Int64", "Float64", "object"])
def test_numbers_with_missing_entries_are_values(kind):
    pd = pytest.importorskip("pandas", reason="draws pandas columns")
    values = pd.Series([None, *range(59)], dtype=kind)
    axis = pl.embedding(Y, values)
    assert axis.get_legend() is None
    assert len(axis.figure.axes) == 2  # the map and its colour bar


def test_categories_that_are_numbers_are_classes_in_all_plots():
    pd = pytest.importorskip("pandas", reason="draws a pandas categorical")
    labels = pd.Series(pd.Categorical(np.arange(60) % 3 + 0.5, categories=[2.5, 1.5, 0.5]), name="kind")
    single, several = pl.embedding(Y, labels), pl.compare({"a": Y, "b": -Y}, labels).axes[1]
    for axis in (single, several):
        assert legend(axis) == ["2.5", "1.5", "0.5"]
        assert axis.get_legend().get_title().get_text() == "kind"
        assert len(np.unique(colors(axis), axis=0)) == 3


def test_outliers_do_not_shrink_the_map():
    far = Y.copy()
    far[0] = 1e6
    low, high = pl.embedding(far).get_xlim()
    assert high - low < 20


def test_many_points_are_drawn_as_cells():
    many = np.random.default_rng(0).normal(size=(160_000, 2))
    axis = pl.embedding(many, many[:, 0] > 0)
    assert len(axis.images) == 1
    assert not axis.collections
    picture = axis.images[0].get_array()
    left, right = picture[:, : picture.shape[1] // 3], picture[:, -picture.shape[1] // 3 :]
    assert abs(left[..., 0][left[..., 3] > 0].mean() - right[..., 0][right[..., 3] > 0].mean()) > 0.3


def test_the_density_has_one_scale_and_a_residual_and_names_the_contrast():
    model = Model()
    figure = pl.density(model)
    first, second, third = figure.axes[:3]
    np.testing.assert_allclose(colors(first), colors(second))  # the map is the data times the contrast
    assert "contrast 1.50" in first.get_title()
    for axis in (third, pl.embedding(model, "residual")):
        assert np.ptp(colors(axis)[:, :3], axis=0).max() < 0.01  # no residual
    model.contrast_ = 1.0
    figure = pl.density(model)
    assert "contrast" not in figure.axes[0].get_title()
    assert max(len(axis.get_ylabel()) for axis in figure.axes) < 50  # fits beside small figures
    for axis in (figure.axes[2], pl.embedding(model, "residual")):
        assert np.ptp(colors(axis)[:, :3], axis=0).max() > 0.5


def test_rows_that_are_almost_equal_do_not_make_all_others_look_too_dense():
    """They raise the mean of the data, but not that of the map, whose target is clipped."""
    model = Model()
    model.contrast_ = 1.0
    model.input_concentration_ = np.append(np.zeros(58), [6.0, 6.0]) - np.log(np.exp(6.0) / 30)
    model.concentration_ = np.append(np.zeros(58), [2.0, 2.0]) - np.log(np.exp(2.0) / 30)
    for axis in (pl.embedding(model, "residual"), pl.density(model).axes[2]):
        white = colors(axis)[:, :3].min(axis=1) > 0.9
        assert white.sum() == 58


def test_the_concentration_of_densne():
    class DenSNE:
        embedding_ = Y
        input_log_radii_ = np.linspace(-2, 2, 60)
        log_radii_ = 0.5 * np.linspace(-2, 2, 60) + 7.0

    first, second, third = pl.density(DenSNE()).axes[:3]
    assert "contrast 0.50" in first.get_title()
    assert np.ptp(colors(third)[:, :3], axis=0).max() < 0.01
    assert np.ptp(colors(second)[:, :3], axis=0).max() > 0.5


def test_the_map_of_an_interrupted_fit():
    model = Model()
    model.concentration_ = np.full(60, np.nan)
    assert len(np.unique(colors(pl.embedding(model, "concentration")), axis=0)) > 10
    with pytest.raises(ValueError, match="interrupted"):
        pl.density(model)


def test_a_colour_bar_has_arrows_only_where_values_are_beyond_it():
    def extend(axis):
        return axis.figure.axes[-1]._colorbar.extend

    assert extend(pl.reliability(Model(), np.linspace(0, 1, 60))) == "neither"
    assert extend(pl.embedding(Y, np.append(np.zeros(59), 5.5))) == "max"
    assert extend(pl.embedding(Y, np.linspace(-1, 1, 60))) == "both"


def test_scores_are_below_the_maps():
    X = np.c_[Y, Y]
    figure = pl.compare({"a": Y, "b": Y[::-1]}, X=X)
    first, second = (axis.get_xlabel() for axis in figure.axes[:2])
    assert "TW 1.00" in first
    assert "TW 1.00" not in second
    assert all(f"{name} " in first for name in ("rho30", "rho5", "Frag"))


COMPARED = [
    ((Y,), TypeError, r"maps must be a mapping.*got an array of shape \(60, 2\).*Y}"),
    (([Y, Y],), TypeError, "maps must be a mapping.*got list"),
    (({},), ValueError, "maps must have at least one"),
    (({"a": Y[:, 0]},), ValueError, r"maps\['a'\] must be .*shape \(n_samples, 2\); got shape \(60,\)"),
    (({"a": np.full((60, 2), np.nan)},), ValueError, r"maps\['a'\] must hold finite"),
    (({"a": Y, "b": Y[:9]},), ValueError, "maps must have the same rows; 'b' has 9 points.*60"),
    (({"a": Y}, [1, 2]), ValueError, r"labels must .* 60 .*got shape \(2,\)"),
    (({"a": Y}, None, Y[:, 0]), TypeError, "concentration must be a mapping.*got ndarray"),
    (({"a": Y, "b": Y}, None, {"a": Y[:, 0]}), ValueError, "concentration must .* none for 'b'"),
    (({"a": Y}, None, {"a": Y[:9, 0]}), ValueError, r"concentration\['a'\] must .* 60 points; got shape \(9,\)"),
    (({"a": Y}, None, {"a": np.full(60, np.nan)}), ValueError, r"concentration\['a'\] must .*60 numbers"),
]


@in_one_test(
    ("function", "arguments", "kind", "message"),
    [
        *((pl.compare, *case) for case in COMPARED),
        (pl.embedding, (Y[:, 0],), ValueError, r"map of shape \(n_samples, 2\)"),
        (pl.embedding, (np.full((5, 2), np.nan),), ValueError, "finite"),
        (pl.embedding, (Y, [1, 2]), ValueError, r"color must .* 60 .*got shape \(2,\)"),
        (pl.embedding, (Y, "concentration"), ValueError, "Pass the model"),
        (pl.embedding, (Model(), "concentraton"), ValueError, "Did you mean 'concentration'"),
        (pl.embedding, (DRSNE(),), ValueError, "must be fitted"),
        (pl.density, (Y,), ValueError, "Pass the model"),
        (pl.reliability, (Model(), [1.0]), ValueError, "values must"),
    ],
)
def test_wrong_arguments(function, arguments, kind, message):
    with pytest.raises(kind, match=message):
        function(*arguments)


def test_the_map_of_a_model_says_its_contrast():
    model = SimpleNamespace(embedding_=np.random.default_rng(0).normal(size=(30, 2)), density_weight_=1.0)
    lines = []
    for model.contrast_, model.density_weight_ in ((5.0, 1.0), (1.0, 1.0), (5.0, 0.0)):
        lines.append(pl.embedding(model).get_xlabel())
    assert lines == ["contrast 5", "contrast 1", ""]  # plain t-SNE has no contrast
    axis = pl.embedding(model.embedding_)
    axis.set_xlabel("mine")
    assert pl.embedding(model, ax=axis).get_xlabel() == "mine"
    model.density_weight_ = 1.0
    assert pl.compare({"a": model, "b": model.embedding_}).axes[0].get_xlabel() == "contrast 5"


def test_the_map_of_cells():
    anndata = pytest.importorskip("anndata")
    from drsne import tl

    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(80, 6)))
    adata.obs["kind"] = np.repeat(["a", "b"], 40)
    with pytest.raises(ValueError, match=r"source must have the map of drsne.tl.drsne.*no obsm"):
        pl.embedding(adata)
    tl.drsne(adata, use_rep="X", perplexity=10, density_neighbors=10, max_iter=60, random_state=0)
    axis = pl.embedding(adata, "kind")
    assert axis.get_legend().get_title().get_text() == "kind"
    assert axis.get_xlabel() == f"contrast {adata.uns['drsne']['contrast']:.3g}"
    assert len(pl.density(adata).axes) == 5
    pl.embedding(adata, "residual")
    assert len(pl.compare({"cells": adata, "array": adata.obsm["X_drsne"]}).axes) == 2
    with pytest.raises(ValueError, match="color must be an array or one of"):
        pl.embedding(adata, "sort")
    with pytest.raises(ValueError, match=r"obsm\['X_drsne'\]"):
        pl.fragmentation(adata.X, anndata.AnnData(adata.X))
    Y = adata.obsm["X_drsne"]
    for function, arguments, options in (
        (pl.embedding, (Y, adata), {}),
        (pl.reliability, (Y, adata), {}),
        (metrics.evaluate, (adata.X, Y), {"labels": adata}),
        (DRSNE().fit, (adata.X,), {"sample_weight": adata}),
    ):
        with pytest.raises(TypeError, match="Pass one of its columns"):
            function(*arguments, **options)
    del adata.uns["drsne"]  # the concentrations are still in obs, and count as those of a map with the contrast 1
    assert pl.density(adata).axes[0].get_title() == "Density of the data"
