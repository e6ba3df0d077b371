"""Model files: what is saved comes back, and every damaged, foreign or newer file gives one clear error."""

from __future__ import annotations

import json
import os
import pickle
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import drsne
from drsne import DRSNE, DenSNE, ModelFileError, Objective

SHORT = {"max_iter": 60, "random_state": 0, "perplexity": 10, "density_neighbors": 10}
X = np.random.default_rng(0).normal(size=(80, 7))
NEW = np.random.default_rng(1).normal(size=(6, 7))
MODELS = {
    "default": DRSNE(**SHORT),
    "objective": DRSNE(objective=Objective(kernel="fixed"), **SHORT),
    "components": DRSNE(pca_components=3, **SHORT),
    "path": DRSNE(density_weight="auto", **SHORT),
    "den-SNE": DenSNE(max_iter=60, random_state=0, perplexity=10),
    "start": DRSNE(init=np.random.default_rng(2).normal(size=(80, 2)), **SHORT),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.drsne"
    DRSNE(pca_components=3, **SHORT).fit(X).save(path)
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_comes_back(name, tmp_path):
    model = MODELS[name].fit(X)
    model.save(tmp_path / "m")
    loaded = drsne.load(tmp_path / "m")
    assert type(loaded) is type(model)
    for attribute, value in vars(model).items():
        if attribute.endswith("_") and attribute not in ("affinities_", "pca_", "path_"):
            np.testing.assert_equal(getattr(loaded, attribute), value, err_msg=attribute)
            assert getattr(getattr(loaded, attribute), "dtype", None) == getattr(value, "dtype", None), attribute
    assert (loaded.pca_ is None) == (model.pca_ is None)
    assert repr(getattr(loaded, "path_", None)) == repr(getattr(model, "path_", None))
    for parameter, value in model.get_params().items():
        assert np.all(getattr(loaded, parameter) == value), parameter
    assert np.array_equal(loaded.transform(NEW), model.transform(NEW))
    assert np.array_equal(loaded.novelty(NEW), model.novelty(NEW))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(NEW), model.transform(NEW))


def test_a_file_has_as_many_bytes_for_a_row_as_the_page_says(tmp_path):
    def size(n, weights):
        model = DRSNE(**SHORT).fit(X[:n], sample_weight=1 + np.arange(n) % 2 if weights else None)
        model.save(tmp_path / "m", include_data=False)
        return (tmp_path / "m").stat().st_size

    plain, weighted = ((size(80, weights) - size(40, weights)) / 40 for weights in (False, True))
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    assert f"about {plain:.0f} bytes per training row ({weighted:.0f} with row weights" in " ".join(page.split())


def test_models_without_data_take_them_again(tmp_path):
    for data in (X, X.astype(np.float32), sp.csr_matrix(X)):
        model = DRSNE(**SHORT).fit(data)
        model.save(tmp_path / "with")
        model.save(tmp_path / "without", include_data=False)
        least = min((tmp_path / name).stat().st_size for name in ("with", "without"))
        assert least == (tmp_path / "without").stat().st_size
        with pytest.raises(ValueError, match="saved without its training data"):
            drsne.load(tmp_path / "without").transform(NEW)
        assert np.array_equal(drsne.load(tmp_path / "without", X=data).transform(NEW), model.transform(NEW))
        with pytest.raises(ValueError, match="must be the training data"):
            drsne.load(tmp_path / "without", X=data[:-1])
    model = DRSNE(pca_components=3, **SHORT).fit(X)
    model.save(tmp_path / "without", include_data=False)
    assert np.array_equal(drsne.load(tmp_path / "without", X=X).transform(NEW), model.transform(NEW))


def test_sparse_data_may_be_stored_in_any_order(tmp_path):
    data = sp.random(len(X), 5, density=0.5, random_state=0, format="csr")
    rows = data.tocoo()
    order = np.lexsort((-rows.col, rows.row))
    other = sp.csr_matrix((rows.data[order], rows.col[order], data.indptr), shape=data.shape)
    other.indices, other.indptr = other.indices.astype(np.int64), other.indptr.astype(np.int64)
    before = other.indices.copy()
    for fitted, given in ((data, other), (other, data)):
        model = DRSNE(**SHORT).fit(fitted)
        model.save(tmp_path / "without", include_data=False)
        loaded = drsne.load(tmp_path / "without", X=given)
        assert np.array_equal(loaded.transform(data[:5] * 1.1), model.transform(data[:5] * 1.1))
    np.testing.assert_array_equal(other.indices, before)


