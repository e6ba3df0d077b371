"""The explorer's page: what its payload holds, what it refuses, and how it is written."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from covering import in_one_test
from page import VOID, Payload
from page import Page as Parsed
from problems import path_of
from scipy.spatial import cKDTree

from drsne import explorer, pl
from drsne.explorer import columns, payload, sources
from drsne.pl import _models

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(60, 2))
HOSTILE = "</script><script>hacked = 1</script><!-- \" ' \u2028 \u202e\u05d0 <img src=x onerror=alert(1)>"


def unpacked(page):
    payload = Payload(page.html)
    return payload.meta, payload.arrays


def column(page, name):
    return Payload(page.html).described(name)


def residuals(page):
    """Return the residual of every map of a page with several maps."""
    payload = Payload(page.html)
    return [payload.column(columns.RESIDUAL, at) for at in range(len(payload.meta["maps"]))]


def centred(values):
    return values - np.median(values)


def words(page, name):
    return Payload(page.html).column(name)


def test_positions_are_those_of_the_map():
    meta, arrays = unpacked(explorer.page(Y))
    (found,) = meta["maps"]
    x, y = arrays[found["x"]] / 65535, arrays[found["y"]] / 65535
    inside = pl.framed(Y)
    extent = np.ptp(inside, axis=0).max()
    assert np.ptp(np.c_[x, y], axis=0).max() == pytest.approx(1.0)
    assert np.allclose(np.c_[x - x[0], y - y[0]], (inside - inside[0]) / extent, atol=2e-5)


def test_an_outlier_does_not_shrink_the_map():
    far = np.vstack([RNG.normal(size=(500, 2)), [[1e6, 0.0]]])
    placed = payload.placed(far).astype(float)
    assert np.ptp(placed[:500], axis=0).min() > 0.4 * 65535
    assert placed[500, 0] == 65535


@in_one_test("points", [np.zeros((1, 2)), np.zeros((5, 2)), np.array([[0.0, 1.0], [0.0, 2.0]])])
def test_maps_without_an_extent(points):
    placed = payload.placed(points)
    assert np.isin(placed[:, 0], (32767, 32768)).all()
    assert explorer.page(points).n_samples == len(points)


def test_a_path_has_a_slider_and_scores_and_starts_at_the_map_that_auto_would_choose():
    names = ("concentration_correlation", "density_rank_correlation", "local_density_rank_correlation")
    scores = {name: [0.0, 0.5, 1.0] for name in names}
    scores |= {"trustworthiness": [0.9, 0.899, np.nan], "continuity": [0.9] * 3}
    path = replace(path_of([Y, 2 * Y, 3 * Y], (0.0, 0.3, 9.0), **scores), baseline_continuity=0.9)
    assert path.best() == 1
    meta, _ = unpacked(explorer.page(path))
    assert [m["title"] for m in meta["maps"]] == ["λ = 0", "λ = 0.3", "λ = 9"]
    assert [m["tick"] for m in meta["maps"]] == ["0", "0.3", "9"]
    assert meta["scores"] == scores | {"trustworthiness": [0.9, 0.899, None]}
    assert (meta["baseline"], meta["start"]) == (0.9, 1)


def test_a_model_with_a_path_shows_all_its_maps_and_starts_at_the_chosen_one():
    path = path_of([-Y, Y, 2 * Y], weights=(0.0, 1.0, 140.0))
    model = SimpleNamespace(embedding_=Y, density_weight_=1.0, path_=path, input_concentration_=Y[:, 0], contrast_=1.5)
    page = explorer.page(model)
    meta, _ = unpacked(page)
    assert (len(meta["maps"]), meta["start"]) == (3, 1)
    for residual, contrast in zip(residuals(page), (1.5, 1.5, 1.0), strict=True):  # above 70, the contrast is 1
        assert np.allclose(residual, centred(sources.measured_concentration(Y) - contrast * Y[:, 0]), atol=1e-3)
    assert "1.00 to 1.50" in column(page, columns.RESIDUAL)[0]["about"]


def test_a_path_that_knows_the_data_has_a_residual():
    known = vars(path_of([Y, -Y], weights=(70.0, 140.0))) | {"input_concentration": Y[:, 0], "best": lambda: None}
    assert column(explorer.page(SimpleNamespace(**known)), columns.DATA)[0]["words"] is None
    scalar = explorer.page(SimpleNamespace(**known), contrast=1.5)
    listed = explorer.page(SimpleNamespace(**known | {"contrasts": np.array([1.5, 1.0])}))
    for page in (scalar, listed):
        for residual, contrast in zip(residuals(page), (1.5, 1.0), strict=True):
            assert np.allclose(residual, centred(sources.measured_concentration(Y) - contrast * Y[:, 0]), atol=1e-3)


@in_one_test(
    "attributes",
    [
        {"input_concentration_": Y[:, 0], "concentration_": Y[:, 1], "contrast_": 1.7},
        {"input_log_radii_": Y[:, 0], "log_radii_": 0.3 * Y[:, 0] + Y[:, 1]},
    ],
)
def test_a_page_and_a_plot_show_the_same_residual(attributes):
    model = SimpleNamespace(embedding_=Y, density_weight_=2.0, **attributes)
    assert [m["title"] for m in unpacked(explorer.page(model))[0]["maps"]] == ["λ = 2"]
    data, shown, contrast = _models.concentrations(model)
    assert contrast != 1.0
    residual = centred(shown - contrast * data)
    for name, expected in ((columns.DATA, data), (columns.MAP, shown), (columns.RESIDUAL, residual)):
        found, (stored,) = column(explorer.page(model), name)
        assert np.allclose(stored, expected, atol=1e-6)
        assert found["diverging"] == (name == columns.RESIDUAL)


def test_an_interrupted_model_shows_the_concentration_of_its_map():
    model = SimpleNamespace(embedding_=Y, density_weight_=1.0, concentration_=np.full(60, np.nan))
    _, (stored,) = column(explorer.page(model), columns.MAP)
    np.testing.assert_allclose(stored, sources.measured_concentration(Y), atol=1e-6)
    np.testing.assert_allclose(stored, sources.measured_concentration(7e5 * Y + 3.0), atol=1e-6)
    sparse, dense = np.split(sources.measured_concentration(np.vstack([Y, 20 + 0.1 * Y])), 2)
    assert (dense > sparse).all()


@in_one_test(("source", "threads"), [(Y, 1), (SimpleNamespace(embedding_=Y, n_jobs=3), 3)])
def test_threads_are_those_of_the_model_or_one(monkeypatch, source, threads):
    used = []

    class Tree(cKDTree):
        def query(self, *args, workers=1, **kwargs):
            used.append(workers)
            return super().query(*args, **kwargs)

    monkeypatch.setattr("scipy.spatial.cKDTree", Tree)
    explorer.page(source)
    assert used == [threads]


def test_input_concentration_adds_the_residual_to_any_maps():
    for options, contrasts in (({}, (1.0, 1.0)), ({"contrast": [1.0, 2.0]}, (1.0, 2.0))):
        page = explorer.page({"a": Y, "b": -Y}, input_concentration=Y[:, 1], **options)
        for residual, contrast in zip(residuals(page), contrasts, strict=True):
            assert np.allclose(residual, centred(sources.measured_concentration(Y) - contrast * Y[:, 1]), atol=1e-3)


@in_one_test(
    ("labels", "expected"),
    [
        ([10, 9, 10], ["9", "10"]),
        (np.array([1.0, np.nan, 0.0]), ["0", "1", None]),
        (["group 10", "group 9", None], ["group 9", "group 10", None]),
        ([True, False, True], ["False", "True"]),
        ([b"b", b"a", b"a"], ["a", "b"]),
        (np.array(["2024-02-01", "2024-01-01", "NaT"], dtype="datetime64[D]"), ["2024-01-01", "2024-02-01", None]),
    ],
)
def test_labels_are_in_a_natural_order(labels, expected):
    found, (codes,) = column(explorer.page(Y[:3], labels=labels), columns.LABEL)
    assert found["words"] == expected
    assert len(set(codes)) == len(expected)


def test_the_labels_have_a_name():
    page = explorer.page(Y, labels=["a", "b"] * 30, label_name="species", columns={"label": Y[:, 0]})
    meta, _ = unpacked(page)
    assert meta["columns"][meta["label"]]["name"] == "species"
    assert np.array_equal(column(page, "label")[1][0], Y[:, 0])
    pd = pytest.importorskip("pandas", reason="a series with a name")
    for name, given, expected in (("x", None, "x"), (3, None, "3"), (None, None, "label"), ("x", "y", "y")):
        meta, _ = unpacked(explorer.page(Y, labels=pd.Series(["a", "b"] * 30, name=name), label_name=given))
        assert meta["columns"][meta["label"]]["name"] == expected


def test_names_of_many_columns_are_compared_once():
    written = []

    class Name:
        def __str__(self):
            written.append(self)
            return f"name {id(self)}"

    assert len(columns.given_columns({Name(): [0.0] for _ in range(200)}, 1)) == 200
    assert len(written) < 2000


def test_kinds_of_columns():
    given = {
        "whole": np.arange(60),
        "real": np.where(np.arange(60) == 3, np.inf, Y[:, 0]),
        "mixed": [None, 2.5] * 30,
        "text": ["x", None] * 30,
        "flag": [True, False] * 30,
    }
    page = explorer.page(Y, columns=given | {columns.MAP: np.arange(60)})
    assert np.array_equal(column(page, columns.MAP)[1][0], np.arange(60))  # replaces that of the page
    assert np.array_equal(column(page, "whole")[1][0], np.arange(60, dtype=np.float32))
    assert np.isnan(column(page, "real")[1][0][3])
    assert column(page, "mixed")[0]["words"] is None
    assert np.isnan(column(page, "mixed")[1][0][0])
    assert words(page, "text")[:2] == ["x", None]
    assert words(page, "flag")[:2] == ["True", "False"]


def test_many_points_with_distinct_words():
    ids = np.arange(70_000).astype(str)
    page = explorer.page(RNG.normal(size=(70_000, 2)), labels=RNG.integers(0, 20, 70_000), columns={"id": ids})
    found, (codes,) = column(page, "id")
    assert codes.dtype == np.uint32
    assert found["words"][codes[69_999]] == "69999"
    assert len(page.html) < 2.5e6


def test_a_data_frame_names_the_rows():
    pd = pytest.importorskip("pandas", reason="a data frame")
    kinds = pd.Categorical(["low", "high", None] * 20, categories=["low", "high", "never"], ordered=True)
    dates = pd.Series(pd.to_datetime(["2024-02-01", None, "2024-01-01"] * 20))
    given = {
        "age": pd.array([1, None] * 30, dtype="Int64"),
        "kind": kinds,
        "day": dates.astype("category"),
        "date": dates,
    }
    frame = pd.DataFrame(given)
    assert unpacked(explorer.page(Y, columns=frame))[0]["names"] is None
    frame.index = [f"row {i}" for i in range(60)]
    page = explorer.page(Y, labels=pd.Series(["a", "b"] * 30, name="group"), columns=frame)
    meta, _ = unpacked(page)
    assert meta["names"][:2] == ["row 0", "row 1"]
    assert meta["columns"][meta["label"]]["name"] == "group"
    assert column(page, "kind")[0]["words"] == ["low", "high", None]
    assert np.isnan(column(page, "age")[1][0][1])
    for name in ("day", "date"):
        assert words(page, name)[:3] == ["2024-02-01", None, "2024-01-01"]
        assert column(page, name)[0]["words"] == ["2024-01-01", "2024-02-01", None]


def test_numbers_are_not_rounded():
    """Readers copy ids and measurements out of the page."""
    n = 60
    Y = np.random.default_rng(0).normal(size=(n, 2))
    ids, large, shares = 16_777_217 + np.arange(n), 2**53 + 1 + np.arange(n), np.arange(n) / 10
    given = {"id": ids, "large": large, "share": shares, "half": np.arange(n) / 2}
    page = explorer.page(Y, columns=given)
    assert column(page, "id")[1][0].astype(int).tolist() == ids.tolist()
    assert column(page, "share")[1][0].tolist() == shares.tolist()
    assert column(page, "half")[1][0].dtype == np.float32  # nothing is lost
    described, values = column(page, "large")
    assert [described["words"][code] for code in values[0]] == [str(value) for value in large]


def test_whole_numbers_beside_missing_ones_are_not_rounded():
    pd = pytest.importorskip("pandas")
    n = 60
    large = [None, *(2**53 + 1 + i for i in range(n - 1))]
    huge = [None, *(10**30 + i for i in range(n - 1))]
    for given in (large, huge, pd.array(large, dtype="Int64"), pd.Series(large, dtype="Int64")):
        described, values = column(
            explorer.page(np.random.default_rng(0).normal(size=(n, 2)), columns={"id": given}), "id"
        )
        found = [described["words"][code] for code in values[0]]
        assert found == [None if value is None else str(value) for value in (huge if given is huge else large)]


def test_a_page_of_cells_and_cells_where_an_array_is_expected():
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(np.zeros((60, 40)), obsm={"X_drsne": np.random.default_rng(0).normal(size=(60, 2))})
    assert explorer.page(cells).html
    assert explorer.page({"a": cells}).html
    Y = cells.obsm["X_drsne"]
    for wrong in ({"labels": cells}, {"columns": {"a": cells}}, {"input_concentration": cells}):
        with pytest.raises(TypeError, match=r"must be an array; got an AnnData object. Pass one of its columns"):
            explorer.page(Y, **wrong)


def test_text_cannot_leave_the_payload():
    given = {HOSTILE: [HOSTILE] * 60}
    page = explorer.page(
        {HOSTILE: Y, "b": Y}, labels=[HOSTILE] * 60, names=[HOSTILE] * 60, columns=given, title=HOSTILE
    )
    plain = explorer.page({"a": Y, "b": Y})
    assert HOSTILE not in page.html
    for tag in ("<script", "</script", "<img", "<!--"):
        assert page.html.count(tag) == plain.html.count(tag), tag
    assert page.html.count(html.escape(HOSTILE)) == 2  # the title of the page, and its heading
    meta, _ = unpacked(page)
    assert meta["title"] == meta["maps"][0]["title"] == meta["names"][0] == HOSTILE
    assert words(page, HOSTILE)[0] == words(page, columns.LABEL)[0] == HOSTILE


def test_the_page_is_well_formed_and_names_its_scripts():
    text = explorer.page(Y, title="a < b").html
    elements = re.sub(r"<(script|style|svg)\b.*?</\1>", "", text, flags=re.DOTALL)
    VOID.update({"link", "input"})
    parsed = Parsed(elements)
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    policy = next(a["content"] for tag, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert not re.search(r'(?:src|href)="(?!data:)', text)


def test_no_script_makes_html_from_text():
    text = payload.joined_scripts()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "fetch(", "XMLHttpRequest"):
        assert word not in text


def test_the_drawing_library_is_the_one_that_was_built():
    folder = files("drsne.explorer") / "vendor"
    expected, name = (folder / f"{payload.LIBRARY}.sha256").read_text().split()
    assert name == payload.LIBRARY
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    licences = (folder / "LICENSES.txt").read_text(encoding="utf-8")
    for package in ("regl 2", "regl-scatterplot 1.16", "kdbush", "earcut"):
        assert f"\n{package}" in licences


def test_the_same_input_gives_the_same_bytes():
    arguments = {"labels": list("ab") * 30, "columns": {"n": Y[:, 0], "t": list("xyz") * 20}, "title": "t"}
    assert explorer.page({"a": Y, "b": -Y}, **arguments).html == explorer.page({"a": Y, "b": -Y}, **arguments).html


@in_one_test(
    ("source", "arguments", "kind", "parameter"),
    [
        (Y[:, :1], {}, ValueError, "source"),
        (np.zeros((4, 3)), {}, ValueError, "source"),
        (np.zeros((0, 2)), {}, ValueError, "source"),
        (np.full((4, 2), np.nan), {}, ValueError, "source"),
        ({}, {}, ValueError, "source"),
        ({"a": Y, "b": Y[:9]}, {}, ValueError, "source"),
        ("map.csv", {}, TypeError, "source"),
        (SimpleNamespace(fit=None), {}, ValueError, "source"),
        (Y, {"labels": [1, 2]}, ValueError, "labels"),
        (Y, {"labels": "a" * 60}, ValueError, "labels"),
        (Y, {"labels": [[1], [1, 2]]}, ValueError, "labels"),
        (Y, {"labels": np.zeros((60, 2))}, ValueError, "labels"),
        (Y, {"labels": np.ones(60, dtype=complex)}, ValueError, "labels"),
        (Y, {"columns": [1, 2]}, TypeError, "columns"),
        (Y, {"columns": {"age": [1]}}, ValueError, "columns['age']"),
        (Y, {"columns": {1: Y[:, 0], "1": Y[:, 1]}}, ValueError, "columns"),
        (Y, {"columns": {"label": Y[:, 0]}, "labels": Y[:, 0]}, ValueError, "columns"),
        (Y, {"columns": {"kind": Y[:, 0]}, "labels": Y[:, 0], "label_name": "kind"}, ValueError, "columns"),
        (Y, {"labels": Y[:, 0], "label_name": 3}, TypeError, "label_name"),
        (Y, {"labels": Y[:, 0], "label_name": ""}, TypeError, "label_name"),
        (Y, {"names": ["a"]}, ValueError, "names"),
        (Y, {"title": 3}, TypeError, "title"),
        (Y, {"input_concentration": [1.0]}, ValueError, "input_concentration"),
        (Y, {"contrast": [1.0, 2.0]}, ValueError, "contrast"),
        (Y, {"contrast": np.nan}, ValueError, "contrast"),
    ],
)
def test_what_is_refused(source, arguments, kind, parameter):
    with pytest.raises(kind) as error:
        explorer.page(source, **arguments)
    message = str(error.value)
    assert message.startswith(parameter)
    assert " must " in message
    assert message.count(". ") >= 1  # the rule is followed by the way out


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    target = tmp_path / "page.html"
    (tmp_path / "new").touch()
    first, second = explorer.page(Y, title="a\ud800b"), explorer.page(Y, title="second")
    assert first.save(target) == target
    assert target.stat().st_mode == (tmp_path / "new").stat().st_mode
    with pytest.raises(FileExistsError, match="force=True"):
        second.save(str(target))
    assert target.read_text(encoding="utf-8") == first.html
    second.save(target, force=True)
    assert target.read_text(encoding="utf-8") == second.html
    assert sorted(os.listdir(tmp_path)) == ["new", "page.html"]
    for wrong in (tmp_path, tmp_path / "nowhere" / "page.html"):
        with pytest.raises(ValueError, match="folder"):
            second.save(wrong)


def test_a_notebook_shows_a_frame_that_cannot_reach_it():
    page = explorer.page(Y, title='a "quoted" title')
    shown = page._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == page.html
    assert "allow-scripts" in shown
    assert "allow-same-origin" not in shown
    assert repr(page) == "Page(60 rows, 1 map, 0.3 MB)"
