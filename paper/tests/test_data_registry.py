"""What every data set of the registry guarantees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drsne_paper import datasets
from drsne_paper.datasets import _cache
from drsne_paper.datasets._registry import find

AT_HAND = {"generated", "comes with scikit-learn", "in the data home"}


@pytest.fixture(scope="module", params=datasets.names())
def loaded(request):
    """Return a complete data set, or skip if its file or the package that reads it is missing."""
    name = request.param
    state, _ = find(name).state(_cache.data_home())
    if state not in AT_HAND:
        pytest.skip(f"{name}: {state}")
    if name == "pbmc3k":
        pytest.importorskip("h5py", reason="pbmc3k is read by h5py")
    return datasets.load(name)


def test_what_is_stated_is_there(loaded):
    stated = find(loaded.name)
    assert loaded.X.shape == (stated.n_samples, stated.n_features)
    assert loaded.y is None or loaded.y.shape == (stated.n_samples,)
    assert loaded.description.startswith(stated.description)
    assert loaded.source == stated.source != ""
    values = loaded.X.data if hasattr(loaded.X, "toarray") else loaded.X
    assert np.isfinite(values).all()


def test_a_smaller_number_of_rows(loaded):
    """Generated data are generated again; rows of other data are drawn as in the paper."""
    some = datasets.load(loaded.name, n_samples=40, random_state=7)
    assert some.X.shape == (40, loaded.X.shape[1])
    if not find(loaded.name).endless:
        rows = np.random.RandomState(7).choice(loaded.X.shape[0], 40, replace=False)
        dense = (lambda A: A.toarray()) if hasattr(loaded.X, "toarray") else np.asarray
        assert np.array_equal(dense(some.X), dense(loaded.X[rows]))
        assert loaded.y is None or np.array_equal(some.y, loaded.y[rows])


@pytest.mark.parametrize("name", datasets.names())
def test_too_many_rows(name, tmp_path):
    """They are refused before any file is looked for, unless the data are generated."""
    dataset = find(name)
    if dataset.endless:
        assert len(datasets.load(name, n_samples=6001).X) == 6001
        return
    too_many = dataset.n_samples + 1
    with pytest.raises(ValueError, match=rf"n_samples must .*{dataset.n_samples}.*got {too_many}"):
        datasets.load(name, n_samples=too_many, data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in datasets.names() if find(name).endless])
def test_generated_data_come_from_their_seed(name):
    first, again, other = (datasets.load(name, n_samples=101, random_state=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    state = np.random.RandomState(3)
    assert np.array_equal(datasets.load(name, n_samples=101, random_state=state).X, first.X)


def test_states_name_every_dataset_without_decoding(tmp_path):
    listed = datasets.states(tmp_path)
    assert [state.name for state in listed] == datasets.names()
    for name, state, n_samples, n_features, size, description in listed:
        dataset = find(name)
        assert (n_samples, n_features, description) == (dataset.n_samples, dataset.n_features, dataset.description)
        assert size == 0
        assert state in AT_HAND | {"to be downloaded", "to be computed", "to be put into the data home by hand"}
    assert {s.name for s in listed if s.state == "to be downloaded"} >= {"mnist", "fashion_mnist", "shuttle", "pbmc3k"}
    assert list(tmp_path.iterdir()) == []


def test_every_dataset_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text()
    assert [name for name in datasets.names() if f"| `{name}` |" not in page] == []


def test_listing_loads_none():
    code = (
        "import sys; from drsne_paper import datasets; found = datasets.names(); "
        "print([n for n in found if f'drsne_paper.datasets.{n}' in sys.modules], "
        "sorted({'numpy', 'sklearn', 'scipy', 'h5py', 'torch', 'scanpy'} & set(sys.modules)), len(found))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"[] [] {len(datasets.names())}", done.stderr