def test_bytes_per_row(tmp_path):
    sizes = []
    for n in (100, 300):
        rows = np.random.default_rng(0).normal(size=(n, 5))
        DRSNE(**SHORT).fit(rows).save(tmp_path / "m", include_data=False)
        sizes.append((tmp_path / "m").stat().st_size)
    assert (sizes[1] - sizes[0]) / 200 < 68  # the documentation states about 64


def test_what_cannot_be_saved(tmp_path):
    class Mine(DRSNE):
        pass

    for model, message in (
        (DRSNE(), "not fitted"),
        (DRSNE(metric=lambda a, b: float(np.abs(a - b).sum()), **SHORT).fit(X), "metric must be a number, a string"),
        (Mine(**SHORT).fit(X), "subclass Mine"),
    ):
        with pytest.raises(ValueError, match=message):
            model.save(tmp_path / "m")
    kept = DRSNE(callbacks=lambda *_: None, **{**SHORT, "random_state": np.random.RandomState(0)}).fit(X)
    for place in (tmp_path, tmp_path / "none" / "m"):
        with pytest.raises(ValueError, match="existing folder"):
            kept.save(place)
    for change in ({"n_components": 3}, {"perplexity": -1}, {"metric": "cosine"}):  # such a file could not be read
        before = {name: getattr(kept, name) for name in change}
        with pytest.raises(ValueError, match="its parameters were changed after the fit"):
            kept.set_params(**change).save(tmp_path / "m")
        kept.set_params(**before)
    assert not list(tmp_path.iterdir())
    mask = os.umask(0)
    os.umask(mask)
    kept.save(tmp_path / "m")
    assert drsne.load(tmp_path / "m").callbacks is None
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o666 & ~mask


def changed_in(value, name, to):
    """Return JSON in which every value of a name is changed."""
    if isinstance(value, dict):
        return {key: to if key == name else changed_in(each, name, to) for key, each in value.items()}
    return [changed_in(each, name, to) for each in value] if isinstance(value, list) else value


def parts(path):
    """Return the JSON of a model file, and its other arrays."""
    with np.load(path) as archive:
        return bytes(archive["drsne"]), [archive[f"arr_{place}"] for place in range(len(archive.files) - 1)]


def signed(path, text, arrays):
    """Write a file with any header and arrays, and right checksums."""
    with path.open("wb") as stream:
        np.savez(stream, *arrays, drsne=np.frombuffer(text, np.uint8))
    return path


def test_mutations_with_a_right_checksum(saved, tmp_path):
    """Such files are never made by accident. They load, or raise our error, and nothing else."""
    text, arrays = parts(saved)
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    rng = np.random.default_rng(1)
    for case in range(300):
        name = str(rng.choice(list(members)[1:]))
        changed = bytearray(text if case % 3 else members[name])
        at = int(rng.integers(len(changed) if case % 4 else 128))  # 128 bytes have the type and the shape of an array
        if case % 2:
            changed[at] = int(rng.choice(bytearray(b'0123456789"{}[],:aeu_')))
        else:
            del changed[at : at + int(rng.integers(1, 9))]
        if case % 3:
            signed(tmp_path / "other", bytes(changed), arrays)
        else:
            with zipfile.ZipFile(tmp_path / "other", "w") as archive:
                for each, content in members.items():
                    archive.writestr(each, bytes(changed) if each == name else content)
        with suppress(ModelFileError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drsne.load(tmp_path / "other")
    deep = b'{"class": ' + b"[" * 100_000
    with pytest.raises(ModelFileError):
        drsne.load(signed(tmp_path / "other", deep, arrays))


def test_data_frames_and_output_settings_survive(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    model = DRSNE(**SHORT).set_output(transform="pandas").fit(frame)
    model.save(tmp_path / "m", include_data=False)
    drsne.load(tmp_path / "m").save(tmp_path / "again")
    loaded = drsne.load(tmp_path / "again", X=frame)
    assert list(loaded.feature_names_in_) == list("abcdefg")
    assert loaded.transform(frame.iloc[:2]).equals(model.transform(frame.iloc[:2]))
    with pytest.raises(ValueError, match="feature names"):
        drsne.load(tmp_path / "again", X=frame.rename(columns={"a": "z"}))
    distances = DRSNE(metric="precomputed", **SHORT).fit(np.abs(X[:, :1] - X[:, 0]))
    distances.save(tmp_path / "m")
    with pytest.raises(ValueError, match="X is not needed"):
        drsne.load(tmp_path / "m", X=X)


def test_a_thousand_mutations_of_a_file(saved, tmp_path):
    content = saved.read_bytes()
    whole = drsne.load(saved).transform(NEW)
    rng = np.random.default_rng(0)
    changed = tmp_path / "changed"
    for case in range(1000):
        data = bytearray(content)
        kind = case % 5
        at = int(rng.integers(len(data))) if case % 2 else int(rng.integers(600))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at : at + int(rng.integers(1, 50))]
        elif kind == 2:
            data[at:at] = rng.bytes(int(rng.integers(1, 50)))
        elif kind == 3:
            data = data[:at]
        else:
            data[at : at + 16] = rng.bytes(16)
        changed.write_bytes(data)
        with suppress(ModelFileError):
            assert np.array_equal(drsne.load(changed).transform(NEW), whole)


def test_changed_files_with_a_right_checksum(saved, tmp_path):
    """Files with valid checksums but other contents, such as those of other versions, give our error."""
    text, rest = parts(saved)
    header = json.loads(text)

    def written(changed: dict, arrays=rest):
        return signed(tmp_path / "other", json.dumps(changed).encode(), arrays)

    assert np.array_equal(drsne.load(written(header)).transform(NEW), drsne.load(saved).transform(NEW))
    for name, value in (
        ("class", "Popen"),
        ("params", {"unknown": 1}),
        ("params", {**header["params"], "n_jobs": 2**63}),
        ("params", {**header["params"], "n_jobs": -(10**400)}),
        ("fitted", {"embedding_": {"class": "eval", "fields": {}}}),
        ("format", "one"),
        ("reference", {"training": 1}),
        ("reference", 7),
        ("reference", changed_in(header["reference"], "density_neighbors", 0.5)),
        ("reference", changed_in(header["reference"], "searched_neighbors", 10**7)),
        ("reference", changed_in(header["reference"], "mass", "one")),
        ("reference", changed_in(header["reference"], "slope", None)),
        ("fitted", changed_in(header["fitted"], "score_bits_", 53)),
        ("fitted", changed_in(header["fitted"], "score_bits_", None)),
    ):
        with pytest.raises(ModelFileError):
            drsne.load(written({**header, name: value}))
    for arrays in ([], [*rest[:-1], np.array(["2020"], dtype="M8[D]")], [*rest[:-1], rest[-1][:0]]):
        with pytest.raises(ModelFileError):
            drsne.load(written(header, arrays))
    for name in header:
        if name != "drsne":
            with pytest.raises(ModelFileError):
                drsne.load(written({key: value for key, value in header.items() if key != name}))


def test_foreign_and_newer_files(saved, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"")
    with pytest.raises(ModelFileError, match="not a model file"):
        drsne.load(other)
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ModelFileError, match="not a model file"):
        drsne.load(tmp_path / "a.npy")
    text, arrays = parts(saved)
    signed(other, json.dumps({**json.loads(text), "format": 9}).encode(), arrays)
    with pytest.raises(ModelFileError, match="newer drsne"):
        drsne.load(other)
    with pytest.raises(FileNotFoundError):
        drsne.load(tmp_path / "none")


def test_an_interrupted_save_keeps_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "m"
    model = DRSNE(**SHORT).fit(X)
    model.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["m"]
